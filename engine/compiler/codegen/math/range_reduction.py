"""Angles brought into [-pi/4, pi/4], whatever their size.

x = q * pi / 2 + r with a whole q, of which the last two bits matter. pi / 2 is subtracted in three
parts (Cody and Waite, "Software Manual for the Elementary Functions", 1980, chapter 8): with fused
multiply-add the first difference is exact. Where q would be too large for that, float32 goes on in
float64, and float64 to Payne and Hanek's method ("Radian reduction for trigonometric functions",
SIGNUM Newsletter 18, 1983): of the product of x with the digits of 2 / pi, those that make
multiples of 4 are left out before it is summed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from ....graph import float32, float64, int32
from ..control import any_lane, replaced
from ..conversions import convert, fma
from ..function import IRFunction, Value
from ..memory import lookup
from .floats import bits_of, format_of, magnitude, select

# All parts are positive, so that -0.0 stays what it is.
_HALF_PI = {
    float32: (1.570796251296997, 7.549789415861596e-08, 5.390302529957765e-15),
    float64: (1.5707963267948966, 6.123233995736765e-17, 1.0828566739219139e-32),
}
# Up to here x * 2 / pi, rounded, is within 1/64 of what it should be, so |r| < 0.82.
_LIMIT = {float32: 4.0e5, float64: 1.0e14}

# Payne and Hanek: 2 / pi is cut into numbers of _DIGITS bits. A product of one of them with x is
# a multiple of 4 if its last bit is; the next _TERMS give 2**-118, that is 2**-55 of the smallest
# r of float64 (2**-62).
_DIGITS = 48
_TERMS = 5


def reduced(fn: IRFunction, x: Value) -> tuple[Value, Value]:
    """q, in the lowest bits of an integer, and r."""
    q, r = _by_parts(fn, x)
    is_far = magnitude(fn, x) > _LIMIT[x.dtype]

    def further() -> Sequence[Value]:
        far_q, far_r = (_in_double if x.dtype == float32 else _by_digits)(fn, x)
        return fn.select(is_far, far_q, q), fn.select(is_far, far_r, r)

    q, r = replaced(fn, any_lane(fn, is_far), (q, r), further)
    return q, r


def reduced_in_double(fn: IRFunction, x: Value) -> tuple[Value, Value]:
    """As `reduced`, with q and r of 64 bits."""
    return reduced(fn, convert(fn, x, float64))


def _by_parts(fn: IRFunction, x: Value) -> tuple[Value, Value]:
    rounder = format_of(x).rounder
    rounded = fma(fn, x, 2 / math.pi, rounder)
    n = rounded - rounder
    for part in _HALF_PI[x.dtype]:
        x = fma(fn, n, -part, x)
    return bits_of(fn, rounded), x


def _in_double(fn: IRFunction, x: Value) -> Sequence[Value]:
    q, r = reduced_in_double(fn, x)
    return convert(fn, q, int32), convert(fn, r, float32)


@cache
def _two_over_pi() -> tuple[float, ...]:
    """The digits of 2 / pi: the k-th number stands for itself times 2**-(_DIGITS * (k + 1))."""
    bits = 1200
    one = 1 << (bits + 64)

    def arctan_of_inverse(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    pi = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)  # Machin's formula
    number = (2 * one << bits) // pi
    mask = (1 << _DIGITS) - 1
    return tuple(float(number >> shift & mask) for shift in range(bits - _DIGITS, -1, -_DIGITS))


def _by_digits(fn: IRFunction, x: Value) -> Sequence[Value]:
    layout = format_of(x)
    bits = bits_of(fn, magnitude(fn, x))
    exponent = fn.binary("lshr", bits, layout.mantissa_bits) - layout.bias
    one = layout.bias << layout.mantissa_bits
    fraction = fn.bits((bits & ((1 << layout.mantissa_bits) - 1)) | one, float64)  # in [1, 2)
    # Digits before `first` give multiples of 4: x is a multiple of 2**(exponent - 52).
    past = exponent - (layout.mantissa_bits + 2)
    first = fn.binary("udiv", select(fn, past > 0, past, 0), _DIGITS)
    weight = exponent - _DIGITS - first * _DIGITS
    zero = fn.constant(0.0, x)
    total = (zero, zero, zero)
    for k in range(_TERMS):
        digits = lookup(fn, "two_over_pi", _two_over_pi(), first + k)
        power = fn.binary("shl", weight + (layout.bias - _DIGITS * k), layout.mantissa_bits)
        digits = digits * fn.bits(power, float64)
        high = fraction * digits
        low = fma(fn, fraction, digits, -high)  # exact: together the whole product
        for term in (high, low):
            total = _added(fn, total, _modulo_4(fn, term))
    top, middle, rest = total
    rounder = layout.rounder
    rounded = top + rounder
    top, middle = _two_sum(top - (rounded - rounder), middle)
    top, middle = _two_sum(top, middle + rest)
    half_pi, lost, _ = _HALF_PI[float64]
    r = fma(fn, top, half_pi, fma(fn, top, lost, middle * half_pi))
    is_negative = x < 0
    q = bits_of(fn, rounded)
    q, r = fn.select(is_negative, -q, q), fn.select(is_negative, -r, r)
    # Of infinities and NaN: NaN.
    return q, fn.select(magnitude(fn, x) < math.inf, r, x - x)


def _modulo_4(fn: IRFunction, x: Value) -> Value:
    return fma(fn, fn.call("roundeven", x * 0.25), -4.0, x)


def _two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b rounded, and what it lost: Knuth, "The Art of Computer Programming" 2, 4.2.2."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def _added(
    fn: IRFunction, total: tuple[Value, Value, Value], term: Value
) -> tuple[Value, Value, Value]:
    """The sum of three numbers, each what the one before lost, and another one."""
    top, lost = _two_sum(total[0], term)
    middle, lost = _two_sum(total[1], lost)
    return top, middle, total[2] + lost
