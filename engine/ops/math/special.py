"""The error function and its kin on arrays, for libraries that have none (NumPy).

All is computed in float64 and rounded once, so float32 results are within 0.6 ulp. What takes
float32 alone needs fewer terms, and one formula for the whole range: no choosing by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeAlias

from ...graph import Array
from ..core.kernels import HOST

Kernel: TypeAlias = Callable[[Any, Array], Array]


def in_double(fn: Kernel) -> Kernel:
    """`fn(xp, x)` computed in float64, with the dtype of `x`."""

    @wraps(fn)
    def computed(xp: Any, x: Array) -> Array:
        x = xp.asarray(x)
        return fn(xp, x.astype(xp.float64, copy=False)).astype(x.dtype, copy=False)

    return computed


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """coefficients[0] + coefficients[1] * x + ..., by Horner's rule."""
    *lower, highest = coefficients
    y = x * highest
    for c in lower[:0:-1]:
        y += c
        y *= x
    y += lower[0]
    return y


def piecewise(xp: Any, x: Array, *pieces: tuple[Array, Callable[[Array], Array]]) -> Array:
    """Each `(where, fn)` computes `fn(x)` on its own part of `x`; NaN on what is left."""
    y = xp.full(x.shape, xp.nan, x.dtype)
    for here, fn in pieces:
        if xp is HOST:
            y[here] = fn(x[here])
        else:  # of a size that does not depend on values: elsewhere fn sees a number like any other
            y = xp.where(here, fn(x), y)
    return y


def complex_of(xp: Any, re: Array, im: Array) -> Array:
    """re + i im; without arithmetic, in which i times an infinity would make a NaN."""
    re, im = xp.broadcast_arrays(re, im)
    z = xp.empty(re.shape, xp.complex64 if re.dtype == xp.float32 else xp.complex128)
    z.real = re
    z.imag = im
    return z


def sigmoid(xp: Any, x: Array) -> Array:
    """1 / (1 + exp(-x)), written so that exp never overflows."""
    if x.dtype.kind == "c":
        right = x.real >= 0
        e = xp.exp(xp.where(right, -x, x))
        return xp.where(right, 1, e) / (1 + e)
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, 1, e) / (1 + e)


# fmt: off
# Rational approximations of Cody, "Rational Chebyshev approximations for the error function",
# Math. Comp. 23 (1969), tables I to III: numerators and denominators, lowest power first.
_ERF_NEAR = (  # erf(x) / x in x**2, |x| <= 0.46875
    (3.20937758913846947e03, 3.77485237685302021e02, 1.13864154151050156e02,
     3.16112374387056560e00, 1.85777706184603153e-1),
    (2.84423683343917062e03, 1.28261652607737228e03, 2.44024637934444173e02,
     2.36012909523441209e01, 1.0),
)
_ERFC_MIDDLE = (  # erfc(x) * exp(x**2) in x, 0.46875 <= x <= 4
    (1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03,
     8.81952221241769090e02, 2.98635138197400131e02, 6.61191906371416295e01,
     8.88314979438837594e00, 5.64188496988670089e-1, 2.15311535474403846e-8),
    (1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03,
     3.29079923573345963e03, 1.62138957456669019e03, 5.37181101862009858e02,
     1.17693950891312499e02, 1.57449261107098347e01, 1.0),
)
_ERFC_FAR = (  # (1 / sqrt(pi) - erfc(x) * exp(x**2) * x) * x**2 in x**-2, x >= 4
    (6.58749161529837803e-4, 1.60837851487422766e-2, 1.25781726111229246e-1,
     3.60344899949804439e-1, 3.05326634961232344e-1, 1.63153871373020978e-2),
    (2.33520497626869185e-3, 6.05183413124413191e-2, 5.27905102951428412e-1,
     1.87295284992346725e00, 2.56852019228982242e00, 1.0),
)
# fmt: on
_NEAR, _FAR = 0.46875, 4.0
_UNDERFLOW = 27.5  # erfc(27.5) is below the least positive float64


def ratio(x: Array, table: tuple[Sequence[float], Sequence[float]]) -> Array:
    """The quotient of two polynomials."""
    y = polynomial(x, table[0])
    y /= polynomial(x, table[1])
    return y


def _erf_near(x: Array) -> Array:
    return x * ratio(x * x, _ERF_NEAR)


def _exp_of_minus_square(xp: Any, x: Array) -> Array:
    # Cody, section 3: x**2 is rounded, and exp would magnify that; x cut to sixteenths squares
    # exactly, and the rest is small.
    cut = xp.trunc(x * 16) / 16
    return xp.exp(-cut * cut) * xp.exp(-(x - cut) * (x + cut))


def _erfc_middle(xp: Any, x: Array) -> Array:
    return _exp_of_minus_square(xp, x) * ratio(x, _ERFC_MIDDLE)


def _erfc_far(xp: Any, x: Array) -> Array:
    x = xp.minimum(x, _UNDERFLOW)
    t = 1 / (x * x)
    scaled = (1 / math.sqrt(math.pi) - t * ratio(t, _ERFC_FAR)) / x
    return _exp_of_minus_square(xp, x) * scaled


