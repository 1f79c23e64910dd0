"""Modified Bessel functions of the first kind on arrays."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ...graph import Array
from .special import in_double, piecewise, polynomial

_LARGE = 20.0  # below it the power series, above it the asymptotic one is exact to float64
_POWERS = 60  # terms: (20**2 / 4)**60 / 60!**2 is 1e-44
_ASYMPTOTIC = 40  # terms, about where they begin to grow at x = 20


@lru_cache
def _power_series(order: int) -> list[float]:
    """Of (x / 2)**-order * I(x), in x**2 / 4: Abramowitz and Stegun 9.6.10."""
    return [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(_POWERS)]


@lru_cache
def _asymptotic_series(order: int) -> list[float]:
    """Of sqrt(2 pi x) * exp(-x) * I(x), in 1 / x: A&S 9.7.1."""
    terms = [1.0]
    for k in range(1, _ASYMPTOTIC):
        terms.append(-terms[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return terms


def bessel_i(xp: Any, order: int, x: Array) -> Array:
    """I of a whole order >= 0: sum over k of (x / 2)**(2 k + order) / (k! (k + order)!)."""
    return _bessel(xp, order, x, scaled=False)


def bessel_ie(xp: Any, order: int, x: Array) -> Array:
    """exp(-|x|) * I(x), which goes to 0 where I overflows."""
    return _bessel(xp, order, x, scaled=True)


def _bessel(xp: Any, order: int, x: Array, scaled: bool) -> Array:
    def small(x: Array) -> Array:
        half = 0.5 * x
        y = half**order * polynomial(half * half, _power_series(order))
        return y * xp.exp(-xp.abs(x)) if scaled else y

    def large(x: Array) -> Array:
        size = xp.abs(x)
        y = polynomial(1 / size, _asymptotic_series(order)) / xp.sqrt(math.tau * size)
        if not scaled:
            root = xp.exp(0.5 * size)  # exp(x) overflows before I does
            y = root * y * root
        return xp.sign(x) ** order * y

    @in_double
    def fn(xp: Any, x: Array) -> Array:
        size = xp.abs(x)
        return piecewise(
            xp,
            x,
            (size <= _LARGE, small),
            ((size > _LARGE) & (size < xp.inf), large),
            (size == xp.inf, lambda x: 1 / x if scaled else x if order % 2 else xp.abs(x)),
        )

    return fn(xp, x)
