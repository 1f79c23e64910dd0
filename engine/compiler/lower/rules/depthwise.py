"""Depthwise convolutions.

With one filter for each channel they are convolutions of as many groups as there are channels.
Otherwise the taps of a window are views, side by side in one loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from ....graph import float32, float64
from ....ops.nn.windows import Geometry
from ...ir.builder import Builder
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, Shape, View
from ...kernels.conv.window import Axis, Phase, gradient_phases
from .convolution import filter_gradient, forward, geometry, input_gradient
from .joining import copy_into
from .table import Lowered, filled, lowers

# Taps that one statement takes; with more, the loops would read from too many places at once.
_TOGETHER = 9
# A window with more taps than that is left to the reference kernel.
_MOST_TAPS = 81


def _plan(step: Lowered, b: Builder, x: Operand, spatial: Shape, window: Shape) -> Geometry:
    if b.dtype(x) not in (float32, float64):
        raise NotLoweredError(f"{step.type} of {b.dtype(x)}")
    found = geometry(step, spatial, window)
    if found.taps > _MOST_TAPS or any(p < 0 for pair in found.pads for p in pair):
        raise NotLoweredError(f"{step.type} with {found.taps} taps, padded by {found.pads}")
    return found


def _bordered(b: Builder, x: Operand, pads: Sequence[tuple[int, int]]) -> View:
    """`x` with zeros before and after its spatial axes."""
    view = x if isinstance(x, View) else b.copy(x)
    if not any(p for pair in pads for p in pair):
        return view

    def make() -> View:
        own = view.shape
        sizes = [n + p + q for n, (p, q) in zip(own[1:-1], pads, strict=True)]
        whole = b.full((own[0], *sizes, own[-1]), 0.0, b.dtype(view))
        inner = b.narrow(whole, [0, *(p for p, _ in pads), 0], own, [1] * len(own))
        copy_into(b, inner, view)
        return whole

    return b.once(("bordered", view, tuple(pads)), make)


def _cells(b: Builder, x: View, starts: Sequence[int], sizes: Shape, steps: Sequence[int]) -> View:
    shape = (x.shape[0], *sizes, x.shape[-1])
    return b.narrow(x, [0, *starts, 0], shape, [1, *steps, 1])


def _taps(b: Builder, x: View, found: Geometry) -> list[tuple[tuple[int, ...], View]]:
    """For each tap, the cells that it meets at all positions."""
    return [
        (
            tap,
            _cells(
                b,
                x,
                [t * d for t, d in zip(tap, found.dilations, strict=True)],
                found.out,
                found.strides,
            ),
        )
        for tap in product(*map(range, found.window))
    ]


def _weights(b: Builder, kernel: View, tap: tuple[int, ...]) -> View:
    """(channels, multiplier) of one tap."""
    offset = kernel.offset + sum(t * s for t, s in zip(tap, kernel.strides, strict=False))
    return kernel._replace(shape=kernel.shape[-2:], strides=kernel.strides[-2:], offset=offset)


def _multiplied(s: Any, *values: Any) -> Any:
    """The sum of products of pairs, added to a last one if there is one."""
    total = values[-1] if len(values) % 2 else None
    for i in range(0, len(values) - 1, 2):
        term = values[i] * values[i + 1]
        total = term if total is None else total + term
    return total


def _sum_of_products(b: Builder, pairs: Sequence[tuple[Operand, Operand]]) -> Operand:
    total: list[Operand] = []
    for first in range(0, len(pairs), _TOGETHER):
        some = [x for pair in pairs[first : first + _TOGETHER] for x in pair]
        total = [b.compute(_multiplied, *some, *total)]
    return total[0]


def _with_multiplier(x: View) -> View:
    """(..., channels, 1)."""
    return x._replace(shape=(*x.shape, 1), strides=(*x.strides, 0))


def _in_groups(step: Lowered, channels: int) -> Lowered:
    """The step as a convolution in groups of one channel."""
    return step._replace(attrs={**step.attrs, "groups": channels})


@lowers("DepthwiseConv")
def _depthwise(b: Builder, step: Lowered, x: Operand, kernel: Operand) -> Operand:
    *window, channels, multiplier = b.shape(kernel)
    if multiplier == 1:
        filters = b.reshape(kernel, (*window, 1, channels))
        return forward(b, _in_groups(step, channels), x, filters)
    images, *spatial, _ = b.shape(x)
    found = _plan(step, b, x, tuple(spatial), tuple(window))
    weights = kernel if isinstance(kernel, View) else b.copy(kernel)
    whole = _bordered(b, x, found.pads)
    pairs: list[tuple[Operand, Operand]] = [
        (_with_multiplier(cells), _weights(b, weights, tap))
        for tap, cells in _taps(b, whole, found)
    ]
    return b.reshape(_sum_of_products(b, pairs), (images, *found.out, channels * multiplier))


@lowers("DepthwiseInputGrad")
def _input_grad(b: Builder, step: Lowered, dy: Operand, kernel: Operand, *dims: Operand) -> Operand:
    spatial = filled(step.attrs["input_dims"], dims)
    *window, channels, multiplier = b.shape(kernel)
    if multiplier == 1:
        filters = b.reshape(kernel, (*window, 1, channels))
        return input_gradient(b, _in_groups(step, channels), dy, filters, *dims)
    images, *out, _ = b.shape(dy)
    found = _plan(step, b, dy, spatial, tuple(window))
    if tuple(out) != found.out:
        raise NotLoweredError(f"DepthwiseInputGrad of {out} for {spatial}")
    weights = kernel if isinstance(kernel, View) else b.copy(kernel)
    axes = [
        gradient_phases(Axis(*each))
        for each in zip(spatial, window, found.strides, found.dilations, found.pads, strict=True)
    ]
    borders = [_border(phases, n) for phases, n in zip(axes, out, strict=True)]
    whole = _bordered(b, dy, borders)
    split = b.reshape(whole, (*whole.shape[:-1], channels, multiplier))
    dx = b.storage((images, *spatial, channels), b.dtype(dy))
    for phases in product(*axes):
        cells = _cells(
            b,
            dx,
            [p.first for p in phases],
            tuple(p.count for p in phases),
            [p.every for p in phases],
        )
        pairs: list[tuple[Operand, Operand]] = []
        for taps in product(*(p.taps for p in phases)):
            at = [offset + before for (offset, _), (before, _) in zip(taps, borders, strict=True)]
            one = _weights(b, weights, tuple(k for _, k in taps))
            for m in range(multiplier):
                read = b.narrow(
                    split,
                    [0, *at, 0, m],
                    (images, *(p.count for p in phases), channels, 1),
                    [1] * len(split.shape),
                )
                column = one._replace(
                    shape=(channels,),
                    strides=one.strides[:1],
                    offset=one.offset + m * one.strides[1],
                )
                pairs.append((_without_last(read), column))
        if pairs:
            copy_into(b, cells, _sum_of_products(b, pairs))
        else:
            copy_into(b, cells, b.full((), 0.0, b.dtype(dy)))
    return dx


def _without_last(x: View) -> View:
    return x._replace(shape=x.shape[:-1], strides=x.strides[:-1])


def _border(phases: Sequence[Phase], size: int) -> tuple[int, int]:
    """How far the taps of an axis of dy reach beyond its ends."""
    reach = [(offset, p.count - 1 + offset) for p in phases for offset, _ in p.taps]
    return (
        max([0, *(-low for low, _ in reach)]),
        max([0, *(high - (size - 1) for _, high in reach)]),
    )


@lowers("DepthwiseKernelGrad")
def _kernel_grad(b: Builder, step: Lowered, x: Operand, dy: Operand, *dims: Operand) -> Operand:
    window = filled(step.attrs["window"], dims)
    *spatial, channels = b.shape(x)[1:]
    if b.shape(dy)[-1] == channels:
        df = filter_gradient(b, _in_groups(step, channels), x, dy, *dims)
        return b.reshape(df, (*window, channels, 1))
    found = _plan(step, b, x, tuple(spatial), window)
    outputs = b.shape(dy)[-1]
    if b.shape(dy)[1:-1] != found.out or outputs % channels:
        raise NotLoweredError(f"DepthwiseKernelGrad of {b.shape(x)} and {b.shape(dy)}")
    multiplier = outputs // channels
    split = b.reshape(dy, (*b.shape(dy)[:-1], channels, multiplier))
    whole = _bordered(b, x, found.pads)
    dkernel = b.storage((*window, channels, multiplier), b.dtype(x))
    rows = range(len(spatial) + 1)
    for tap, cells in _taps(b, whole, found):
        products = b.compute(lambda s, p, d: p * d, _with_multiplier(cells), split)
        copy_into(b, _weights(b, dkernel, tap), b.reduce("sum", products, rows))
    return dkernel
