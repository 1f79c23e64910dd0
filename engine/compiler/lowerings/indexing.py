"""Ops that read and write where numbers tell: along an axis, by rows of a table, one-hot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...graph import bool_, int32, int64
from ..builder import Builder, broadcast
from ..emit import NotLoweredError
from ..kernels.launch import Buffer
from ..kernels.scatter import plan_scatter_add
from ..program import Gathered, Operand, Shape, Size, View
from .contractions import target
from .table import Lowered, filled, lowers


def _view(b: Builder, x: Operand) -> View:
    return x if isinstance(x, View) else b.copy(x)


def _wrapped(b: Builder, indices: Operand, size: int) -> Operand:
    """Indices from the end made positive."""
    dtype = b.dtype(indices)
    if dtype not in (int32, int64):
        indices, dtype = b.cast(indices, int64), int64
    return b.compute(lambda s, i, n: s.where(i < 0, i + n, i), indices, Size(size, dtype))


@lowers("TakeAlongAxis")
def _take_along(b: Builder, step: Lowered, x: Operand, indices: Operand) -> Operand:
    view = _view(b, x)
    rank = len(view.shape)
    axis = step.attrs["axis"] % rank
    own = b.shape(indices)
    if len(own) != rank:
        raise NotLoweredError(f"TakeAlongAxis of {view.shape} by {own}")
    size = view.shape[axis]
    lead = broadcast(
        [(*view.shape[:axis], 1, *view.shape[axis + 1 :]), (*own[:axis], 1, *own[axis + 1 :])]
    )
    shape = (*lead[:axis], own[axis], *lead[axis + 1 :])
    places = b.broadcast(_wrapped(b, indices, size), shape)
    b.check(_outside(b, places, size))
    one = view._replace(
        shape=(*view.shape[:axis], 1, *view.shape[axis + 1 :]),
    )
    start = b.broadcast(one, shape)
    assert isinstance(start, View)
    found = Gathered(start, (places,), (view.strides[axis],), (size,))
    return b.map(lambda fn, values: values[0], [found], b.dtype(x), shape)


def _outside(b: Builder, places: Operand, size: int) -> Operand:
    dtype = b.dtype(places)
    return b.compute(lambda s, i, n: (i < 0) | (i >= n), places, Size(size, dtype), dtype=bool_)


@lowers("TakeAlongAxisGrad")
def _take_along_grad(
    b: Builder, step: Lowered, dy: Operand, indices: Operand, *dims: Operand
) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    axis = step.attrs["axis"] % len(shape)
    own = b.shape(dy)
    if own[axis] != 1:
        raise NotLoweredError("TakeAlongAxisGrad of several places")
    places = _wrapped(b, indices, shape[axis])
    at = b.iota(shape, axis, b.dtype(places))
    return b.compute(lambda s, i, j, d: s.where(i == j, d, 0), places, at, dy, dtype=b.dtype(dy))


def _checked(b: Builder, indices: Operand, size: int) -> Operand:
    """Indices as they count from the front; a run stops if one is out of range."""

    def make() -> View:
        places = _wrapped(b, indices, size)
        assert isinstance(places, View)
        b.check(_outside(b, places, size))
        return places

    return b.once(("places", indices, size), make)


@lowers("Gather")
def _gather(b: Builder, step: Lowered, x: Operand, indices: Operand) -> Operand:
    if step.attrs["batch_dims"]:
        raise NotLoweredError("Gather with batch axes")
    view = _view(b, x)
    axis = step.attrs["axis"] % len(view.shape)
    places = b.shape(indices)
    lead, rest = view.shape[:axis], view.shape[axis + 1 :]
    start = view._replace(
        shape=(*lead, *places, *rest),
        strides=(*view.strides[:axis], *(0 for _ in places), *view.strides[axis + 1 :]),
    )
    return _picked(
        b, start, [_checked(b, indices, view.shape[axis])], len(rest), view.strides, [axis], view
    )


def _picked(
    b: Builder,
    start: View,
    places: Sequence[Operand],
    after: int,
    strides: Shape,
    axes: Sequence[int],
    source: View,
) -> View:
    """Elements of `source`: `start` moved along `axes` by places, which stand before `after` axes.

    Nothing else than the places names the axes that are picked from, so `start` does not move
    along them.
    """
    spread = tuple(
        b.broadcast(b.reshape(p, (*b.shape(p), *[1] * after)), start.shape) for p in places
    )
    found = Gathered(
        start,
        spread,
        tuple(strides[a] for a in axes),
        tuple(source.shape[a] for a in axes),
    )
    return b.map(lambda fn, values: values[0], [found], b.dtype(source), start.shape)


@lowers("GatherNd")
def _gather_nd(b: Builder, step: Lowered, x: Operand, *indices: Operand) -> Operand:
    view = _view(b, x)
    count = len(indices)
    shape = broadcast([b.shape(i) for i in indices])
    places = [_checked(b, i, n) for i, n in zip(indices, view.shape, strict=False)]
    start = view._replace(
        shape=(*shape, *view.shape[count:]),
        strides=(*(0 for _ in shape), *view.strides[count:]),
    )
    return _picked(
        b, start, places, len(view.shape) - count, view.strides, list(range(count)), view
    )


@lowers("GatherGrad")
def _gather_grad(
    b: Builder, step: Lowered, dy: Operand, indices: Operand, *dims: Operand
) -> Operand:
    if step.attrs["batch_dims"]:
        raise NotLoweredError("GatherGrad with batch axes")
    shape = filled(step.attrs["shape"], dims)
    axis = step.attrs["axis"] % len(shape)
    places = _checked(b, indices, shape[axis])
    found = _scattered(
        b, dy, places, math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    )
    return b.reshape(found, shape)


@lowers("ScatterNd")
def _scatter_nd(b: Builder, step: Lowered, updates: Operand, *rest: Operand) -> Operand:
    count = step.attrs["num_indices"]
    shape = filled(step.attrs["shape"], rest[count:])
    indices = rest[:count]
    own = broadcast([b.shape(i) for i in indices])
    row: Operand | None = None
    for i, n in zip(indices, shape, strict=False):
        places = b.cast(_checked(b, i, n), int64)
        row = (
            places
            if row is None
            else b.compute(lambda s, r, p, n: r * n + p, row, places, Size(n, int64))
        )
    assert row is not None
    if b.shape(updates) != (*own, *shape[count:]):
        raise NotLoweredError(f"ScatterNd of {b.shape(updates)} into {shape}")
    found = _scattered(
        b, updates, b.broadcast(row, own), 1, math.prod(shape[:count]), math.prod(shape[count:])
    )
    return b.reshape(found, shape)


def _numbers(b: Builder, ids: Operand) -> Operand:
    """Numbers of segments; what is out of range stays so."""
    return ids if b.dtype(ids) in (int32, int64) else b.cast(ids, int64)


@lowers("SegmentSum")
def _segment_sum(b: Builder, step: Lowered, rows: Operand, ids: Operand, *dims: Operand) -> Operand:
    (size,) = filled((step.attrs["num_segments"],), dims)
    count, *rest = b.shape(rows)
    if b.shape(ids) != (count,):
        raise NotLoweredError(f"SegmentSum of {b.shape(rows)} by {b.shape(ids)}")
    found = _scattered(b, rows, _numbers(b, ids), 1, size, math.prod(rest))
    return b.reshape(found, (size, *rest))


@lowers("SegmentSpread")
def _segment_spread(b: Builder, step: Lowered, y: Operand, ids: Operand) -> Operand:
    view = _view(b, y)
    start = view._replace(shape=(*b.shape(ids), *view.shape[1:]), strides=(0, *view.strides[1:]))
    # One outside reads as 0.
    return _picked(b, start, [_numbers(b, ids)], len(view.shape) - 1, view.strides, [0], view)


# Beyond it, halving the rest again and again is faster than to compare with each.
_MOST_COMPARED = 256


@lowers("SearchSorted")
def _search_sorted(b: Builder, step: Lowered, sequence: Operand, values: Operand) -> Operand:
    (size,) = b.shape(sequence)
    if size > _MOST_COMPARED:
        raise NotLoweredError(f"SearchSorted among {size}")
    first = step.attrs["side"] == "left"

    def stands_before(s: Any, x: Any, v: Any) -> Any:
        if first:
            return (x < v) | ((v != v) & (x == x))  # NaN stands last
        return (x <= v) | (v != v)

    shape = b.shape(values)
    each = b.reshape(values, (*shape, 1))
    before = b.compute(stands_before, sequence, each, dtype=bool_)
    return b.reduce("sum", b.cast(before, int32), [len(shape)])


def _scattered(
    b: Builder, rows: Operand, places: Operand, tables: int, size: int, width: int
) -> View:
    """Tables of zeros, (tables, size, width), with each row added where its place is."""
    count = math.prod(b.shape(places))
    dtype, index_dtype = b.dtype(rows), b.dtype(places)
    if dtype == bool_ or math.prod(b.shape(rows)) != tables * count * width:
        raise NotLoweredError(f"a scatter of {b.shape(rows)} {dtype}")

    def plan(real: Callable[[int], int], inputs: Any, outputs: Any) -> Any:
        return plan_scatter_add(
            Buffer(inputs[0]),
            Buffer(inputs[1]),
            Buffer(outputs[0]),
            real(tables),
            real(count),
            real(size),
            real(width),
            dtype,
            index_dtype,
            target(),
        )

    return b.library("scatter", [rows, places], [((tables, size, width), dtype)], plan)[0]
