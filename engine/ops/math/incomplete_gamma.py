"""The incomplete gamma functions and their gradients.

    P(a, x) = integral of t**(a - 1) exp(-t) from 0 to x, divided by gamma(a); Q = 1 - P

Below x = a + 1 by the power series, above it by the continued fraction (Abramowitz and Stegun
6.5.29 and 6.5.31), and for large a near x = a, where both converge slowly, by the uniform
expansion of Temme, "The asymptotic expansion of the incomplete gamma functions", SIAM Journal on
Mathematical Analysis 10 (1979). All is computed in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...graph import FLOATING, Array, OpView, Tensor
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from . import elementary
from .gamma import _STIRLING, digamma, lgamma
from .special import erfc, polynomial

_LARGE, _NEAR = 1e4, 0.05  # Temme's expansion from this a on, for |x - a| up to this part of a
_MOST = 3000  # terms; both converge in about 9 sqrt(a), or 40 / _NEAR
_ENOUGH = 2.0**-53
# The first two coefficients of the expansion in 1 / a as power series in eta, DLMF 8.12.12.
_TEMME = (
    (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515),
    (-1 / 540, -1 / 288, 25 / 12096),
)
# Weights of the central difference of sixth order, and its step as a part of sqrt(a).
_DIFFERENCE, _STEP = (3 / 4, -3 / 20, 1 / 60), 0.05
_FINE_STEP = 0.02


def in_double_pairs(fn: Callable[..., Array]) -> Callable[..., Array]:
    """`fn(xp, *arrays)` of broadcast arrays in float64, with the dtype of the first."""

    def computed(xp: Any, *arrays: Any) -> Array:
        first = xp.asarray(arrays[0])
        wide = xp.broadcast_arrays(*(xp.asarray(a).astype(xp.float64) for a in arrays))
        return fn(xp, *wide).astype(first.dtype, copy=False)

    return computed


def log1p_less_x(xp: Any, x: Array) -> Array:
    """log(1 + x) - x, by the series of the inverse hyperbolic tangent where they are near."""
    small = xp.abs(x) < 0.5
    y = xp.where(small, x, 0.0)
    r = y / (2 + y)
    series = polynomial(r * r, [1 / (2 * k + 1) for k in range(1, 20)])
    near = r * (2 * r * r * series - y)
    return xp.where(small, near, xp.log1p(x) - x)


def stirling(a: Array) -> Array:
    """lgamma(a + 1) less (a + 1/2) log(a) - a + log(2 pi) / 2, for a from 10 on."""
    return polynomial(1 / (a * a), _STIRLING) / a


def _weight(xp: Any, a: Array, x: Array) -> Array:
    """x**a exp(-x) / gamma(a + 1), of which nothing cancels where a is large and x near it."""
    large = xp.maximum(a, 10.0)
    exponent = large * log1p_less_x(xp, (x - large) / large) - stirling(large)
    far = xp.exp(exponent) / xp.sqrt(math.tau * large)
    small = xp.minimum(a, 10.0)
    near = xp.exp(small * xp.log(x) - x - lgamma(xp, small + 1))
    return xp.where(a >= 10, far, near)


def _series(xp: Any, a: Array, x: Array) -> tuple[Array, Array]:
    """s = sum over n of x**n / ((a + 1) ... (a + n)), and ds/da."""
    term, total = xp.ones_like(x), xp.ones_like(x)
    harmonic, slope = xp.zeros_like(x), xp.zeros_like(x)
    for n in range(1, _MOST):
        term = term * (x / (a + n))
        harmonic = harmonic + 1 / (a + n)
        total = total + term
        slope = slope - term * harmonic
        if not xp.any(term * (1 + harmonic) > _ENOUGH * total):
            break
    return total, slope


def _fraction(xp: Any, a: Array, x: Array) -> tuple[Array, Array]:
    """h = 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)) by Lentz's method, and dh/da."""
    b = x + 1 - a
    c, dc = xp.full_like(x, 1e150), xp.zeros_like(x)
    d = 1 / b
    dd = d * d
    h, dh = d, dd
    for n in range(1, _MOST):
        b = b + 2
        above = n * (a - n)
        under = b + above * d
        d_under = n * d + above * dd - 1
        dc = n / c - above * dc / (c * c) - 1
        c = b + above / c
        d = 1 / under
        dd = -d_under * d * d
        factor, d_factor = c * d, dc * d + c * dd
        dh = dh * factor + h * d_factor
        h = h * factor
        if not xp.any(xp.abs(factor - 1) + xp.abs(d_factor) > 4 * _ENOUGH):
            break
    return h, dh


