"""Features of examples, and their parsing, as a user describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..errors import InvalidArgumentError
from ..graph import Tensor, TensorShape, as_dtype, string
from ..ops.array.join import concat
from ..ops.array.shape import reshape
from ..ops.core.basic import constant
from ..ops.core.convert import convert_to_tensor
from ..ops.io.parse import parse_examples
from ..ops.io.parse_sequences import parse_sequences, parse_sparse_lists
from ..ops.sparse.sparse_structure import sparse_reorder
from ..ops.sparse.sparse_values import SparseValues


class FixedLenFeature(NamedTuple):
    """A feature of which every example has equally many values.

    Attributes:
        shape: of the values of one example.
        dtype: float32, int64 or string.
        default_value: for examples without it, of that shape, as many values, or a scalar; None:
            it must be there.

    Examples:
        >>> data = engine.encode_example({"age": [30]})
        >>> engine.parse_single_example(data, {"age": engine.FixedLenFeature((), "int64")})
        {'age': Tensor(30, shape=(), dtype=int64)}
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of rows of equally many values.

    In an Example the values of the feature are the rows, one after the other; in a SequenceExample
    there is a list of features, each of which is a row.

    Attributes:
        shape: of the values of a row.
        dtype: float32, int64 or string.
        allow_missing: whether an example without it has no rows; else it must be there.
        default_value: a scalar, what fills up shorter sequences of a batch; None for zero, or "".

    Examples:
        >>> data = engine.encode_sequence_example({"id": [1]}, {"words": [[1], [3]]})
        >>> words = {"words": engine.FixedLenSequenceFeature((), "int64")}
        >>> context, sequences = engine.parse_single_sequence_example(data, {}, words)
        >>> sequences["words"]
        Tensor([1, 3], shape=(2,), dtype=int64)
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values; parsed into a `SparseValues`.

    Attributes:
        dtype: float32, int64 or string.

    Examples:
        >>> data = engine.encode_example({"tags": [b"a", b"b"]})
        >>> engine.parse_single_example(data, {"tags": engine.VarLenFeature("string")})[
        ...     "tags"
        ... ].values
        Tensor([b'a', b'b'], shape=(2,), dtype=string)
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """Values with their places, each in a feature of its own; parsed into a `SparseValues`.

    Attributes:
        index_key: the feature with the places along an axis, int64; a list of them for several.
        value_key: the feature with the values.
        dtype: of the values: float32, int64 or string.
        size: of the axis, or a list of them.
        already_sorted: whether the values of each example are in row-major order.

    Examples:
        >>> data = engine.encode_example({"at": [2], "value": [0.5]})
        >>> feature = engine.SparseFeature("at", "value", "float32", 4)
        >>> found = engine.parse_single_example(data, {"x": feature})["x"]
        >>> engine.sparse_tensor_to_dense(found)
        Tensor([0. , 0. , 0.5, 0. ], shape=(4,), dtype=float32)
    """

    index_key: str | Sequence[str]
    value_key: str
    dtype: Any
    size: int | Sequence[int]
    already_sorted: bool = False


Feature: TypeAlias = FixedLenFeature | FixedLenSequenceFeature | VarLenFeature | SparseFeature


def _by_kind(who: str, features: Mapping[str, Any], kinds: Sequence[type]) -> list[dict[str, Any]]:
    """The features of each kind.

    Raises:
        InvalidArgumentError: one is of another kind.
    """
    if not isinstance(features, Mapping):
        raise InvalidArgumentError(f"{who}: features must be a dict, got {features!r}")
    for key, feature in features.items():
        if not isinstance(feature, tuple(kinds)):
            names = " or a ".join(kind.__name__ for kind in kinds)
            raise InvalidArgumentError(f"{who}: feature {key!r} must be a {names}, got {feature!r}")
    return [{k: f for k, f in features.items() if isinstance(f, kind)} for kind in kinds]


def parse_example(
    serialized: Any, features: Mapping[str, Feature], name: str | None = None
) -> dict[str, Any]:
    """The features of serialized Example messages.

    Args:
        serialized: (batch), strings; or a scalar, for one example without a batch axis.
        features: by name, what is asked for.
        name: of the operation.

    Returns:
        by name: a tensor (batch, shape...); (batch, rows, shape...) of a FixedLenSequenceFeature,
        filled up to the longest; or a SparseValues.

    Raises:
        InvalidArgumentError: a feature is missing and has no default, or has other values than
            were asked for.
        DataLossError: a string is no Example.

    Examples:
        >>> data = [engine.encode_example({"age": [age]}) for age in (30, 40)]
        >>> engine.parse_example(data, {"age": engine.FixedLenFeature((), "int64")})
        {'age': Tensor([30, 40], shape=(2,), dtype=int64)}
    """
    if not features:
        raise InvalidArgumentError(
            f"parse_example: features must be a dict with at least one feature, got {features!r}"
        )
    kinds = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature)
    dense, sparse, sequences, placed = _by_kind("parse_example", features, kinds)
    strings = convert_to_tensor(serialized, string)
    parsed: dict[str, Any] = {}
    parts = _parts_of(placed)
    _check_parts(dense | sparse | sequences, sparse, parts)
    if dense or sparse or parts:
        parsed |= _parse_fixed(strings, dense, parts | sparse, name)
    for key, feature in placed.items():
        parsed[key] = _placed(feature, parsed)
    if sequences:
        parsed |= _parse_sequences(strings, sequences, name, lists=False)[0]
    return {key: parsed[key] for key in features}


