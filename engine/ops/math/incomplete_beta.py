"""The incomplete beta function.

    I(a, b, x) = integral of t**(a - 1) (1 - t)**(b - 1) from 0 to x, divided by beta(a, b)

by its continued fraction, Abramowitz and Stegun 26.5.8, in float64: of I(a, b, x) up to the mean
x = (a + 1) / (a + b + 2), of 1 - I(b, a, 1 - x) above it, where it converges in about
sqrt(max(a, b)) terms.
"""

from __future__ import annotations

import math
from typing import Any

from ...graph import FLOATING, Array, OpView, Tensor
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from . import elementary
from .gamma import lgamma
from .incomplete_gamma import in_double_pairs, log1p_less_x, slope_of, stirling

_MOST = 5000
_ENOUGH = 2.0**-52


def _log_beta(xp: Any, a: Array, b: Array) -> Array:
    """log(beta(a, b)); of a large number, log(gamma(a + b) / gamma(a)) by Stirling's series."""
    low, high = xp.minimum(a, b), xp.maximum(a, b)
    large = xp.maximum(high, 10.0)
    total = large + low
    ratio = (large - 0.5) * xp.log1p(low / large) + low * (xp.log(total) - 1)
    ratio = ratio + stirling(total) - stirling(large)
    small = xp.minimum(high, 10.0)
    near = lgamma(xp, small + low) - lgamma(xp, small)
    return lgamma(xp, low) - xp.where(high >= 10, ratio, near)


def _weight(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """x**a (1 - x)**b / beta(a, b), of which nothing cancels where a and b are large."""
    large = (a >= 10) & (b >= 10)
    p, q = xp.where(large, a, 10.0), xp.where(large, b, 10.0)
    total = p + q
    off = (x * total - p) / p, ((1 - x) * total - q) / q
    # log(x total / p) = log(1 + off[0]); the terms of first order add up to 0
    exponent = p * log1p_less_x(xp, off[0]) + q * log1p_less_x(xp, off[1])
    exponent = exponent + stirling(total) - stirling(p) - stirling(q)
    far = xp.exp(exponent) * xp.sqrt(p * q / (math.tau * total))
    r, t = xp.where(large, 1.0, a), xp.where(large, 1.0, b)
    near = xp.exp(r * xp.log(x) + t * xp.log1p(-x) - _log_beta(xp, r, t))
    return xp.where(large, far, near)


def _fraction(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """1 / (1 + d_1 / (1 + d_2 / (1 + ...))) by Lentz's method."""
    tiny = 1e-300
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / xp.where(xp.abs(d) < tiny, tiny, d)
    c, h = xp.ones_like(x), d
    for m in range(1, _MOST):
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + part * d
            d = 1 / xp.where(xp.abs(d) < tiny, tiny, d)
            c = 1 + part / c
            c = xp.where(xp.abs(c) < tiny, tiny, c)
            h = h * (c * d)
        if not xp.any(xp.abs(c * d - 1) > _ENOUGH):
            break
    return h


@in_double_pairs
def incomplete_beta(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """I(a, b, x) for positive a and b and 0 <= x <= 1; NaN elsewhere."""
    at_end = (a > 0) & (b > 0) & ((x == 0) | (x == 1))
    usual = (a > 0) & (b > 0) & (a < xp.inf) & (b < xp.inf) & (x > 0) & (x < 1)
    end = xp.where(at_end, x, xp.nan)
    a, b, x = (xp.where(usual, v, w) for v, w in ((a, 1.0), (b, 1.0), (x, 0.5)))
    turned = x > (a + 1) / (a + b + 2)
    p, q, y = xp.where(turned, b, a), xp.where(turned, a, b), xp.where(turned, 1 - x, x)
    part = _weight(xp, p, q, y) * _fraction(xp, p, q, y) / p
    return xp.where(usual, xp.where(turned, 1 - part, part), end)


@in_double_pairs
def beta_slope(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """dI/da by differences, to about 1e-10 of the largest value around; NaN where I is."""
    usual = (a > 0) & (b > 0) & (a < xp.inf) & (b < xp.inf) & (x > 0) & (x < 1)
    a1, b1, x1 = (xp.where(usual, v, w) for v, w in ((a, 1.0), (b, 1.0), (x, 0.5)))
    y = slope_of(lambda c: incomplete_beta(xp, c, b1, x1), xp, a1, x1)
    return xp.where(usual, y, xp.where((a > 0) & (b > 0) & ((x == 0) | (x == 1)), 0.0, xp.nan))


def _density(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """dI/dx = x**(a - 1) (1 - x)**(b - 1) / beta(a, b)."""
    log_beta = elementary.lgamma(a) + elementary.lgamma(b) - elementary.lgamma(a + b)
    by_x = elementary.xlogy(a - 1, x) + elementary.xlogy(b - 1, 1 - x) - log_beta
    found: Tensor = elementary.exp(by_x)
    return found


def _slope_grad(op: OpView, dy: Tensor) -> Grads:
    a, b, x = op.inputs
    off = elementary.log(x) - elementary.digamma(a) + elementary.digamma(a + b)
    return None, None, dy * _density(a, b, x) * off


betainc_slope: OpDef = elementwise(
    "BetaincGradA",
    "y = dI/da, the slope of the incomplete beta function in its first argument, "
    "which has a gradient with respect to x alone.",
    scalar=lambda s, a, b, x: s.incomplete_beta_slope(a, b, x),
    grad=_slope_grad,
    dtypes=FLOATING,
)


def _betainc_grad(op: OpView, dy: Tensor) -> Grads:
    a, b, x = op.inputs
    by_b = betainc_slope(b, a, 1 - x)  # I(a, b, x) = 1 - I(b, a, 1 - x)
    return dy * betainc_slope(a, b, x), -dy * by_b, dy * _density(a, b, x)


betainc: OpDef = elementwise(
    "Betainc",
    "y = I(a, b, x), the regularized incomplete beta function.",
    scalar=lambda s, a, b, x: s.incomplete_beta(a, b, x),
    grad=_betainc_grad,
    dtypes=FLOATING,
)
