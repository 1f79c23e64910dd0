"""Parts of tensors and tensors with a border: views, and writes to a part of a new storage.

A part along an axis whose size is unknown is lowered only where no size can put it out of range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....graph import bool_, int64
from ...ir.builder import Builder, as_it_is
from ...ir.not_lowered import NotLoweredError
from ...ir.program import IndirectLoad, Literal, Operand, Shape, View
from ...ir.sizes import is_known
from .joining import copy_into, part
from .table import Lowered, filled, known_size, lowers


def zeros(b: Builder, shape: Shape, x: Operand, value: Any = 0) -> View:
    """A number everywhere, of the type of `x`."""
    dtype = b.dtype(x)
    if dtype == bool_:
        return b.full(shape, bool(value), dtype)
    return b.full(shape, float(value) if dtype.is_floating else int(value), dtype)


def _sizes(values: Sequence[int | None], dims: Iterator[Operand]) -> list[int]:
    found = [known_size(next(dims)) if n is None else n for n in values]
    if None in found:
        raise NotLoweredError("a place that depends on data")
    return [n for n in found if n is not None]


def _fits(who: str, n: int, begin: int, size: int) -> None:
    """Raise unless `size` elements from `begin` lie within `n`, whatever the unknown sizes are."""
    if begin == 0 and size == n:
        return
    if not all(map(is_known, (n, begin, size))) or not 0 <= begin <= n - size or size < 1:
        raise NotLoweredError(f"{who}: {size} elements from {begin} of {n}")


def _begins(begin: Sequence[int | None], given: Iterator[Operand]) -> list[Any]:
    """Where a block begins along each axis: a number, or an operand that depends on data."""
    found: list[Any] = []
    for n in begin:
        value: Any = next(given) if n is None else n
        size = value if isinstance(value, int) else known_size(value)
        found.append(value if size is None else size)
    return found


def _moving(
    b: Builder, shape: Shape, begins: Sequence[Any], sizes: Shape
) -> tuple[list[int], list[Operand]]:
    """The axes along which a block begins where data says, and where; a run stops if it ends
    outside of a shape.
    """
    axes = [a for a, t in enumerate(begins) if not isinstance(t, int)]
    places = []
    for a in axes:
        if not (is_known(shape[a]) and is_known(sizes[a])):
            raise NotLoweredError(f"{sizes[a]} elements of {shape[a]} from where data says")
        last = shape[a] - sizes[a]
        place = b.cast(begins[a], int64)
        b.check(b.compute(lambda s, t, last=last: (t < 0) | (t > last), place, dtype=bool_))
        places.append(place)
    return axes, places


@lowers("Slice", takes_halves=True, places_from_data=True)
def _slice(b: Builder, step: Lowered, x: Operand, *values: Operand) -> Operand:
    given = iter(values)
    begins = _begins(step.attrs["begin"], given)
    sizes = _sizes(step.attrs["size"], given)
    shape = b.shape(x)
    for a, (t, size) in enumerate(zip(begins, sizes, strict=True)):
        if size == -1:
            if not isinstance(t, int):
                raise NotLoweredError("a size that depends on data")
            sizes[a] = shape[a] - t
    axes, places = _moving(b, shape, begins, tuple(sizes))
    starts = [0 if a in axes else t for a, t in enumerate(begins)]
    for n, t, s in zip(shape, starts, sizes, strict=True):
        _fits("Slice", n, t, s)
    found = b.narrow(x, starts, tuple(sizes), [1] * len(shape))
    if not axes:
        return found
    return _at(
        b,
        found,
        axes,
        [_counted(b, found.shape, a, t) for a, t in zip(axes, places, strict=True)],
        [shape[a] for a in axes],
    )


def _counted(b: Builder, shape: Shape, axis: int, start: Operand, sign: int = 1) -> Operand:
    """For each place of a shape start + i, or i - start, with i counted along an axis."""
    count = b.iota(shape, axis, int64)
    return b.compute(lambda s, i, t: i + t if sign > 0 else i - t, count, start)


def _at(
    b: Builder, x: View, axes: Sequence[int], places: Sequence[Operand], limits: Sequence[int]
) -> View:
    """The elements of a view with their places along some axes; 0 outside of `limits`."""
    strides = tuple(0 if a in axes else s for a, s in enumerate(x.strides))
    moved = tuple(x.strides[a] for a in axes)
    shape = b.shape(places[0])
    start = x._replace(shape=shape, strides=strides)
    found = IndirectLoad(start, tuple(places), moved, tuple(limits))
    return b.map(as_it_is, [found], b.dtype(x), shape)


@lowers("SliceUpdate", takes_halves=True, places_from_data=True)
def _slice_update(
    b: Builder, step: Lowered, x: Operand, updates: Operand, *values: Operand
) -> Operand:
    begins = _begins(step.attrs["begin"], iter(values))
    shape, sizes = b.shape(x), b.shape(updates)
    axes, places = _moving(b, shape, begins, sizes)
    starts = [0 if a in axes else t for a, t in enumerate(begins)]
    for n, t, s in zip(shape, starts, sizes, strict=True):
        _fits("SliceUpdate", n, t, s)
    if axes:
        return _update_at(b, x, updates, starts, axes, places)
    if sizes == shape:
        return updates
    y = b.copy(x)
    copy_into(b, b.narrow(y, starts, sizes, [1] * len(shape)), updates)
    return y


def _update_at(
    b: Builder,
    x: Operand,
    updates: Operand,
    starts: Sequence[int],
    axes: Sequence[int],
    places: Sequence[Operand],
) -> View:
    """`x` with a block replaced that begins at `places` along `axes`, at `starts` along others."""
    shape, sizes = b.shape(x), b.shape(updates)
    for a, (n, size) in enumerate(zip(shape, sizes, strict=True)):
        if a not in axes and (starts[a], size) != (0, n):
            raise NotLoweredError(f"SliceUpdate of {sizes} in {shape} where data says")
    block = updates if isinstance(updates, View) else b.copy(updates)
    counts = [_counted(b, shape, a, t, -1) for a, t in zip(axes, places, strict=True)]
    inside = _at(b, block, axes, counts, [sizes[a] for a in axes])
    limits = [sizes[a] for a in axes]

    def pick(s: Any, old: Any, new: Any, *counts: Any) -> Any:
        is_inside = None
        for count, limit in zip(counts, limits, strict=True):
            here = (count >= 0) & (count < limit)
            is_inside = here if is_inside is None else is_inside & here
        return s.where(is_inside, new, old)

    return b.compute(pick, x, inside, *counts)


# Brackets


def _entries(index: Sequence[Any], rank: int) -> list[Any]:
    """The entries of a strided slice with the Ellipsis written out."""
    taken = sum(entry not in ("new", "...") for entry in index)
    if taken > rank:
        raise NotLoweredError(f"{taken} indices for {rank} axes")
    full = [*index] if "..." in index else [*index, "..."]
    found: list[Any] = []
    for entry in full:
        found.extend([(None, None, None)] * (rank - taken) if entry == "..." else [entry])
    return found


def _indexed(b: Builder, x: Operand, index: Sequence[Any], values: Iterator[Operand]) -> View:
    """x[index] as a view."""
    view = x if isinstance(x, View) else b.copy(x)
    shape: list[int] = []
    strides: list[int] = []
    offset = view.offset
    axes = iter(zip(view.shape, view.strides, strict=True))

    def value(item: Any) -> Any:
        if item != "?":
            return item
        (found,) = _sizes([None], values)
        return found

    for entry in _entries(index, len(view.shape)):
        if entry == "new":
            shape.append(1)
            strides.append(0)
            continue
        n, stride = next(axes)
        if isinstance(entry, tuple):
            begin, end, step = (value(item) for item in entry)
            start, size = _range(n, begin, end, step or 1)
            shape.append(size)
            strides.append(stride * (step or 1))
        else:
            start = _place(n, value(entry))
        offset += start * stride
    return view._replace(shape=tuple(shape), strides=tuple(strides), offset=offset)


def _place(n: int, i: int) -> int:
    if i not in (0, -1) and not (is_known(n) and is_known(i) and -n <= i < n):
        raise NotLoweredError(f"element {i} of {n}")
    return i if i >= 0 else n + i


def _range(n: int, begin: int | None, end: int | None, step: int) -> tuple[int, int]:
    """Where a slice begins, and how many elements it has."""
    if begin in (None, 0) and (end is None or end == n) and step == 1:
        return 0, n
    if (begin, end, step) == (None, None, -1):
        return n - 1, n
    if not all(v is None or is_known(v) for v in (n, begin, end)):
        raise NotLoweredError(f"elements {begin} to {end} of {n}")
    found = range(*slice(begin, end, step).indices(n))
    if not found:
        raise NotLoweredError("a slice of no elements")
    return found.start, len(found)


@lowers("StridedSlice", takes_halves=True)
def _strided_slice(b: Builder, step: Lowered, x: Operand, *values: Operand) -> Operand:
    return _indexed(b, x, step.attrs["index"], iter(values))


@lowers("StridedSliceGrad", takes_halves=True)
def _strided_slice_grad(b: Builder, step: Lowered, dy: Operand, *values: Operand) -> Operand:
    index = step.attrs["index"]
    taken = sum(e.count("?") if isinstance(e, tuple) else e == "?" for e in index)
    shape = filled(step.attrs["shape"], values[taken:])
    dx = zeros(b, shape, dy)
    cells = _indexed(b, dx, index, iter(values[:taken]))
    if cells.shape != b.shape(dy):
        raise NotLoweredError(f"StridedSliceGrad of {b.shape(dy)} for {shape}")
    copy_into(b, cells, dy)
    return dx


@lowers("Shift", takes_halves=True)
def _shift(b: Builder, step: Lowered, x: Operand) -> Operand:
    attrs = step.attrs
    return shifted(b, x, attrs["axis"], reverse=attrs["reverse"], fill=attrs["fill"])


def shifted(b: Builder, x: Operand, axis: int, *, reverse: bool, fill: float) -> Operand:
    """The elements one place further along an axis, or back, and `fill` where none comes from."""
    shape, dtype = b.shape(x), b.dtype(x)
    axis %= len(shape)
    n = shape[axis]
    y = b.storage(shape, dtype)
    at, source, place = (0, 1, n - 1) if reverse else (1, 0, 0)
    edge = Literal(fill if dtype.is_floating else int(fill), dtype)
    copy_into(b, part(b, y, axis, place, 1), edge)
    if n != 1:
        copy_into(b, part(b, y, axis, at, n - 1), part(b, x, axis, source, n - 1))
    return y


@lowers("Roll", takes_halves=True)
def _roll(b: Builder, step: Lowered, x: Operand) -> Operand:
    for shift, axis in zip(step.attrs["shift"], step.attrs["axis"], strict=True):
        shape = b.shape(x)
        axis %= len(shape)
        n = shape[axis]
        if not is_known(n):
            raise NotLoweredError("Roll along an axis of unknown size")
        k = shift % n
        if k:
            y = b.storage(shape, step.dtypes[0])
            copy_into(b, part(b, y, axis, k, n - k), part(b, x, axis, 0, n - k))
            copy_into(b, part(b, y, axis, 0, k), part(b, x, axis, n - k, k))
            x = y
    return x


# Borders


@lowers("Pad", takes_halves=True)
def _pad(b: Builder, step: Lowered, x: Operand) -> Operand:
    paddings, mode = step.attrs["paddings"], step.attrs["mode"]
    if mode == "constant":
        own = b.shape(x)
        shape = tuple(n + t + e for n, (t, e) in zip(own, paddings, strict=True))
        if shape == own:
            return x
        y = zeros(b, shape, x, step.attrs["value"])
        copy_into(b, b.narrow(y, [t for t, _ in paddings], own, [1] * len(own)), x)
        return y
    for axis, (before, after) in enumerate(paddings):
        if before + after:
            x = _pad_axis(b, x, axis, before, after, mode)
    return x


def _pad_axis(b: Builder, x: Operand, axis: int, before: int, after: int, mode: str) -> Operand:
    shape = b.shape(x)
    n = shape[axis]
    y = b.storage((*shape[:axis], n + before + after, *shape[axis + 1 :]), b.dtype(x))
    copy_into(b, part(b, y, axis, before, n), x)
    for place, size, start, step in _mirrored(n, before, after, mode):
        copy_into(b, part(b, y, axis, place, size), part(b, x, axis, start, size, step))
    return y


def _mirrored(n: int, before: int, after: int, mode: str) -> Iterator[tuple[int, int, int, int]]:
    """Of the two ends: place and size in the padded axis, first element and step in the own one."""
    if mode == "edge":
        sides = [(0, before, 0, 0), (before + n, after, n - 1, 0)]
    else:
        skip = int(mode == "reflect")
        if not is_known(n) or max(before, after) > n - skip:
            raise NotLoweredError(f"Pad of {n} elements by {before} and {after}, {mode}")
        sides = [
            (0, before, before - 1 + skip, -1),
            (before + n, after, n - 1 - skip, -1),
        ]
    return (side for side in sides if side[1])


@lowers("PadGrad")
def _pad_grad(b: Builder, step: Lowered, dy: Operand) -> Operand:
    mode = step.attrs["mode"]
    for axis, (before, after) in enumerate(step.attrs["paddings"]):
        if not before + after:
            continue
        n = b.shape(dy)[axis] - before - after
        dx = b.copy(part(b, dy, axis, before, n))
        for place, size, start, each in _mirrored(n, before, after, mode):
            edge: Operand = part(b, dy, axis, place, size)
            if not each:
                edge = b.reduce("sum", edge, [axis], keepdims=True)
            cells = part(b, dx, axis, start, size if each else 1, each or 1)
            b.map_into(cells, lambda s, own, x: own + x, [cells, edge])
        dy = dx
    return dy
