"""The axes of a tensor: their numbers, their order, and new or dropped ones of size 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import (
    Array,
    Axes,
    Dim,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    canonical_axes,
    canonical_axis,
)
from ..core.entries import known_value
from ..core.op_def import Grads
from ..core.registry import define
from ..core.traits import Traits, Work, same_entries
from .by_vectors import swap_axes, transpose_by
from .open_axis import from_front, is_open_axis, to_front
from .shape import reshape_like


@define("Transpose", traits=Traits(work=Work.NONE, linear=True))
def transpose_op(x: TensorSpec, *, axes: tuple[int, ...] | None) -> TensorSpec:
    """y with y.shape[i] = x.shape[axes[i]]; None reverses the axes."""
    if x.shape.rank is None:
        return TensorSpec([None] * len(axes) if axes is not None else None, x.dtype)
    if axes is None:
        return TensorSpec(tuple(x.shape)[::-1], x.dtype)
    order = canonical_axes("Transpose", axes, len(x.shape))
    if len(order) != len(x.shape):
        raise ShapeError(
            f"Transpose: {x} has {len(x.shape)} axes, but the new order {axes} names {len(order)}",
            remedy="name every axis once",
        )
    return TensorSpec([x.shape[axis] for axis in order], x.dtype)


@transpose_op.reference
def _transpose_kernel(xp: Any, x: Array, *, axes: tuple[int, ...] | None) -> Array:
    return x.transpose(axes)  # `xp.transpose` takes four times as long to get there


@transpose_op.grad
def _transpose_grad(op: OpView, dy: Tensor) -> Grads:
    axes = op.attrs["axes"]
    if axes is None:
        return (transpose(dy),)
    order = canonical_axes("Transpose", axes, len(axes))
    return (transpose(dy, [order.index(axis) for axis in range(len(order))]),)


def transpose(x: Tensor, axes: Any = None) -> Tensor:
    """`x` with its axes in the order `axes`, or reversed; a tensor may tell the order."""
    rank = x.shape.rank
    axes = known_value(axes)
    if isinstance(axes, Tensor):
        return transpose_by(x, axes)
    if axes is None:
        if rank is None:
            return transpose_op(x, axes=None)
        axes = range(rank)[::-1]
    order = tuple([int(axis) for axis in (axes if np.iterable(axes) else [axes])])
    if rank is not None and len(order) == rank:
        order = canonical_axes("Transpose", order, rank)
        if order == tuple(range(rank)):
            return x
    return transpose_op(x, axes=order)


def _known_rank(who: str, x: Tensor) -> int:
    if x.shape.rank is None:
        raise ShapeError(
            f"{who}: the number of axes of {x!r} must be known",
            remedy="give the tensor a shape (set_shape, or a full TensorSpec)",
        )
    return len(x.shape)


def swapaxes(x: Tensor, axis1: int, axis2: int) -> Tensor:
    """`x` with two axes exchanged."""
    if x.shape.rank is None:
        return swap_axes(x, axis1=axis1, axis2=axis2)
    rank = len(x.shape)
    order = list(range(rank))
    a, b = (canonical_axis("swapaxes", axis, rank) for axis in (axis1, axis2))
    order[a], order[b] = b, a
    return transpose(x, order)


def moveaxis(x: Tensor, source: Axes, destination: Axes) -> Tensor:
    """`x` with the axes `source` moved to the places `destination`; the others keep their order.

    Raises:
        ShapeError: the two differ in number, or name an axis twice or one that does not exist.
    """
    rank = _known_rank("moveaxis", x)
    sources = canonical_axes("moveaxis", source, rank)
    places = canonical_axes("moveaxis", destination, rank)
    if len(sources) != len(places):
        raise ShapeError(f"moveaxis: {len(sources)} axes cannot move to {len(places)} places")
    order = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


@define("ExpandDims", traits=Traits(work=Work.NONE, entries=same_entries))
def _expand_dims(x: TensorSpec, *, axis: tuple[int, ...]) -> TensorSpec:
    """`x` with axes of size 1 at the places `axis` of the result."""
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    rank = len(x.shape) + len(axis)
    new = canonical_axes("ExpandDims", axis, rank)
    rest = iter(x.shape)
    return TensorSpec([1 if i in new else next(rest) for i in range(rank)], x.dtype)


@_expand_dims.reference
def _expand_dims_kernel(xp: Any, x: Array, *, axis: tuple[int, ...]) -> Array:
    return xp.expand_dims(x, axis)


@_expand_dims.grad
def _expand_dims_grad(op: OpView, dy: Tensor) -> Grads:
    return (squeeze(dy, op.attrs["axis"]),)


def expand_dims(x: Tensor, axis: Axes) -> Tensor:
    """`x` with a new axis of size 1 at each place `axis` of the result."""
    if is_open_axis(axis):
        return from_front(_expand_dims(x, axis=(0,)), x, axis, more=1)
    return _expand_dims(x, axis=tuple(axis) if isinstance(axis, Sequence) else (axis,))


@define("Squeeze", traits=Traits(work=Work.NONE, entries=same_entries))
def _squeeze(x: TensorSpec, *, axis: tuple[int, ...] | None) -> TensorSpec:
    """`x` without its axes `axis`, each of size 1; None drops every axis of size 1."""
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    if axis is None:
        if None in x.shape:
            return TensorSpec(None, x.dtype)
        return TensorSpec([d for d in x.shape if d != 1], x.dtype)
    dropped = canonical_axes("Squeeze", axis, len(x.shape))
    for i in dropped:
        if x.shape[i] not in (1, None):
            raise ShapeError(
                f"Squeeze: axis {i} of {x} has size {x.shape[i]}, not 1",
                remedy="drop only axes of size 1; index the axis to choose one of its entries",
            )
    kept: list[Dim] = [d for i, d in enumerate(x.shape) if i not in dropped]
    return TensorSpec(TensorShape(kept), x.dtype)


@_squeeze.reference
def _squeeze_kernel(xp: Any, x: Array, *, axis: tuple[int, ...] | None) -> Array:
    return xp.squeeze(x, axis)


@_squeeze.grad
def _squeeze_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    axis = op.attrs["axis"]
    if axis is None:
        return (reshape_like(dy, x),)
    return (expand_dims(dy, axis if x.shape.rank is None else _from_front(axis, len(x.shape))),)


def _from_front(axis: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return canonical_axes("Squeeze", axis, rank)


def squeeze(x: Tensor, axis: Axes | None = None) -> Tensor:
    """`x` without the axes `axis`, or without all axes of size 1."""
    if is_open_axis(axis):
        return _squeeze(to_front(x, axis), axis=(0,))
    if axis is None:
        return _squeeze(x, axis=None)
    return _squeeze(x, axis=tuple(axis) if isinstance(axis, Sequence) else (axis,))
