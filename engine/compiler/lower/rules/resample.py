"""Resampling along an axis: each cell is a weighted sum of a few cells, or a matrix product."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....graph import Array, float32, float64, int32
from ....ops.nn.resample import resampling
from ...ir.builder import Builder, as_it_is
from ...ir.not_lowered import NotLoweredError
from ...ir.program import IndirectLoad, Operand, View
from ...ir.sizes import is_known
from .contractions import product
from .table import Lowered, filled, lowers

# With more cells than that in a sum, a matrix product takes less time.
_MOST_CELLS = 6


@lowers("Resample")
def _resample(b: Builder, step: Lowered, x: Operand, *dims: Operand) -> Operand:
    (size,) = filled((step.attrs["size"],), dims)
    return _apply(b, step, x, b.shape(x)[step.attrs["axis"]], size, is_gradient=False)


@lowers("ResampleGrad")
def _resample_grad(b: Builder, step: Lowered, dy: Operand, *dims: Operand) -> Operand:
    (size,) = filled((step.attrs["dim"],), dims)
    return _apply(b, step, dy, size, b.shape(dy)[step.attrs["axis"]], is_gradient=True)


def _apply(
    b: Builder, step: Lowered, x: Operand, dim: int, size: int, *, is_gradient: bool
) -> Operand:
    """`x` combined along the axis by the weights that take `dim` cells to `size`."""
    if not (is_known(dim) and is_known(size)):
        raise NotLoweredError(f"{step.type} along an axis of unknown size")
    weights = resampling(step.attrs["method"], dim, size, step.attrs["antialias"])
    if is_gradient:
        weights = weights.T
    dtype = b.dtype(x)
    view = x if isinstance(x, View) else b.copy(x)
    axis = step.attrs["axis"] % len(view.shape)
    most = int(np.count_nonzero(weights, axis=1).max())
    is_choice = most == 1 and bool(np.isin(weights, (0, 1)).all()) and not is_gradient
    if not is_choice and dtype not in (float32, float64):
        raise NotLoweredError(f"{step.type} of {dtype}")
    if most > _MOST_CELLS:
        return _multiplied(b, view, axis, weights)
    # The cells of each sum; where a row has fewer, any cell with the weight 0.
    order = np.argsort(weights == 0, axis=1, kind="stable")[:, :most]
    shape = (*view.shape[:axis], len(weights), *view.shape[axis + 1 :])
    column = (len(weights), *[1] * (len(shape) - axis - 1))

    def constant(values: Array, kind: Any) -> Operand:
        array = np.ascontiguousarray(values).astype(kind.numpy).reshape(column)
        return b.broadcast(b.array(array, kind), shape)

    start = view._replace(shape=shape, strides=(*view.strides[:axis], 0, *view.strides[axis + 1 :]))
    cells = [
        IndirectLoad(
            start, (constant(order[:, i], int32),), (view.strides[axis],), (view.shape[axis],)
        )
        for i in range(most)
    ]
    if is_choice:
        return b.map(as_it_is, cells, dtype, shape)
    parts = np.take_along_axis(weights, order, axis=1)
    shares = [constant(parts[:, i], dtype) for i in range(most)]

    def total(s: Any, *values: Any) -> Any:
        found = values[0] * values[most]
        for i in range(1, most):
            found = found + values[i] * values[most + i]
        return found

    return b.compute(total, *cells, *shares, dtype=dtype)


def _multiplied(b: Builder, x: View, axis: int, weights: Array) -> Operand:
    dtype = b.dtype(x)
    lead, tail = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    matrix = b.array(weights.astype(dtype.numpy)[None], dtype)
    y = product(b, matrix, b.reshape(x, (lead, x.shape[axis], tail)), dtype)
    return b.reshape(y, (*x.shape[:axis], len(weights), *x.shape[axis + 1 :]))
