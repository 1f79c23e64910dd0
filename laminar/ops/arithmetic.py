"""Arithmetic, element by element; operands broadcast and are brought to a common type first.

A Python number is weak: `x + 1.5` has the type of a floating `x`. Integers never widen floats.
"""

from __future__ import annotations

from laminar.engine.graph import BOOLEAN, Tensor, bfloat16, bool_, float16
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.math import arithmetic as engine
from laminar.engine.ops.math import compare, complex_numbers, numbers
from laminar.engine.ops.math import elementary as mathematics

from ..typing import TensorLike
from .arguments import (
    floating,
    floating_pair,
    numeric,
    numeric_pair,
    pair,
    tensor,
)
from .recording import public

__all__ = [
    "abs",
    "absolute",
    "add",
    "divide",
    "divide_no_nan",
    "fabs",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "gcd",
    "heaviside",
    "hypot",
    "lcm",
    "ldexp",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "nextafter",
    "power",
    "reciprocal",
    "sign",
    "signbit",
    "square",
    "subtract",
    "true_divide",
]


@public
def add(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 + x2; for two bools, x1 or x2.

    Examples:
        >>> ops.add([1, 2], [3, 4])
        Tensor([4, 6], shape=(2,), dtype=int32)
    """
    return engine.add(*pair(x1, x2))


@public
def subtract(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 - x2.

    Examples:
        >>> ops.subtract([5, 2], [1, 4])
        Tensor([ 4, -2], shape=(2,), dtype=int32)
    """
    return engine.subtract(*pair(x1, x2))


@public
def multiply(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 * x2; for two bools, x1 and x2.

    Examples:
        >>> ops.multiply([1, 2], [3, 4])
        Tensor([3, 8], shape=(2,), dtype=int32)
    """
    return engine.multiply(*pair(x1, x2))


@public
def true_divide(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 / x2, with fractions: integers give the default float.

    Examples:
        >>> ops.true_divide([1, 3], 2)
        Tensor([0.5, 1.5], shape=(2,), dtype=float32)
    """
    return engine.divide(*floating_pair(x1, x2))


@public
def divide(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 / x2, with fractions: integers give the default float.

    Examples:
        >>> ops.divide([1, 3], 2)
        Tensor([0.5, 1.5], shape=(2,), dtype=float32)
    """
    return engine.divide(*floating_pair(x1, x2))


@public
def divide_no_nan(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 / x2, and 0 where x2 is 0; the gradient there is 0 too.

    Examples:
        >>> ops.divide_no_nan([1.0, 3.0], [0.0, 2.0])
        Tensor([0. , 1.5], shape=(2,), dtype=float32)
    """
    return mathematics.divide_no_nan(*floating_pair(x1, x2))


@public
def floor_divide(x1: TensorLike, x2: TensorLike) -> Tensor:
    """floor(x1 / x2).

    Args:
        x1: integers or floats.
        x2: likewise; 0 gives 0 for integers, an infinity or NaN for floats.

    Examples:
        >>> ops.floor_divide([7, -7], 2)
        Tensor([ 3, -4], shape=(2,), dtype=int32)
    """
    return engine.floor_divide(*numeric_pair(x1, x2))


@public
def mod(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 - floor(x1 / x2) * x2: the remainder with the sign of x2.

    Args:
        x1: integers or floats.
        x2: likewise; 0 gives 0 for integers, NaN for floats.

    Examples:
        >>> ops.mod([7, -7], 3)
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    return engine.mod(*numeric_pair(x1, x2))


@public
def fmod(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 - trunc(x1 / x2) * x2: the remainder with the sign of x1.

    Examples:
        >>> ops.fmod([7, -7], 3)
        Tensor([ 1, -1], shape=(2,), dtype=int32)
    """
    return engine.fmod(*numeric_pair(x1, x2))


@public
def power(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 ** x2.

    Args:
        x1: any numbers; a negative float to a power that is not whole is NaN.
        x2: exponents; both are converted to their common type.

    Raises:
        InvalidArgumentError: an integer to a negative integer power.

    Examples:
        >>> ops.power([2, 3], 2)
        Tensor([4, 9], shape=(2,), dtype=int32)
    """
    return mathematics.power(*numeric_pair(x1, x2))


@public
def negative(x: TensorLike) -> Tensor:
    """-x.

    Examples:
        >>> ops.negative([1, -2])
        Tensor([-1,  2], shape=(2,), dtype=int32)
    """
    return engine.negative(tensor(x))


@public
def abs(x: TensorLike) -> Tensor:
    """|x|, real for complex numbers.

    Examples:
        >>> ops.abs([-2.0, 3.0])
        Tensor([2., 3.], shape=(2,), dtype=float32)
    """
    found = tensor(x)
    return found if found.dtype == bool_ else complex_numbers.magnitude(found)


absolute = abs


@public
def fabs(x: TensorLike) -> Tensor:
    """|x| as a float.

    Examples:
        >>> ops.fabs([-2, 3])
        Tensor([2., 3.], shape=(2,), dtype=float32)
    """
    return engine.absolute(floating(x))


@public
def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1 as x is negative, 0 or positive; x / |x| of a complex number that is not 0.

    Examples:
        >>> ops.sign([-3.0, 0.0, 2.0])
        Tensor([-1.,  0.,  1.], shape=(3,), dtype=float32)
    """
    return engine.sign(numeric(x))


@public
def signbit(x: TensorLike) -> Tensor:
    """Whether the sign bit of x is set, which it is for -0.0.

    Examples:
        >>> ops.signbit([-0.0, 0.0, -1.0])
        Tensor([ True, False,  True], shape=(3,), dtype=bool)
    """
    x = numeric(x)
    if not x.dtype.is_floating:
        return compare.less(x, zeros_like(x))
    return numbers.signbit(x)


@public
def square(x: TensorLike) -> Tensor:
    """x * x.

    Examples:
        >>> ops.square([-3, 4])
        Tensor([ 9, 16], shape=(2,), dtype=int32)
    """
    return engine.square(numeric(x))


@public
def reciprocal(x: TensorLike) -> Tensor:
    """1 / x.

    Examples:
        >>> ops.reciprocal([2.0, 4.0])
        Tensor([0.5 , 0.25], shape=(2,), dtype=float32)
    """
    return engine.reciprocal(floating(x))


@public
def maximum(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The greater of x1 and x2; NaN if either is.

    Examples:
        >>> ops.maximum([1, 5], [4, 2])
        Tensor([4, 5], shape=(2,), dtype=int32)
    """
    a, b = pair(x1, x2)
    return compare.logical_or(a, b) if a.dtype in BOOLEAN else engine.maximum(a, b)


@public
def minimum(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The lesser of x1 and x2; NaN if either is.

    Examples:
        >>> ops.minimum([1, 5], [4, 2])
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    a, b = pair(x1, x2)
    return compare.logical_and(a, b) if a.dtype in BOOLEAN else engine.minimum(a, b)


@public
def fmax(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The greater of x1 and x2; the other one where one is NaN.

    Examples:
        >>> ops.fmax([1.0, np.nan], [2.0, 3.0])
        Tensor([2., 3.], shape=(2,), dtype=float32)
    """
    a, b = pair(x1, x2)
    return _skipping_nan(maximum(a, b), a, b)


@public
def fmin(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The lesser of x1 and x2; the other one where one is NaN.

    Examples:
        >>> ops.fmin([1.0, np.nan], [2.0, 3.0])
        Tensor([1., 3.], shape=(2,), dtype=float32)
    """
    a, b = pair(x1, x2)
    return _skipping_nan(minimum(a, b), a, b)


def _skipping_nan(chosen: Tensor, a: Tensor, b: Tensor) -> Tensor:
    if not a.dtype.is_floating:
        return chosen
    return compare.where(compare.is_nan(a), b, compare.where(compare.is_nan(b), a, chosen))


@public
def heaviside(x1: TensorLike, x2: TensorLike) -> Tensor:
    """0 where x1 < 0, x2 where x1 is 0, 1 where x1 > 0.

    Args:
        x1: any real numbers.
        x2: the value at 0; of a shape that broadcasts.

    Returns:
        Floats; NaN where `x1` is.

    Examples:
        >>> ops.heaviside([-1.0, 0.0, 1.0], 0.5)
        Tensor([0. , 0.5, 1. ], shape=(3,), dtype=float32)
    """
    return numbers.heaviside(*floating_pair(x1, x2))


@public
def hypot(x1: TensorLike, x2: TensorLike) -> Tensor:
    """sqrt(x1**2 + x2**2), without overflow on the way.

    Examples:
        >>> ops.hypot([3.0], [4.0])
        Tensor([5.], shape=(1,), dtype=float32)
    """
    return mathematics.hypot(*floating_pair(x1, x2))


@public
def ldexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """x1 * 2**x2, for integers x2.

    Args:
        x1: any real numbers; integers become the default float.
        x2: the exponents; of a shape that broadcasts.

    Returns:
        Floats of the type of `x1`.

    Examples:
        >>> ops.ldexp([1.0, 3.0], [2, -1])
        Tensor([4. , 1.5], shape=(2,), dtype=float32)
    """
    x = floating(x1)
    return engine.multiply(x, mathematics.exp2(tensor(x2, x.dtype)))


@public
def nextafter(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The number next to x1 in the direction of x2.

    Examples:
        >>> ops.nextafter(1.0, 2.0) > 1.0
        Tensor(True, shape=(), dtype=bool)
    """
    x, y = floating_pair(x1, x2)
    is_half = x.dtype in (float16, bfloat16)
    return numbers.next_after_half(x, y) if is_half else numbers.next_after(x, y)


@public
def gcd(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The greatest common divisor of integers.

    Args:
        x1: integers of either sign.
        x2: integers; of a shape that broadcasts.

    Returns:
        Integers of at least 0; gcd(0, 0) is 0.

    Raises:
        DTypeError: one is a float.

    Examples:
        >>> ops.gcd([12, 18], 8)
        Tensor([4, 2], shape=(2,), dtype=int32)
    """
    return numbers.gcd(*numeric_pair(x1, x2))


@public
def lcm(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The least common multiple of integers.

    Args:
        x1: integers of either sign.
        x2: integers; of a shape that broadcasts.

    Returns:
        Integers of at least 0; 0 where one of them is 0.

    Raises:
        DTypeError: one is a float.

    Examples:
        >>> ops.lcm([4, 6], 10)
        Tensor([20, 30], shape=(2,), dtype=int32)
    """
    return numbers.lcm(*numeric_pair(x1, x2))
