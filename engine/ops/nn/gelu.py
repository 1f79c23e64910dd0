"""GELU and its slope as expressions, and the curves that they are made of.

Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016, arXiv:1606.08415, section 2.
"""

from __future__ import annotations

import math
from typing import Any

DENSITY = 1 / math.sqrt(2 * math.pi)
# As (1 + tanh(u)) / 2 = sigmoid(2 u), the approximate form is x * sigmoid(x * (SCALE + CUBIC *
# x**2)), which does not cancel for negative x.
SCALE = 2 * math.sqrt(2 / math.pi)
CUBIC = 0.044715 * SCALE
_FLAT = 50.0  # beyond it the slope is exactly 0 or 1, and nothing here overflows before it


def gelu(s: Any, x: Any, approximate: bool) -> Any:
    """x times the share of a normal distribution below x, exactly or by tanh."""
    left = s.max(x, -_FLAT)  # the result goes to 0 there, as x times 0 does unless x is infinite
    if approximate:
        right = s.min(left, _FLAT)
        return left * s.sigmoid(right * (SCALE + CUBIC * (right * right)))
    return left * s.normal_cdf(x)


def gelu_slope(s: Any, x: Any, approximate: bool) -> Any:
    """The derivative of `gelu`."""
    x = s.min(s.max(x, -_FLAT), _FLAT)
    square = x * x
    if approximate:
        p = s.sigmoid(x * (SCALE + CUBIC * square))
        return p + p * (1 - p) * x * (SCALE + 3 * CUBIC * square)
    return s.normal_cdf(x) + DENSITY * x * s.exp(-0.5 * square)


# For t >= 0: gelu(t) = t - t * tail(t) and gelu(-t) = -t * tail(t), and the slopes there are
# 1 - slope_tail(t) and slope_tail(t). (tails, slope_tails) by `approximate`.


def _normal_tail(t: float) -> float:
    return 0.5 * math.erfc(t * math.sqrt(0.5))


def _normal_slope_tail(t: float) -> float:
    return _normal_tail(t) - t * DENSITY * math.exp(-0.5 * t * t)


def _sigmoid_tail(t: float) -> float:
    return 1 / (1 + math.exp(t * (SCALE + CUBIC * t * t)))


def _sigmoid_slope_tail(t: float) -> float:
    p = _sigmoid_tail(t)
    return p - p * (1 - p) * t * (SCALE + 3 * CUBIC * t * t)


TAILS = {False: _normal_tail, True: _sigmoid_tail}
SLOPE_TAILS = {False: _normal_slope_tail, True: _sigmoid_slope_tail}
TAIL_REACH = 6.5  # beyond it they are below 2**-34 and 2**-26
