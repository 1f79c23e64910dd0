"""Functions of one number by pieces: a polynomial for each, whose coefficients a shuffle picks.

A register, or two, hold a coefficient of all pieces, and the permutations of AVX-512 and AVX2 give
each lane that of its own piece: with the polynomial, the work of a few multiplications, where an
exponential takes twenty. Other processors have no such shuffle.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ....graph import float32
from ...target import llvm
from ..conversions import fma
from ..function import IRFunction, Value
from ..values import literal
from .floats import at_most, bits_of, format_of

# By the size of the registers: how many lanes they have, how many pieces a shuffle chooses from
# (two registers of AVX-512), and by how much the polynomials' degree is greater than with AVX-512,
# whose pieces are a quarter as long.
_LANES = {64: 16, 32: 8}
_PIECES = {64: 32, 32: 8}
_HIGHER = {64: 0, 32: 3}
# Of the largest value of a piece: what is smaller is fitted to that part of it, not to one of its
# own (a function may have a root).
_LEAST_SHARE = 1e-4
_SHUFFLES = {64: "llvm.x86.avx512.vpermi2var.ps.512", 32: "llvm.x86.avx2.permps"}


class _Pieces(NamedTuple):
    """Polynomials around 0, 1 / scale, 2 / scale, ...: the coefficients of each power.

    Beyond the middle of the last two the function is 0.
    """

    scale: float
    powers: tuple[tuple[float, ...], ...]


def has_pieces(fn: IRFunction, x: Value) -> bool:
    """Whether the processor has shuffles for what `x` is."""
    size = fn.module.vector_bytes
    if x.dtype != float32 or x.lanes not in (0, _LANES.get(size)):
        return False
    return size == 64 or (size == 32 and llvm.host_features().get("avx2", False))


def in_pieces(
    fn: IRFunction, t: Value, function: Callable[[float], float], reach: float, degree: int
) -> tuple[Value, Value]:
    """A function of t >= 0 that fades away: from about `reach` on the result is 0.

    Args:
        fn: the function under construction.
        t: the numbers, for which `has_pieces` holds; a NaN stays one.
        function: what to approximate, of a float64.
        reach: where the function is next to nothing.
        degree: of the polynomials for AVX-512; the error should then be below 2**-25.

    Returns:
        t, or a number a little above `reach` for all beyond it, and the function of it.
    """
    size = fn.module.vector_bytes
    if not t.lanes:
        wide = in_pieces(fn, fn.splat(t, _LANES[size]), function, reach, degree)
        return fn.element(wide[0], 0), fn.element(wide[1], 0)
    scale, (*lower, highest) = _fitted(function, _PIECES[size], reach, degree + _HIGHER[size])
    t = at_most(fn, t, (_PIECES[size] - 1) / scale)
    rounder = format_of(t).rounder
    rounded = fma(fn, t, scale, rounder)
    piece = bits_of(fn, rounded)  # its number is in the lowest bits, and no others are looked at
    r = fma(fn, t, scale, rounder - rounded)
    y = _picked(fn, highest, piece)
    for row in reversed(lower):
        y = fma(fn, y, r, _picked(fn, row, piece))
    return t, y


def _picked(fn: IRFunction, row: Sequence[float], piece: Value) -> Value:
    """The element of a table for each lane."""
    size, lanes = fn.module.vector_bytes, piece.lanes
    kind = f"<{lanes} x float>"
    numbers = [f"float {literal(x, 'float')}" for x in row]
    halves = [f"{kind} <{', '.join(numbers[i : i + lanes])}>" for i in range(0, len(row), lanes)]
    operands = [halves[0], str(piece), *halves[1:]]
    types = [kind, f"<{lanes} x i32>", kind][: len(operands)]
    name = _SHUFFLES[size]
    fn.module.declarations[name] = f"declare {kind} @{name}({', '.join(types)})"
    return fn.instruction(f"call {kind} @{name}({', '.join(operands)})", float32, lanes)


@functools.cache
def _fitted(function: Callable[[float], float], count: int, reach: float, degree: int) -> _Pieces:
    """The pieces of a function; the last one is 0."""
    # One of few bits, so that t * scale is exact for the borders of pieces.
    scale = round((count - 1.5) / reach * 64) / 64
    pieces = [_polynomial(function, k, scale, degree) for k in range(count - 1)]
    pieces.append([0.0] * (degree + 1))
    return _Pieces(scale, tuple(zip(*pieces, strict=True)))


def _polynomial(
    function: Callable[[float], float], middle: int, scale: float, degree: int
) -> list[float]:
    """The coefficients of function((middle + r) / scale) for |r| <= 1/2 and middle + r >= 0.

    By least squares at Chebyshev's points; the error is relative to the function, so that a piece
    along which that falls to a small part is good at both ends.
    """
    count = 8 * (degree + 1)
    low = max(-0.5, -float(middle))
    points = np.cos(np.pi * (np.arange(count) + 0.5) / count) * (0.5 - low) / 2 + (0.5 + low) / 2
    values = np.array([function((middle + r) / scale) for r in points])
    size = np.abs(values)
    weights = 1 / np.maximum(size, _LEAST_SHARE * size.max())
    powers = points[:, None] ** np.arange(degree + 1)
    found = np.linalg.lstsq(powers * weights[:, None], values * weights, rcond=None)[0]
    return [float(c) for c in found]
