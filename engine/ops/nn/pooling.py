"""Max and average pooling over one to three spatial axes of (batch, *spatial, channels)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import FLOATING, REAL, Array, Dim, OpView, Tensor, TensorSpec
from ..array.shape import runtime_shape
from ..core.arrays import computing_dtype
from ..core.op_def import Grads
from ..core.registry import define
from .windows import (
    Geometry,
    Padding,
    as_padding,
    check_rank,
    dim_at,
    dims_at,
    per_axis,
    spatial_dims,
    window_dims,
)


def _pooled(
    who: str,
    x: TensorSpec,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> TensorSpec:
    axes = len(window)
    check_rank(who, "x", x, axes + 2)
    out = window_dims(who, dims_at(x, 1, axes), window, strides, padding, (1,) * axes)
    return TensorSpec([dim_at(x, 0), *out, dim_at(x, -1)], x.dtype)


def _along(rank: int, axis: int, index: slice) -> tuple[slice, ...]:
    """The index that takes `index` of one axis and all of the others."""
    return tuple(index if i == axis else slice(None) for i in range(rank))


@define("MaxPool", dtypes=REAL)
def _max_pool(
    x: TensorSpec, *, window: tuple[int, ...], strides: tuple[int, ...], padding: Padding
) -> TensorSpec:
    """y[b, i, c] = max over t < window of x[b, i * strides + t - before, c], cells of x alone.

    The gradient goes to the first maximum of each window, in row-major order.
    """
    return _pooled("MaxPool", x, window, strides, padding)


@_max_pool.reference
def _max_pool_kernel(
    xp: Any,
    x: Array,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> Array:
    geometry = Geometry("MaxPool", x.shape[1:-1], window, strides, padding)
    y = x
    for axis in range(len(window)):  # the maximum over a box is a maximum along one axis at a time
        x = y
        shape = (*x.shape[: axis + 1], geometry.out[axis], *x.shape[axis + 2 :])
        y = xp.full(shape, _lowest(x.dtype), x.dtype)
        for tap in range(window[axis]):
            positions, cells = geometry.reach(axis, tap)
            part = y[_along(x.ndim, axis + 1, positions)]
            xp.maximum(part, x[_along(x.ndim, axis + 1, cells)], out=part)
    return y


def _lowest(dtype: Any) -> Any:
    """What every number of an array type is at least as great as."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


