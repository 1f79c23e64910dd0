"""Read at positions given by integers (gather), and its transpose: add at positions (scatter).

Negative indices count from the end. An index that is out of range is an error at run time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    INTEGER,
    NUMERIC,
    Array,
    Dim,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    broadcast_shapes,
    canonical_axis,
)
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define
from ..core.traits import Traits
from .join import stack, unstack
from .open_axis import from_front, is_open_axis, to_front
from .points import gather_points, scatter_points
from .positions import checked, rows_of, scatter_new
from .shape import runtime_shape, sizes_of, split_shape, static_shape


def check_index_types(who: str, indices: Sequence[TensorSpec]) -> None:
    """Raise DTypeError when index arrays are not integers."""
    for index in indices:
        if index.dtype not in INTEGER:
            raise DTypeError(
                f"{who}: indices must be integers, got {index}", remedy='cast them to "int32"'
            )


@define("Gather", dtypes={"x": ANY, "indices": INTEGER}, same_dtype=False)
def gather_op(x: TensorSpec, indices: TensorSpec, *, axis: int, batch_dims: int) -> TensorSpec:
    """y[b..., p..., i..., q...] = x[b..., p..., indices[b..., i...], q...].

    `axis` is the place of the indexed axis in x, counted from the front; the first `batch_dims`
    axes of both inputs (b...) run together.
    """
    if x.shape.rank is None or indices.shape.rank is None:
        return TensorSpec(None, x.dtype)
    canonical_axis("Gather", axis, len(x.shape))
    if not 0 <= batch_dims <= min(axis, len(indices.shape)):
        raise ShapeError(
            f"Gather: {batch_dims} batch axes do not fit: x is {x}, indices are {indices}, "
            f"axis is {axis}",
            remedy="batch_dims can be at most axis, and at most the number of axes of the indices",
        )
    batch = TensorShape(x.shape[:batch_dims])
    if not batch.is_compatible_with(indices.shape[:batch_dims]):
        raise ShapeError(
            f"Gather: the first {batch_dims} axes of x {x} and of the indices {indices} differ",
            remedy="make the batch axes equal",
        )
    batch = batch.merge_with(indices.shape[:batch_dims])
    inner = x.shape[batch_dims:axis]
    return TensorSpec([*batch, *inner, *indices.shape[batch_dims:], *x.shape[axis + 1 :]], x.dtype)


def _gather_rows(
    xp: Any, shape: Sequence[int], indices: Array, axis: int, batch_dims: int
) -> Array:
    """The row, in (batch * inner * size), that each output row (batch, inner, index) reads."""
    size = shape[axis]
    batch = math.prod(shape[:batch_dims])
    inner = math.prod(shape[batch_dims:axis])
    columns = math.prod(indices.shape[batch_dims:])
    flat = checked(xp, "Gather", indices, size, axis).reshape(batch, 1, columns)
    if batch * inner == 1:
        return flat
    return flat + (xp.arange(batch * inner) * size).reshape(batch, inner, 1)


@gather_op.reference
def _gather_kernel(xp: Any, x: Array, indices: Array, *, axis: int, batch_dims: int) -> Array:
    axis %= x.ndim
    if batch_dims == 0:
        return xp.take(x, checked(xp, "Gather", indices, x.shape[axis], axis), axis=axis)
    rows = _gather_rows(xp, x.shape, indices, axis, batch_dims)
    width = math.prod(x.shape[axis + 1 :])
    table = x.reshape(math.prod(x.shape[: axis + 1]), width)
    shape = (*x.shape[:axis], *indices.shape[batch_dims:], *x.shape[axis + 1 :])
    return xp.take(table, rows, axis=0).reshape(shape)


@gather_op.grad
def _gather_grad(op: OpView, dy: Tensor) -> Grads:
    x, indices = op.inputs
    shape, dims = sizes_of(x)
    return gather_grad(dy, indices, *dims, shape=shape, **op.attrs), None


@define("GatherGrad", dtypes={"dy": NUMERIC, "indices": INTEGER}, same_dtype=False)
def gather_grad(
    dy: TensorSpec,
    indices: TensorSpec,
    *dims: TensorSpec,
    shape: tuple[Dim, ...] | None,
    axis: int,
    batch_dims: int,
) -> TensorSpec:
    """Zeros of `shape`, and dy added where Gather read; equal indices add up.

    `dims` are the unknown dimensions; all in a vector, if `shape` is None.
    """
    return TensorSpec(shape, dy.dtype)


@gather_grad.reference
def _gather_grad_kernel(
    xp: Any,
    dy: Array,
    indices: Array,
    *dims: Array,
    shape: tuple[Dim, ...] | None,
    axis: int,
    batch_dims: int,
) -> Array:
    full = runtime_shape(shape, dims)
    rows = _gather_rows(xp, full, indices, axis, batch_dims)
    return scatter_new(xp, full, axis + 1, rows, dy)


@gather_grad.grad
def _gather_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    _, indices, *dims = op.inputs
    axis, batch_dims = op.attrs["axis"], op.attrs["batch_dims"]
    return gather_op(ddx, indices, axis=axis, batch_dims=batch_dims), None, *(None for _ in dims)


def gather(x: Tensor, indices: Tensor, axis: int = 0, batch_dims: int = 0) -> Tensor:
    """The slices of `x` along `axis` that `indices` name.

    y[b..., p..., i..., q...] = x[b..., p..., indices[b..., i...], q...]

    Args:
        x: (b..., p..., n, q...), any dtype.
        indices: (b..., i...), integers from -n to n - 1.
        axis: the place of n in `x`.
        batch_dims: the number of axes b... that both have.

    Raises:
        InvalidArgumentError: an index is out of range.
        ShapeError: the batch axes differ, or `axis` stands among them.
    """
    if is_open_axis(axis) and not batch_dims and indices.shape.rank is not None:
        found = gather_op(to_front(x, axis), indices, axis=0, batch_dims=0)
        return from_front(found, x, axis, count=indices.shape.rank)
    if x.shape.rank is not None:
        axis = canonical_axis("gather", axis, len(x.shape))
    elif axis < 0:
        raise ShapeError(
            f"gather: axis {axis} needs a known number of axes, x is {x.spec}",
            remedy="count the axis from the front",
        )
    if batch_dims < 0:
        batch_dims += indices.ndim
    return gather_op(x, indices, axis=axis, batch_dims=batch_dims)


@define("GatherNd", dtypes={"x": ANY})
def _gather_nd(x: TensorSpec, *indices: TensorSpec) -> TensorSpec:
    """y = x[indices[0], indices[1], ...]: the index arrays broadcast and name leading axes of x."""
    check_index_types("GatherNd", indices)
    if x.shape.rank is None or any(i.shape.rank is None for i in indices):
        return TensorSpec(None, x.dtype)
    if len(indices) > len(x.shape):
        raise ShapeError(
            f"GatherNd: {len(indices)} indices for {x}, which has {len(x.shape)} axes",
            remedy="name no more axes than there are",
        )
    places = broadcast_shapes("GatherNd", *(i.shape for i in indices))
    return TensorSpec([*places, *x.shape[len(indices) :]], x.dtype)


@_gather_nd.reference
def _gather_nd_kernel(xp: Any, x: Array, *indices: Array) -> Array:
    found = [checked(xp, "GatherNd", i, x.shape[axis], axis) for axis, i in enumerate(indices)]
    return x[(*found, ...)]


@_gather_nd.grad
def _gather_nd_grad(op: OpView, dy: Tensor) -> Grads:
    x, *indices = op.inputs
    shape, dims = sizes_of(x)
    dx = _scatter_nd(dy, *indices, *dims, num_indices=len(indices), shape=shape)
    return (dx, *(None for _ in indices))


@define("ScatterNd", dtypes={"updates": NUMERIC}, traits=Traits(size_inputs=True))
def _scatter_nd(
    updates: TensorSpec, *rest: TensorSpec, num_indices: int, shape: tuple[Dim, ...] | None
) -> TensorSpec:
    """y of `shape`, zero, with y[indices[0], indices[1], ...] += updates; repeats add up.

    `rest` holds the `num_indices` index arrays, which broadcast, and then the unknown dimensions.
    """
    indices = rest[:num_indices]
    check_index_types("ScatterNd", indices)
    check_updates("ScatterNd", TensorSpec(shape, updates.dtype), updates, indices)
    return TensorSpec(shape, updates.dtype)


def check_updates(
    who: str, into: TensorSpec, updates: TensorSpec, indices: Sequence[TensorSpec]
) -> None:
    """Raise ShapeError when updates do not have the shape of the slices that indices name."""
    if into.shape.rank is None or any(i.shape.rank is None for i in indices):
        return
    if len(indices) > len(into.shape):
        raise ShapeError(
            f"{who}: {len(indices)} indices for {into}, which has {len(into.shape)} axes",
            remedy="name no more axes than there are",
        )
    places = broadcast_shapes(who, *(i.shape for i in indices))
    expected = TensorShape([*places, *into.shape[len(indices) :]])
    if not expected.is_compatible_with(updates.shape):
        raise ShapeError(
            f"{who}: the indices name slices of shape {expected}, the updates are {updates}",
            remedy="give one slice of updates for each index",
        )


@_scatter_nd.reference
def _scatter_nd_kernel(
    xp: Any, updates: Array, *rest: Array, num_indices: int, shape: tuple[Dim, ...] | None
) -> Array:
    full = runtime_shape(shape, rest[num_indices:])
    rows = rows_of(xp, "ScatterNd", full, [xp.asarray(i) for i in rest[:num_indices]])
    return scatter_new(xp, full, num_indices, rows, updates)


@_scatter_nd.grad
def _scatter_nd_grad(op: OpView, dy: Tensor) -> Grads:
    _, *rest = op.inputs
    return (_gather_nd(dy, *rest[: op.attrs["num_indices"]]), *(None for _ in rest))


def gather_along(x: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """x[indices[0], indices[1], ...], for index arrays that broadcast."""
    return _gather_nd(x, *indices)


def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    """The slices x[indices[..., 0], indices[..., 1], ...].

    Args:
        x: (n_0, n_1, ..., q...), any dtype.
        indices: (i..., k), integers; k names how many axes of `x` are indexed.

    Returns:
        (i..., q...).

    Raises:
        InvalidArgumentError: an index is out of range.
        ShapeError: k is more than the axes of `x`.
    """
    if not indices.shape.rank or not indices.shape[-1]:  # unknown, or no axis at all
        return gather_points(x, indices)
    return _gather_nd(x, *coordinates("gather_nd", indices))


def coordinates(who: str, indices: Tensor) -> tuple[Tensor, ...]:
    """The index arrays, one per axis, that stand along the last axis of `indices`."""
    if indices.shape.rank is None or not indices.shape or indices.shape[-1] is None:
        raise ShapeError(
            f"{who}: the last axis of the indices says how many axes they index, "
            f"so it must be known; got {indices.spec}",
            remedy="give the indices a shape",
        )
    if indices.shape[-1] == 0:
        raise InvalidArgumentError(
            f"{who}: the last axis of the indices is empty: {indices.spec}",
            remedy="index at least one axis",
        )
    return unstack(indices, axis=-1)


def scatter_nd(indices: Tensor, updates: Tensor, shape: Any) -> Tensor:
    """Zeros of `shape`, with `updates` added at `indices`; repeated indices add up.

    Args:
        indices: (i..., k), integers.
        updates: (i..., q...).
        shape: (n_0, ..., n_k-1, q...); entries may be scalar tensors.

    Raises:
        InvalidArgumentError: an index is out of range.
        ShapeError: the updates do not fit.
    """
    if not indices.shape.rank or not indices.shape[-1]:  # unknown, or no axis at all
        sizes = shape if isinstance(shape, Tensor) else stack([*map(convert_to_tensor, shape)])
        return scatter_points(updates, indices, sizes, static=static_shape(sizes))
    attribute, dims = split_shape(shape)
    index = coordinates("scatter_nd", indices)
    return _scatter_nd(updates, *index, *dims, num_indices=len(index), shape=attribute)