def _index_keys(feature: SparseFeature) -> list[str]:
    keys = feature.index_key
    return [keys] if isinstance(keys, str) else list(keys)


def _sizes(feature: SparseFeature) -> list[int]:
    sizes = feature.size
    return [sizes] if isinstance(sizes, int) else list(sizes)


def _parts_of(placed: Mapping[str, SparseFeature]) -> dict[str, VarLenFeature]:
    """The features that hold the places and the values."""
    parts: dict[str, VarLenFeature] = {}
    for key, feature in placed.items():
        keys = _index_keys(feature)
        if not keys or len(keys) != len(_sizes(feature)):
            raise InvalidArgumentError(
                f"parse_example: feature {key!r} has places in {keys}, and the sizes "
                f"{_sizes(feature)}",
                remedy="give a size for each axis",
            )
        own = {k: VarLenFeature("int64") for k in keys}
        own[feature.value_key] = VarLenFeature(feature.dtype)
        _check_parts(own, own, parts)
        parts |= own
    return parts


def _check_parts(
    others: Mapping[str, Any], sparse: Mapping[str, Any], parts: Mapping[str, VarLenFeature]
) -> None:
    """Refuse a feature that is asked for as two kinds of thing."""
    for key in others.keys() & parts.keys():
        wanted = as_dtype(parts[key].dtype)
        if key not in sparse or as_dtype(sparse[key].dtype) != wanted:
            raise InvalidArgumentError(
                f"parse_example: feature {key!r} is {others[key]!r}, and part of a SparseFeature, "
                f"which takes it as {wanted}"
            )


def _placed(feature: SparseFeature, parsed: Mapping[str, Any]) -> SparseValues:
    """The values at their places; of a batch, the example is the first axis."""
    values = parsed[feature.value_key]
    columns = [reshape(parsed[key].values, (-1, 1)) for key in _index_keys(feature)]
    sizes = constant(_sizes(feature), "int64")
    if values.indices.shape[-1] == 2:
        columns.insert(0, values.indices[:, :1])
        sizes = concat((values.dense_shape[:1], sizes), 0)
    found = SparseValues(concat(columns, 1), values.values, sizes)
    return found if feature.already_sorted else sparse_reorder(found)


def _default(feature: FixedLenFeature) -> Tensor:
    """The default of a feature; as many values under another shape are brought into its shape."""
    value = convert_to_tensor(feature.default_value, as_dtype(feature.dtype))
    shape = TensorShape(feature.shape)
    count = value.shape.num_elements()
    if value.shape == shape or count is None or count != shape.num_elements():
        return value
    return reshape(value, shape)


def _parse_fixed(
    serialized: Tensor,
    dense: Mapping[str, FixedLenFeature],
    sparse: Mapping[str, VarLenFeature],
    name: str | None,
) -> dict[str, Any]:
    defaults = [_default(f) for f in dense.values() if f.default_value is not None]
    found = parse_examples.many(
        serialized,
        *defaults,
        dense_keys=tuple(dense),
        dense_dtypes=tuple(as_dtype(f.dtype) for f in dense.values()),
        dense_shapes=tuple(TensorShape(f.shape) for f in dense.values()),
        defaulted=tuple(f.default_value is not None for f in dense.values()),
        sparse_keys=tuple(sparse),
        sparse_dtypes=tuple(as_dtype(f.dtype) for f in sparse.values()),
        name=name,
    )
    parsed: dict[str, Any] = dict(zip(dense, found, strict=False))
    return parsed | _sparse_values(sparse, found[len(dense) :])


def _sparse_values(keys: Iterable[str], found: Sequence[Tensor]) -> dict[str, SparseValues]:
    return {key: SparseValues(*found[3 * i : 3 * i + 3]) for i, key in enumerate(keys)}


