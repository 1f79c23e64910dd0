"""The transforms of Winograd's convolution: vectors in, vectors out, along one axis.

Polynomials of degree 5 are given by their values at six points: 0, a, -a, b, -b and infinity, with
a = sqrt(1/2) and b = sqrt(2). Four results of a window of three, or three of a window of four, are
a product of such polynomials, taken point by point:

    y = output(filters(f) * patch(x))       4 results, 3 taps of f, 6 elements of x
    df = taps(patch(x) * results(dy))       3 taps, 6 elements of x, 4 of dy

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016, section 4; points
as far apart as these, with a * b = 1, keep the constants near 1, and with them the error (Barabasz
et al., "Error Analysis and Improving the Accuracy of Winograd Convolution", 2020, section 5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...codegen.conversions import fma
from ...codegen.function import IRFunction, Value

# Points of an axis, and results of a tile.
POINTS = 6
TILE = 4
TAPS = 3

_A = 0.5**0.5
_B = 2.0**0.5
# One over the products of the differences of a, and of b, to the other points.
_OF_A = -2.0 / 3.0
_OF_B = 1.0 / 6.0

Transform: TypeAlias = Callable[[IRFunction, Sequence[Value]], list[Value]]


def _pair(fn: IRFunction, even: Value, odd: Value, at: float) -> list[Value]:
    """even + at * odd, even - at * odd."""
    return [fma(fn, odd, at, even), fma(fn, odd, -at, even)]


def patch(fn: IRFunction, x: Sequence[Value]) -> list[Value]:
    """Of six elements of x."""
    return [
        fma(fn, x[2], -2.5, x[0] + x[4]),
        *_pair(fn, fma(fn, x[2], -2.0, x[4]), fma(fn, x[1], -2.0, x[3]), _A),
        *_pair(fn, fma(fn, x[2], -0.5, x[4]), fma(fn, x[1], -0.5, x[3]), _B),
        fma(fn, x[3], -2.5, x[1] + x[5]),
    ]


def results(fn: IRFunction, dy: Sequence[Value]) -> list[Value]:
    """Of four elements of dy; `taps` has the factors of the points."""
    return [
        dy[0],
        *_pair(fn, fma(fn, dy[2], 0.5, dy[0]), fma(fn, dy[3], 0.5, dy[1]), _A),
        *_pair(fn, fma(fn, dy[2], 2.0, dy[0]), fma(fn, dy[3], 2.0, dy[1]), _B),
        dy[3],
    ]


def filters(fn: IRFunction, f: Sequence[Value]) -> list[Value]:
    """Of three taps."""
    return [
        f[0],
        *_pair(fn, fma(fn, f[2], 0.5, f[0]) * _OF_A, f[1] * _OF_A, _A),
        *_pair(fn, fma(fn, f[2], 2.0, f[0]) * _OF_B, f[1] * _OF_B, _B),
        f[2],
    ]


def output(fn: IRFunction, m: Sequence[Value]) -> list[Value]:
    """Four results from the six points."""
    sum_a, sum_b = m[1] + m[2], m[3] + m[4]
    less_a, less_b = m[1] - m[2], m[3] - m[4]
    return [
        m[0] + sum_a + sum_b,
        fma(fn, less_a, _A, less_b * _B),
        fma(fn, sum_a, 0.5, sum_b * 2.0),
        fma(fn, less_a, 0.5 * _A, fma(fn, less_b, 2.0 * _B, m[5])),
    ]


def taps(fn: IRFunction, m: Sequence[Value]) -> list[Value]:
    """Three taps from the six points."""
    sum_a, sum_b = (m[1] + m[2]) * _OF_A, (m[3] + m[4]) * _OF_B
    less_a, less_b = (m[1] - m[2]) * _OF_A, (m[3] - m[4]) * _OF_B
    return [
        m[0] + sum_a + sum_b,
        fma(fn, less_a, _A, less_b * _B),
        fma(fn, sum_a, 0.5, fma(fn, sum_b, 2.0, m[5])),
    ]
