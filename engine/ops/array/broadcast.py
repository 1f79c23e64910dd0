"""Broadcasting, and its transpose: the sum over the axes that broadcasting has repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError
from ...graph import (
    ANY,
    DENSE,
    INTEGER,
    Array,
    Dim,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    broadcast_shapes,
)
from ..core.arrays import summed, widened
from ..core.op_def import Grads
from ..core.registry import define
from ..core.traits import Traits, Work
from .shape import dims_of, runtime_shape, shape_of

# Up to so many elements the result is an array of its own rather than a view of what is repeated:
# the next kernel takes a third of the time on it.
_FEW = 4096


@define("BroadcastTo", dtypes={"x": ANY}, traits=Traits(work=Work.COPY))
def broadcast_to_op(x: TensorSpec, *dims: TensorSpec, shape: tuple[Dim, ...]) -> TensorSpec:
    """`x` repeated along its axes of size 1 and along new leading axes, to `shape`.

    Each None in `shape` is given at run time by one of `dims` (int32 scalars), in order.
    """
    target = TensorShape(shape)
    if not broadcast_shapes("BroadcastTo", x.shape, target).is_compatible_with(target):
        raise ShapeError(f"BroadcastTo: {x} cannot be broadcast to {target}")
    return TensorSpec(target, x.dtype)


@broadcast_to_op.reference
def _broadcast_to_kernel(xp: Any, x: Array, *dims: Array, shape: tuple[Dim, ...]) -> Array:
    target = runtime_shape(shape, dims)
    if math.prod(target) > _FEW:
        return xp.broadcast_to(x, target)
    y = xp.empty(target, x.dtype)
    y[...] = x
    return y


@broadcast_to_op.grad
def _broadcast_to_grad(op: OpView, dy: Tensor) -> Grads:
    return (sum_to(dy, op.inputs[0]), *(None for _ in op.inputs[1:]))


@define("SumTo", dtypes={"x": DENSE}, traits=Traits(linear=True))
def sum_to_op(x: TensorSpec, *dims: TensorSpec, shape: tuple[Dim, ...]) -> TensorSpec:
    """The sum of `x` over the axes along which `shape` would have to be broadcast to give `x`."""
    return TensorSpec(shape, x.dtype)


@sum_to_op.reference
def _sum_to_kernel(xp: Any, x: Array, *dims: Array, shape: tuple[Dim, ...]) -> Array:
    target = runtime_shape(shape, dims)
    if x.shape == target:
        return x
    lead = x.ndim - len(target)
    axes = [i + lead for i, n in enumerate(target) if n == 1 and x.shape[i + lead] != 1]
    # Half-precision types are summed in float32 and rounded once.
    total = summed(xp, widened(xp, x), (*range(lead), *axes), False)
    return total.astype(x.dtype, copy=False).reshape(target)


@sum_to_op.grad
def _sum_to_grad(op: OpView, dy: Tensor) -> Grads:
    return (broadcast_like(dy, op.inputs[0]), *(None for _ in op.inputs[1:]))


# Where even the number of axes is known at run time only, the shape is a vector.


@define("BroadcastToShape", dtypes={"x": ANY, "shape": INTEGER}, same_dtype=False)
def broadcast_to_shape(x: TensorSpec, shape: TensorSpec) -> TensorSpec:
    """`x` broadcast to the dimensions that the vector `shape` holds."""
    return TensorSpec(None, x.dtype)


@broadcast_to_shape.reference
def _broadcast_to_shape_kernel(xp: Any, x: Array, shape: Array) -> Array:
    return xp.broadcast_to(x, tuple(shape.tolist()))


@broadcast_to_shape.grad
def _broadcast_to_shape_grad(op: OpView, dy: Tensor) -> Grads:
    return sum_to(dy, op.inputs[0]), None


@define("SumToShape", dtypes={"x": DENSE, "shape": INTEGER}, same_dtype=False)
def sum_to_shape(x: TensorSpec, shape: TensorSpec) -> TensorSpec:
    """As SumTo, to the dimensions that the vector `shape` holds."""
    return TensorSpec(None, x.dtype)


@sum_to_shape.reference
def _sum_to_shape_kernel(xp: Any, x: Array, shape: Array) -> Array:
    return _sum_to_kernel(xp, x, shape=tuple(shape.tolist()))


@sum_to_shape.grad
def _sum_to_shape_grad(op: OpView, dy: Tensor) -> Grads:
    return broadcast_like(dy, op.inputs[0]), None


def broadcast_like(x: Tensor, like: Tensor) -> Tensor:
    """`x` broadcast to the shape of `like`."""
    if x.shape == like.shape and like.shape.is_fully_defined:
        return x
    if like.shape.rank is None:
        return broadcast_to_shape(x, shape_of(like))
    shape, dims = dims_of(like)
    return broadcast_to_op(x, *dims, shape=shape)


def broadcast_to(x: Tensor, shape: Sequence[Dim], dims: Sequence[Tensor] = ()) -> Tensor:
    """`x` broadcast to `shape`, with `dims` for its unknown dimensions."""
    return broadcast_to_op(x, *dims, shape=tuple(shape))


def sum_to(x: Tensor, like: Tensor) -> Tensor:
    """`x` summed down to the shape of `like`."""
    if x.shape == like.shape and like.shape.is_fully_defined:
        return x
    if like.shape.rank is None:
        return sum_to_shape(x, shape_of(like))
    shape, dims = dims_of(like)
    return sum_to_op(x, *dims, shape=shape)


def unbroadcast(dx: Tensor, index: int, inputs: Sequence[Tensor]) -> Tensor:
    """The gradient for input `index` of an elementwise op, from that for its broadcast form."""
    x = inputs[index]
    if dx.shape == x.shape and _is_never_repeated(index, inputs):
        return dx
    return sum_to(dx, x)


def _is_never_repeated(index: int, inputs: Sequence[Tensor]) -> bool:
    """Whether no other input can stretch this one, judging by static shapes."""
    x = inputs[index]
    if x.shape.rank is None:
        return False
    for i, other in enumerate(inputs):
        if i == index or other is x:
            continue
        if other.shape.rank is None or len(other.shape) > len(x.shape):
            return False
        for axis in range(-len(other.shape), 0):
            mine, theirs = x.shape[axis], other.shape[axis]
            if theirs != 1 and (mine is None or (mine == 1 and theirs is None)):
                return False
            if mine == 1 and theirs != 1:
                return False
    return True


def unbroadcast_batch(dx: Tensor, x: Tensor) -> Tensor:
    """The gradient for an input of a batched matrix op: summed over the repeated leading axes."""
    if dx.shape == x.shape and (x.shape.rank == 2 or x.shape.is_fully_defined):
        return dx
    return sum_to(dx, x)
