"""The Hurwitz zeta function, and polygamma of an order that is a tensor."""

from __future__ import annotations

import math
from typing import Any

from ...graph import FLOATING, Array, OpView, Tensor
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from .gamma import digamma, lgamma
from .incomplete_gamma import in_double_pairs

_TERMS = 12  # that are summed up before the asymptotic series
# B_2k / (2k)!: terms of the Euler-Maclaurin formula.
_EULER = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000),
    *(1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000),
)


@in_double_pairs
def hurwitz(xp: Any, s: Array, q: Array) -> Array:
    """sum over n >= 0 of (q + n)**-s, by Euler and Maclaurin, Abramowitz and Stegun 23.1.4.

    Infinite for s = 1, and for whole q <= 0; NaN for s < 1, and where a negative number would be
    raised to a broken power.
    """
    whole = q == xp.floor(q)
    usual = (s > 1) & (q > 0) & (s < xp.inf) & (q < xp.inf)
    left = (s > 1) & (q <= 0) & ~whole & (s == xp.floor(s)) & (s < xp.inf) & (q > -xp.inf)
    s1 = xp.where(usual | left, s, 2.0)
    q1 = xp.where(usual | left, q, 1.0)
    total = xp.zeros_like(q1)
    # On the left, terms up to where it is positive: each of its own sign.
    for _ in range(int(xp.max(xp.where(left, xp.ceil(-q1), 0.0), initial=0.0))):
        below = q1 < 0
        total = total + xp.where(below, xp.where(below, q1, 1.0) ** -s1, 0.0)
        q1 = xp.where(below, q1 + 1, q1)
    for n in range(_TERMS):
        total = total + (q1 + n) ** -s1
    w = q1 + _TERMS
    power = w**-s1
    total = total + power * w / (s1 - 1) + 0.5 * power
    factor = s1 / w
    for k, c in enumerate(_EULER, 1):
        total = total + c * factor * power
        factor = factor * (s1 + 2 * k - 1) * (s1 + 2 * k) / (w * w)
    y = xp.where(usual | left, total, xp.nan)
    y = xp.where((s == 1) | ((s > 1) & (q <= 0) & whole), xp.inf, y)
    # (q + n)**-s of a large s: that of the first term alone
    y = xp.where((s == xp.inf) & (q > 1), 0.0, y)
    return xp.where((s > 1) & (q == xp.inf), 0.0, y)


def hurwitz_slope(xp: Any, s: Array, q: Array, order: int) -> Array:
    """The derivative of that order of `hurwitz` in s, for s > 1 and q > 0; NaN elsewhere.

    The formula for s + t as power series in t: (q + n)**-t = exp(-t log(q + n)).
    """
    return in_double_pairs(lambda xp, s, q: _slope(xp, s, q, order))(xp, s, q)


def _slope(xp: Any, s: Array, q: Array, order: int) -> Array:
    usual = (s > 1) & (q > 0) & (s < xp.inf) & (q < xp.inf)
    s1, q1 = xp.where(usual, s, 2.0), xp.where(usual, q, 1.0)

    def power(base: Array) -> list[Array]:
        log, terms = xp.log(base), [base**-s1]
        for k in range(1, order + 1):
            terms.append(terms[-1] * -log / k)
        return terms

    def times(a: list[Array], b: list[Array]) -> list[Array]:
        return [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(order + 1)]

    def plus_t(a: Array) -> list[Array]:
        return [a, *(xp.full_like(a, 1.0 if k == 1 else 0.0) for k in range(1, order + 1))]

    w = q1 + _TERMS
    tail = power(w)
    # 1 / (s - 1 + t) is the geometric series
    inverse = [(-1.0) ** k / (s1 - 1) ** (k + 1) for k in range(order + 1)]
    parts = [*(power(q1 + n) for n in range(_TERMS))]
    parts += [[w * y for y in times(tail, inverse)], [0.5 * y for y in tail]]
    factor = [y / w for y in times(tail, plus_t(s1))]
    for k, c in enumerate(_EULER, 1):
        parts.append([c * y for y in factor])
        more = times(plus_t(s1 + (2 * k - 1)), plus_t(s1 + 2 * k))
        factor = [y / (w * w) for y in times(factor, more)]
    total = sum(part[order] for part in parts) * math.factorial(order)
    y = xp.where(usual, total, xp.nan)
    return xp.where((s > 1) & (q == xp.inf), 0.0, y)


@in_double_pairs
def polygamma_of(xp: Any, n: Array, x: Array) -> Array:
    """The n-th derivative of digamma, (-1)**(n + 1) n! zeta(n + 1, x); NaN for what is no order."""
    order = (n >= 0) & (n == xp.floor(n))
    n1 = xp.where(order & (n > 0), n, 1.0)
    size = xp.exp(lgamma(xp, n1 + 1)) * hurwitz(xp, n1 + 1, x)
    y = xp.where(n1 % 2 == 1, size, -size)
    return xp.where(n == 0, digamma(xp, x), xp.where(order, y, xp.nan))


def _zeta_scalar(s: Any, x: Any, q: Any, *, order: int) -> Any:
    return s.hurwitz_slope(x, q, order)


def _zeta_slope_grad(op: OpView, dy: Tensor) -> Grads:
    (x, q), order = op.inputs, op.attrs["order"]
    # d/dq of the sum is -x zeta(x + 1, q), whose derivatives in x follow from the product rule
    above = _zeta_slope(x + 1, q, order=order) * x
    below = zeta(x + 1, q) if order == 1 else _zeta_slope(x + 1, q, order=order - 1)
    return dy * _zeta_slope(x, q, order=order + 1), -dy * (above + order * below)


_zeta_slope: OpDef = elementwise(
    "ZetaSlope",
    "y = the derivative of some order of sum over n >= 0 of (q + n)**-x, in x.",
    scalar=_zeta_scalar,
    grad=_zeta_slope_grad,
    dtypes=FLOATING,
)


def _zeta_grad(op: OpView, dy: Tensor) -> Grads:
    x, q = op.inputs
    return dy * _zeta_slope(x, q, order=1), -dy * x * zeta(x + 1, q)


zeta: OpDef = elementwise(
    "Zeta",
    "y = sum over n >= 0 of (q + n)**-x.",
    scalar=lambda s, x, q: s.hurwitz(x, q),
    grad=_zeta_grad,
    dtypes=FLOATING,
)
polygamma: OpDef = elementwise(
    "PolygammaOf",
    "y = the derivative of digamma at x of the whole order a; its gradient is that of x alone.",
    scalar=lambda s, a, x: s.polygamma_of(a, x),
    grad=lambda op, dy: (None, dy * polygamma(op.inputs[0] + 1, op.inputs[1])),
    dtypes=FLOATING,
)
