"""Tensors put together and taken apart: pieces are views, joins write into views of a result."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.builder import Builder, as_it_is
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, Shape, View
from ...ir.sizes import is_known
from .table import Lowered, known_size, lowers


def copy_into(b: Builder, target: View, x: Operand) -> None:
    """Write `x`, of the same shape or broadcast to it, to a part of some storage."""
    b.map_into(target, as_it_is, [x])


def part(b: Builder, x: Operand, axis: int, start: int, size: int, step: int = 1) -> View:
    """x[start : ... : step] along an axis, `size` elements."""
    shape = b.shape(x)
    starts = [start if a == axis else 0 for a in range(len(shape))]
    sizes = tuple(size if a == axis else n for a, n in enumerate(shape))
    return b.narrow(x, starts, sizes, [step if a == axis else 1 for a in range(len(shape))])


@lowers("Concat", takes_halves=True)
def _concat(b: Builder, step: Lowered, *xs: Operand) -> Operand:
    if len(xs) == 1:
        return xs[0]
    shape = b.shape(xs[0])
    axis = step.attrs["axis"] % len(shape)
    sizes = [b.shape(x)[axis] for x in xs]
    if any(_without(b.shape(x), axis) != _without(shape, axis) for x in xs):
        raise NotLoweredError(f"Concat of {[b.shape(x) for x in xs]}")
    if len({n for n in sizes if not is_known(n)}) > 1:
        raise NotLoweredError("Concat of several unknown sizes")  # their sum is no product of sizes
    y = b.storage((*shape[:axis], sum(sizes), *shape[axis + 1 :]), step.dtypes[0])
    start = 0
    for x, size in zip(xs, sizes, strict=True):
        copy_into(b, part(b, y, axis, start, size), x)
        start += size
    return y


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


@lowers("Split", takes_halves=True)
def _split(b: Builder, step: Lowered, x: Operand, *dims: Operand) -> Sequence[Operand]:
    axis = step.attrs["axis"] % len(b.shape(x))
    total = b.shape(x)[axis]
    given = iter(dims)
    sizes = [known_size(next(given)) if n is None else n for n in step.attrs["sizes"]]
    if None in sizes:
        raise NotLoweredError("Split at places that depend on data")
    known = [n for n in sizes if n is not None]
    num_open = known.count(-1)
    rest = total - sum(n for n in known if n != -1)
    if num_open and not rest % num_open:
        known = [rest // num_open if n == -1 else n for n in known]
    if any(n < 1 for n in known) or sum(known) != total:
        raise NotLoweredError(f"Split of {total} into {sizes}")
    found = []
    start = 0
    for n in known:
        found.append(part(b, x, axis, start, n))
        start += n
    return found


@lowers("Stack", takes_halves=True)
def _stack(b: Builder, step: Lowered, *xs: Operand) -> Operand:
    shape = b.shape(xs[0])
    if any(b.shape(x) != shape for x in xs):
        raise NotLoweredError(f"Stack of {[b.shape(x) for x in xs]}")
    axis = step.attrs["axis"] % (len(shape) + 1)
    y = b.storage((*shape[:axis], len(xs), *shape[axis:]), step.dtypes[0])
    for i, x in enumerate(xs):
        cells = part(b, y, axis, i, 1)
        copy_into(b, _dropped(cells, axis), x)
    return y


@lowers("Unstack", takes_halves=True)
def _unstack(b: Builder, step: Lowered, x: Operand) -> Sequence[Operand]:
    axis = step.attrs["axis"] % len(b.shape(x))
    num = step.attrs["num"]
    if b.shape(x)[axis] != num:
        raise NotLoweredError(f"Unstack of {b.shape(x)} into {num}")
    return [_dropped(part(b, x, axis, i, 1), axis) for i in range(num)]


def _dropped(x: View, axis: int) -> View:
    """Without an axis of size 1."""
    return x._replace(shape=_without(x.shape, axis), strides=_without(x.strides, axis))


# Copies of a whole


@lowers("Tile", takes_halves=True)
def _tile(b: Builder, step: Lowered, x: Operand, *dims: Operand) -> Operand:
    times = _multiples(step, dims)
    shape = b.shape(x)
    view = x if isinstance(x, View) else b.copy(x)
    spread = view._replace(
        shape=_mixed(times, shape), strides=_mixed((0,) * len(shape), view.strides)
    )
    return b.reshape(spread, tuple(n * m for n, m in zip(shape, times, strict=True)))


def _multiples(step: Lowered, dims: Sequence[Operand]) -> Shape:
    given = iter(dims)
    found = [known_size(next(given)) if n is None else n for n in step.attrs["multiples"]]
    if any(n is None or n < 1 for n in found):
        raise NotLoweredError(f"{step.type} of {found} times")
    return tuple(n for n in found if n is not None)


def _mixed(a: Shape, b: Shape) -> Shape:
    return tuple(n for pair in zip(a, b, strict=True) for n in pair)


def _shape(step: Lowered, dims: Sequence[Operand]) -> Shape:
    given = iter(dims)
    found = [known_size(next(given)) if n is None else n for n in step.attrs["shape"]]
    if None in found:
        raise NotLoweredError("a shape that depends on data")
    return tuple(n for n in found if n is not None)


@lowers("TileGrad")
def _tile_grad(b: Builder, step: Lowered, dy: Operand, *dims: Operand) -> Operand:
    taken = step.attrs["multiples"].count(None)
    times, shape = _multiples(step, dims[:taken]), _shape(step, dims[taken:])
    copies = _mixed(times, shape)
    if math.prod(copies) != math.prod(b.shape(dy)):
        raise NotLoweredError(f"TileGrad of {b.shape(dy)} for {shape}")
    return b.reduce("sum", b.reshape(dy, copies), range(0, len(copies), 2))


@lowers("Repeat", takes_halves=True)
def _repeat(b: Builder, step: Lowered, x: Operand) -> Operand:
    times, shape = step.attrs["repeats"], b.shape(x)
    axis = step.attrs["axis"] % len(shape)
    if times < 1:
        raise NotLoweredError("Repeat of 0 times")
    view = x if isinstance(x, View) else b.copy(x)
    spread = view._replace(
        shape=(*shape[: axis + 1], times, *shape[axis + 1 :]),
        strides=(*view.strides[: axis + 1], 0, *view.strides[axis + 1 :]),
    )
    return b.reshape(spread, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


@lowers("RepeatGrad")
def _repeat_grad(b: Builder, step: Lowered, dy: Operand, *dims: Operand) -> Operand:
    times, shape = step.attrs["repeats"], _shape(step, dims)
    axis = step.attrs["axis"] % len(shape)
    copies = (*shape[: axis + 1], times, *shape[axis + 1 :])
    if math.prod(copies) != math.prod(b.shape(dy)) or times < 1:
        raise NotLoweredError(f"RepeatGrad of {b.shape(dy)} for {shape}")
    return b.reduce("sum", b.reshape(dy, copies), [axis + 1])


# Pixels and channels


@lowers("DepthToSpace", takes_halves=True)
def _depth_to_space(b: Builder, step: Lowered, x: Operand) -> Operand:
    (n, h, w, c), s, is_last = _pixels(b, step, x)
    if c % (s * s):
        raise NotLoweredError(f"DepthToSpace of {b.shape(x)}")
    c //= s * s
    if is_last:
        blocks = b.transpose(b.reshape(x, (n, h, w, s, s, c)), (0, 1, 3, 2, 4, 5))
        return b.reshape(blocks, (n, h * s, w * s, c))
    blocks = b.transpose(b.reshape(x, (n, c, s, s, h, w)), (0, 1, 4, 2, 5, 3))
    return b.reshape(blocks, (n, c, h * s, w * s))


@lowers("SpaceToDepth", takes_halves=True)
def _space_to_depth(b: Builder, step: Lowered, x: Operand) -> Operand:
    (n, h, w, c), s, is_last = _pixels(b, step, x)
    if h % s or w % s:
        raise NotLoweredError(f"SpaceToDepth of {b.shape(x)}")
    h, w = h // s, w // s
    if is_last:
        blocks = b.transpose(b.reshape(x, (n, h, s, w, s, c)), (0, 1, 3, 2, 4, 5))
        return b.reshape(blocks, (n, h, w, s * s * c))
    blocks = b.transpose(b.reshape(x, (n, c, h, s, w, s)), (0, 1, 3, 5, 2, 4))
    return b.reshape(blocks, (n, c * s * s, h, w))


def _pixels(b: Builder, step: Lowered, x: Operand) -> tuple[Shape, int, bool]:
    """Images, height, width and channels; the side of a block; whether channels come last."""
    shape, is_last = b.shape(x), step.attrs["data_format"] == "channels_last"
    ordered = shape if is_last else (shape[0], *shape[2:], shape[1])
    return ordered, step.attrs["block_size"], is_last