def _temme(xp: Any, a: Array, x: Array, sign: float) -> Array:
    """P for the sign -1, Q for 1."""
    mu = (x - a) / a
    half = -log1p_less_x(xp, mu)  # eta**2 / 2
    eta = xp.copysign(xp.sqrt(2 * half), mu)
    first, second = (polynomial(eta, c) for c in _TEMME)
    rest = xp.exp(-a * half) / xp.sqrt(math.tau * a) * (first + second / a)
    return 0.5 * erfc(xp, sign * eta * xp.sqrt(0.5 * a)) + sign * rest


def _parts(xp: Any, a: Array, x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Where each way is taken, and arguments for it that are harmless elsewhere."""
    usual = (a > 0) & (x > 0) & (a < xp.inf) & (x < xp.inf)
    temme = usual & (a > _LARGE) & (xp.abs(x - a) < _NEAR * a)
    series = usual & ~temme & (x < a + 1)
    return usual, temme, series, xp.where(usual, a, 1.0), xp.where(usual, x, 1.0)


def _of(xp: Any, a: Array, x: Array, upper: bool) -> Array:
    usual, temme, series, a1, x1 = _parts(xp, a, x)
    weight = _weight(xp, a1, x1)
    low = weight * _series(xp, xp.where(series, a1, 1.0), xp.where(series, x1, 0.0))[0]
    fraction = usual & ~temme & ~series
    high = weight * a1 * _fraction(xp, xp.where(fraction, a1, 1), xp.where(fraction, x1, 9))[0]
    y = xp.where(series, 1 - low, high) if upper else xp.where(series, low, 1 - high)
    y = xp.where(temme, _temme(xp, a1, x1, 1.0 if upper else -1.0), y)
    # The limits: all of it lies below infinity, nothing below 0; for a = 0 all of it lies at 0.
    all_below = ((a >= 0) & (a < xp.inf) & (x == xp.inf)) | ((a == 0) & (x > 0))
    none_below = ((a > 0) & (x == 0)) | ((a == xp.inf) & (x >= 0) & (x < xp.inf))
    y = xp.where(usual, y, xp.nan)
    y = xp.where(all_below, 0.0 if upper else 1.0, y)
    return xp.where(none_below, 1.0 if upper else 0.0, y)


@in_double_pairs
def lower_gamma(xp: Any, a: Array, x: Array) -> Array:
    """P(a, x); NaN for negative arguments, and where both are 0 or infinite."""
    return _of(xp, a, x, upper=False)


@in_double_pairs
def upper_gamma(xp: Any, a: Array, x: Array) -> Array:
    """Q(a, x), which is exact where it is small."""
    return _of(xp, a, x, upper=True)


@in_double_pairs
def lower_gamma_slope(xp: Any, a: Array, x: Array) -> Array:
    """dP/da: of the series and the fraction term by term, of Temme's expansion by differences."""
    usual, temme, series, a1, x1 = _parts(xp, a, x)
    weight, log = _weight(xp, a1, x1), xp.log(x1)
    s, ds = _series(xp, xp.where(series, a1, 1.0), xp.where(series, x1, 0.0))
    low = weight * (s * (log - digamma(xp, a1 + 1)) + ds)
    fraction = usual & ~temme & ~series
    h, dh = _fraction(xp, xp.where(fraction, a1, 1), xp.where(fraction, x1, 9))
    high = -weight * a1 * (h * (log - digamma(xp, a1)) + dh)
    step = _STEP * xp.sqrt(a1)
    difference = xp.zeros_like(a1)
    for k, w in enumerate(_DIFFERENCE, 1):
        above, below = (_temme(xp, a1 + i * step, x1, -1.0) for i in (k, -k))
        difference = difference + w * (above - below)
    y = xp.where(temme, difference / step, xp.where(series, low, high))
    return xp.where(usual, y, xp.where((a > 0) & ((x == 0) | (x == xp.inf)), 0.0, xp.nan))


def slope_of(fn: Callable[[Array], Array], xp: Any, a: Array, x: Array) -> Array:
    """The derivative of `fn` at `a` by differences, of a function like x**a or those of its kind.

    They change over the distance sqrt(a), or for small a over a and 1 / |log(x)|.
    """
    step = _FINE_STEP * xp.minimum(a, xp.sqrt(a)) / (1 + xp.minimum(a, 1.0) * xp.abs(xp.log(x)))
    parts = (w * (fn(a + k * step) - fn(a - k * step)) for k, w in enumerate(_DIFFERENCE, 1))
    found: Array = sum(parts) / step
    return found


@in_double_pairs
def lower_gamma_bend(xp: Any, a: Array, x: Array) -> Array:
    """The second derivative of P in a, by differences of the first; NaN where that is."""
    usual = (a > 0) & (x > 0) & (a < xp.inf) & (x < xp.inf)
    a1, x1 = xp.where(usual, a, 1.0), xp.where(usual, x, 1.0)
    y = slope_of(lambda b: lower_gamma_slope(xp, b, x1), xp, a1, x1)
    return xp.where(usual, y, xp.where((a > 0) & ((x == 0) | (x == xp.inf)), 0.0, xp.nan))


def _density(a: Tensor, x: Tensor) -> Tensor:
    """dP/dx = x**(a - 1) exp(-x) / gamma(a)."""
    found: Tensor = elementary.exp(elementary.xlogy(a - 1, x) - x - elementary.lgamma(a))
    return found


def _slope_grad(op: OpView, dy: Tensor) -> Grads:
    a, x = op.inputs
    by_x = _density(a, x) * (elementary.log(x) - elementary.digamma(a))
    return dy * igamma_bend(a, x), dy * by_x


def _bend_grad(op: OpView, dy: Tensor) -> Grads:
    a, x = op.inputs
    off = elementary.log(x) - elementary.digamma(a)
    return None, dy * _density(a, x) * (off * off - elementary.polygamma(1, a))


igamma_bend: OpDef = elementwise(
    "IgammaBendA",
    "y = the second derivative of P in a, which has a gradient with respect to x alone.",
    scalar=lambda s, a, x: s.lower_gamma_bend(a, x),
    grad=_bend_grad,
    dtypes=FLOATING,
)
igamma_slope: OpDef = elementwise(
    "IgammaGradA",
    "y = dP/da, the slope of the lower incomplete gamma function in its first argument.",
    scalar=lambda s, a, x: s.lower_gamma_slope(a, x),
    grad=_slope_grad,
    dtypes=FLOATING,
)
igamma: OpDef = elementwise(
    "Igamma",
    "y = P(a, x), the lower incomplete gamma function divided by gamma(a).",
    scalar=lambda s, a, x: s.lower_gamma(a, x),
    grad=lambda op, dy: (dy * igamma_slope(*op.inputs), dy * _density(*op.inputs)),
    dtypes=FLOATING,
)
igammac: OpDef = elementwise(
    "Igammac",
    "y = Q(a, x) = 1 - P(a, x), exact where it is small.",
    scalar=lambda s, a, x: s.upper_gamma(a, x),
    grad=lambda op, dy: (-dy * igamma_slope(*op.inputs), -dy * _density(*op.inputs)),
    dtypes=FLOATING,
)
