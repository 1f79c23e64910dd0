"""The logarithm and what is made of it.

x = 2**e * (1 + m) with 2/3 <= 1 + m < 4/3, and log(1 + m) = m + m**2 * q(m) with a polynomial q.
"""

from __future__ import annotations

import math
import struct

from ....graph import float32, float64
from ..conversions import fma
from ..function import IRFunction, Value
from .exponentials import LOG_2
from .floats import bits_of, copysign, format_of, in_double, magnitude, polynomial, select

# q, by Remez's algorithm on |m| <= 1/3, the error weighted as relative to log(1 + m); coefficients
# were rounded one by one, lowest power first, and the rest fitted again. The errors are 2**-27.3
# and 2**-58.3.
_LOG1P = {
    float32: (
        *(-0.5, 0.33333197236061096, -0.24999919533729553, 0.20011432468891144),
        *(-0.16674476861953735, 0.13989810645580292, -0.12272337824106216),
        *(0.14062315225601196, -0.12491849064826965),
    ),
    float64: (
        *(-0.5, 0.3333333333333313, -0.24999999999999892, 0.20000000000086507),
        *(-0.16666666666716337, 0.14285714272880468, -0.12499999992146377),
        *(0.1111111205249921, -0.10000000612614673, 0.09090869502133847),
        *(-0.08333305991529244, 0.07693333793064276, -0.07143607658255743),
        *(0.06649764301009783, -0.062369356379968724, 0.06058861613948498),
        *(-0.056994297308320986, 0.04144251086719678, -0.040398012293527734),
        *(0.08557706790993881, -0.07973540948144968),
    ),
}
# Constants as a number of each type and what that leaves, good to all its digits.
_NATURAL = (1.0, 0.0)
_LOG2_E = {  # 1 / log(2)
    float32: (1.4426950216293335, 1.925963033500011e-08),
    float64: (1.4426950408889634, 2.0355273740931033e-17),
}
_LOG10_E = {  # 1 / log(10)
    float32: (0.4342944920063019, -1.0103049952192578e-08),
    float64: (0.4342944819032518, 1.098319650216765e-17),
}
_LOG10_2 = {  # log(2) / log(10)
    float32: (0.3010300099849701, -1.432098883924482e-08),
    float64: (0.3010299956639812, -2.8037281277851704e-18),
}


def _bits(number: float, size: int) -> int:
    """The bits of a constant."""
    return int.from_bytes(struct.pack("<f" if size == 4 else "<d", number), "little")


def _exponent(fn: IRFunction, x: Value, base: Value) -> tuple[Value, Value]:
    """The exponent with its bias, less `base`, and the bits of 2**e, for a positive normal x."""
    layout = format_of(x)
    one = layout.bias << layout.mantissa_bits
    raised = bits_of(fn, x) + (one - _bits(2 / 3, layout.integer.size))
    biased = fn.binary("lshr", raised, layout.mantissa_bits)
    # Into the lowest bits of a float whose unit is 1: converting an int64 is slow on some hosts.
    unit = 2.0**layout.mantissa_bits
    e = fn.bits(biased | _bits(unit, layout.integer.size), x.dtype) - (base + unit)
    return e, raised & layout.exponent_mask


def _rest(fn: IRFunction, m: Value) -> Value:
    """log(1 + m) - m."""
    return m * m * polynomial(fn, m, _LOG1P[m.dtype])


def split(fn: IRFunction, x: Value) -> tuple[Value, Value]:
    """e and m: x = 2**e * (1 + m), for positive x."""
    layout = format_of(x)
    is_small = x < layout.least_normal
    lift = layout.mantissa_bits + 1
    x = fn.select(is_small, x * 2.0**lift, x)
    base = select(fn, is_small, layout.bias + lift, fn.constant(layout.bias, x))
    e, power = _exponent(fn, x, base)
    fraction = bits_of(fn, x) - power + (layout.bias << layout.mantissa_bits)
    return e, fn.bits(fraction, x.dtype) - 1.0


def _in_domain(fn: IRFunction, y: Value, x: Value, lowest: float) -> Value:
    """`y`, which goes to -inf where x goes to `lowest`, with its limits, and NaN outside."""
    y = fn.select(x < math.inf, y, x)  # also where x is NaN
    outside = select(fn, x == lowest, -math.inf, fn.constant(math.nan, x))
    return fn.select(x > lowest, y, outside)


