"""The gamma function's logarithm and its derivatives on arrays."""

from __future__ import annotations

import math
from typing import Any

from ...graph import Array
from .special import in_double, piecewise, polynomial, ratio

# From here on the asymptotic series in 1/x, with the terms below, are exact to float64.
_LARGE = 10.0
# Bernoulli numbers B_2, B_4, ..., B_20.
_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66),
    *(-691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330),
)
# Stirling's series, Abramowitz and Stegun 6.1.40, and its derivative 6.3.18, in 1 / x**2.
_STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI[:8], 1)]
_STIRLING_SLOPE = [b / (2 * k) for k, b in enumerate(_BERNOULLI[:8], 1)]

# fmt: off
# By least squares in relative error (Sanathanan and Koerner's iteration) on Chebyshev nodes; the
# errors are below 2e-18.
_LGAMMA_AT_2 = (  # lgamma(2 + d) / d in d, |d| <= 1/2
    (0.42278433509846713, 0.9513814081323291, 0.7656363892938726, 0.2826391055425268,
     0.04907208000380841, 0.0035419322736703995, 6.964157035869153e-05),
    (1.0, 1.4875536355000964, 0.83565461895795, 0.21944377726669634,
     0.02687529150184117, 0.0013080556279742072, 1.5028294035769691e-05),
)
_DIGAMMA_AT_ROOT = (  # digamma(1.5 + u) / (1.5 + u - root) in u, |u| <= 1/2
    (0.9510558760318328, 1.0802660832704427, 0.4202669658637002, 0.0659896055361645,
     0.0035804905501788655, 1.9645912064230512e-05, -2.210178809536363e-07),
    (1.0, 1.5812882738569676, 0.8933245425330985, 0.2233983266082354,
     0.024202450781942803, 0.0008695770997124277),
)
# fmt: on
_ROOT = 1.4616321449683622  # of digamma, A&S 6.3.19; and what float64 leaves of it
_ROOT_REST = 9.549995429965697e-17


def _log_size_of_sine(xp: Any, x: Array) -> Array:
    """log |sin(pi x)|."""
    return xp.log(xp.abs(xp.sin(math.pi * (x - xp.rint(x)))))


def _lgamma_positive(xp: Any, x: Array) -> Array:
    """For x > 1/2."""

    def near_one(x: Array) -> Array:
        d = x - 1
        return d * ratio(d, _LGAMMA_AT_2) - xp.log1p(d)

    def small(x: Array) -> Array:
        # down to (1.5, 2.5] by gamma(x) = (x - 1) gamma(x - 1)
        steps = xp.ceil(x - 2.5)
        product = xp.ones_like(x)
        for i in range(1, int(_LARGE) - 1):
            product *= xp.where(steps >= i, x - i, 1.0)
        d = x - steps - 2
        return d * ratio(d, _LGAMMA_AT_2) + xp.log(product)

    def large(x: Array) -> Array:
        series = polynomial(1 / (x * x), _STIRLING) / x
        return (x - 0.5) * (xp.log(x) - 1) + (series + 0.5 * (math.log(2 * math.pi) - 1))

    return piecewise(
        xp,
        x,
        (x <= 1.5, near_one),
        ((x > 1.5) & (x < _LARGE), small),
        ((x >= _LARGE) & (x < xp.inf), large),
        (x == xp.inf, lambda x: x),
    )


@in_double
def lgamma(xp: Any, x: Array) -> Array:
    """log |gamma(x)|; infinite at 0, -1, -2, ... and at both infinities."""

    def near_zero(x: Array) -> Array:
        # gamma(x) = gamma(2 + x) / (x (1 + x)), A&S 6.1.15
        return x * ratio(x, _LGAMMA_AT_2) - xp.log1p(x) - xp.log(xp.abs(x))

    def reflected(x: Array) -> Array:
        # gamma(x) gamma(1 - x) = pi / sin(pi x), A&S 6.1.17
        return math.log(math.pi) - _log_size_of_sine(xp, x) - _lgamma_positive(xp, 1 - x)

    return piecewise(
        xp,
        x,
        (xp.abs(x) <= 0.5, near_zero),
        (x > 0.5, lambda x: _lgamma_positive(xp, x)),
        ((x < -0.5) & (x > -xp.inf), reflected),
        (x == -xp.inf, lambda x: -x),
    )


