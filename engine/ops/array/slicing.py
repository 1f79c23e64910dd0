"""Slice and its inverse: a block of given sizes that begins at a given place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import ANY, Array, Dim, OpView, Tensor, TensorSpec
from ..core.basic import zeros_like
from ..core.op_def import Grads
from ..core.registry import define
from ..core.traits import Traits, Work
from .by_vectors import as_vector, slice_by
from .shape import dims_of, is_open, runtime_shape, split_shape


def _check_rank(who: str, x: TensorSpec, *places: Sequence[Dim]) -> None:
    for place in places:
        if x.shape.rank is not None and len(place) != len(x.shape):
            raise ShapeError(
                f"{who}: expected one number for each of the {len(x.shape)} axes of {x}, "
                f"got {tuple(place)}",
                remedy="give a beginning and a size for every axis",
            )


def _check_inside(
    who: str, shape: Sequence[Dim], begin: Sequence[Dim], size: Sequence[Dim]
) -> None:
    for axis, (n, b, s) in enumerate(zip(shape, begin, size, strict=True)):
        out = (b is not None and b < 0) or (s is not None and s < -1)
        if n is not None and b is not None:
            out = out or b + max(s or 0, 0) > n
        if out:
            raise InvalidArgumentError(
                f"{who}: {s} elements from {b} do not lie inside axis {axis}, which has {n}",
                remedy="begin at 0 or later and end at the size of the axis or before",
            )


@define("Slice", dtypes={"x": ANY}, traits=Traits(work=Work.COPY, size_inputs=True))
def _slice(
    x: TensorSpec, *values: TensorSpec, begin: tuple[Dim, ...], size: tuple[Dim, ...]
) -> TensorSpec:
    """The block of x that begins at `begin` and has the sizes `size`; -1 goes to the end.

    Each None of the two is given at run time by `values`: first those of `begin`.
    """
    _check_rank("Slice", x, begin, size)
    if x.shape.rank is None:
        return TensorSpec([None if s == -1 else s for s in size], x.dtype)
    _check_inside("Slice", x.shape, begin, size)
    dims: list[Dim] = []
    for n, b, s in zip(x.shape, begin, size, strict=True):
        rest = None if n is None or b is None else n - b
        dims.append(rest if s == -1 else s)
    return TensorSpec(dims, x.dtype)


def _block(
    who: str, x: Array, values: Sequence[Array], begin: tuple[Dim, ...], size: tuple[Dim, ...]
) -> tuple[slice, ...]:
    taken = begin.count(None)
    begins, sizes = runtime_shape(begin, values[:taken]), runtime_shape(size, values[taken:])
    _check_inside(who, x.shape, begins, sizes)
    return tuple(
        slice(b, n if s == -1 else b + s) for n, b, s in zip(x.shape, begins, sizes, strict=True)
    )


@_slice.reference
def _slice_kernel(
    xp: Any, x: Array, *values: Array, begin: tuple[Dim, ...], size: tuple[Dim, ...]
) -> Array:
    return x[(*_block("Slice", x, values, begin, size), ...)]


@_slice.grad
def _slice_grad(op: OpView, dy: Tensor) -> Grads:
    x, *values = op.inputs
    begin = op.attrs["begin"]
    dx = _slice_update(zeros_like(x), dy, *values[: begin.count(None)], begin=begin)
    return (dx, *(None for _ in values))


@define("SliceUpdate", dtypes={"x": ANY, "updates": ANY}, traits=Traits(size_inputs=True))
def _slice_update(
    x: TensorSpec, updates: TensorSpec, *values: TensorSpec, begin: tuple[Dim, ...]
) -> TensorSpec:
    """`x` with the block that begins at `begin` replaced by `updates`; `values` as in Slice."""
    _check_rank("SliceUpdate", x, begin)
    if updates.shape.rank is not None:
        _check_rank("SliceUpdate", x, updates.shape)
        if x.shape.rank is not None:
            _check_inside("SliceUpdate", x.shape, begin, updates.shape)
    return x


@_slice_update.reference
def _slice_update_kernel(
    xp: Any, x: Array, updates: Array, *values: Array, begin: tuple[Dim, ...]
) -> Array:
    y = x.copy()
    y[_block("SliceUpdate", x, values, begin, updates.shape)] = updates
    return y


@_slice_update.grad
def _slice_update_grad(op: OpView, dy: Tensor) -> Grads:
    _, updates, *values = op.inputs
    begin = op.attrs["begin"]
    size, dims = dims_of(updates)
    dx = _slice_update(dy, zeros_like(updates), *values, begin=begin)
    return dx, _slice(dy, *values, *dims, begin=begin, size=size), *(None for _ in values)


def slice_at(x: Tensor, begin: Any, size: Any) -> Tensor:
    """The block of `x` that begins at `begin` and has the sizes `size`.

    Args:
        x: any tensor.
        begin: for each axis where the block begins; ints or scalar integer tensors.
        size: for each axis how many elements it has, -1 for all that follow.

    Raises:
        InvalidArgumentError: the block does not lie inside `x`.
        ShapeError: not one number for each axis.
    """
    if is_open(begin) or is_open(size):
        return slice_by(x, as_vector(begin), as_vector(size))
    begins, first = split_shape(begin)
    sizes, second = split_shape(size)
    return _slice(x, *first, *second, begin=begins, size=sizes)


def slice_update(x: Tensor, begin: Any, updates: Tensor) -> Tensor:
    """`x` with the block that begins at `begin` replaced by `updates`.

    Raises:
        InvalidArgumentError: the block does not lie inside `x`.
        ShapeError: `updates` or `begin` have another number of axes than `x`.
    """
    begins, values = split_shape(begin)
    return _slice_update(x, updates, *values, begin=begins)
