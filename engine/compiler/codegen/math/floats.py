"""The bits of floating values, and polynomials of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ....graph import DType, float32, float64, int32, int64, uint64
from ...ir.not_lowered import NotLoweredError
from ..conversions import convert, fma
from ..function import IRFunction, Value


@dataclass(frozen=True)
class Format:
    """How a floating type is laid out (IEEE 754).

    Attributes:
        integer: the signed integer type of the same size.
        mantissa_bits: bits of the fraction.
        bias: what is added to the exponent.
    """

    integer: DType
    mantissa_bits: int
    bias: int

    @property
    def sign_mask(self) -> int:
        """The bit of the sign."""
        return 1 << (8 * self.integer.size - 1)

    @property
    def exponent_mask(self) -> int:
        """The bits of the exponent; an infinity has no others but the sign."""
        return (2 * self.bias + 1) << self.mantissa_bits

    @property
    def least_normal(self) -> float:
        """The least positive number with all its digits."""
        return math.ldexp(1.0, 1 - self.bias)

    @property
    def rounder(self) -> float:
        """Added to a number below 2**(mantissa_bits - 1), it rounds it to a whole one.

        The whole number is then in the lowest bits of the sum.
        """
        return 1.5 * 2.0**self.mantissa_bits


_LONGEST_CHAIN = 8  # of operations that wait for each other

FORMATS = {float32: Format(int32, 23, 127), float64: Format(int64, 52, 1023)}


def format_of(x: Value) -> Format:
    """The layout of a value.

    Raises:
        NotLoweredError: it is not float32 or float64.
    """
    found = FORMATS.get(x.dtype)
    if found is None:
        raise NotLoweredError(f"a function of {x.dtype}")
    return found


def bits_of(fn: IRFunction, x: Value) -> Value:
    """The bits of a floating value as an integer."""
    return fn.bits(x, format_of(x).integer)


def select(fn: IRFunction, condition: Value, a: Any, b: Any) -> Value:
    """`a` where `condition`, `b` elsewhere; one of them may be a number."""
    if isinstance(a, Value):
        return fn.select(condition, a, fn.constant(b, a))
    if isinstance(b, Value):
        return fn.select(condition, fn.constant(a, b), b)
    raise NotLoweredError(f"a choice of {a!r} and {b!r}, whose type is open")


def polynomial(fn: IRFunction, x: Value, coefficients: Sequence[float]) -> Value:
    """coefficients[0] + coefficients[1] * x + ..., by Horner's rule.

    Long ones are cut into the even powers and the odd ones, which can be computed side by side.
    """
    if len(coefficients) > _LONGEST_CHAIN:
        square = x * x
        even = polynomial(fn, square, coefficients[::2])
        return fma(fn, polynomial(fn, square, coefficients[1::2]), x, even)
    *lower, highest = coefficients
    y = fn.constant(highest, x)
    for c in reversed(lower):
        y = fma(fn, y, x, c)
    return y


def at_most(fn: IRFunction, x: Value, limit: float) -> Value:
    """`x`, or a limit above it; a NaN stays one."""
    return select(fn, fn.constant(limit, x) < x, limit, x)


def clamp(fn: IRFunction, x: Value, low: float, high: float) -> Value:
    """`x` within limits; a NaN stays one."""
    x = at_most(fn, x, high)
    return select(fn, fn.constant(low, x) > x, low, x)


def copysign(fn: IRFunction, x: Value, sign: Value) -> Value:
    """|x| with the sign of `sign`.

    Of float64 it is put together of bits: where the result becomes a half, LLVM makes halves of
    both arguments of its own copysign, and x86 processors before AVX512-FP16 have no instruction
    that makes a half of a float64.
    """
    format_of(x)
    if x.dtype != float64:
        return fn.call("copysign", x, sign)
    size = fn.bits(x, uint64) & 0x7FFF_FFFF_FFFF_FFFF
    found = size | (fn.bits(sign, uint64) & (1 << 63))
    return fn.bits(found, float64)


def magnitude(fn: IRFunction, x: Value) -> Value:
    """|x|."""
    format_of(x)
    return fn.call("fabs", x)


def in_double(fn: IRFunction, function: Callable[..., Value], *values: Value) -> Value:
    """`function` computed in float64 and rounded to the type of the values."""
    format_of(values[0])
    dtype = values[0].dtype
    y = function(fn, *(convert(fn, x, float64) for x in values))
    return convert(fn, y, dtype)
