"""Pooling to a given size n: of D cells, window i covers floor(i D / n) to ceil((i + 1) D / n)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import ShapeError
from ...graph import REAL, Array, Dim, OpView, Tensor, TensorSpec
from ..core.arrays import computing_dtype
from ..core.op_def import Grads
from ..core.registry import define
from .resample import resample
from .windows import per_axis


def _sized(x: TensorSpec, axis: int, size: Dim) -> TensorSpec:
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    return TensorSpec([size if i == axis else d for i, d in enumerate(x.shape)], x.dtype)


def _windows(dim: int, size: int) -> Iterator[slice]:
    return (slice(i * dim // size, -(-(i + 1) * dim // size)) for i in range(size))


@define("AdaptiveMaxPool", dtypes=REAL)
def _adaptive_max(x: TensorSpec, *, axis: int, size: int) -> TensorSpec:
    """The maximum of each of `size` windows along one axis; the gradient goes to the first one."""
    if x.shape.rank is not None and x.shape[axis] == 0:
        raise ShapeError(f"AdaptiveMaxPool: axis {axis} of {x} is empty: it has no maximum")
    return _sized(x, axis, size)


@define("AdaptiveMaxPoolGrad", dtypes=REAL)
def _adaptive_max_grad_op(x: TensorSpec, dy: TensorSpec, *, axis: int, size: int) -> TensorSpec:
    """dx: each dy is added to the first maximum of its window."""
    return TensorSpec(x.shape, x.dtype)


@define("AdaptiveMaxPoolPick", dtypes=REAL)
def _adaptive_max_pick(x: TensorSpec, v: TensorSpec, *, axis: int, size: int) -> TensorSpec:
    """The element of v where each window of x has its first maximum."""
    return _sized(x, axis, size)


@_adaptive_max.reference
def _adaptive_max_kernel(xp: Any, x: Array, *, axis: int, size: int) -> Array:
    moved = xp.moveaxis(x, axis, 0)
    y = xp.stack([xp.max(moved[cells], axis=0) for cells in _windows(len(moved), size)])
    return xp.moveaxis(y, 0, axis)


@_adaptive_max_grad_op.reference
def _adaptive_max_grad_kernel(xp: Any, x: Array, dy: Array, *, axis: int, size: int) -> Array:
    moved, dmoved = xp.moveaxis(x, axis, 0), xp.moveaxis(dy, axis, 0)
    dx = xp.zeros(moved.shape, computing_dtype(xp, x))
    for i, cells in enumerate(_windows(len(moved), size)):
        dx[cells] += xp.where(_is_first_maximum(xp, moved[cells]), dmoved[i], dy.dtype.type(0))
    return xp.moveaxis(dx.astype(x.dtype, copy=False), 0, axis)


@_adaptive_max_pick.reference
def _adaptive_max_pick_kernel(xp: Any, x: Array, v: Array, *, axis: int, size: int) -> Array:
    moved, values = xp.moveaxis(x, axis, 0), xp.moveaxis(v, axis, 0)
    z = [
        xp.where(_is_first_maximum(xp, moved[cells]), values[cells], v.dtype.type(0)).sum(0)
        for cells in _windows(len(moved), size)
    ]
    return xp.moveaxis(xp.stack(z), 0, axis).astype(v.dtype, copy=False)


def _is_first_maximum(xp: Any, window: Array) -> Array:
    places = xp.arange(len(window)).reshape(-1, *(1 for _ in window.shape[1:]))
    return places == xp.argmax(window, axis=0)


@_adaptive_max.grad
def _adaptive_max_grad(op: OpView, dy: Tensor) -> Grads:
    return (_adaptive_max_grad_op(op.inputs[0], dy, **op.attrs),)


@_adaptive_max_grad_op.grad
def _adaptive_max_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    return None, _adaptive_max_pick(op.inputs[0], ddx, **op.attrs)


@_adaptive_max_pick.grad
def _adaptive_max_pick_grad(op: OpView, dz: Tensor) -> Grads:
    return None, _adaptive_max_grad_op(op.inputs[0], dz, **op.attrs)


def _sizes(who: str, x: Tensor, size: int | Sequence[int]) -> tuple[int, ...]:
    if x.shape.rank is None or not 3 <= len(x.shape) <= 5:
        raise ShapeError(
            f"{who}: x must be (batch, *spatial, channels) with one to three spatial axes, "
            f"got {x.spec}",
            remedy="give x a shape, or add the missing axis with expand_dims",
        )
    return per_axis(who, "size", size, len(x.shape) - 2)


def adaptive_max_pool(x: Tensor, size: int | Sequence[int]) -> Tensor:
    """The maxima of a grid of windows that covers `x`, whatever its size.

    Args:
        x: (batch, *spatial, channels), one to three spatial axes.
        size: windows along each spatial axis.

    Returns:
        (batch, *size, channels).

    Raises:
        ShapeError: `x` has another number of axes, or is empty.
    """
    sizes = _sizes("AdaptiveMaxPool", x, size)
    # From the last axis to the first: of equal maxima, the first in row-major order wins.
    for axis in range(len(sizes), 0, -1):
        x = _adaptive_max(x, axis=axis, size=sizes[axis - 1])
    return x


def adaptive_average_pool(x: Tensor, size: int | Sequence[int]) -> Tensor:
    """The means of a grid of windows that covers `x`; arguments as in `adaptive_max_pool`."""
    sizes = _sizes("AdaptiveAveragePool", x, size)
    for axis in range(1, len(sizes) + 1):
        x = resample(x, axis, sizes[axis - 1], method="mean")
    return x
