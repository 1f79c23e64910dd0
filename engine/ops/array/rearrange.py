"""The elements of a tensor again, in other numbers or another order: tile, repeat, flip, roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    INTEGER,
    NUMERIC,
    Array,
    Axes,
    Dim,
    OpView,
    Tensor,
    TensorSpec,
    canonical_axes,
    canonical_axis,
    int32,
)
from ..core.arrays import computing_dtype
from ..core.convert import convert_to_tensor
from ..core.entries import known_value, whole
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from ..math.arithmetic import mod, subtract
from ..math.cast import cast
from .axes import expand_dims
from .by_vectors import as_vector, tile_by
from .creation import arange
from .gather import gather
from .index import get_item, strided_slice
from .open_axis import from_front, is_open_axis, like, to_front
from .shape import dim_of, dims_of, is_open, reshape, reshape_like, runtime_shape, split_shape


@define("Tile", dtypes={"x": ANY})
def tile_op(x: TensorSpec, *dims: TensorSpec, multiples: tuple[Dim, ...]) -> TensorSpec:
    """`x` repeated as a whole multiples[i] times along axis i; `dims` give each None."""
    if x.shape.rank is None:
        return TensorSpec([None] * len(multiples), x.dtype)
    if len(x.shape) != len(multiples):
        raise ShapeError(
            f"Tile: {len(multiples)} multiples for {x}, which has {len(x.shape)} axes",
            remedy="give one for each axis",
        )
    if any(m is not None and m < 0 for m in multiples):
        raise InvalidArgumentError(f"Tile: multiples cannot be negative, got {multiples}")
    pairs = zip(x.shape, multiples, strict=True)
    return TensorSpec([None if n is None or m is None else n * m for n, m in pairs], x.dtype)


@tile_op.reference
def _tile_kernel(xp: Any, x: Array, *dims: Array, multiples: tuple[Dim, ...]) -> Array:
    return xp.tile(x, runtime_shape(multiples, dims))


@tile_op.grad
def _tile_grad(op: OpView, dy: Tensor) -> Grads:
    x, *dims = op.inputs
    shape, sizes = dims_of(x)
    dx = _tile_grad_op(dy, *dims, *sizes, multiples=op.attrs["multiples"], shape=shape)
    return (dx, *(None for _ in dims))


@define("TileGrad", dtypes={"dy": NUMERIC})
def _tile_grad_op(
    dy: TensorSpec, *dims: TensorSpec, multiples: tuple[Dim, ...], shape: tuple[Dim, ...]
) -> TensorSpec:
    """The sum of the copies that Tile has made of an x of `shape`."""
    return TensorSpec(shape, dy.dtype)


@_tile_grad_op.reference
def _tile_grad_kernel(
    xp: Any, dy: Array, *dims: Array, multiples: tuple[Dim, ...], shape: tuple[Dim, ...]
) -> Array:
    taken = multiples.count(None)
    times, full = runtime_shape(multiples, dims[:taken]), runtime_shape(shape, dims[taken:])
    copies = dy.reshape([n for pair in zip(times, full, strict=True) for n in pair])
    return _sum(xp, copies, tuple(range(0, 2 * len(full), 2)))


def _sum(xp: Any, x: Array, axes: tuple[int, ...]) -> Array:
    return xp.sum(x, axis=axes, dtype=computing_dtype(xp, x)).astype(x.dtype, copy=False)


@_tile_grad_op.grad
def _tile_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    multiples = op.attrs["multiples"]
    _, *dims = op.inputs
    return (
        tile_op(ddx, *dims[: multiples.count(None)], multiples=multiples),
        *(None for _ in dims),
    )


def tile(x: Tensor, multiples: Any) -> Tensor:
    """`x` repeated as a whole along its axes.

    Args:
        x: any tensor.
        multiples: how often along each axis, ints or scalar integer tensors. Missing ones in front
            are 1; `x` gets new axes in front when there are more than it has. Of a tensor whose
            number of axes is unknown, one for each axis.
    """
    if is_open(multiples) or x.shape.rank is None:
        return tile_by(x, as_vector(multiples))
    times, dims = split_shape(multiples)
    times = (1,) * (x.ndim - len(times)) + times
    if len(times) > x.ndim:
        x = expand_dims(x, range(len(times) - x.ndim))
    return tile_op(x, *dims, multiples=times)


@define("Repeat", dtypes=ANY)
def _repeat(x: TensorSpec, *, repeats: int, axis: int) -> TensorSpec:
    """Each slice of `x` along `axis`, `repeats` times in a row."""
    if repeats < 0:
        raise InvalidArgumentError(f"Repeat: repeats cannot be negative, got {repeats}")
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    place = canonical_axis("Repeat", axis, len(x.shape))
    dims: list[Dim] = list(x.shape)
    n = dims[place]
    dims[place] = None if n is None else n * repeats
    return TensorSpec(dims, x.dtype)


@_repeat.reference
def _repeat_kernel(xp: Any, x: Array, *, repeats: int, axis: int) -> Array:
    return xp.repeat(x, repeats, axis=axis)


@_repeat.grad
def _repeat_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    shape, dims = dims_of(x)
    return (_repeat_grad_op(dy, *dims, shape=shape, **op.attrs),)


@define("RepeatGrad", dtypes={"dy": NUMERIC})
def _repeat_grad_op(
    dy: TensorSpec, *dims: TensorSpec, repeats: int, axis: int, shape: tuple[Dim, ...]
) -> TensorSpec:
    """The sum of the copies that Repeat has made of each slice of an x of `shape`."""
    return TensorSpec(shape, dy.dtype)


@_repeat_grad_op.reference
def _repeat_grad_kernel(
    xp: Any, dy: Array, *dims: Array, repeats: int, axis: int, shape: tuple[Dim, ...]
) -> Array:
    full = runtime_shape(shape, dims)
    axis %= len(full)
    copies = dy.reshape(*full[: axis + 1], repeats, *full[axis + 1 :])
    return _sum(xp, copies, (axis + 1,))


@_repeat_grad_op.grad
def _repeat_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    _, *dims = op.inputs
    ddy = _repeat(ddx, repeats=op.attrs["repeats"], axis=op.attrs["axis"])
    return (ddy, *(None for _ in dims))


@define("RepeatIndices", dtypes={"repeats": INTEGER, "size": INTEGER}, same_dtype=False)
def _repeat_indices(repeats: TensorSpec, size: TensorSpec) -> TensorSpec:
    """The int32 vector of 0 repeats[0] times, 1 repeats[1] times, ... for i < size.

    A single number in `repeats` stands for all.
    """
    if repeats.shape.rank not in (1, None):
        raise ShapeError(
            f"RepeatIndices: repeats must be a number or a vector, got {repeats}",
            remedy="give one number for each slice",
        )
    return TensorSpec([None], int32)


@_repeat_indices.reference
def _repeat_indices_kernel(xp: Any, repeats: Array, size: Array) -> Array:
    # On the host: the values decide the shape of the result.
    times = np.asarray(repeats.tolist(), np.int64)
    return xp.asarray(np.repeat(np.arange(int(size), dtype=np.int32), times))


_repeat_indices.grad(no_gradient)


def repeat(x: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """Each slice of `x` along `axis`, several times in a row.

    Args:
        x: any tensor.
        repeats: how often; one int for all slices, or one for each slice (a sequence or a tensor).
        axis: the axis; None repeats the elements of `x` in row order.

    Raises:
        ShapeError: the axis does not exist, or there is not one number for each slice.
    """
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    axis = canonical_axis("repeat", axis, x.ndim)
    if isinstance(repeats, int):
        return _repeat(x, repeats=repeats, axis=axis)
    counts = reshape(convert_to_tensor(repeats), [-1])
    known, size = counts.shape[0], x.shape[axis]
    if known not in (None, 1, size) and size is not None:
        raise ShapeError(
            f"repeat: {known} numbers for the {size} slices along axis {axis} of {x.spec}",
            remedy="give one number for each slice, or one for all",
        )
    return gather(x, _repeat_indices(counts, dim_of(x, axis=axis)), axis)


def flip(x: Tensor, axis: Axes | None = None) -> Tensor:
    """`x` with the order of its elements reversed along `axis`, or along all axes."""
    if is_open_axis(axis):
        return like(from_front(flip(to_front(x, axis), 0), x, axis), x)
    if x.shape.rank is None and axis is not None:
        places = {axis} if isinstance(axis, int) else set(axis)
        if min(places, default=0) < 0:
            raise ShapeError(f"flip: axes from the end need a known number of them, x is {x.spec}")
        last = max(places, default=-1) + 1
        return strided_slice(
            x, index=tuple((None, None, -1 if i in places else None) for i in range(last))
        )
    axes = canonical_axes("flip", range(x.ndim) if axis is None else axis, x.ndim)
    index = tuple((None, None, -1 if i in axes else None) for i in range(x.ndim))
    return strided_slice(x, index=index) if axes else x


def _roll_by(x: Tensor, shift: Tensor, axes: Sequence[int]) -> Tensor:
    """As `roll`, by numbers that a run knows: a scalar, or one for each axis."""
    for k, axis in enumerate(axes):
        by = shift if shift.shape.rank == 0 else get_item(shift, k)
        size = cast(dim_of(x, axis=axis), by.dtype)
        x = gather(x, mod(subtract(arange(size), by), size), axis)
    return x


@define("Roll")
def _roll(x: TensorSpec, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> TensorSpec:
    """y[(i + shift) mod n] = x[i] along each of the axes `axis`."""
    if x.shape.rank is not None:
        for each in axis:
            canonical_axis("Roll", each, len(x.shape))
    return x


@_roll.reference
def _roll_kernel(xp: Any, x: Array, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Array:
    return xp.roll(x, shift, axis)


@_roll.grad
def _roll_grad(op: OpView, dy: Tensor) -> Grads:
    shift = tuple(-n for n in op.attrs["shift"])
    return (_roll(dy, shift=shift, axis=op.attrs["axis"]),)


def roll(x: Tensor, shift: int | Sequence[int], axis: Axes | None = None) -> Tensor:
    """`x` with its elements moved along `axis`; those that leave at one end enter at the other.

    Args:
        x: any tensor.
        shift: by how many places; one for each axis, or one for all.
        axis: the axes; None rolls the elements of `x` in row order.

    Raises:
        InvalidArgumentError: the numbers of shifts and axes differ.
    """
    if axis is None:
        return reshape_like(roll(reshape(x, [-1]), shift, 0), x)
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    shift = known_value(shift)
    if isinstance(shift, Tensor):
        return _roll_by(x, shift, axes)
    shifts = tuple(shift) if np.iterable(shift) else (shift,) * len(axes)
    shifts = tuple([whole("roll", "a shift", n) for n in shifts])
    if len(shifts) != len(axes):
        raise InvalidArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    return _roll(x, shift=shifts, axis=axes)
