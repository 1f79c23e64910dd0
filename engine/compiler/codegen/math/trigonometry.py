"""Sine, cosine and tangent, and their inverses."""

from __future__ import annotations

import math

from ....graph import float32, float64
from ..conversions import convert, fma
from ..function import IRFunction, Value
from .floats import bits_of, copysign, format_of, in_double, magnitude, polynomial, select
from .range_reduction import reduced, reduced_in_double

# sin(r) = r + r * z * s(z), cos(r) = 1 - z / 2 + z**2 * c(z) with z = r**2, |r| < 0.82;
# arctan(t) = t + t * z * a(z) with z = t**2 <= 1; arcsin likewise with z <= 1/4. By Remez's
# algorithm, the error weighted as relative to the function; coefficients were rounded one by one,
# lowest power first, and the rest fitted again. The errors are 2**-27.5 and 2**-57.3 (sin), 2**-32
# and 2**-63 (cos), 2**-55 (arctan), 2**-55.9 (arcsin).
_SIN = {
    float32: (-0.16666652262210846, 0.008332008495926857, -0.00019494490697979927),
    float64: (
        *(-0.16666666666666613, 0.008333333333317676, -0.0001984126982601936),
        *(2.7557312382317187e-06, -2.5050554200212285e-08, 1.5885060175550237e-10),
    ),
}
_COS = {
    float32: (0.04166664183139801, -0.0013887123204767704, 2.441079413983971e-05),
    float64: (
        *(0.04166666666666656, -0.0013888888888867296, 2.480158728522489e-05),
        *(-2.7557313129278244e-07, 2.0875558369852715e-09, -1.1351193528974892e-11),
    ),
}
_ARCTAN = (
    *(-0.3333333333333186, 0.1999999999975517, -0.14285714271340044, 0.11111110678847169),
    *(-0.09090901236557479, 0.07692212940196679, -0.06665860423436898, 0.05877308067330698),
    *(-0.05239234163856818, 0.04673953245755201, -0.04092647199748795, 0.03406798361388177),
    *(-0.025827052567291956, 0.016978323163910368, -0.009184798649755348),
    *(0.003856118015009654, -0.001164129661992454, 0.0002230365900988583),
    -2.026014254281292e-05,
)
_ARCSIN = (
    *(0.16666666666665408, 0.07500000000337162, 0.044642856828186306, 0.030381959143475204),
    *(0.022371757882922637, 0.01735970740663998, 0.013885208653922714, 0.01216939000119873),
    *(0.0065272010181044084, 0.01953037828712135, -0.016227545104315018),
    0.03191450377728078,
)
# pi / 2 in float64 and what that leaves.
_HALF_PI, _HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17


def _sin_cos_of_rest(fn: IRFunction, r: Value) -> tuple[Value, Value]:
    """The sine and the cosine for |r| < 0.82."""
    z = r * r
    sine = fma(fn, r * z, polynomial(fn, z, _SIN[r.dtype]), r)
    cosine = fma(fn, z, fma(fn, z, polynomial(fn, z, _COS[r.dtype]), -0.5), 1.0)
    return sine, cosine


def _turned(fn: IRFunction, q: Value, r: Value) -> Value:
    """sin(q * pi / 2 + r)."""
    sine, cosine = _sin_cos_of_rest(fn, r)
    y = fn.select((q & 1) != 0, cosine, sine)
    # Bit 1 of q turns the sign.
    bits = 8 * q.dtype.size
    sign = fn.binary("shl", q, bits - 2) & format_of(r).sign_mask
    return fn.bits(bits_of(fn, y) ^ sign, r.dtype)


def sin(fn: IRFunction, x: Value) -> Value:
    """The sine."""
    format_of(x)
    return fn.select(x == 0, x, _turned(fn, *reduced(fn, x)))  # for the sign of 0


def cos(fn: IRFunction, x: Value) -> Value:
    """The cosine: the sine a quarter of a turn further."""
    format_of(x)
    q, r = reduced(fn, x)
    return _turned(fn, q + 1, r)


