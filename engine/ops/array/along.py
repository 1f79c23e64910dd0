"""Read and write along one axis, with an index of its own for every line (take_along_axis)."""

from __future__ import annotations

import math
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    DENSE,
    Array,
    Dim,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    bool_,
    broadcast_shapes,
    canonical_axis,
)
from ..core.basic import zeros_like
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from ..math.compare import where
from .broadcast import sum_to
from .gather import check_index_types
from .positions import cells_along, last_writes, write
from .shape import dims_of, reshape, runtime_shape


def _others(shape: TensorShape, axis: int) -> TensorShape:
    return TensorShape([1 if i == axis else n for i, n in enumerate(shape)])


def _result(who: str, x: TensorSpec, indices: TensorSpec, axis: int) -> TensorShape:
    """The shape of what the indices name in x: the axes other than `axis` broadcast."""
    check_index_types(who, [indices])
    if x.shape.rank is None or indices.shape.rank is None:
        return TensorShape(None)
    if len(x.shape) != len(indices.shape):
        raise ShapeError(
            f"{who}: x {x} and the indices {indices} must have the same number of axes",
            remedy="give the indices axes of size 1, or use gather",
        )
    place = canonical_axis(who, axis, len(x.shape))
    found: list[Dim] = list(
        broadcast_shapes(who, _others(x.shape, place), _others(indices.shape, place))
    )
    found[place] = indices.shape[place]
    return TensorShape(found)


@define("TakeAlongAxis", dtypes={"x": ANY})
def _take(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    """y[..., i, ...] = x[..., indices[..., i, ...], ...] along `axis`; the other axes broadcast."""
    return TensorSpec(_result("TakeAlongAxis", x, indices, axis), x.dtype)


@_take.reference
def _take_kernel(xp: Any, x: Array, indices: Array, *, axis: int) -> Array:
    axis %= x.ndim
    cells = cells_along(xp, "TakeAlongAxis", x.shape, indices, axis)
    pairs = enumerate(zip(x.shape, indices.shape, strict=True))
    shape = [n if m == 1 and i != axis else m for i, (n, m) in pairs]
    return xp.take(x, xp.broadcast_to(cells, shape))


@_take.grad
def _take_grad(op: OpView, dy: Tensor) -> Grads:
    x, indices = op.inputs
    shape, dims = dims_of(x)
    return _take_grad_op(dy, indices, *dims, axis=op.attrs["axis"], shape=shape), None


@define("TakeAlongAxisGrad", dtypes={"dy": DENSE})
def _take_grad_op(
    dy: TensorSpec, indices: TensorSpec, *dims: TensorSpec, axis: int, shape: tuple[Dim, ...]
) -> TensorSpec:
    """Zeros of `shape`, and dy added where TakeAlongAxis read."""
    return TensorSpec(shape, dy.dtype)


@_take_grad_op.reference
def _take_grad_kernel(
    xp: Any, dy: Array, indices: Array, *dims: Array, axis: int, shape: tuple[Dim, ...]
) -> Array:
    full = runtime_shape(shape, dims)
    cells = cells_along(xp, "TakeAlongAxis", full, indices, axis % dy.ndim)
    cells = xp.broadcast_to(cells, dy.shape).reshape(-1)
    into = xp.zeros((math.prod(full), 1), dy.dtype)
    return write(xp, into, cells, dy.reshape(-1, 1), "add").reshape(full)


@_take_grad_op.grad
def _take_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    _, indices, *dims = op.inputs
    return _take(ddx, indices, axis=op.attrs["axis"]), None, *(None for _ in dims)


def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1) -> Tensor:
    """y[..., i, ...] = x[..., indices[..., i, ...], ...] along `axis`.

    Args:
        x: any tensor.
        indices: integers, with the axes of `x`; axes other than `axis` broadcast.
        axis: the axis to index; None indexes the elements of `x` in row order.

    Raises:
        InvalidArgumentError: an index is out of range.
        ShapeError: the axes do not fit.
    """
    if axis is None:
        x, indices, axis = reshape(x, [-1]), reshape(indices, [-1]), 0
    return _take(x, indices, axis=axis)


