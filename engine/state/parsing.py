"""Features of examples, and their parsing, as a user describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import InvalidArgumentError
from ..graph import Tensor, TensorShape, as_dtype, string
from ..ops.convert import convert_to_tensor
from ..ops.parse import parse_examples


class FixedLenFeature(NamedTuple):
    """A feature of which every example has equally many values.

    Attributes:
        shape: of the values of one example.
        dtype: float32, int64 or string.
        default_value: for examples without it, of that shape or a scalar; None: it must be there.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values; parsed into a `SparseValues`.

    Attributes:
        dtype: float32, int64 or string.
    """

    dtype: Any


class SparseValues(NamedTuple):
    """Values at places of an array that is empty elsewhere.

    Attributes:
        indices: int64 (n, axes), the place of each value.
        values: (n).
        dense_shape: int64 (axes), of the array.
    """

    indices: Tensor
    values: Tensor
    dense_shape: Tensor


def parse_example(
    serialized: Any,
    features: Mapping[str, FixedLenFeature | VarLenFeature],
    name: str | None = None,
) -> dict[str, Any]:
    """The features of serialized Example messages.

    Args:
        serialized: (batch), strings; or a scalar, for one example without a batch axis.
        features: by name, what is asked for.
        name: of the operation.

    Returns:
        by name: a tensor (batch, shape...), or a SparseValues.

    Raises:
        InvalidArgumentError: a feature is missing and has no default, or has other values than
            were asked for.
        DataLossError: a string is no Example.
    """
    if not isinstance(features, Mapping) or not features:
        raise InvalidArgumentError(
            f"parse_example: features must be a dict with at least one feature, got {features!r}"
        )
    dense = {k: f for k, f in features.items() if isinstance(f, FixedLenFeature)}
    sparse = {k: f for k, f in features.items() if isinstance(f, VarLenFeature)}
    for key, feature in features.items():
        if key not in dense and key not in sparse:
            raise InvalidArgumentError(
                f"parse_example: feature {key!r} must be a FixedLenFeature or a VarLenFeature, "
                f"got {feature!r}"
            )
    defaults = [
        convert_to_tensor(f.default_value, as_dtype(f.dtype))
        for f in dense.values()
        if f.default_value is not None
    ]
    found = parse_examples.many(
        convert_to_tensor(serialized, string),
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
    for i, key in enumerate(sparse):
        start = len(dense) + 3 * i
        parsed[key] = SparseValues(*found[start : start + 3])
    return {key: parsed[key] for key in features}


def parse_single_example(
    serialized: Any,
    features: Mapping[str, FixedLenFeature | VarLenFeature],
    name: str | None = None,
) -> dict[str, Any]:
    """The features of one serialized Example, a string scalar; see `parse_example`."""
    one = convert_to_tensor(serialized, string)
    if one.shape.rank not in (0, None):
        raise InvalidArgumentError(
            f"parse_single_example: expected one string, a scalar, got {one.spec}",
            remedy="use parse_example for a batch",
        )
    return parse_example(one, features, name)