def tan(fn: IRFunction, x: Value) -> Value:
    """The tangent."""
    format_of(x)
    q, r = reduced_in_double(fn, x)
    sine, cosine = _sin_cos_of_rest(fn, r)
    is_odd = (q & 1) != 0
    y = fn.select(is_odd, -cosine, sine) / fn.select(is_odd, sine, cosine)
    return fn.select(x == 0, x, convert(fn, y, x.dtype))


def _arctan_to_1(fn: IRFunction, t: Value) -> Value:
    """arctan(t) for 0 <= t <= 1."""
    z = t * t
    return fma(fn, t * z, polynomial(fn, z, _ARCTAN), t)


def _complement(y: Value) -> Value:
    """pi / 2 - y."""
    return _HALF_PI - y + _HALF_PI_REST


def _double_arctan(fn: IRFunction, x: Value) -> Value:
    t = magnitude(fn, x)
    is_large = t > 1.0
    y = _arctan_to_1(fn, fn.select(is_large, 1.0 / t, t))
    return copysign(fn, fn.select(is_large, _complement(y), y), x)


def _double_arctan2(fn: IRFunction, y: Value, x: Value) -> Value:
    a, b = magnitude(fn, x), magnitude(fn, y)
    is_steep = b > a
    low, high = fn.select(is_steep, a, b), fn.select(is_steep, b, a)
    ratio = select(fn, high == 0, 0.0, low / high)
    ratio = select(fn, low == math.inf, 1.0, ratio)
    angle = _arctan_to_1(fn, ratio)
    angle = fn.select(is_steep, _complement(angle), angle)
    # Left of the origin, -0 included, from the other side: pi - angle.
    is_left = copysign(fn, fn.constant(1.0, x), x) < 0
    angle = fn.select(is_left, 2 * _HALF_PI - angle + 2 * _HALF_PI_REST, angle)
    return copysign(fn, fn.select((x != x) | (y != y), x + y, angle), y)


def _arcsin_parts(fn: IRFunction, x: Value) -> tuple[Value, Value]:
    """Whether |x| > 1/2; and arcsin |x|, or there half of arccos |x| = 2 arcsin(t)."""
    t = magnitude(fn, x)
    is_large = t > 0.5
    z = fn.select(is_large, (1.0 - t) * 0.5, t * t)
    t = fn.select(is_large, fn.call("sqrt", z), t)
    return is_large, fma(fn, t * z, polynomial(fn, z, _ARCSIN), t)


def _double_arcsin(fn: IRFunction, x: Value) -> Value:
    is_large, y = _arcsin_parts(fn, x)
    return copysign(fn, fn.select(is_large, _complement(y + y), y), x)


def _double_arccos(fn: IRFunction, x: Value) -> Value:
    is_large, y = _arcsin_parts(fn, x)
    twice = y + y
    far = fn.select(x < 0, 2 * _HALF_PI - twice + 2 * _HALF_PI_REST, twice)
    return fn.select(is_large, far, _complement(copysign(fn, y, x)))


def arctan(fn: IRFunction, x: Value) -> Value:
    """The inverse tangent, in [-pi/2, pi/2]."""
    return in_double(fn, _double_arctan, x)


def arctan2(fn: IRFunction, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), in [-pi, pi]."""
    return in_double(fn, _double_arctan2, y, x)


def arcsin(fn: IRFunction, x: Value) -> Value:
    """The inverse sine, in [-pi/2, pi/2]; NaN for |x| > 1."""
    return in_double(fn, _double_arcsin, x)


def arccos(fn: IRFunction, x: Value) -> Value:
    """The inverse cosine, in [0, pi]; NaN for |x| > 1."""
    return in_double(fn, _double_arccos, x)


def angle(fn: IRFunction, x: Value) -> Value:
    """The angle of a real number: 0, or pi for a negative one."""
    turned = select(fn, copysign(fn, fn.constant(1.0, x), x) < 0, math.pi, fn.constant(0.0, x))
    return fn.select(x != x, x, turned)
