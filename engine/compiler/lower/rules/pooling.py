"""Pooling: the taps of a window are views of its input, side by side in one loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ....graph import DType, float32, float64
from ....ops.nn.windows import Geometry
from ...ir.builder import Builder, as_it_is
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, Shape, View
from .convolution import geometry
from .table import Lowered, filled, lowers

# A loop over more taps than that reads from too many places at once.
_MOST_TAPS = 16


def _plan(b: Builder, step: Lowered, spatial: Sequence[int]) -> Geometry:
    found = geometry(step, spatial, step.attrs["window"])
    if found.taps > _MOST_TAPS:
        raise NotLoweredError(f"{step.type} with {found.taps} taps")
    if any(p < 0 for pair in found.pads for p in pair):
        raise NotLoweredError(f"{step.type} that crops")
    return found


def _padded(b: Builder, x: View, found: Geometry, value: float) -> View:
    """x with cells of `value` around it where the window goes beyond."""
    if not found.is_padded:
        return x
    images, *_, channels = x.shape
    dtype = b.dtype(x)
    whole = b.full((images, *found.padded, channels), value, dtype)
    inner = _inner(b, whole, found, x.shape)
    b.map_into(inner, as_it_is, [x])
    return whole


def _inner(b: Builder, padded: View, found: Geometry, shape: Shape) -> View:
    starts = [0, *(before for before, _ in found.pads), 0]
    return b.narrow(padded, starts, shape, [1] * len(shape))


def _taps(b: Builder, padded: View, found: Geometry) -> list[View]:
    """For each tap, the cells that it meets at all positions."""
    images, *_, channels = padded.shape
    shape = (images, *found.out, channels)
    return [
        b.narrow(padded, [0, *tap, 0], shape, [1, *found.strides, 1])
        for tap in product(*map(range, found.window))
    ]


def _memory(b: Builder, x: Operand) -> View:
    return x if isinstance(x, View) else b.copy(x)


def _lowest(dtype: DType) -> float:
    return -math.inf if dtype.is_floating else np.iinfo(dtype.numpy).min


@lowers("MaxPool")
def _max_pool(b: Builder, step: Lowered, x: Operand) -> Operand:
    found = _plan(b, step, b.shape(x)[1:-1])
    dtype = b.dtype(x)
    taps = _taps(b, _padded(b, _memory(b, x), found, _lowest(dtype)), found)

    def largest(s: Any, *cells: Any) -> Any:
        top = cells[0]
        for cell in cells[1:]:
            top = s.max(top, cell)
        return top

    return b.compute(largest, *taps)


def _is_first(number: int) -> Callable[..., Any]:
    """Whether cell `number` is the first that holds the maximum; it comes after the cells."""

    def first(s: Any, *values: Any) -> Any:
        *cells, top, dy = values
        found = cells[number] == top
        for cell in cells[:number]:
            found = found & ~(cell == top)
        return s.where(found, dy, 0)

    return first


@lowers("MaxPoolGrad")
def _max_pool_grad(b: Builder, step: Lowered, x: Operand, y: Operand, dy: Operand) -> Operand:
    found = _plan(b, step, b.shape(x)[1:-1])
    dtype = b.dtype(dy)
    if dtype not in (float32, float64):
        raise NotLoweredError(f"MaxPoolGrad of {dtype}")
    taps = _taps(b, _padded(b, _memory(b, x), found, _lowest(dtype)), found)
    # The first maximum is looked for among this cell and those before it.
    parts = [(_is_first(i), [*taps[: i + 1], y, dy]) for i in range(len(taps))]
    return _spread(b, found, b.shape(x), dtype, parts)


def _spread(
    b: Builder,
    found: Geometry,
    shape: Shape,
    dtype: DType,
    parts: Sequence[tuple[Callable[..., Any], Sequence[Operand]]],
) -> Operand:
    """What each tap gives, added up in the cells that it meets."""
    images, *_, channels = shape
    padded = (images, *found.padded, channels)
    is_tiled = all(s >= w for s, w in zip(found.strides, found.window, strict=True))
    is_covered = is_tiled and all(
        n * s == size and s == w
        for n, s, w, size in zip(found.out, found.strides, found.window, found.padded, strict=True)
    )
    dx = b.storage(padded, dtype) if is_covered else b.full(padded, 0.0, dtype)
    for cells, (scalar, operands) in zip(_taps(b, dx, found), parts, strict=True):
        if is_tiled:
            b.map_into(cells, scalar, operands)
        else:
            b.map_into(cells, _added(scalar), [cells, *operands])
    return _inner(b, dx, found, shape) if found.is_padded else dx


def _added(scalar: Callable[..., Any]) -> Callable[..., Any]:
    """What an expression gives, added to what is there."""
    return lambda s, own, *values: own + scalar(s, *values)


def _shares(b: Builder, found: Geometry, dtype: DType) -> Operand:
    """1 over the number of cells that each position averages."""
    counts = np.ones([1] * len(found.out))
    for axis, (n, stride, window, dim) in enumerate(
        zip(found.out, found.strides, found.window, found.dims, strict=True)
    ):
        starts = np.arange(n) * stride - found.pads[axis][0]
        ends = np.minimum(starts + window, dim)
        own = (ends - np.maximum(starts, 0)).reshape(
            [-1 if i == axis else 1 for i in range(len(found.out))]
        )
        counts = counts * own
    return b.array((1 / counts)[None, ..., None].astype(dtype.numpy), dtype)


@lowers("AvgPool")
def _avg_pool(b: Builder, step: Lowered, x: Operand) -> Operand:
    found = _plan(b, step, b.shape(x)[1:-1])
    dtype = b.dtype(x)
    if dtype not in (float32, float64):
        raise NotLoweredError(f"AvgPool of {dtype}")
    taps = _taps(b, _padded(b, _memory(b, x), found, 0.0), found)

    def mean(s: Any, share: Any, *cells: Any) -> Any:
        total = cells[0]
        for cell in cells[1:]:
            total = total + cell
        return total * share

    return b.compute(mean, _shares(b, found, dtype), *taps, dtype=dtype)


@lowers("AvgPoolGrad")
def _avg_pool_grad(b: Builder, step: Lowered, dy: Operand, *dims: Operand) -> Operand:
    spatial = filled(step.attrs["input_dims"], dims)
    found = _plan(b, step, spatial)
    dtype = b.dtype(dy)
    if dtype not in (float32, float64):
        raise NotLoweredError(f"AvgPoolGrad of {dtype}")
    images, *_, channels = b.shape(dy)
    share = _shares(b, found, dtype)
    parts = [(lambda s, d, w: d * w, [dy, share])] * found.taps
    return _spread(b, found, (images, *spatial, channels), dtype, parts)
