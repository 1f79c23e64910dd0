"""Numbers rounded, and kept within limits."""

from __future__ import annotations

import builtins

from laminar.engine.graph import Tensor, bool_
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.math import arithmetic as engine
from laminar.engine.ops.math import compare, numbers

from ..typing import TensorLike
from .arguments import (
    common,
    floating,
    numeric,
    tensor,
    whole,
)
from .recording import public

# No number has more digits, before its point or behind it.
_MOST_DIGITS = 308

__all__ = [
    "ceil",
    "clip",
    "floor",
    "nan_to_num",
    "round",
    "trunc",
]


@public
def floor(x: TensorLike) -> Tensor:
    """The greatest whole number <= x, as a float.

    Examples:
        >>> ops.floor([1.8, -1.2])
        Tensor([ 1., -2.], shape=(2,), dtype=float32)
    """
    return engine.floor(floating(x))


@public
def ceil(x: TensorLike) -> Tensor:
    """The least whole number >= x, as a float.

    Examples:
        >>> ops.ceil([1.2, -1.2])
        Tensor([ 2., -1.], shape=(2,), dtype=float32)
    """
    return engine.ceil(floating(x))


@public
def trunc(x: TensorLike) -> Tensor:
    """The whole part of x, towards 0.

    Examples:
        >>> ops.trunc([1.8, -1.8])
        Tensor([ 1., -1.], shape=(2,), dtype=float32)
    """
    x = tensor(x)
    return engine.trunc(x) if x.dtype.is_floating else x


@public
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """x to `decimals` places after the point (before it, when negative), halves to even.

    Args:
        x: any tensor; bools become int32.
        decimals: how many places after the point; -1 rounds to tens.

    Returns:
        Shape and type of `x`.

    Examples:
        >>> ops.round([1.25, 2.5, -0.7], decimals=0)
        Tensor([ 1.,  2., -1.], shape=(3,), dtype=float32)
    """
    number = numeric(x)
    decimals = whole("round", "decimals", decimals)
    if not number.dtype.is_floating and decimals >= 0:
        return number
    if decimals == 0:
        return engine.rint(number)
    if decimals > _MOST_DIGITS:
        return number
    if decimals < -_MOST_DIGITS:
        return zeros_like(number)  # less than half a unit of the place that is rounded to
    scale = 10.0 ** builtins.abs(decimals)
    wide = floating(number)
    factor = tensor(scale, wide.dtype)
    if decimals > 0:
        rounded = engine.divide(engine.rint(engine.multiply(wide, factor)), factor)
    else:
        rounded = engine.multiply(engine.rint(engine.divide(wide, factor)), factor)
    return tensor(rounded, number.dtype)


@public
def clip(x: TensorLike, x_min: TensorLike | None, x_max: TensorLike | None) -> Tensor:
    """x limited to the range from x_min to x_max.

    Args:
        x: real numbers; bools become int32, and NaN stays.
        x_min: the least value, a number or what broadcasts against `x`; None for no limit.
        x_max: the greatest value, likewise; it is the result where x_min is above it.

    Returns:
        A tensor of the common type of all of them.

    Raises:
        DTypeError: a complex number.

    Examples:
        >>> ops.clip([-3, 0, 9], -1, 5)
        Tensor([-1,  0,  5], shape=(3,), dtype=int32)
    """
    dtype = common(*(v for v in (x, x_min, x_max) if v is not None))
    if dtype == bool_:
        dtype = common(bool, int)
    y = tensor(x, dtype)
    if x_min is None or x_max is None:
        y = y if x_min is None else engine.maximum(y, tensor(x_min, dtype))
        return y if x_max is None else engine.minimum(y, tensor(x_max, dtype))
    return numbers.clip(y, tensor(x_min, dtype), tensor(x_max, dtype))


@public
def nan_to_num(
    x: TensorLike,
    nan: TensorLike = 0.0,
    posinf: TensorLike | None = None,
    neginf: TensorLike | None = None,
) -> Tensor:
    """x with NaN and the infinities replaced.

    Args:
        x: any tensor; integers have nothing to replace.
        nan: stands in for NaN.
        posinf: stands in for infinity, by default the greatest number of the type.
        neginf: stands in for minus infinity, by default the least number of the type.

    Returns:
        Shape and type of `x`.

    Examples:
        >>> ops.nan_to_num([np.nan, 1.0], nan=-1.0)
        Tensor([-1.,  1.], shape=(2,), dtype=float32)
    """
    given = tensor(x)
    if not given.dtype.is_floating:
        return given
    limits = _LIMITS[given.dtype]
    high = tensor(limits if posinf is None else posinf, given.dtype)
    low = tensor(-limits if neginf is None else neginf, given.dtype)
    zero = tensor(0.0, given.dtype)
    finite = compare.where(compare.is_nan(given), tensor(nan, given.dtype), given)
    at_end = compare.is_inf(given)
    finite = compare.where(compare.logical_and(at_end, compare.greater(given, zero)), high, finite)
    return compare.where(compare.logical_and(at_end, compare.less(given, zero)), low, finite)


# The greatest finite number of each type.
_LIMITS = {
    "float16": 65504.0,
    "bfloat16": (2 - 2.0**-7) * 2.0**127,
    "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": (2 - 2.0**-52) * 2.0**1023,
}
