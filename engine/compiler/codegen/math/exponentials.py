"""The exponential function and what is made of it.

x = n * log(2) + r with a whole n and |r| <= log(2) / 2; so exp(x) = 2**n * exp(r), and
exp(r) - 1 = r + r**2 * q(r) with a polynomial q. 2**n is written by its bits: n comes out of the
rounding as an integer.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ....graph import float32, float64
from ..conversions import fma
from ..function import IRFunction, Value
from ..values import literal
from .floats import (
    at_most,
    bits_of,
    clamp,
    copysign,
    format_of,
    in_double,
    magnitude,
    polynomial,
    select,
)

# q, by Remez's algorithm on |r| <= log(2) / 2 (1 + 5e-4), the error weighted as relative to
# exp(r) - 1; coefficients were rounded one by one, lowest power first, and the rest fitted again.
# The errors are 2**-26.1 and 2**-61.6.
_EXPM1 = {
    float32: (
        *(0.4999999701976776, 0.16666539013385773, 0.04166774824261665),
        *(0.0083670848980546, 0.0013837962178513408),
    ),
    float64: (
        *(0.5, 0.16666666666666677, 0.041666666666666685, 0.008333333333321806),
        *(0.0013888888888894519, 0.0001984126988531191, 2.4801587275864127e-05),
        *(2.7557245180408557e-06, 2.7557333255262647e-07, 2.5108678809918174e-08),
        2.089248950844875e-09,
    ),
}
# exp(r) - 1 = r + r**2 * (a + b * r) on |r| <= log(2) / 32, likewise: 2**-29.2.
_EXPM1_NEAR = (0.5000162124633789, 0.166667178273201)
# (2**r - 1) / r on |r| <= 1/2, likewise, relative to 2**r: 2**-26.3 and 2**-57.6.
_EXP2 = {
    float32: (
        *(0.6931471824645996, 0.24022594094276428, 0.055503662675619125),
        *(0.009625446051359177, 0.0013387929648160934, 0.00013332170783542097),
    ),
    float64: (
        *(0.6931471805599453, 0.24022650695909997, 0.05550410866482377),
        *(0.009618129107670802, 0.0013333558145894955, 0.00015403530314916233),
        *(1.5252734327920152e-05, 1.3215550214259106e-06, 1.0177857136893446e-07),
        *(7.0316561644279995e-09, 4.485505888268866e-10, 5.739951988371191e-11),
    ),
}
# log(2) as a number of each type and what that leaves, which is good to all its digits.
LOG_2 = {
    float32: (0.6931471824645996, -1.9046542121259336e-09),
    float64: (0.6931471805599453, 2.3190468138462996e-17),
}
# Where exp has overflowed, and where it rounds to 0.
_LIMITS = {float32: (-104.5, 88.8), float64: (-746.0, 709.9)}
_LIMITS_2 = {float32: (-151.0, 128.5), float64: (-1076.0, 1024.5)}
# Above it exp(-x) is nothing beside 1.
_FLAT = {float32: 18.0, float64: 38.5}


def reduced(
    fn: IRFunction, x: Value, bias: int, correction: Value | None = None
) -> tuple[Value, Value]:
    """n + bias, in the lowest bits of an integer, and r: x = n * log(2) + r.

    With a `correction`, of x - correction, where x has lost that in rounding.
    """
    rounder = format_of(x).rounder + bias
    high, low = LOG_2[x.dtype]
    rounded = fma(fn, x, 1 / math.log(2), rounder)
    n = rounded - rounder
    r = fma(fn, n, -high, x)
    if correction is None:
        return bits_of(fn, rounded), fma(fn, n, -low, r)
    return bits_of(fn, rounded), r - fma(fn, n, low, correction)


def power_of_two(fn: IRFunction, biased: Value, like: Value) -> Value:
    """2**n, given n + bias in the lowest bits of an integer; n must be that of a normal number."""
    return fn.bits(fn.binary("shl", biased, format_of(like).mantissa_bits), like.dtype)


def scaled(fn: IRFunction, x: Value, twice_biased: Value) -> Value:
    """x * 2**n, rounded once, given n + 2 * bias in the lowest bits of an integer.

    In two factors: a result below the normal numbers, or above all, still has its bits.
    """
    half = fn.binary("lshr", twice_biased, 1)
    first, second = power_of_two(fn, half, x), power_of_two(fn, twice_biased - half, x)
    return x * first * second


def expm1_of_rest(fn: IRFunction, r: Value) -> Value:
    """exp(r) - 1 for |r| <= log(2) / 2."""
    return fma(fn, r * r, polynomial(fn, r, _EXPM1[r.dtype]), r)


def exp(fn: IRFunction, x: Value) -> Value:
    """e ** x; 0 where it rounds to 0, such as the share of a place that is masked in softmax."""
    layout = format_of(x)
    if fn.module.vector_bytes == 64 and x.dtype == float32:
        return _by_sixteens(fn, _exp_by_table, x)
    lowest, highest = _LIMITS[x.dtype]
    is_nothing = x < lowest
    x = select(fn, is_nothing, 0.0, at_most(fn, x, highest))
    biased, r = reduced(fn, x, 2 * layout.bias)
    return select(fn, is_nothing, 0.0, scaled(fn, expm1_of_rest(fn, r) + 1.0, biased))


def exp_of_two(fn: IRFunction, x: Value, low: Value) -> Value:
    """e ** (x + low) of float64, where `low` is what x has lost in rounding."""
    lowest, highest = _LIMITS[x.dtype]
    biased, r = reduced(fn, clamp(fn, x, lowest, highest), 2 * format_of(x).bias, -low)
    return scaled(fn, expm1_of_rest(fn, r) + 1.0, biased)


def _by_sixteens(fn: IRFunction, function: Callable[[IRFunction, Value], Value], x: Value) -> Value:
    """A function of 16 lanes, of any number up to that, or of a power of two of them."""
    lanes = x.lanes
    if lanes == 16:
        return function(fn, x)
    if not lanes:
        return fn.element(function(fn, fn.splat(x, 16)), 0)
    if lanes < 16:
        return fn.part(function(fn, fn.part(x, 0, 16)), 0, lanes)
    halves = [fn.part(x, start, lanes // 2) for start in (0, lanes // 2)]
    return fn.joined(*(_by_sixteens(fn, function, half) for half in halves))


def _exp_by_table(fn: IRFunction, x: Value) -> Value:
    """e ** x in half as many instructions, with those of AVX-512; of 16 lanes.

    Here n is a multiple of 1 / 16, so r is small, and 2**n is one of 16 numbers in a register times
    a power of two, by which `scalef` multiplies and rounds once.
    """
    lowest, highest = _LIMITS[float32]
    is_nothing = x < lowest  # masked scores are
    x = select(fn, is_nothing, 0.0, at_most(fn, x, highest))
    rounder = format_of(x).rounder / 16
    rounded = fma(fn, x, 1 / math.log(2), rounder)
    n = rounded - rounder
    high, low = LOG_2[float32]
    r = fma(fn, n, -low, fma(fn, n, -high, x))
    second, third = _EXPM1_NEAR
    rest = fma(fn, fma(fn, r, third, second), r * r, r)
    table = ", ".join(f"float {literal(2 ** (k / 16), 'float')}" for k in range(16))
    name = "llvm.x86.avx512.permvar.sf.512"
    index = bits_of(fn, rounded)
    fn.module.declarations[name] = f"declare {x.type} @{name}({x.type}, {index.type})"
    power = fn.instruction(f"call {x.type} @{name}({x.type} <{table}>, {index})", x.dtype, x.lanes)
    y = fma(fn, power, rest, power)
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    types = f"{x.type}, {x.type}, {x.type}, i16, i32"
    fn.module.declarations[name] = f"declare {x.type} @{name}({types})"
    y = fn.instruction(
        f"call {x.type} @{name}({y}, {n}, {x.type} zeroinitializer, i16 -1, i32 4)",
        x.dtype,
        x.lanes,
    )
    return select(fn, is_nothing, 0.0, y)


def exp2(fn: IRFunction, x: Value) -> Value:
    """2 ** x."""
    layout = format_of(x)
    x = clamp(fn, x, *_LIMITS_2[x.dtype])
    rounder = layout.rounder + 2 * layout.bias
    rounded = x + rounder
    r = x - (rounded - rounder)
    y = fma(fn, r, polynomial(fn, r, _EXP2[x.dtype]), 1.0)
    return scaled(fn, y, bits_of(fn, rounded))


def _part_of_expm1(fn: IRFunction, x: Value, halvings: int) -> Value:
    """(exp(x) - 1) / 2**halvings, which does not overflow where exp just does."""
    biased, r = reduced(fn, x, format_of(x).bias - halvings)
    power = power_of_two(fn, biased, x)
    return fma(fn, power, expm1_of_rest(fn, r), power - 2.0**-halvings)


def expm1(fn: IRFunction, x: Value) -> Value:
    """e ** x - 1."""
    format_of(x)
    half = _part_of_expm1(fn, clamp(fn, x, -_FLAT[x.dtype], _LIMITS[x.dtype][1]), 1)
    return copysign(fn, half + half, x)  # for that of 0


def sigmoid(fn: IRFunction, x: Value) -> Value:
    """1 / (1 + exp(-x)), as c / (c + c * exp(-x)) with a small c: exp may overflow, c * exp not."""
    layout = format_of(x)
    spare = layout.mantissa_bits + 1
    x = clamp(fn, x, _LIMITS[x.dtype][0], 2.0 * spare)
    biased, r = reduced(fn, -x, layout.bias - spare)
    power = power_of_two(fn, biased, x)
    c = 2.0**-spare
    # Where power + c is halfway between two numbers and c gets lost, it is taken off the numerator.
    numerator = select(fn, power == 1.0, c - c * c, fn.constant(c, x))
    return numerator / fma(fn, power, expm1_of_rest(fn, r), power + c)


def tanh(fn: IRFunction, x: Value) -> Value:
    """The hyperbolic tangent: (1 - e) / (1 + e) with e = exp(-2 |x|), both halved."""
    layout = format_of(x)
    t = at_most(fn, magnitude(fn, x), 0.5 * _FLAT[x.dtype])
    biased, r = reduced(fn, t * -2.0, layout.bias - 1)
    half = power_of_two(fn, biased, x)
    rest = expm1_of_rest(fn, r)
    y = fma(fn, half, -rest, 0.5 - half) / fma(fn, half, rest, half + 0.5)
    return copysign(fn, y, x)


def _quarter_expm1(fn: IRFunction, x: Value) -> Value:
    """(exp(|x|) - 1) / 4, for what overflows later than exp."""
    return _part_of_expm1(fn, at_most(fn, magnitude(fn, x), 710.7), 2)


def _double_sinh(fn: IRFunction, x: Value) -> Value:
    quarter = _quarter_expm1(fn, x)
    double = quarter + quarter
    return copysign(fn, double + quarter / (double + 0.5), x)


def _double_cosh(fn: IRFunction, x: Value) -> Value:
    quarter = _quarter_expm1(fn, x) + 0.25
    return quarter + quarter + 0.125 / quarter


def sinh(fn: IRFunction, x: Value) -> Value:
    """The hyperbolic sine."""
    return in_double(fn, _double_sinh, x)


def cosh(fn: IRFunction, x: Value) -> Value:
    """The hyperbolic cosine."""
    return in_double(fn, _double_cosh, x)
