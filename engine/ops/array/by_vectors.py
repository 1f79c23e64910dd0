"""Moving elements by vectors of numbers whose values, and how many there are, a run may know alone.

The ops of the other files take such numbers as attributes, so that shapes are known; these are for
what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    INTEGER,
    NUMERIC,
    Array,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    canonical_axis,
    int64,
)
from ..core.arrays import computing_dtype
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from .shape import shape_of


def _vector(who: str, x: TensorSpec, numbers: TensorSpec) -> TensorShape:
    """A shape of unknown sizes; the numbers are one for each axis."""
    if numbers.shape.rank not in (None, 1):
        raise ShapeError(f"{who}: expected a vector, got {numbers}")
    count = numbers.shape[0] if numbers.shape.rank == 1 else None
    rank = x.shape.rank if count is None else count
    if None not in (x.shape.rank, count) and x.shape.rank != count:
        raise ShapeError(f"{who}: {count} numbers for {x}, which has {x.shape.rank} axes")
    return TensorShape(None if rank is None else [None] * rank)


def _one_for_each(who: str, x: Array, *numbers: Array) -> None:
    for given in numbers:
        if given.ndim < 1 or len(given) != x.ndim:
            raise InvalidArgumentError(
                f"{who}: expected a number for each of {x.ndim} axes, got {given.tolist()}"
            )


@define("TransposeBy", dtypes={"x": ANY, "order": INTEGER}, same_dtype=False)
def transpose_by(x: TensorSpec, order: TensorSpec, *, inverse: bool = False) -> TensorSpec:
    """y with y.shape[i] = x.shape[order[i]]; the inverse takes y back to x."""
    return TensorSpec(_vector("TransposeBy", x, order), x.dtype)


@transpose_by.reference
def _transpose_kernel(xp: Any, x: Array, order: Array, *, inverse: bool) -> Array:
    axes = [int(a) for a in order]
    if sorted(a % x.ndim if x.ndim else a for a in axes) != list(range(x.ndim)):
        raise InvalidArgumentError(f"TransposeBy: {axes} is no order of {x.ndim} axes")
    if inverse:
        axes = [int(a) for a in np.argsort([a % x.ndim for a in axes])]
    return xp.transpose(x, axes)


@transpose_by.grad
def _transpose_grad(op: OpView, dy: Tensor) -> Grads:
    return transpose_by(dy, op.inputs[1], inverse=not op.attrs["inverse"]), None


@define("SwapAxes", dtypes={"x": ANY})
def swap_axes(x: TensorSpec, *, axis1: int, axis2: int) -> TensorSpec:
    """`x` with two axes exchanged, whose number may be unknown."""
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    sizes = list(x.shape)
    a, b = (canonical_axis("SwapAxes", axis, len(sizes)) for axis in (axis1, axis2))
    sizes[a], sizes[b] = sizes[b], sizes[a]
    return TensorSpec(sizes, x.dtype)


@swap_axes.reference
def _swap_kernel(xp: Any, x: Array, *, axis1: int, axis2: int) -> Array:
    for axis in (axis1, axis2):
        canonical_axis("SwapAxes", axis, x.ndim)
    return xp.swapaxes(x, axis1, axis2)


@swap_axes.grad
def _swap_grad(op: OpView, dy: Tensor) -> Grads:
    return (swap_axes(dy, **op.attrs),)


@define("TileBy", dtypes={"x": ANY, "multiples": INTEGER}, same_dtype=False)
def tile_by(x: TensorSpec, multiples: TensorSpec) -> TensorSpec:
    """`x` repeated as a whole, multiples[i] times along axis i."""
    return TensorSpec(_vector("TileBy", x, multiples), x.dtype)


@tile_by.reference
def _tile_kernel(xp: Any, x: Array, multiples: Array) -> Array:
    _one_for_each("TileBy", x, multiples)
    if (multiples < 0).any():
        raise InvalidArgumentError(f"TileBy: a number is negative: {multiples.tolist()}")
    return xp.tile(x, tuple(multiples.tolist()))


@tile_by.grad
def _tile_grad(op: OpView, dy: Tensor) -> Grads:
    return tile_sum_by(dy, op.inputs[1]), None


@define("TileSumBy", dtypes={"dy": NUMERIC, "multiples": INTEGER}, same_dtype=False)
def tile_sum_by(dy: TensorSpec, multiples: TensorSpec) -> TensorSpec:
    """The transpose of TileBy: the sum of the copies."""
    return TensorSpec(_vector("TileSumBy", dy, multiples), dy.dtype)


@tile_sum_by.reference
def _tile_sum_kernel(xp: Any, dy: Array, multiples: Array) -> Array:
    times = [int(n) for n in multiples]
    pairs = [(n, size // n if n else 0) for n, size in zip(times, dy.shape, strict=True)]
    copies = dy.reshape([n for pair in pairs for n in pair])
    axes = tuple(range(0, 2 * len(times), 2))
    return xp.sum(copies, axis=axes, dtype=computing_dtype(xp, dy)).astype(dy.dtype, copy=False)


@tile_sum_by.grad
def _tile_sum_grad(op: OpView, ddx: Tensor) -> Grads:
    return tile_by(ddx, op.inputs[1]), None


@define("SliceBy", dtypes={"x": ANY, "begin": INTEGER, "size": INTEGER}, same_dtype=False)
def slice_by(x: TensorSpec, begin: TensorSpec, size: TensorSpec) -> TensorSpec:
    """The block of `x` that begins at `begin`, of the sizes `size`; -1 is all that follows."""
    found = _vector("SliceBy", x, begin).merge_with(_vector("SliceBy", x, size))
    return TensorSpec(found, x.dtype)


@slice_by.reference
def _slice_kernel(xp: Any, x: Array, begin: Array, size: Array) -> Array:
    _one_for_each("SliceBy", x, begin, size)
    first = [int(b) for b in begin]
    last = [n if s == -1 else b + int(s) for b, s, n in zip(first, size, x.shape, strict=True)]
    if any(not 0 <= b <= e <= n for b, e, n in zip(first, last, x.shape, strict=True)):
        raise InvalidArgumentError(
            f"SliceBy: the block from {first} of {size.tolist()} does not lie inside "
            f"{list(x.shape)}"
        )
    return x[tuple(slice(b, e) for b, e in zip(first, last, strict=True))]


@slice_by.grad
def _slice_grad(op: OpView, dy: Tensor) -> Grads:
    x, begin, _ = op.inputs
    return unslice_by(dy, begin, shape_of(x)), None, None


@define("UnsliceBy", dtypes={"dy": NUMERIC, "begin": INTEGER, "shape": INTEGER}, same_dtype=False)
def unslice_by(dy: TensorSpec, begin: TensorSpec, shape: TensorSpec) -> TensorSpec:
    """The transpose of SliceBy: zeros of `shape` with the block `dy` at `begin`."""
    return TensorSpec(_vector("UnsliceBy", dy, begin), dy.dtype)


@unslice_by.reference
def _unslice_kernel(xp: Any, dy: Array, begin: Array, shape: Array) -> Array:
    dx = xp.zeros(tuple(int(n) for n in shape), dy.dtype)
    dx[tuple(slice(int(b), int(b) + n) for b, n in zip(begin, dy.shape, strict=True))] = dy
    return dx


@unslice_by.grad
def _unslice_grad(op: OpView, ddx: Tensor) -> Grads:
    dy, begin, _ = op.inputs
    return slice_by(ddx, begin, shape_of(dy)), None, None


@define("ReductionOrder", dtypes=INTEGER, same_dtype=False)
def reduction_order(
    shape: TensorSpec, axes: TensorSpec
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """For a reduction of `shape` over `axes`: the axes that stay and then the others, the sizes of
    what stays with -1 behind them, and the shape with 1 for each axis that is reduced."""
    rank = shape.shape[0] if shape.shape.rank == 1 else None
    return TensorSpec([rank], int64), TensorSpec([None], int64), TensorSpec([rank], int64)


@reduction_order.kernel("cpu")
def _order_kernel(shape: Array, axes: Array) -> tuple[Array, Array, Array]:
    rank = len(shape)
    gone = sorted({canonical_axis("reduction", int(a), rank) for a in axes.reshape(-1)})
    kept = [a for a in range(rank) if a not in gone]
    flat = [*(int(shape[a]) for a in kept), int(np.prod(shape[gone], dtype=np.int64))]
    ones = [1 if a in gone else int(shape[a]) for a in range(rank)]
    return (
        np.asarray([*kept, *gone], np.int64),
        np.asarray(flat, np.int64),
        np.asarray(ones, np.int64),
    )


reduction_order.grad(no_gradient)


def as_vector(x: Any) -> Tensor:
    """Numbers as a tensor of integers."""
    return x if isinstance(x, Tensor) else convert_to_tensor(list(x), int64)


@define("FrontOrder", dtypes=INTEGER, same_dtype=False)
def front_order(
    shape: TensorSpec, axis: TensorSpec, *, count: int = 1, more: int = 0
) -> TensorSpec:
    """The order of axes that brings `count` of them, from `axis` on, to the front.

    `axis` is one of those of `shape` and `more`; `count` axes stand in its place.
    """
    if axis.shape.rank not in (0, None):
        raise ShapeError(f"FrontOrder: expected one axis, got {axis}")
    rank = shape.shape[0] if shape.shape.rank == 1 else None
    return TensorSpec([None if rank is None else rank + more - 1 + count], int64)


@front_order.kernel("cpu")
def _front_kernel(shape: Array, axis: Array, *, count: int, more: int) -> Array:
    rank = len(shape) + more
    first = canonical_axis("axis", int(axis), rank)
    moved = range(first, first + count)
    others = [a for a in range(rank - 1 + count) if a not in moved]
    return np.asarray([*moved, *others], np.int64)


front_order.grad(no_gradient)
