"""Resampling along one axis: each output cell is a weighted mean of input cells.

Cell j of D cells has its centre at j + 1/2; output cell i of n has its centre at (i + 1/2) D / n.
The weight of an input cell depends on the distance t of the centres:
    linear: 1 - |t|, for |t| < 1.
    cubic: the piecewise cubic of Keys with a = -1/2, for |t| < 2.
    lanczos3, lanczos5: sinc(t) sinc(t / r), for |t| < r = 3, 5.
With antialiasing the distance is divided by D / n where that is greater than 1, so that every input
cell counts. The weights of an output cell are divided by their sum.
    nearest: the input cell that holds the centre alone.
    mean: the cells from floor(i D / n) to ceil((i + 1) D / n), evenly.
Sources: Keys, "Cubic convolution interpolation for digital image processing", 1981,
    doi:10.1109/TASSP.1981.1163711, equation 15; Duchon, "Lanczos filtering in one and two
    dimensions", 1979, doi:10.1175/1520-0450(1979)018<1016:LFIOAT>2.0.CO;2.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import DENSE, FLOATING, Array, Dim, DType, OpView, Tensor, TensorSpec, canonical_axis
from ..array.shape import dim_of, runtime_shape
from ..core.arrays import computing_dtype
from ..core.op_def import Grads
from ..core.registry import define


def _linear(t: Array) -> Array:
    return np.maximum(1 - t, 0)


def _cubic(t: Array) -> Array:
    near = (1.5 * t - 2.5) * t * t + 1
    far = ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t < 1, near, np.where(t < 2, far, 0))


def _lanczos(radius: int) -> Callable[[Array], Array]:
    return lambda t: np.where(t < radius, np.sinc(t) * np.sinc(t / radius), 0)


_CURVES: dict[str, Callable[[Array], Array]] = {
    "linear": _linear,
    "cubic": _cubic,
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
}
METHODS = ("nearest", "mean", *_CURVES)


@lru_cache(maxsize=16)
def _weights(method: str, dim: int, size: int, antialias: bool, dtype: Any) -> Array:
    """The matrix (size, dim) of which row i holds the weights of output cell i."""
    cells, ratio = np.arange(dim), dim / size
    if method == "nearest":
        weights = cells == _nearest(dim, size)[:, None]
    elif method == "mean":
        i = np.arange(size)[:, None]
        weights = (cells >= i * dim // size) & (cells < -(-(i + 1) * dim // size))
    else:
        centres = (np.arange(size)[:, None] + 0.5) * ratio - 0.5
        weights = _CURVES[method](np.abs(cells - centres) / (max(ratio, 1.0) if antialias else 1.0))
    return (weights / weights.sum(1, keepdims=True)).astype(dtype)


def resampling(method: str, dim: int, size: int, antialias: bool) -> Array:
    """The matrix (size, dim), in float64, of which row i holds the weights of output cell i."""
    return _weights(method, dim, size, antialias, np.dtype(np.float64))


def _nearest(dim: int, size: int) -> Array:
    """The input cell that holds the centre of each output cell."""
    return (2 * np.arange(size) + 1) * dim // (2 * size)


@define("Resample", dtypes={"x": DENSE})
def _resample(
    x: TensorSpec, *dims: TensorSpec, axis: int, size: Dim, method: str, antialias: bool
) -> TensorSpec:
    """`x` with `size` cells along `axis` (see the head of this file); None: given by `dims`."""
    _check_type("Resample", x.dtype, method)
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    axis = canonical_axis("Resample", axis, len(x.shape))
    _check_size(x.shape[axis], size, axis)
    return TensorSpec([size if i == axis else d for i, d in enumerate(x.shape)], x.dtype)


def _check_type(who: str, dtype: DType, method: str) -> None:
    if method != "nearest" and not dtype.is_floating:
        raise InvalidArgumentError(
            f'{who}: the method "{method}" gives fractions, but x is {dtype}',
            remedy='cast x to float32, or use the method "nearest"',
        )


def _check_size(dim: Dim, size: Dim, axis: int) -> None:
    if 0 in (dim, size):
        raise ShapeError(
            f"Resample: axis {axis} has {dim} cells and is to get {size}",
            remedy="both numbers must be at least 1",
        )


@define("ResampleGrad", dtypes={"dy": FLOATING})
def _resample_grad_op(
    dy: TensorSpec, *dims: TensorSpec, axis: int, dim: Dim, method: str, antialias: bool
) -> TensorSpec:
    """dx with `dim` cells along `axis`: each dy goes to the cells it came from, by weight."""
    if dy.shape.rank is None:
        return TensorSpec(None, dy.dtype)
    axis = canonical_axis("ResampleGrad", axis, len(dy.shape))
    return TensorSpec([dim if i == axis else d for i, d in enumerate(dy.shape)], dy.dtype)


def _combine(xp: Any, weights: Array, x: Array, axis: int) -> Array:
    """`weights` times `x`, along one axis of `x`."""
    computing = x.astype(computing_dtype(xp, x), copy=False)
    lead, tail = x.shape[:axis], x.shape[axis + 1 :]
    count = int(np.prod(lead, dtype=int))
    y = xp.matmul(
        xp.asarray(weights), computing.reshape(count, x.shape[axis], int(np.prod(tail, dtype=int)))
    )
    return y.reshape(*lead, len(weights), *tail).astype(x.dtype, copy=False)


@_resample.reference
def _resample_kernel(
    xp: Any, x: Array, *dims: Array, axis: int, size: Dim, method: str, antialias: bool
) -> Array:
    (cells,) = runtime_shape((size,), dims)
    axis = canonical_axis("Resample", axis, x.ndim)
    _check_size(x.shape[axis], cells, axis)
    if method == "nearest":
        return xp.take(x, xp.asarray(_nearest(x.shape[axis], cells)), axis=axis)
    dtype = np.dtype(computing_dtype(xp, x))
    return _combine(xp, _weights(method, x.shape[axis], cells, antialias, dtype), x, axis)


@_resample_grad_op.reference
def _resample_grad_kernel(
    xp: Any, dy: Array, *dims: Array, axis: int, dim: Dim, method: str, antialias: bool
) -> Array:
    (cells,) = runtime_shape((dim,), dims)
    axis = canonical_axis("ResampleGrad", axis, dy.ndim)
    dtype = np.dtype(computing_dtype(xp, dy))
    return _combine(xp, _weights(method, cells, dy.shape[axis], antialias, dtype).T, dy, axis)


@_resample.grad
def _resample_grad(op: OpView, dy: Tensor) -> Grads:
    x, *dims = op.inputs
    if not x.dtype.is_floating:
        return (None,) * len(op.inputs)
    dx = _along(_resample_grad_op, "dim", dy, x, op)
    return (dx, *(None for _ in dims))


@_resample_grad_op.grad
def _resample_grad_grad(op: OpView, ddx: Tensor) -> Grads:
    dy, *dims = op.inputs
    return (_along(_resample, "size", ddx, dy, op), *(None for _ in dims))


def _along(op: Any, name: str, x: Tensor, like: Tensor, view: OpView) -> Tensor:
    """`x` taken by `op` to as many cells as `like` has along the axis of `view`."""
    axis = view.attrs["axis"]
    cells = None if like.shape.rank is None else like.shape[axis]
    dims = [dim_of(like, axis=axis)] if cells is None else []
    attrs = {key: view.attrs[key] for key in ("axis", "method", "antialias")}
    resampled: Tensor = op(x, *dims, **attrs, **{name: cells})
    return resampled


def resample(
    x: Tensor, axis: int, size: int | Tensor, *, method: str = "linear", antialias: bool = False
) -> Tensor:
    """`x` with another number of cells along one axis.

    Args:
        x: any shape; a floating type, or any type with the method "nearest".
        axis: the axis to resample.
        size: cells along it afterwards.
        method: "nearest", "linear", "cubic", "lanczos3", "lanczos5" or "mean" (see above).
        antialias: whether, in shrinking, all cells count.

    Raises:
        InvalidArgumentError: an unknown method, or an integer type with one that gives fractions.
        ShapeError: there is no such axis, or it is empty.
    """
    if method not in METHODS:
        raise InvalidArgumentError(
            f"Resample: the method must be one of {', '.join(METHODS)}, got {method!r}"
        )
    known, dims = (None, [size]) if isinstance(size, Tensor) else (int(size), [])
    return _resample(x, *dims, axis=axis, size=known, method=method, antialias=bool(antialias))
