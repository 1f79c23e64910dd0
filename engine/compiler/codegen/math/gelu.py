"""GELU and its slope where a processor can evaluate their tails by pieces (see ops/nn/gelu.py)."""

from __future__ import annotations

from ....ops.nn.gelu import SLOPE_TAILS, TAIL_REACH, TAILS
from ..conversions import fma
from ..function import IRFunction, Value
from .floats import magnitude, select
from .piecewise import in_pieces

# With AVX-512. The error of GELU is at most 1.2 * 2**-24 * |x|, most of it rounding, and of a
# negative result x * Phi(x) at most 1e-4 of it, 1e-3 with AVX2, as far as the tail reaches (by
# tanh, whose tail is thinner, ten times that); that of the slope is 1.5 * 2**-24.
_TAIL_DEGREE, _SLOPE_DEGREE = 4, 5


def gelu(fn: IRFunction, x: Value, approximate: bool) -> Value:
    """x times the share of a normal distribution below x."""
    t = magnitude(fn, x)
    t, tail = in_pieces(fn, t, TAILS[approximate], TAIL_REACH, _TAIL_DEGREE)
    return fma(fn, -t, tail, select(fn, x < -0.0, -0.0, x))


def gelu_slope(fn: IRFunction, x: Value, approximate: bool) -> Value:
    """The derivative of `gelu`."""
    t = magnitude(fn, x)
    _, tail = in_pieces(fn, t, SLOPE_TAILS[approximate], TAIL_REACH, _SLOPE_DEGREE)
    return fn.select(x > 0, 1.0 - tail, tail)