def _cotangent(xp: Any, x: Array) -> Array:
    """cot(pi x)."""
    r = x - xp.rint(x)  # exact, and so is the distance to 1/2, where the cotangent is small
    t = xp.tan(math.pi * xp.where(xp.abs(r) < 0.25, r, xp.copysign(0.5, r) - r))
    return xp.where(xp.abs(r) < 0.25, 1 / t, t)


def _digamma_positive(xp: Any, x: Array) -> Array:
    """For x > 0."""

    def at_root(x: Array) -> Array:
        return (x - _ROOT - _ROOT_REST) * ratio(x - 1.5, _DIGAMMA_AT_ROOT)

    def below_one(x: Array) -> Array:
        return at_root(x + 1) - 1 / x

    def middle(x: Array) -> Array:
        # down to [1, 2] by digamma(x) = digamma(x - 1) + 1 / (x - 1), A&S 6.3.5
        steps = xp.maximum(xp.ceil(x - 2), 0)
        total = xp.zeros_like(x)
        for i in range(1, int(_LARGE) - 1):
            total += xp.where(steps >= i, 1 / (x - i), 0.0)
        return at_root(x - steps) + total

    def large(x: Array) -> Array:
        t = 1 / (x * x)
        return xp.log(x) - 0.5 / x - t * polynomial(t, _STIRLING_SLOPE)

    return piecewise(
        xp,
        x,
        (x < 1, below_one),
        ((x >= 1) & (x < _LARGE), middle),
        (x >= _LARGE, large),
    )


@in_double
def digamma(xp: Any, x: Array) -> Array:
    """The derivative of lgamma; NaN at -1, -2, ..., and -inf at +0, +inf at -0."""

    def reflected(x: Array) -> Array:
        # A&S 6.3.7
        y = _digamma_positive(xp, 1 - x) - math.pi * _cotangent(xp, x)
        return xp.where(x == xp.rint(x), xp.nan, y)

    return piecewise(
        xp,
        x,
        (x > 0, lambda x: _digamma_positive(xp, x)),
        (x == 0, lambda x: -1 / x),
        (x < 0, reflected),
    )


def polygamma(xp: Any, n: int, x: Array) -> Array:
    """The n-th derivative of digamma, n >= 1; its limit from the right at 0, -1, -2, ..."""

    @in_double
    def fn(xp: Any, x: Array) -> Array:
        return piecewise(
            xp,
            x,
            (x > 0, lambda x: _polygamma_positive(xp, n, x)),
            (x <= 0, lambda x: _polygamma_reflected(xp, n, x)),
        )

    return fn(xp, x)


def _polygamma_positive(xp: Any, n: int, x: Array) -> Array:
    """n! times the sum of (x + k)**-(n + 1) over k >= 0, with the sign of (-1)**(n + 1).

    Terms are summed up to where the asymptotic series, A&S 6.4.11, is exact to float64. All terms
    but those of the series have one sign, so nothing cancels.
    """
    total = xp.zeros_like(x)
    terms = int(_LARGE) + n
    for k in range(terms):
        total += (x + k) ** -(n + 1.0)
    x = x + terms
    t = 1 / (x * x)
    series = [
        b * math.prod(range(n + 1, 2 * k + n)) / math.factorial(2 * k)
        for k, b in enumerate(_BERNOULLI, 1)
    ]
    tail = 1 / n + 0.5 / x + t * polynomial(t, series)
    total += tail * x ** -float(n)
    return (-1) ** (n + 1) * math.factorial(n) * total


def _polygamma_reflected(xp: Any, n: int, x: Array) -> Array:
    """From (-1)**n polygamma(n, 1 - x) - polygamma(n, x) = pi * n-th derivative of cot(pi x).

    A&S 6.4.7. With c = cot, c' = -(1 + c**2): each derivative is a polynomial in c.
    """
    powers = [0, 1]
    for _ in range(n):
        slope = [k * a for k, a in enumerate(powers)][1:]
        powers = [-a - b for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    y = (-1) ** n * _polygamma_positive(xp, n, 1 - x)
    y -= math.pi ** (n + 1) * polynomial(_cotangent(xp, x), [float(a) for a in powers])
    return xp.where(x == xp.rint(x), -((-1.0) ** n) * xp.inf, y)