@define("PutAlongAxis", dtypes={"x": ANY, "values": ANY})
def _put(
    x: TensorSpec, indices: TensorSpec, values: TensorSpec, *, axis: int, mode: str
) -> TensorSpec:
    """`x`, along `axis` combined with values[..., i, ...] at indices[..., i, ...].

    `mode` is "update" (replace; the last of equal indices stays) or "add". The values broadcast to
    the indices, and these to the other axes of x.
    """
    if mode not in ("update", "add"):
        raise InvalidArgumentError(f'PutAlongAxis: mode must be "update" or "add", got {mode!r}')
    named = _result("PutAlongAxis", x, indices, axis)
    if named.rank is not None and x.shape.rank is not None:
        place = canonical_axis("PutAlongAxis", axis, len(named))
        fits = _others(named, place).is_compatible_with(_others(x.shape, place))
        if not fits or not broadcast_shapes("PutAlongAxis", named, values.shape).is_compatible_with(
            named
        ):
            raise ShapeError(
                f"PutAlongAxis: the indices {indices} and the values {values} do not fit x {x}",
                remedy="other axes must be equal or 1, and the values as the indices",
            )
    return x


@_put.reference
def _put_kernel(xp: Any, x: Array, indices: Array, values: Array, *, axis: int, mode: str) -> Array:
    cells = _cells(xp, "PutAlongAxis", x, indices, axis)
    values = xp.broadcast_to(values, cells.shape).reshape(-1, 1)
    into = x.copy().reshape(x.size, 1)
    return write(xp, into, cells.reshape(-1), values, mode).reshape(x.shape)


def _cells(xp: Any, who: str, x: Array, indices: Array, axis: int) -> Array:
    axis %= x.ndim
    shape = (*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :])
    return xp.broadcast_to(cells_along(xp, who, x.shape, indices, axis), shape)


@define("IsLastAlongAxis", dtypes={"x": ANY})
def _is_last(x: TensorSpec, indices: TensorSpec, *, axis: int) -> TensorSpec:
    """For each place that PutAlongAxis writes to, in order: whether it is not written again."""
    return TensorSpec(_result("IsLastAlongAxis", x, indices, axis), bool_)


@_is_last.reference
def _is_last_kernel(xp: Any, x: Array, indices: Array, *, axis: int) -> Array:
    return last_writes(xp, _cells(xp, "IsLastAlongAxis", x, indices, axis), x.size)


_is_last.grad(no_gradient)


@_put.grad
def _put_grad(op: OpView, dy: Tensor) -> Grads:
    x, indices, values = op.inputs
    axis = op.attrs["axis"]
    dvalues = _take(dy, indices, axis=axis)
    if op.attrs["mode"] == "add":
        return dy, None, sum_to(dvalues, values)
    dvalues = where(_is_last(x, indices, axis=axis), dvalues, zeros_like(dvalues))
    dx = _put(dy, indices, zeros_like(values), axis=axis, mode="update")
    return dx, None, sum_to(dvalues, values)


def put_along_axis(
    x: Tensor, indices: Tensor, values: Tensor, axis: int = -1, mode: str = "update"
) -> Tensor:
    """`x` with values[..., i, ...] put, or added, at indices[..., i, ...] along `axis`.

    Args:
        x: any tensor.
        indices: integers, with the axes of `x`; axes other than `axis` broadcast to those of `x`.
        values: dtype of `x`; broadcasts to the indices.
        axis: the axis that is indexed.
        mode: "update", where the last of equal indices stays, or "add".

    Raises:
        InvalidArgumentError: an index is out of range, or another mode.
        ShapeError: the axes do not fit.
    """
    return _put(x, indices, values, axis=axis, mode=mode)
