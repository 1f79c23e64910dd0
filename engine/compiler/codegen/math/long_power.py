"""x ** y in float64.

y * log(x) goes up to 745, and what it is off by, the result is off by in proportion. So the
logarithm is a sum of two numbers, good to 2**-64 of it, and so is the product (Dekker, "A
floating-point technique for extending the available precision", Numerische Mathematik 18, 1971):
the greater number is what a float64 holds, the lesser what that has lost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ....graph import float64
from ..conversions import fma
from ..function import IRFunction, Value
from .exponentials import LOG_2, exp_of_two
from .floats import magnitude, polynomial, select
from .logarithms import split

# 1/3 as a float64 and what that leaves, then 1/5, 1/7, ...: log((1 + s) / (1 - s)) / (2 s) - 1 is
# s**2 / 3 + s**4 / 5 + ..., here for |s| <= 1/5; what comes later is below 2**-66 of it.
_THIRD = (1 / 3, 1.850371707708594e-17)
_REST = tuple(1 / (2 * k + 5) for k in range(12))
_BEYOND = 1000.0  # where an exponent gives 0 or infinity, whatever the lesser number is


class _Two(NamedTuple):
    """A sum of two numbers."""

    high: Value
    low: Value


def _sum(greater: Value, lesser: Value, low: Value) -> _Two:
    """greater + lesser + low; |greater| >= |lesser|, or it is 0."""
    high = greater + lesser
    return _Two(high, (greater - high) + lesser + low)


def _product(fn: IRFunction, a: _Two, b: _Two) -> _Two:
    """a * b."""
    high = a.high * b.high
    error = fma(fn, a.high, b.high, -high)
    return _Two(high, fma(fn, a.high, b.low, fma(fn, a.low, b.high, error)))


def _logarithm(fn: IRFunction, x: Value) -> _Two:
    """log(x) for a positive number."""
    # x = 2**e * (1 + m), and s = m / (2 + m).
    e, m = split(fn, x)
    divisor = m + 2.0
    lost = m - (divisor - 2.0)
    s = m / divisor
    rest = fma(fn, -s, lost, fma(fn, -s, divisor, m)) / divisor
    square = _product(fn, _Two(s, rest), _Two(s, rest))
    later = square.high * polynomial(fn, square.high, _REST)
    series = _sum(fn.constant(_THIRD[0], x), later, fn.constant(_THIRD[1], x))
    twice = _Two(s + s, rest + rest)
    more = _product(fn, twice, _product(fn, square, series))
    of_fraction = _sum(twice.high, more.high, more.low + twice.low)
    high, low = LOG_2[float64]
    of_power = e * high
    lost = fma(fn, e, low, fma(fn, e, high, -of_power))
    return _sum(of_power, of_fraction.high, lost + of_fraction.low)


def long_power(fn: IRFunction, x: Value, y: Value) -> Value:
    """x ** y for x >= 0; what is 1 for NaN, or for 1 ** infinity, is left to the caller."""
    logarithm = _logarithm(fn, x)
    # Of 0, infinity and NaN.
    at_end = select(fn, x == 0, -math.inf, x)
    high = fn.select((x > 0) & (x < math.inf), logarithm.high, at_end)
    product = y * high
    lost = fma(fn, y, high, -product)
    low = fma(fn, y, logarithm.low, lost)
    low = select(fn, magnitude(fn, product) < _BEYOND, low, 0.0)
    return exp_of_two(fn, product, low)
