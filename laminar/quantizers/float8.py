"""Scales of numbers in 8 bits of floating point, learnt from the largest ones that came.

Source: Micikevicius et al., "FP8 formats for deep learning", 2022, arXiv:2209.05433, section 5;
    NVIDIA, Transformer Engine, "delayed scaling".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import ops
from ..typing import TensorLike


class Float8(NamedTuple):
    """A floating type of 8 bits.

    Attributes:
        mantissa_bits: without the one before the point.
        least_exponent: of normal numbers; below, they are as far apart as just above.
        largest: the greatest finite number.
    """

    mantissa_bits: int
    least_exponent: int
    largest: float

    def rounded(self, x: Any) -> Any:
        """float32 numbers, not above the largest one, as the nearest of the type; ties to even."""
        size = ops.abs(x)
        least = 2.0**self.least_exponent
        size = ops.where(ops.greater_equal(size, least), size, least)  # NaN too
        # Just below a power of two the logarithm may say that one: both distances round to it.
        place = ops.cast(ops.floor(ops.log2(size)) - self.least_exponent, "int32")
        count = int(np.log2(self.largest)) - self.least_exponent + 1
        exponents = self.least_exponent - self.mantissa_bits + np.arange(count, dtype=np.float32)
        distance = ops.take(np.exp2(exponents), ops.minimum(place, count - 1))
        return ops.multiply(ops.round(ops.divide(x, distance)), distance)


FLOAT8 = {"float8_e4m3fn": Float8(3, -6, 448.0), "float8_e5m2": Float8(2, -14, 57344.0)}


def compute_float8_scale(
    amax: TensorLike, scale: TensorLike, dtype_max: TensorLike, margin: int = 0
) -> Any:
    """What numbers are divided by: amax * 2 ** margin / dtype_max.

    Args:
        amax: the largest magnitude; where it is 0, or not finite, the scale stays.
        scale: as it is.
        dtype_max: the largest number of the type.
        margin: how many powers of two are left above.

    Examples:
        >>> laminar.quantizers.compute_float8_scale(np.array(896.0), np.array(1.0), 448.0)
        Tensor(2., shape=(), dtype=float64)
    """
    most = ops.convert_to_tensor(amax)
    before = ops.convert_to_tensor(scale)
    found = ops.multiply(ops.divide(most, dtype_max), 2.0**margin)
    is_known = ops.logical_and(ops.greater(most, 0), ops.isfinite(most))
    return ops.where(is_known, ops.cast(found, before.dtype), before)


def compute_float8_amax_history(x: TensorLike, amax_history: TensorLike) -> Any:
    """The largest magnitudes of the last tensors, with that of `x`, the newest, in front.

    Args:
        x: the newest tensor.
        amax_history: a vector; what is in it moves on by one place, and the oldest is lost.

    Examples:
        >>> laminar.quantizers.compute_float8_amax_history(
        ...     np.array([1.0, -3.0]), np.array([2.0, 1.0])
        ... )
        Tensor([3., 2.], shape=(2,), dtype=float64)
    """
    history = ops.convert_to_tensor(amax_history)
    most = ops.cast(ops.max(ops.abs(x)), history.dtype)
    rest = ops.roll(history, -1)[1:]
    return ops.concatenate([ops.reshape(most, (1,)), rest], axis=0)
