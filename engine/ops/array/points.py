"""Read and add at points: places whose number of coordinates may be known at run time only."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...graph import (
    ANY,
    INTEGER,
    NUMERIC,
    Array,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    unknown_shape,
)
from ..core.op_def import Grads
from ..core.registry import define
from .positions import checked, rows_of, scatter_new
from .shape import shape_of


def _check(who: str, indices: TensorSpec) -> None:
    if indices.shape.rank == 0:
        raise ShapeError(f"{who}: the indices must have an axis of coordinates, got {indices}")


@define("GatherPoints", dtypes={"x": ANY, "indices": INTEGER}, same_dtype=False)
def gather_points(x: TensorSpec, indices: TensorSpec) -> TensorSpec:
    """y[i..., q...] = x[indices[i..., 0], indices[i..., 1], ..., q...]."""
    _check("GatherPoints", indices)
    if x.shape.rank is None or indices.shape.rank is None or indices.shape[-1] is None:
        return TensorSpec(None, x.dtype)
    depth = indices.shape[-1]
    if depth > len(x.shape):
        raise ShapeError(
            f"GatherPoints: {depth} coordinates for {x}, which has {len(x.shape)} axes",
            remedy="name no more axes than there are",
        )
    return TensorSpec([*indices.shape[:-1], *x.shape[depth:]], x.dtype)


@gather_points.reference
def _gather_kernel(xp: Any, x: Array, indices: Array) -> Array:
    depth = _depth("GatherPoints", indices, x.ndim)
    if not depth:
        return xp.broadcast_to(x, (*indices.shape[:-1], *x.shape)).copy()
    axes = range(depth)
    return x[tuple(checked(xp, "GatherPoints", indices[..., a], x.shape[a], a) for a in axes)]


def _depth(who: str, indices: Array, rank: int) -> int:
    depth = int(indices.shape[-1])
    if depth > rank:
        raise ShapeError(f"{who}: {depth} coordinates for {rank} axes")
    return depth


@gather_points.grad
def _gather_grad(op: OpView, dy: Tensor) -> Grads:
    x, indices = op.inputs
    return scatter_points(dy, indices, shape_of(x), static=x.shape), None


@define(
    "ScatterPoints",
    dtypes={"updates": NUMERIC, "indices": INTEGER, "shape": INTEGER},
    same_dtype=False,
)
def scatter_points(
    updates: TensorSpec, indices: TensorSpec, shape: TensorSpec, *, static: TensorShape
) -> TensorSpec:
    """y of `shape`, zero, with y[indices[i..., 0], ...] += updates[i..., q...]; repeats add up."""
    _check("ScatterPoints", indices)
    rank = shape.shape[0] if shape.shape.rank == 1 else None
    return TensorSpec(TensorShape(static).merge_with(unknown_shape(rank)), updates.dtype)


@scatter_points.reference
def _scatter_kernel(
    xp: Any, updates: Array, indices: Array, shape: Array, *, static: TensorShape
) -> Array:
    full = tuple(int(n) for n in shape)
    depth = _depth("ScatterPoints", indices, len(full))
    if not depth:
        return updates.sum(tuple(range(indices.ndim - 1)), dtype=updates.dtype)
    rows = rows_of(xp, "ScatterPoints", full, [indices[..., a] for a in range(depth)])
    return scatter_new(xp, full, depth, rows, updates)


@scatter_points.grad
def _scatter_grad(op: OpView, dy: Tensor) -> Grads:
    return gather_points(dy, op.inputs[1]), None, None
