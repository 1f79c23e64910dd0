"""`tf.metrics`: how well the k greatest predictions match the labels of each example.

Source: Järvelin and Kekäläinen, "IR evaluation methods for retrieving highly relevant documents",
2000, for precision and recall at k; Manning, Raghavan and Schütze, "Introduction to Information
Retrieval", 2008, section 8.4, for average precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.sparse.sparse_dense import sparse_tensor_to_dense
from laminar.engine.ops.sparse.sparse_values import SparseValues

from .adapting import v1
from .maths import reduce_sum
from .streaming import kept_count, listed
from .values import static, tensor
from .variables import variable_scope

_ABSENT = -(1 << 40)  # stands where a row has fewer labels than others


def _labels(labels: Any, class_id: Any) -> tuple[Tensor, Tensor]:
    """(labels, which of them are there), each (..., labels of an example)."""
    if isinstance(labels, SparseValues):
        found = cast(sparse_tensor_to_dense(labels, _ABSENT), "int64")
        there = lookup("NotEqual")(found, tensor(_ABSENT, found.dtype))
    else:
        found = cast(tensor(labels), "int64")
        there = lookup("Equal")(found, found)
    if class_id is not None:
        own = lookup("Equal")(found, tensor(class_id, found.dtype))
        there = lookup("LogicalAnd")(there, own)
    return found, there


def _hits(labels: Tensor, there: Tensor, chosen: Tensor) -> Tensor:
    """float32 (..., k): whether each of the chosen classes is a label."""
    same = lookup("Equal")(
        lookup("ExpandDims")(chosen, axis=(-1,)), lookup("ExpandDims")(labels, axis=(-2,))
    )
    both = lookup("LogicalAnd")(same, lookup("ExpandDims")(there, axis=(-2,)))
    return cast(lookup("Any")(both, axis=(-1,)), "float32")


def _aligned(labels: Any, chosen: Tensor) -> Any:
    """Labels with an axis of their own, where each example has one."""
    if isinstance(labels, SparseValues):
        return labels
    found = tensor(labels)
    if found.shape.rank == (chosen.shape.rank or 0) - 1:
        return lookup("ExpandDims")(found, axis=(-1,))
    return found


def _weighted(values: Tensor, weights: Any) -> Tensor:
    if weights is None:
        found: Tensor = reduce_sum(values)
    else:
        found = reduce_sum(values * cast(tensor(weights), "float32"))
    return found


def _counted(
    scope: str, name: str | None, hits: Tensor, all_of: Tensor, weights: Any, lists: Any
) -> tuple[Any, Any]:
    """The sum of hits over that of all, of all batches."""
    with variable_scope(name, scope):
        total, count = kept_count("true_positive"), kept_count("count")
        new_total = total.assign_add(_weighted(hits, weights))
        new_count = count.assign_add(_weighted(all_of, weights))
        value = lookup("DivNoNan")(total.as_tensor(), count.as_tensor())
        update = lookup("DivNoNan")(tensor(new_total), tensor(new_count))
        return listed(value, update, *lists)


def _chosen(predictions: Any, k: Any) -> Tensor:
    found: Tensor = ops.top_k(tensor(predictions), int(static(k)), True)[1]
    return cast(found, "int64")


@v1()
def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: Any = None,
    class_id: Any = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Which part of the chosen classes, (..., k), are labels; of `class_id` alone, if given."""
    chosen = cast(tensor(predictions_idx), "int64")
    given, there = _labels(_aligned(labels, chosen), class_id)
    hits = reduce_sum(_hits(given, there, chosen), [-1])
    every = lookup("OnesLike")(cast(chosen, "float32"))
    if class_id is not None:
        every = cast(lookup("Equal")(chosen, tensor(class_id, chosen.dtype)), "float32")
    lists = (metrics_collections, updates_collections)
    return _counted("precision_at_k", name, hits, reduce_sum(every, [-1]), weights, lists)


@v1()
def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: Any = None,
    class_id: Any = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Which part of the labels are among the chosen classes, (..., k)."""
    chosen = cast(tensor(predictions_idx), "int64")
    given, there = _labels(_aligned(labels, chosen), class_id)
    hits = reduce_sum(_hits(given, there, chosen), [-1])
    every = reduce_sum(cast(there, "float32"), [-1])
    lists = (metrics_collections, updates_collections)
    return _counted("recall_at_k", name, hits, every, weights, lists)


def _at_k(at_top_k: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """As `at_top_k`, which gets the classes with the k greatest predictions."""

    def at_k(
        labels: Any,
        predictions: Any,
        k: Any,
        class_id: Any = None,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Any:
        lists = (metrics_collections, updates_collections)
        return at_top_k(labels, _chosen(predictions, k), k, class_id, weights, *lists, name=name)

    at_k.__doc__ = doc
    return v1()(at_k)


precision_at_k = _at_k(
    precision_at_top_k,
    """Which part of the classes with the k greatest predictions are labels.

    Args:
        labels: (..., labels of an example), or a sparse tensor.
        predictions: (..., classes).
        k: how many are chosen.
        class_id: counts choices of this class alone.
        weights: of examples, of a shape that broadcasts to theirs.
        metrics_collections: what lists the value.
        updates_collections: what lists the update.
        name: of the scope of the variables.
    """,
)
recall_at_k = _at_k(
    recall_at_top_k,
    """Which part of the labels are among the classes with the k greatest predictions.

    Arguments as for `precision_at_k`.
    """,
)


@v1()
def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean over examples of: the sum of precision_at_i over hits i, / min(k, labels)."""
    chosen = _chosen(predictions, k)
    given, there = _labels(_aligned(labels, chosen), None)
    hits = _hits(given, there, chosen)
    places = lookup("Cumsum")(lookup("OnesLike")(hits), axis=-1)
    precision = lookup("Cumsum")(hits, axis=-1) / places
    most = reduce_sum(cast(there, "float32"), [-1])
    most = lookup("Minimum")(most, most * 0.0 + float(int(static(k))))
    each = lookup("DivNoNan")(reduce_sum(precision * hits, [-1]), most)
    lists = (metrics_collections, updates_collections)
    return _counted(
        f"average_precision_at_{int(static(k))}",
        name,
        each,
        lookup("OnesLike")(each),
        weights,
        lists,
    )