@define("MaxPoolGrad", dtypes=REAL)
def _max_pool_grad_op(
    x: TensorSpec,
    y: TensorSpec,
    dy: TensorSpec,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> TensorSpec:
    """dx: each dy[b, i, c] is added to the first cell of its window that holds the maximum y."""
    return TensorSpec(x.shape, x.dtype)


@define("MaxPoolPick", dtypes=REAL)
def _max_pool_pick(
    x: TensorSpec,
    y: TensorSpec,
    v: TensorSpec,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> TensorSpec:
    """z: the element of v at the first cell of each window at which x holds the maximum y."""
    return TensorSpec(y.shape, y.dtype)


@_max_pool_grad_op.reference
def _max_pool_grad_kernel(
    xp: Any,
    x: Array,
    y: Array,
    dy: Array,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> Array:
    dx = xp.zeros(x.shape, computing_dtype(xp, x))
    geometry = Geometry("MaxPoolGrad", x.shape[1:-1], window, strides, padding)
    for positions, cells, first in _first_maxima(xp, x, y, geometry):
        dx[cells] += xp.where(first, dy[positions], dy.dtype.type(0))
    return dx.astype(x.dtype, copy=False)


@_max_pool_pick.reference
def _max_pool_pick_kernel(
    xp: Any,
    x: Array,
    y: Array,
    v: Array,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> Array:
    z = xp.zeros_like(y)
    geometry = Geometry("MaxPoolPick", x.shape[1:-1], window, strides, padding)
    for positions, cells, first in _first_maxima(xp, x, y, geometry):
        z[positions] = xp.where(first, v[cells], z[positions])
    return z


def _first_maxima(xp: Any, x: Array, y: Array, geometry: Geometry) -> Any:
    """For each tap: positions it reaches, its cells there, and where it is the first maximum."""
    waiting = xp.ones(y.shape, bool)
    for tap in product(*map(range, geometry.window)):
        reach = [geometry.reach(axis, t) for axis, t in enumerate(tap)]
        positions = (slice(None), *(p for p, _ in reach))
        cells = (slice(None), *(c for _, c in reach))
        first = (x[cells] == y[positions]) & waiting[positions]
        waiting[positions] &= ~first
        yield positions, cells, first


@_max_pool.grad
def _max_pool_grad(op: OpView, dy: Tensor) -> Grads:
    return (_max_pool_grad_op(op.inputs[0], op.outputs[0], dy, **op.attrs),)


@_max_pool_grad_op.grad
def _max_pool_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    x, y, _ = op.inputs
    return None, None, _max_pool_pick(x, y, ddx, **op.attrs)


@_max_pool_pick.grad
def _max_pool_pick_grad(op: OpView, dz: Tensor) -> Grads:
    x, y, _ = op.inputs
    return None, None, _max_pool_grad_op(x, y, dz, **op.attrs)


@define("AvgPool", dtypes=FLOATING)
def _avg_pool(
    x: TensorSpec, *, window: tuple[int, ...], strides: tuple[int, ...], padding: Padding
) -> TensorSpec:
    """y[b, i, c] = mean over t < window of x[b, i * strides + t - before, c], cells of x alone."""
    return _pooled("AvgPool", x, window, strides, padding)


@_avg_pool.reference
def _avg_pool_kernel(
    xp: Any,
    x: Array,
    *,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> Array:
    geometry = Geometry("AvgPool", x.shape[1:-1], window, strides, padding)
    y = x.astype(computing_dtype(xp, x), copy=False)
    for axis in range(len(window)):
        part = y
        y = xp.zeros((*y.shape[: axis + 1], geometry.out[axis], *y.shape[axis + 2 :]), y.dtype)
        for tap in range(window[axis]):
            positions, cells = geometry.reach(axis, tap)
            y[_along(y.ndim, axis + 1, positions)] += part[_along(y.ndim, axis + 1, cells)]
    for axis in range(len(window)):
        y /= _counts(xp, geometry, axis, y)
    return y.astype(x.dtype, copy=False)


def _counts(xp: Any, geometry: Geometry, axis: int, y: Array) -> Array:
    """How many cells each position along `axis` averages, shaped to divide `y`."""
    starts = np.arange(geometry.out[axis]) * geometry.strides[axis] - geometry.pads[axis][0]
    ends = np.minimum(starts + geometry.window[axis], geometry.dims[axis])
    counts = xp.asarray(ends - np.maximum(starts, 0), y.dtype)
    return counts.reshape([-1 if i == axis + 1 else 1 for i in range(y.ndim)])


@define("AvgPoolGrad", dtypes={"dy": FLOATING})
def _avg_pool_grad_op(
    dy: TensorSpec,
    *dims: TensorSpec,
    input_dims: tuple[Dim, ...],
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> TensorSpec:
    """dx of spatial size `input_dims`: each dy is shared out evenly among the cells of its window.

    Each None in `input_dims` is given at run time by one of `dims`.
    """
    return TensorSpec([dim_at(dy, 0), *input_dims, dim_at(dy, -1)], dy.dtype)


@_avg_pool_grad_op.reference
def _avg_pool_grad_kernel(
    xp: Any,
    dy: Array,
    *dims: Array,
    input_dims: tuple[Dim, ...],
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Padding,
) -> Array:
    spatial = runtime_shape(input_dims, dims)
    geometry = Geometry("AvgPoolGrad", spatial, window, strides, padding)
    dx = dy.astype(computing_dtype(xp, dy), copy=False)
    for axis in range(len(window)):
        share = dx / _counts(xp, geometry, axis, dx)
        dx = xp.zeros((*dx.shape[: axis + 1], spatial[axis], *dx.shape[axis + 2 :]), dx.dtype)
        for tap in range(window[axis]):
            positions, cells = geometry.reach(axis, tap)
            dx[_along(dx.ndim, axis + 1, cells)] += share[_along(dx.ndim, axis + 1, positions)]
    return dx.astype(dy.dtype, copy=False)


@_avg_pool.grad
def _avg_pool_grad(op: OpView, dy: Tensor) -> Grads:
    input_dims, dims = spatial_dims(op.inputs[0], len(op.attrs["window"]))
    return (_avg_pool_grad_op(dy, *dims, input_dims=input_dims, **op.attrs),)


@_avg_pool_grad_op.grad
def _avg_pool_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    attrs = {name: op.attrs[name] for name in ("window", "strides", "padding")}
    return (_avg_pool(ddx, **attrs), *(None for _ in op.inputs[1:]))


def _pool_attrs(
    who: str,
    x: Tensor,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None,
    padding: str | Sequence[Sequence[int]],
) -> dict[str, Any]:
    if x.shape.rank is None and not isinstance(window, Sequence):
        raise ShapeError(
            f"{who}: the number of axes of x must be known",
            remedy="give the window one size per spatial axis, or x a shape",
        )
    axes = len(window) if isinstance(window, Sequence) else len(x.shape) - 2
    if not 1 <= axes <= 3:
        raise ShapeError(
            f"{who}: x must be (batch, *spatial, channels) with one to three spatial axes, "
            f"got {x.spec} and a window {window}",
            remedy="add the missing axis, such as expand_dims(x, 0) for the batch",
        )
    sizes = per_axis(who, "the window", window, axes)
    found = as_padding(who, padding, axes)
    if not isinstance(found, str) and any(
        not 0 <= cells < size for pair, size in zip(found, sizes, strict=True) for cells in pair
    ):
        raise InvalidArgumentError(
            f"{who}: each padding must be at least 0 and less than the window {sizes}, got {found}",
            remedy="a window that lies in the padding alone has nothing to pool",
        )
    return {
        "window": sizes,
        "strides": sizes if strides is None else per_axis(who, "strides", strides, axes),
        "padding": found,
    }


def max_pool(
    x: Tensor,
    window: int | Sequence[int],
    *,
    strides: int | Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "valid",
) -> Tensor:
    """The maximum of each window.

    Args:
        x: (batch, *spatial, channels), one to three spatial axes.
        window: cells of the window along each spatial axis.
        strides: step along each spatial axis; by default the window, so that windows tile x.
        padding: "valid", "same", "causal", or a pair (before, after) for each spatial axis. A
            padded cell is never the maximum.

    Returns:
        (batch, *positions, channels). The gradient goes to the first maximum of a window.

    Raises:
        ShapeError: the window is larger than the padded input.
        InvalidArgumentError: the window, strides or padding are malformed.
    """
    return _max_pool(x, **_pool_attrs("MaxPool", x, window, strides, padding))


def average_pool(
    x: Tensor,
    window: int | Sequence[int],
    *,
    strides: int | Sequence[int] | None = None,
    padding: str | Sequence[Sequence[int]] = "valid",
) -> Tensor:
    """The mean of each window, over the cells that lie inside of x; arguments as in `max_pool`.

    Half types are summed in float32.
    """
    return _avg_pool(x, **_pool_attrs("AvgPool", x, window, strides, padding))
