"""Ops that read where numbers tell: along an axis, by rows of a table; and searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....graph import bool_, int32, int64
from ...ir.builder import Builder, as_it_is, broadcast
from ...ir.not_lowered import NotLoweredError
from ...ir.program import IndirectLoad, Operand, Shape, Size, View
from ...ir.sizes import is_known
from .table import Lowered, lowers


def as_view(b: Builder, x: Operand) -> View:
    """As memory."""
    return x if isinstance(x, View) else b.copy(x)


def wrapped(b: Builder, indices: Operand, size: int) -> Operand:
    """Indices from the end made positive."""
    dtype = b.dtype(indices)
    if dtype not in (int32, int64):
        indices, dtype = b.cast(indices, int64), int64
    return b.compute(lambda s, i, n: s.where(i < 0, i + n, i), indices, Size(size, dtype))


@lowers("TakeAlongAxis", takes_halves=True)
def _take_along(b: Builder, step: Lowered, x: Operand, indices: Operand) -> Operand:
    view = as_view(b, x)
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
    places = b.broadcast(wrapped(b, indices, size), shape)
    b.check(_outside(b, places, size))
    one = view._replace(
        shape=(*view.shape[:axis], 1, *view.shape[axis + 1 :]),
    )
    start = b.broadcast(one, shape)
    assert isinstance(start, View)
    found = IndirectLoad(start, (places,), (view.strides[axis],), (size,))
    return b.map(as_it_is, [found], b.dtype(x), shape)


def _outside(b: Builder, places: Operand, size: int) -> Operand:
    dtype = b.dtype(places)
    return b.compute(lambda s, i, n: (i < 0) | (i >= n), places, Size(size, dtype), dtype=bool_)


def checked(b: Builder, indices: Operand, size: int) -> Operand:
    """Indices as they count from the front; a run stops if one is out of range."""

    def make() -> View:
        places = wrapped(b, indices, size)
        assert isinstance(places, View)
        b.check(_outside(b, places, size))
        return places

    return b.once(("places", indices, size), make)


@lowers("Gather", takes_halves=True)
def _gather(b: Builder, step: Lowered, x: Operand, indices: Operand) -> Operand:
    view, common = as_view(b, x), step.attrs["batch_dims"]
    axis = step.attrs["axis"] % len(view.shape)
    batch, places = b.shape(indices)[:common], b.shape(indices)[common:]
    if batch != view.shape[:common]:
        raise NotLoweredError(f"Gather from {view.shape} by {b.shape(indices)}")
    lead, rest = view.shape[:axis], view.shape[axis + 1 :]
    start = view._replace(
        shape=(*lead, *places, *rest),
        strides=(*view.strides[:axis], *(0 for _ in places), *view.strides[axis + 1 :]),
    )
    found = checked(b, indices, view.shape[axis])
    if common:  # those of a batch go with all that is before the axis
        found = b.reshape(found, (*batch, *[1] * (axis - common), *places))
    return _picked(b, start, [found], len(rest), view.strides, [axis], view)


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
    found = IndirectLoad(
        start,
        spread,
        tuple(strides[a] for a in axes),
        tuple(source.shape[a] for a in axes),
    )
    return b.map(as_it_is, [found], b.dtype(source), start.shape)


@lowers("GatherNd", takes_halves=True)
def _gather_nd(b: Builder, step: Lowered, x: Operand, *indices: Operand) -> Operand:
    view = as_view(b, x)
    count = len(indices)
    shape = broadcast([b.shape(i) for i in indices])
    places = [checked(b, i, n) for i, n in zip(indices, view.shape, strict=False)]
    start = view._replace(
        shape=(*shape, *view.shape[count:]),
        strides=(*(0 for _ in shape), *view.strides[count:]),
    )
    return _picked(
        b, start, places, len(view.shape) - count, view.strides, list(range(count)), view
    )


def numbers(b: Builder, ids: Operand) -> Operand:
    """Numbers of segments; what is out of range stays so."""
    return ids if b.dtype(ids) in (int32, int64) else b.cast(ids, int64)


@lowers("SegmentSpread", takes_halves=True)
def _segment_spread(b: Builder, step: Lowered, y: Operand, ids: Operand) -> Operand:
    view = as_view(b, y)
    start = view._replace(shape=(*b.shape(ids), *view.shape[1:]), strides=(0, *view.strides[1:]))
    # One outside reads as 0.
    return _picked(b, start, [numbers(b, ids)], len(view.shape) - 1, view.strides, [0], view)


# Beyond it, halving the rest again and again is faster than to compare with each.
_MOST_COMPARED = 256


@lowers("SearchSorted")
def _search_sorted(b: Builder, step: Lowered, sequence: Operand, values: Operand) -> Operand:
    if len(b.shape(sequence)) > 1:
        raise NotLoweredError("a search in several rows")
    return _place_in(b, sequence, values, first=step.attrs["side"] == "left")


@lowers("FindSorted")
def _find_sorted(b: Builder, step: Lowered, sequence: Operand, values: Operand) -> Operand:
    (size,) = b.shape(sequence)
    place = _place_in(b, sequence, values, first=True)
    found = _element_at(b, sequence, place)
    return b.compute(
        lambda s, place, x, v, n: s.where((x == v) & (place < n), place, -1),
        b.cast(place, int64),
        found,
        values,
        Size(size, int64),
    )


def _element_at(b: Builder, x: Operand, places: Operand) -> View:
    """Elements of a vector; 0 outside of it."""
    view = as_view(b, x)
    start = view._replace(shape=b.shape(places), strides=(0,) * len(b.shape(places)))
    found = IndirectLoad(start, (places,), view.strides, view.shape)
    return b.map(as_it_is, [found], b.dtype(x), start.shape)


def _place_in(b: Builder, sequence: Operand, values: Operand, *, first: bool) -> View:
    """How many elements of a sorted vector stand before each value, int32."""

    def stands_before(s: Any, x: Any, v: Any) -> Any:
        if first:
            return (x < v) | ((v != v) & (x == x))  # NaN stands last
        return (x <= v) | (v != v)

    (size,) = b.shape(sequence)
    if size <= _MOST_COMPARED:
        shape = b.shape(values)
        each = b.reshape(values, (*shape, 1))
        before = b.compute(stands_before, sequence, each, dtype=bool_)
        return b.reduce("sum", b.cast(before, int32), [len(shape)])
    if not is_known(size):
        raise NotLoweredError(f"a search among {size}")
    place = b.full(b.shape(values), 0, int32)
    for bit in reversed(range(size.bit_length())):
        # Whether as many more stand before it.
        probe = b.compute(lambda s, i, bit=bit: i + ((1 << bit) - 1), place)
        place = b.compute(
            lambda s, i, at, x, v, bit=bit: s.where(
                (at < size) & stands_before(s, x, v), i + (1 << bit), i
            ),
            place,
            probe,
            _element_at(b, sequence, probe),
            values,
        )
    return place
