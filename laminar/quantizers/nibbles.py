"""Whole numbers of 4 bits, two to a byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops
from ..engine.errors import DTypeError, InvalidArgumentError
from ..typing import TensorLike


def pack_int4(
    arr: TensorLike, axis: int = 0, dtype: str = "int8"
) -> tuple[Any, tuple[int, ...], int]:
    """Put each two numbers that follow each other along an axis into one byte.

    The first one is in the 4 lower bits; a 0 fills up an odd number of them.

    Args:
        arr: numbers from -8 to 7 (0 to 15 with uint8).
        axis: along which they are packed.
        dtype: of `arr` and of the result, "int8" or "uint8".

    Returns:
        The bytes, their shape, and how many numbers there are along the axis.

    Raises:
        InvalidArgumentError: another `dtype`.
        DTypeError: `arr` is of another type.

    Examples:
        >>> packed, shape, rows = laminar.quantizers.pack_int4(np.array([[1], [2], [3]], "int8"))
        >>> packed, rows
        (Tensor([[33],
                [ 3]], shape=(2, 1), dtype=int8), 3)
    """
    _check(dtype)
    values = np.asarray(ops.convert_to_numpy(arr))
    if str(values.dtype) != dtype:
        raise DTypeError(
            f"pack_int4: expected numbers of {dtype}, got {values.dtype}", remedy="cast them first"
        )
    count = values.shape[axis]
    nibbles = np.moveaxis(values, axis, 0).view(np.uint8) & 15
    if count % 2:
        nibbles = np.concatenate([nibbles, np.zeros_like(nibbles[:1])])
    packed = np.moveaxis(nibbles[0::2] | nibbles[1::2] << 4, 0, axis)
    packed = np.ascontiguousarray(packed).view(dtype)
    return ops.convert_to_tensor(packed), packed.shape, count


def unpack_int4(packed: TensorLike, orig_len: int, axis: int = 0, dtype: str = "int8") -> Any:
    """The numbers that `pack_int4` has put into bytes.

    Args:
        packed: the bytes.
        orig_len: how many numbers there are along the axis.
        axis: along which they are packed.
        dtype: "int8" for numbers from -8 to 7, "uint8" for 0 to 15.

    Raises:
        InvalidArgumentError: another `dtype`.
        DTypeError: `packed` is not of int8 or uint8.

    Examples:
        >>> packed, shape, rows = laminar.quantizers.pack_int4(np.array([[1], [2], [3]], "int8"))
        >>> laminar.quantizers.unpack_int4(packed, rows)
        Tensor([[1],
                [2],
                [3]], shape=(3, 1), dtype=int8)
    """
    _check(dtype)
    x = ops.convert_to_tensor(packed)
    if str(x.dtype) not in ("int8", "uint8"):
        raise DTypeError(f"unpack_int4: expected bytes, got {x.dtype}")
    x = ops.cast(x, "int32")
    low, high = ops.bitwise_and(x, 15), ops.bitwise_and(ops.right_shift(x, 4), 15)
    pairs = ops.stack([low, high], axis=axis + 1 if axis >= 0 else axis + len(x.shape) + 1)
    place = axis if axis >= 0 else axis + len(x.shape)
    shape = list(ops.shape(x))
    shape[place] *= 2
    found = ops.reshape(pairs, shape)
    if dtype == "int8":
        found = ops.bitwise_xor(found, 8) - 8
    found = ops.cast(found, dtype)
    return found[(slice(None),) * place + (slice(0, orig_len),)]


def _check(dtype: str) -> None:
    if dtype not in ("int8", "uint8"):
        raise InvalidArgumentError(f"expected the dtype 'int8' or 'uint8', got {dtype!r}")
