"""The error function and its complement."""

from __future__ import annotations

import math

from ....graph import float32, float64
from ..conversions import fma
from ..function import IRFunction, Value
from .exponentials import expm1_of_rest, power_of_two, reduced
from .floats import at_most, copysign, format_of, magnitude, polynomial, select

# All by Remez's algorithm; coefficients were rounded one by one, lowest power first, and the rest
# fitted again.
# For float32, erf(t) = 1 - exp(-u) with u = t + t * p(t): p on [0, 3.93], the error weighted as
# relative to erf; it is 2**-27.8.
_ERF = (
    *(0.12837916612625122, 0.6366195678710938, 0.10277630388736725, -0.019147826358675957),
    *(-0.00016948473057709634, 0.0016756400000303984, -0.000637332268524915),
    *(0.00011884894774993882, -9.3861290224595e-06),
)
# For float64, erf(t) = t + t * p(t**2) on [0, 1]: 2**-56.
_ERF_NEAR = (
    *(0.12837916709551256, -0.37612638903183343, 0.11283791670936948, -0.02686617064195815),
    *(0.005223977596722863, -0.0008548325484116684, 0.00012055280461842597),
    *(-1.492446480286739e-05, 1.644413807850658e-06, -1.6183878656731624e-07),
    *(1.3616139719607765e-08, -7.606633504225784e-10),
)
# erfc(t) = exp(-t**2) / (1 + t * s(t)), where s goes from 2 / sqrt(pi) at 0 to sqrt(pi) at
# infinity: a polynomial of (t - k) / (t + k) on [0, 10.2] and [0, 27.3], the error weighted as
# relative to erfc; it is 2**-28.6 and 2**-53.4. k is chosen so that the first coefficients lose
# little when rounded.
_ERFC_CENTRE = {float32: 2.0048828125, float64: 3.0}
_ERFC = {
    float32: (
        *(1.4581843614578247, 0.35909587144851685, -0.009520087391138077),
        *(-0.045905303210020065, 0.0016703875735402107, 0.011410755105316639),
        *(0.0004518026253208518, -0.0032345489598810673, -0.0006166257662698627),
        *(0.0007027086103335023, 0.0002786237164400518),
    ),
    float64: (
        *(1.5288520835389392, 0.3361699728199947, -0.09969972202013258, -0.009239989997000124),
        *(0.025206521372906472, -0.007796684704900542, -0.004104917408447221),
        *(0.003862570995405629, -9.603987223965932e-05, -0.0011810468620563341),
        *(0.0004047905703642937, 0.0002508083445550334, -0.0001986909418837691),
        *(-2.318846447816269e-05, 6.682647098813711e-05, -1.0159065838613767e-05),
        *(-1.7320006400911844e-05, 7.170803454433752e-06, 3.4397804170105533e-06),
        *(-2.706831018793513e-06, -5.48411677808449e-07, 6.846138071463753e-07),
        *(1.099628444688453e-07, -8.644526064602809e-08, -2.412260622192182e-08),
        -3.3891303192706695e-09,
    ),
}
# The share of a normal distribution below -t is exp(-t * p(t)) / 2: p on [0, 6], the error weighted
# as that of the share, but at least 2**-12; it is 2**-29 of 1, and 2e-5 of the share. Beyond, p
# grows.
_NORMAL = (
    *(0.7978847026824951, 0.3183077573776245, 0.0363457016646862, -0.004803495015949011),
    *(-1.514319228590466e-05, 0.0002039164974121377, -5.668314770446159e-05),
    *(8.34896036394639e-06, -6.73550005103607e-07, 2.328855330802071e-08),
)
_NORMAL_FLAT = 87.0  # above it exp(-x) is no normal number
_NORMAL_LARGEST = 15.0  # the exponent is larger there
# Beyond them erf rounds to 1, erfc to 0.
_ERF_FLAT = 3.93
_ERFC_FLAT = {float32: 10.2, float64: 27.3}


def erf(fn: IRFunction, x: Value) -> Value:
    """2 / sqrt(pi) * integral of exp(-t**2) from 0 to x."""
    layout = format_of(x)
    t = magnitude(fn, x)
    if x.dtype == float64:
        z = at_most(fn, t * t, 1.0)
        near = fma(fn, t, polynomial(fn, z, _ERF_NEAR), t)
        return copysign(fn, fn.select(t < 1.0, near, 1.0 - erfc(fn, t)), x)
    t = at_most(fn, t, _ERF_FLAT)
    biased, r = reduced(fn, -fma(fn, t, polynomial(fn, t, _ERF), t), layout.bias)
    power = power_of_two(fn, biased, x)
    return copysign(fn, fma(fn, power, -expm1_of_rest(fn, r), 1.0 - power), x)


def erfc(fn: IRFunction, x: Value) -> Value:
    """1 - erf(x), with full relative accuracy where it is small."""
    layout = format_of(x)
    t = at_most(fn, magnitude(fn, x), _ERFC_FLAT[x.dtype])
    centre = _ERFC_CENTRE[x.dtype]
    ratio = (t - centre) / (t + centre)
    first, *others = _ERFC[x.dtype]
    s = fma(fn, ratio, polynomial(fn, ratio, others), first)
    divisor = fma(fn, t, s, 1.0)
    inverse = 1.0 / divisor
    # What has been rounded off, relative to the result, goes into the exponent, where it costs
    # least: of the divisor, of its inverse, and of the square.
    off = fma(fn, fma(fn, t, s, 1.0 - divisor), -inverse, fma(fn, divisor, -inverse, 1.0))
    square = t * t
    off = fma(fn, t, t, -square) - off
    # Below the normal numbers nothing is rounded but the result.
    spare = layout.mantissa_bits + 1
    biased, r = reduced(fn, -square, layout.bias + spare, off)
    y = fma(fn, inverse, expm1_of_rest(fn, r), inverse) * power_of_two(fn, biased, x)
    y = y * 2.0**-spare
    return fn.select(x < 0, 2.0 - y, y)


def normal_cdf(fn: IRFunction, x: Value) -> Value:
    """The share of a normal distribution below x, erfc(-x / sqrt(2)) / 2.

    For float32 the error is that of rounding beside 1, not beside a small share: below -1, x is
    multiplied by itself in the exponent; as far as -6 it is 2e-5 of the share at most.
    """
    layout = format_of(x)
    if x.dtype == float64:
        return erfc(fn, x * -math.sqrt(0.5)) * 0.5
    t = at_most(fn, magnitude(fn, x), _NORMAL_LARGEST)
    exponent = t * polynomial(fn, t, _NORMAL)
    biased, r = reduced(fn, -exponent, layout.bias - 1)
    power = power_of_two(fn, biased, x)
    share = fma(fn, power, expm1_of_rest(fn, r), power)
    share = select(fn, exponent > _NORMAL_FLAT, 0.0, share)
    return fn.select(x > 0, 1.0 - share, share)
