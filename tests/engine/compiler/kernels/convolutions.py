"""Cases of convolutions: their arrays, and what the results are to be, in float64."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laminar.engine.compiler.kernels import Convolution

Doubles = NDArray[np.float64]


def same(
    images: int,
    size: tuple[int, ...],
    channels: int,
    filters: int,
    window: int,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    padding: tuple[int, int] | None = None,
) -> Convolution:
    """The same along all axes; padded so that stride 1 keeps the size, if not otherwise."""
    rank = len(size)
    reach = (window - 1) * dilation
    before = reach // 2
    pads = padding or (before, reach - before)
    return Convolution(
        images,
        size,
        channels,
        filters,
        (window,) * rank,
        (stride,) * rank,
        (dilation,) * rank,
        (pads,) * rank,
        groups,
    )


def shapes(conv: Convolution) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Of x, the filters and y."""
    return (
        (conv.images, *conv.size, conv.channels),
        (*conv.window, conv.channels // conv.groups, conv.filters),
        (conv.images, *conv.output, conv.filters),
    )


def numbers(conv: Convolution, dtype: Any) -> list[NDArray[Any]]:
    """x, filters and dy."""
    rng = np.random.default_rng(conv.channels)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes(conv)]


def expected(
    conv: Convolution, x: NDArray[Any], filters: NDArray[Any], dy: NDArray[Any]
) -> tuple[Doubles, Doubles, Doubles]:
    """y, dx and df by their definition, tap by tap."""
    padded = np.pad(x.astype(np.float64), [(0, 0), *conv.padding, (0, 0)])
    weights, dy = filters.astype(np.float64), dy.astype(np.float64)
    y, dx, df = np.zeros(dy.shape), np.zeros(padded.shape), np.zeros(weights.shape)
    inside, outside = conv.channels // conv.groups, conv.filters // conv.groups
    for tap in itertools.product(*map(range, conv.window)):
        there = tuple(
            slice(k * dilation, k * dilation + (count - 1) * stride + 1 if count else 0, stride)
            for k, dilation, stride, count in zip(
                tap, conv.dilation, conv.strides, conv.output, strict=True
            )
        )
        for group in range(conv.groups):
            c = slice(group * inside, (group + 1) * inside)
            m = slice(group * outside, (group + 1) * outside)
            at = (slice(None), *there, c)
            y[..., m] += padded[at] @ weights[tap][:, m]
            dx[at] += dy[..., m] @ weights[tap][:, m].T
            pairs = padded[at].reshape(-1, inside).T @ dy[..., m].reshape(-1, outside)
            df[tap][:, m] += pairs
    cut = tuple(
        slice(before, before + n) for (before, _), n in zip(conv.padding, conv.size, strict=True)
    )
    return y, dx[(slice(None), *cut)], df
