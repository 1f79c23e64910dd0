"""What is made of columns of features: the input of a network, a linear model, a parser's spec."""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine.graph import float32
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.core.registry import lookup

from .adapting import v1
from .embeddings import safe_embedding_lookup_sparse
from .feature_columns import CategoricalColumn, Column, DenseColumn
from .init_ops import Zeros
from .variables import get_variable


def _ordered(who: str, columns: Any) -> list[Any]:
    given = [columns] if isinstance(columns, Column) else list(columns)
    if not given or not all(isinstance(c, Column) for c in given):
        raise ValueError(f"{who}: expected columns of features, got {columns!r}")
    names = [c.name for c in given]
    if len(set(names)) != len(names):
        raise ValueError(f"{who}: two columns have one name: {sorted(names)}")
    return sorted(given, key=lambda c: c.name)


@v1()
def input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
    cols_to_output_tensors: Any = None,
) -> Any:
    """The numbers of all columns, side by side in the order of their names: (batch, all).

    Args:
        features: by key, tensors or sparse tensors.
        feature_columns: dense ones.
        weight_collections: names of collections that variables go to.
        trainable: whether variables are trained.
        cols_to_vars: a dictionary to be filled: the variables of each column.
        cols_to_output_tensors: a dictionary to be filled: the tensor of each column.

    Raises:
        ValueError: a column is categorical only.
    """
    parts = []
    with engine.variable_scope(None, "input_layer"):
        for column in _ordered("input_layer", feature_columns):
            if not isinstance(column, DenseColumn):
                raise ValueError(
                    f"input_layer: {column.name} is categorical; use indicator_column or "
                    "embedding_column"
                )
            before = list(engine.global_variables())
            with engine.variable_scope(column.name):
                found = column.dense(features, trainable)
            parts.append(found)
            _noted(column, before, weight_collections, cols_to_vars)
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = found
        return concat(parts, 1)


def _noted(column: Any, before: list[Any], collections: Any, cols_to_vars: Any) -> None:
    known = {id(v) for v in before}
    made = [v for v in engine.global_variables() if id(v) not in known]
    for name in collections or ():
        for variable in made:
            engine.add_to_collection(name, variable)
    if cols_to_vars is not None:
        cols_to_vars[column] = made


@v1()
def linear_model(
    features: Any,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
) -> Any:
    """The weighted sum of all columns, and a bias: (batch, units). All begin with zeros.

    Args:
        features: by key, tensors or sparse tensors.
        feature_columns: of any kind.
        units: how many sums there are.
        sparse_combiner: how the weights of several categories become one: "sum", "mean", "sqrtn".
        weight_collections, trainable, cols_to_vars: see `input_layer`.
    """
    total: Any = None
    with engine.variable_scope(None, "linear_model"):
        for column in _ordered("linear_model", feature_columns):
            before = list(engine.global_variables())
            with engine.variable_scope(column.name):
                if isinstance(column, CategoricalColumn):
                    own = _of_categories(column, features, units, sparse_combiner, trainable)
                else:
                    x = column.dense(features, trainable)
                    shape = [column.size(), units]
                    weights = get_variable("weights", shape, float32, Zeros(), trainable=trainable)
                    own = lookup("MatMul")(x, weights)
            _noted(column, before, weight_collections, cols_to_vars)
            total = own if total is None else total + own
        before = list(engine.global_variables())
        bias = get_variable("bias_weights", [units], float32, Zeros(), trainable=trainable)
        _noted("bias", before, weight_collections, cols_to_vars)
        return total + bias


def _of_categories(
    column: CategoricalColumn, features: Any, units: int, combiner: str, trainable: bool
) -> Any:
    shape = [column.count(), units]
    weights = get_variable("weights", shape, float32, Zeros(), trainable=trainable)
    numbers, given = column.ids(features)
    found = safe_embedding_lookup_sparse(weights, numbers, given, combiner)
    return lookup("Reshape")(found, shape=(-1, units))


def make_parse_example_spec(feature_columns: Any) -> dict[str, Any]:
    """How the features of all columns are read from Examples, for `tf.io.parse_example`."""
    found: dict[str, Any] = {}
    for column in _ordered("make_parse_example_spec", feature_columns):
        for key, spec in column.parse_example_spec.items():
            if found.setdefault(key, spec) != spec:
                raise ValueError(
                    f"two columns read {key!r} in different ways: {spec}, {found[key]}"
                )
    return found
