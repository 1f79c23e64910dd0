"""Window functions: what a signal is multiplied with before its spectrum is taken."""

from __future__ import annotations

import math
from typing import SupportsInt

from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation as engine
from laminar.engine.ops.core import basic
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math import elementary as mathematics

from ..typing import TensorLike
from .arguments import dtype_or_float, tensor, whole
from .creation import ones
from .recording import public

__all__ = [
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
    "kaiser",
]


def _phase(n: SupportsInt) -> tuple[Tensor, float]:
    """The places 0, 1, ... of a window of length `n`, and the last of them (at least 1)."""
    count = whole("a window", "its length", n)
    return engine.arange(max(count, 0), dtype=dtype_or_float(None)), float(max(count - 1, 1))


def _cosine_window(n: SupportsInt, *terms: float) -> Tensor:
    """Sum over k of terms[k] * cos(2 pi k i / (n - 1)), and 1 for a window of one point."""
    if n == 1:
        return ones((1,))
    i, last = _phase(n)
    window = basic.zeros_like(i)
    for k, term in enumerate(terms):
        angle = arithmetic.multiply(i, tensor(2 * math.pi * k / last, i.dtype))
        wave = arithmetic.multiply(mathematics.cos(angle), tensor(term, i.dtype))
        window = arithmetic.add(window, wave)
    return window


@public
def hanning(x: SupportsInt) -> Tensor:
    """The Hann window of `x` points: 0.5 - 0.5 cos(2 pi i / (x - 1)).

    Examples:
        >>> ops.hanning(5)
        Tensor([0. , 0.5, 1. , 0.5, 0. ], shape=(5,), dtype=float32)
    """
    return _cosine_window(x, 0.5, -0.5)


@public
def hamming(x: SupportsInt) -> Tensor:
    """The Hamming window of `x` points: 0.54 - 0.46 cos(2 pi i / (x - 1)).

    Examples:
        >>> ops.hamming(5)
        Tensor([0.08, 0.54, 1.  , 0.54, 0.08], shape=(5,), dtype=float32)
    """
    return _cosine_window(x, 0.54, -0.46)


@public
def blackman(x: SupportsInt) -> Tensor:
    """The Blackman window: 0.42 - 0.5 cos(t) + 0.08 cos(2 t) with t = 2 pi i / (x - 1).

    Examples:
        >>> ops.blackman(5)
        Tensor([-0.  ,  0.34,  1.  ,  0.34, -0.  ], shape=(5,), dtype=float32)
    """
    return _cosine_window(x, 0.42, -0.5, 0.08)


@public
def bartlett(x: SupportsInt) -> Tensor:
    """The triangular window of `x` points, 0 at both ends.

    Examples:
        >>> ops.bartlett(5)
        Tensor([0. , 0.5, 1. , 0.5, 0. ], shape=(5,), dtype=float32)
    """
    if x == 1:
        return ones((1,))
    i, last = _phase(x)
    rising = arithmetic.multiply(i, tensor(2 / last, i.dtype))
    falling = arithmetic.subtract(tensor(2.0, i.dtype), rising)
    return arithmetic.minimum(rising, falling)


@public
def kaiser(x: SupportsInt, beta: TensorLike) -> Tensor:
    """The Kaiser window of `x` points: i0(beta sqrt(1 - (2 i / (x - 1) - 1)**2)) / i0(beta).

    Examples:
        >>> ops.kaiser(5, beta=4.0)
        Tensor([0.0885, 0.6334, 1.    , 0.6334, 0.0885], shape=(5,), dtype=float32)
    """
    if x == 1:
        return ones((1,))
    i, last = _phase(x)
    scale = tensor(beta, i.dtype)
    centred = arithmetic.subtract(
        arithmetic.multiply(i, tensor(2 / last, i.dtype)), tensor(1.0, i.dtype)
    )
    inside = arithmetic.subtract(tensor(1.0, i.dtype), arithmetic.square(centred))
    inside = arithmetic.maximum(inside, basic.zeros_like(inside))  # rounding may go below 0
    height = mathematics.i0(arithmetic.multiply(scale, mathematics.sqrt(inside)))
    return arithmetic.divide(height, mathematics.i0(scale))