def _logarithm(
    fn: IRFunction, x: Value, of_e: tuple[float, float], of_two: tuple[float, float]
) -> Value:
    """The logarithm to the base in which e and 2 have the logarithms given."""
    e, m = split(fn, x)
    rest = _rest(fn, m)
    low = rest if of_e == _NATURAL else fma(fn, rest, of_e[0], m * of_e[1])
    if of_two[1]:
        low = fma(fn, e, of_two[1], low)
    y = m + low if of_e == _NATURAL else fma(fn, m, of_e[0], low)
    return _in_domain(fn, fma(fn, e, of_two[0], y), x, 0.0)


def log(fn: IRFunction, x: Value) -> Value:
    """The natural logarithm."""
    format_of(x)
    return _logarithm(fn, x, _NATURAL, LOG_2[x.dtype])


def log2(fn: IRFunction, x: Value) -> Value:
    """The logarithm to base 2."""
    format_of(x)
    return _logarithm(fn, x, _LOG2_E[x.dtype], (1.0, 0.0))


def log10(fn: IRFunction, x: Value) -> Value:
    """The logarithm to base 10."""
    format_of(x)
    return _logarithm(fn, x, _LOG10_E[x.dtype], _LOG10_2[x.dtype])


def log1p(fn: IRFunction, x: Value) -> Value:
    """log(1 + x): 1 + x, rounded, gives the exponent e alone; m = 2**-e * x + (2**-e - 1)."""
    layout = format_of(x)
    huge = 2.0 ** (layout.bias // 2)
    is_huge = x > huge * huge  # then 2**-e would not be normal, and 1 is nothing beside x
    z = fn.select(is_huge, x * (1 / huge), x)
    base = select(fn, is_huge, layout.bias - layout.bias // 2, fn.constant(layout.bias, x))
    e, power = _exponent(fn, z + 1.0, base)
    inverse = fn.bits(fn.constant(2 * layout.bias << layout.mantissa_bits, power) - power, x.dtype)
    m = fma(fn, z, inverse, inverse - 1.0)
    high, low = LOG_2[x.dtype]
    y = fma(fn, e, high, m + fma(fn, e, low, _rest(fn, m)))
    return copysign(fn, _in_domain(fn, y, x, -1.0), x)  # for that of 0


def _double_arcsinh(fn: IRFunction, x: Value) -> Value:
    # log(t + sqrt(t**2 + 1)), as log1p for small t; t**2 overflows where log(2 t) will do.
    t = magnitude(fn, x)
    is_large = t > 1e150
    square = t * t
    y = log1p(fn, fn.select(is_large, t, t + square / (fn.call("sqrt", square + 1.0) + 1.0)))
    return copysign(fn, select(fn, is_large, y + math.log(2), y), x)


def _double_arccosh(fn: IRFunction, x: Value) -> Value:
    # log(x + sqrt(x**2 - 1)) with x = 1 + d; d**2 overflows where log(2 x) will do.
    d = x - 1.0
    is_large = x > 1e150
    y = log1p(fn, fn.select(is_large, x, d + fn.call("sqrt", d * (d + 2.0))))
    return select(fn, x < 1.0, math.nan, select(fn, is_large, y + math.log(2), y))


def _double_arctanh(fn: IRFunction, x: Value) -> Value:
    # log((1 + t) / (1 - t)) / 2
    t = magnitude(fn, x)
    return copysign(fn, log1p(fn, (t + t) / (1.0 - t)) * 0.5, x)


def arcsinh(fn: IRFunction, x: Value) -> Value:
    """The inverse hyperbolic sine."""
    return in_double(fn, _double_arcsinh, x)


def arccosh(fn: IRFunction, x: Value) -> Value:
    """The inverse hyperbolic cosine; NaN for x < 1."""
    return in_double(fn, _double_arccosh, x)


def arctanh(fn: IRFunction, x: Value) -> Value:
    """The inverse hyperbolic tangent; NaN for |x| > 1."""
    return in_double(fn, _double_arctanh, x)