# fmt: off
# For float32, by least squares in relative error (Sanathanan and Koerner's iteration) on Chebyshev
# nodes; the errors are 2e-9 and 8e-11.
_ERF_SINGLE = (  # erf(x) / x in x**2, |x| <= 4
    (1.1283791692519942, 0.18524548456293363, 0.05431863237776618, 0.0038508544217880237,
     0.00037947290321006566, 4.680054669164357e-06, -1.3180542576104063e-08),
    (1.0, 0.4975029462679481, 0.11397244539399867, 0.015464082077745417,
     0.0013076434868687075, 6.306638536992062e-05),
)
_ERFC_SINGLE = (  # erfc(x) * exp(x**2) in x, 0 <= x <= 10.2
    (0.9999999999175289, 1.4343649061914654, 1.0008197288259864, 0.4025024474120483,
     0.09286510341505581, 0.010022399228223594),
    (1.0, 2.5627440621784414, 2.8925669805846757, 1.8559214280712057, 0.722321851128263,
     0.1645980322096206, 0.017764262900099678),
)
# fmt: on


def erf(xp: Any, x: Array) -> Array:
    """2 / sqrt(pi) * integral of exp(-t**2) from 0 to x."""
    if x.dtype == xp.float32:
        z = xp.clip(x, -4, 4).astype(xp.float64)  # erf(4) = 1 - 1.5e-8 rounds to 1
        return (z * ratio(z * z, _ERF_SINGLE)).astype(x.dtype)
    x = xp.asarray(x)
    size = xp.abs(x)
    return piecewise(
        xp,
        x,
        (size <= _NEAR, _erf_near),
        ((size > _NEAR) & (size < 6), lambda x: xp.copysign(1 - _erfc_middle(xp, xp.abs(x)), x)),
        (size >= 6, xp.sign),  # erfc(6) = 2e-17
    )


def erfc(xp: Any, x: Array) -> Array:
    """1 - erf(x), with full relative accuracy where it is small."""
    if x.dtype == xp.float32:
        z = xp.minimum(xp.abs(x), 10.2).astype(xp.float64)  # erfc(10.2) = 4e-47 rounds to 0
        y = xp.exp(-z * z) * ratio(z, _ERFC_SINGLE)
        return xp.where(x < 0, 2 - y, y).astype(x.dtype)
    x = xp.asarray(x)
    size = xp.abs(x)
    return piecewise(
        xp,
        x,
        (size <= _NEAR, lambda x: 1 - _erf_near(x)),
        ((x > _NEAR) & (x <= _FAR), lambda x: _erfc_middle(xp, x)),
        (x > _FAR, lambda x: _erfc_far(xp, x)),
        ((x < -_NEAR) & (x > -6), lambda x: 2 - _erfc_middle(xp, -x)),
        (x <= -6, lambda x: xp.full_like(x, 2.0)),
    )


def normal_cdf(xp: Any, x: Array) -> Array:
    """The share of a normal distribution below x."""
    return 0.5 * erfc(xp, -math.sqrt(0.5) * x)


# fmt: off
# Wichura, "Algorithm AS 241: the percentage points of the normal distribution",
# Applied Statistics 37 (1988), routine PPND16: the quantile z of probability p,
# with q = p - 1/2 and r = sqrt(-log(min(p, 1 - p))).
_QUANTILE_CENTRE = (  # z / q in 0.425**2 - q**2, |q| <= 0.425
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
     5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
     2.8729085735721942674e4, 5.2264952788528545610e3),
)
_QUANTILE_TAIL = (  # |z| in r - 1.6, r <= 5
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
     6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
     5.47593808499534494600e-4, 1.05075007164441684324e-9),
)
_QUANTILE_FAR = (  # |z| in r - 5, r > 5
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
     1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
     1.42151175831644588870e-7, 2.04426310338993978564e-15),
)
# fmt: on
_SQRT_HALF = math.sqrt(0.5)


@in_double
def normal_quantile(xp: Any, p: Array) -> Array:
    """The z for which normal_cdf(z) = p; infinite at 0 and 1, NaN beyond."""
    q = p - 0.5
    smaller = xp.minimum(p, 1 - p)
    r = xp.sqrt(-xp.log(smaller))
    centre = q * ratio(0.180625 - q * q, _QUANTILE_CENTRE)
    tail = xp.where(r <= 5, ratio(r - 1.6, _QUANTILE_TAIL), ratio(r - 5, _QUANTILE_FAR))
    y = xp.where(xp.abs(q) <= 0.425, centre, xp.copysign(tail, q))
    y = xp.where(smaller == 0, xp.copysign(xp.inf, q), y)
    return xp.where(smaller < 0, xp.nan, y)


@in_double
def erfinv(xp: Any, x: Array) -> Array:
    """The y for which erf(y) = x: the normal quantile of (1 + x) / 2, divided by sqrt(2)."""
    size = xp.abs(x)
    r = xp.sqrt(-xp.log((1 - size) / 2))

    def centre(x: Array) -> Array:
        return x * (ratio(0.180625 - 0.25 * x * x, _QUANTILE_CENTRE) * (_SQRT_HALF / 2))

    def tail(table: Any, start: float) -> Callable[[Array], Array]:
        def fn(x: Array) -> Array:
            r = xp.sqrt(-xp.log((1 - xp.abs(x)) / 2))
            return xp.copysign(ratio(r - start, table) * _SQRT_HALF, x)

        return fn

    return piecewise(
        xp,
        x,
        (size <= 0.85, centre),
        ((size > 0.85) & (r <= 5), tail(_QUANTILE_TAIL, 1.6)),
        ((size < 1) & (r > 5), tail(_QUANTILE_FAR, 5.0)),
        (size == 1, lambda x: x * xp.inf),
    )