def _parse_sequences(
    serialized: Tensor,
    features: Mapping[str, FixedLenSequenceFeature],
    name: str | None,
    *,
    lists: bool,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The padded rows of each feature, and how many rows there are."""
    dtypes = tuple(as_dtype(f.dtype) for f in features.values())
    fillers = []
    for f, dtype in zip(features.values(), dtypes, strict=True):
        nothing: Any = b"" if dtype == string else 0
        value = nothing if f.default_value is None else f.default_value
        fillers.append(convert_to_tensor(value, dtype))
    found = parse_sequences.many(
        serialized,
        *fillers,
        keys=tuple(features),
        dtypes=dtypes,
        shapes=tuple(TensorShape(f.shape) for f in features.values()),
        optional=tuple(bool(f.allow_missing) for f in features.values()),
        lists=lists,
        name=name,
    )
    return dict(zip(features, found[::2], strict=True)), dict(
        zip(features, found[1::2], strict=True)
    )


def _one_string(who: str, serialized: Any, batched: str) -> Tensor:
    one = convert_to_tensor(serialized, string)
    if one.shape.rank not in (0, None):
        raise InvalidArgumentError(
            f"{who}: expected one string, a scalar, got {one.spec}",
            remedy=f"use {batched} for a batch",
        )
    return one


def parse_single_example(
    serialized: Any, features: Mapping[str, Feature], name: str | None = None
) -> dict[str, Any]:
    """The features of one serialized Example, a string scalar; see `parse_example`.

    Args:
        serialized: a string scalar.
        features: by name, what is asked for; at least one.
        name: of the operation.

    Returns:
        by name: as of `parse_example`, without the batch axis.

    Raises:
        InvalidArgumentError: `serialized` is no scalar, or a feature is missing and has no default.

    Examples:
        >>> data = engine.encode_example({"age": [30]})
        >>> engine.parse_single_example(data, {"age": engine.FixedLenFeature((), "int64")})
        {'age': Tensor(30, shape=(), dtype=int64)}
    """
    one = _one_string("parse_single_example", serialized, "parse_example")
    return parse_example(one, features, name)


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Feature] | None = None,
    sequence_features: Mapping[str, FixedLenSequenceFeature | VarLenFeature] | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """The features of serialized SequenceExample messages.

    Args:
        serialized: (batch), strings; or a scalar, for one example without a batch axis.
        context_features: by name, what is asked for of the context.
        sequence_features: by name, what is asked for of the lists of features.
        name: of the operations.

    Returns:
        (context, sequences, lengths): the context as `parse_example` gives it; by name, a tensor
        (batch, steps, shape...) filled up to the longest, or a SparseValues with the axes batch,
        step and place; and for those that are tensors, how many steps there are, int32 (batch).

    Raises:
        InvalidArgumentError: a feature is missing and may not, or has other values than were asked
            for.
        DataLossError: a string is no SequenceExample.

    Examples:
        >>> data = engine.encode_sequence_example({"id": [1]}, {"words": [[1], [3]]})
        >>> words = {"words": engine.FixedLenSequenceFeature((), "int64", allow_missing=True)}
        >>> context, sequences, lengths = engine.parse_sequence_example([data], {}, words)
        >>> sequences["words"]
        Tensor([[1, 3]], shape=(1, 2), dtype=int64)
    """
    strings = convert_to_tensor(serialized, string)
    context_features, sequence_features = context_features or {}, sequence_features or {}
    if not context_features and not sequence_features:
        raise InvalidArgumentError("parse_sequence_example: no feature is asked for")
    kinds = (FixedLenSequenceFeature, VarLenFeature)
    dense, sparse = _by_kind("parse_sequence_example", sequence_features, kinds)
    # The context of a SequenceExample stands where an Example has its features.
    context = parse_example(strings, context_features, name) if context_features else {}
    sequences: dict[str, Any] = {}
    lengths: dict[str, Tensor] = {}
    if dense:
        rows, lengths = _parse_sequences(strings, dense, name, lists=True)
        sequences |= rows
    if sparse:
        dtypes = tuple(as_dtype(f.dtype) for f in sparse.values())
        found = parse_sparse_lists.many(strings, keys=tuple(sparse), dtypes=dtypes, name=name)
        sequences |= _sparse_values(sparse, found)
    return context, {key: sequences[key] for key in sequence_features}, lengths


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Feature] | None = None,
    sequence_features: Mapping[str, FixedLenSequenceFeature | VarLenFeature] | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The context and the sequences of one serialized SequenceExample, a string scalar.

    See `parse_sequence_example`; there is nothing to fill up.

    Args:
        serialized: a string scalar.
        context_features: by name, what is asked for of the context.
        sequence_features: by name, which sequences are asked for.
        name: of the operation.

    Returns:
        (context, sequences), both by name; a sequence is (rows, shape...), or a SparseValues.

    Raises:
        InvalidArgumentError: nothing is asked for, `serialized` is no scalar, or what is asked for
            is missing and has no default.

    Examples:
        >>> data = engine.encode_sequence_example({"id": [1]}, {"words": [[1], [3]]})
        >>> words = {"words": engine.FixedLenSequenceFeature((), "int64")}
        >>> context, sequences = engine.parse_single_sequence_example(data, {}, words)
        >>> sequences["words"]
        Tensor([1, 3], shape=(2,), dtype=int64)
    """
    one = _one_string("parse_single_sequence_example", serialized, "parse_sequence_example")
    return parse_sequence_example(one, context_features, sequence_features, name)[:2]
