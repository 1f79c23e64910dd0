"""Floats as whole numbers of few bits, with a scale for each row, for groups, or for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes

from .. import ops
from ..engine.errors import InvalidArgumentError, ShapeError
from ..engine.graph import as_dtype
from ..typing import TensorLike
from .float8 import FLOAT8

Axes = int | Sequence[int] | None


def abs_max_quantize(
    inputs: TensorLike,
    axis: Axes,
    value_range: tuple[int, int] = (-127, 127),
    dtype: str = "int8",
    epsilon: float = 1e-7,
    to_numpy: bool = False,
) -> tuple[Any, Any]:
    """Whole numbers that stand for floats, and their scale: x is about outputs / scale.

    scale = value_range[1] / (max |x| + epsilon), outputs = clip(round(x * scale), *value_range).

    Args:
        inputs: floats.
        axis: over which the maximum is taken, so that they have one scale; None for all axes.
        value_range: the smallest and the largest output.
        dtype: of the outputs.
        epsilon: keeps the scale finite.
        to_numpy: whether to give NumPy arrays.

    Returns:
        The outputs, and the scale, whose `axis` has size 1.

    Examples:
        >>> values, scale = laminar.quantizers.abs_max_quantize(
        ...     np.array([[0.5, -1.0]], "float32"), axis=-1
        ... )
        >>> values
        Tensor([[  63, -127]], shape=(1, 2), dtype=int8)
        >>> scale
        Tensor([[127.]], shape=(1, 1), dtype=float32)
    """
    x = ops.convert_to_tensor(inputs)
    most = ops.max(ops.abs(x), axis=axis, keepdims=True)
    scale = ops.divide(value_range[1], ops.add(most, epsilon))
    scale = ops.cast(scale, x.dtype)
    outputs = ops.cast(ops.clip(ops.round(ops.multiply(x, scale)), *value_range), dtype)
    if to_numpy:
        return ops.convert_to_numpy(outputs), ops.convert_to_numpy(scale)
    return outputs, scale


def quantize_and_dequantize(
    inputs: TensorLike, scale: Any, quantized_dtype: str, compute_dtype: str
) -> Any:
    """`inputs / scale`, clipped to what `quantized_dtype` holds and kept in it, times `scale`.

    Raises:
        InvalidArgumentError: `quantized_dtype` is no element type with a sign.

    Examples:
        >>> laminar.quantizers.quantize_and_dequantize(
        ...     np.array([0.3, 0.7]), 0.25, "int8", "float32"
        ... )
        Tensor([0.25, 0.75], shape=(2,), dtype=float32)
    """
    most = _largest(quantized_dtype)
    x = ops.divide(ops.cast(inputs, compute_dtype), ops.cast(scale, compute_dtype))
    x = ops.clip(x, -most, most)
    if quantized_dtype.startswith("int"):
        x = ops.round(x)
    if quantized_dtype in FLOAT8:
        kept = FLOAT8[quantized_dtype].rounded(ops.cast(x, "float32"))
    else:
        kept = ops.cast(x, quantized_dtype)
    return ops.multiply(ops.cast(kept, compute_dtype), ops.cast(scale, compute_dtype))


def abs_max_quantize_grouped_with_zero_point(
    inputs: TensorLike,
    block_size: int,
    value_range: tuple[int, int] = (-8, 7),
    dtype: str = "int8",
    epsilon: float = 1e-7,
    to_numpy: bool = False,
) -> tuple[Any, Any, Any]:
    """Whole numbers that stand for floats, each group of rows with a scale and a zero of its own.

    In a group of `block_size` rows of a column, scale = (max - min + epsilon) / (high - low),
    zero = clip(round(-min / scale) + low), outputs = clip(round(x / scale) + zero), all clipped to
    (low, high) = value_range; x is about (outputs - zero) * scale. Rows that fill up the last group
    are zeros.

    Args:
        inputs: floats, (rows, columns).
        block_size: of a group.
        value_range: the smallest and the largest output.
        dtype: of the outputs.
        epsilon: keeps the scale above 0.
        to_numpy: as Keras has it, one group that is not full is filled up with zeros.

    Returns:
        The outputs (rows, columns); scales and zeros (groups, columns), the zeros in int8.

    Raises:
        ShapeError: the inputs are no matrix.
        InvalidArgumentError: a block size below 1.

    Examples:
        >>> x = np.arange(8, dtype="float32").reshape(4, 2)
        >>> grouped = laminar.quantizers.abs_max_quantize_grouped_with_zero_point
        >>> values, scale, zero_point = grouped(x, block_size=2)
        >>> values.shape, scale.shape, zero_point.shape
        ((4, 2), (2, 2), (2, 2))
    """
    x = ops.convert_to_tensor(inputs)
    if len(x.shape) != 2:
        raise ShapeError(f"grouped quantization is of a matrix, got the shape {tuple(x.shape)}")
    if block_size < 1:
        raise InvalidArgumentError(f"block_size must be at least 1, got {block_size}")
    rows, columns = ops.shape(x)
    if not to_numpy:
        block_size = min(block_size, rows)  # one group that is not filled up
    low, high = value_range
    groups = math.ceil(rows / block_size)
    padded = ops.pad(x, [[0, groups * block_size - rows], [0, 0]])
    grouped = ops.reshape(padded, (groups, block_size, columns))
    least = ops.min(grouped, axis=1, keepdims=True)
    most = ops.max(grouped, axis=1, keepdims=True)
    is_flat = ops.equal(least, most)
    least = ops.where(is_flat, least - 1, least)
    most = ops.where(is_flat, most + 1, most)
    scale = (most - least + epsilon) / (high - low)
    zero = ops.clip(ops.round(-least / scale) + low, low, high)
    outputs = ops.clip(ops.round(grouped / scale) + zero, low, high)
    outputs = ops.reshape(outputs, (groups * block_size, columns))[:rows]
    return (
        ops.cast(outputs, dtype),
        ops.cast(ops.squeeze(scale, axis=1), x.dtype),
        ops.cast(ops.squeeze(zero, axis=1), "int8"),
    )


def _largest(dtype: str) -> float:
    """The largest finite number of an element type."""
    if dtype in FLOAT8:
        return FLOAT8[dtype].largest
    kind = as_dtype(dtype)
    if kind.is_floating:
        return float(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]  # it has no hints
    if kind.is_integer and not kind.startswith("u"):
        return float(2 ** (8 * kind.size - 1) - 1)
    raise InvalidArgumentError(
        f"quantize_and_dequantize: expected a type of numbers with a sign, got {dtype!r}"
    )
