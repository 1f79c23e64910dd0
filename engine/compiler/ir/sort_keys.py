"""Numbers by which elements are put in order: integers that compare as sorting does."""

from __future__ import annotations

from typing import Any

from ...graph import DType, float32, float64, int32, int64

_INTEGERS = {float32: int32, float64: int64}  # of the same size


def order_type(dtype: DType) -> DType:
    """The type of `in_order` for elements of a type."""
    return _INTEGERS.get(dtype, dtype)


def in_order(s: Any, x: Any) -> Any:
    """An integer for each element; NaN is the greatest, and -0 is 0.

    As a scalar expression (see engine/ops/core/scalars.py), of values that know their type.
    """
    integer = order_type(x.dtype)
    if integer == x.dtype:
        return x
    most = (1 << 8 * integer.size - 1) - 1
    bits = s.bits(x + 0.0, integer)  # -0 + 0 = 0
    # Those of negative numbers count up with the magnitude.
    key = s.where(bits < 0, bits ^ most, bits)
    return s.where(x != x, most, key)
