"""Tensors made of a rule, and parts of matrices that a rule names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph import DType, bool_, float32, float64, int32, int64
from ...ir.builder import Builder
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Iota, Operand, Shape, Size, View, array_literal
from ...ir.sizes import is_known
from .joining import copy_into
from .slicing import zeros
from .table import Lowered, filled, known_size, lowers


@lowers("Range", takes_halves=True)
def _range(b: Builder, step: Lowered, *bounds: Operand) -> Operand:
    given = iter(bounds)
    found = []
    for name in ("start", "stop", "step"):
        value = step.attrs[name]
        value = known_size(next(given)) if value is None else value
        if not isinstance(value, int):
            raise NotLoweredError(f"Range with the {name} {value}")
        found.append(value)
    start, stop, each = found
    if all(map(is_known, found)):
        count = len(range(start, stop, each))
    elif start == 0 and each == 1:
        count = stop
    else:
        raise NotLoweredError(f"Range from {start} to {stop} by {each}")
    if not count:
        raise NotLoweredError("Range of no elements")
    return Iota((count,), (each,), step.dtypes[0], start)


@lowers("OneHot", takes_halves=True)
def _one_hot(b: Builder, step: Lowered, indices: Operand) -> Operand:
    depth, own = step.attrs["depth"], b.shape(indices)
    if not depth:
        raise NotLoweredError("OneHot of no classes")
    axis = step.attrs["axis"] % (len(own) + 1)
    shape = (*own[:axis], depth, *own[axis:])
    places = b.reshape(indices, (*own[:axis], 1, *own[axis:]))
    hot = b.compute(
        lambda s, k, i: k == i, places, b.iota(shape, axis, b.dtype(indices)), dtype=bool_
    )
    return b.cast(hot, step.dtypes[0])


@lowers("LinSpace")
def _linspace(b: Builder, step: Lowered, start: Operand, stop: Operand) -> Operand:
    num, endpoint, dtype = step.attrs["num"], step.attrs["endpoint"], step.dtypes[0]
    if dtype not in (float32, float64) or not num:
        raise NotLoweredError(f"LinSpace of {num} {dtype}")
    rank = max(len(b.shape(start)), len(b.shape(stop)))
    parts = np.arange(num) / max(num - endpoint, 1)
    weights = b.array(parts.astype(dtype.numpy).reshape(num, *[1] * rank), dtype)
    last = num - 1 if endpoint and num > 1 else num
    at = Iota((num, *[1] * rank), (1, *[0] * rank), int64)
    return b.compute(
        lambda s, a, z, w, i: s.where(i == last, z, a + (z - a) * w),
        start,
        stop,
        weights,
        at,
        dtype=dtype,
    )


# Diagonals and bands


def _distance(shape: Shape) -> Iota:
    """j - i for the elements (..., i, j)."""
    return Iota(shape, (*[0] * (len(shape) - 2), -1, 1), int64)


@lowers("Eye", takes_halves=True)
def _eye(b: Builder, step: Lowered, *dims: Operand) -> Operand:
    offset = step.attrs["offset"]
    shape = filled(step.attrs["shape"], dims)
    hit = b.compute(lambda s, d: d == offset, _distance(shape), dtype=bool_)
    return b.cast(hit, step.dtypes[0])


@lowers("BandPart", takes_halves=True)
def _band_part(b: Builder, step: Lowered, x: Operand) -> Operand:
    low, high = step.attrs["low"], step.attrs["high"]
    if low is None and high is None:
        return x

    def inside(s: Any, own: Any, distance: Any) -> Any:
        keep = None
        if low is not None:
            keep = distance >= low
        if high is not None:
            keep = distance <= high if keep is None else keep & (distance <= high)
        return s.where(keep, own, 0)

    return b.map(inside, [x, _distance(b.shape(x))], b.dtype(x))


def _diagonal(x: View, offset: int) -> View:
    """The elements (..., r, r + offset) of a view."""
    rows, columns = x.shape[-2:]
    if not (is_known(rows) and is_known(columns)):
        if rows != columns or offset:
            raise NotLoweredError(f"diagonal {offset} of {rows} by {columns}")
        length = rows
    else:
        length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if length < 1:
        raise NotLoweredError("a diagonal of no elements")
    row, column = x.strides[-2:]
    start = offset * column if offset >= 0 else -offset * row
    return x._replace(
        shape=(*x.shape[:-2], length),
        strides=(*x.strides[:-2], row + column),
        offset=x.offset + start,
    )


@lowers("DiagPart", takes_halves=True)
def _diag_part(b: Builder, step: Lowered, x: Operand) -> Operand:
    return _diagonal(x if isinstance(x, View) else b.copy(x), step.attrs["offset"])


@lowers("MatrixDiag", takes_halves=True)
def _matrix_diag(b: Builder, step: Lowered, x: Operand, *dims: Operand) -> Operand:
    offset, shape = step.attrs["offset"], step.attrs["shape"]
    *lead, length = b.shape(x)
    if shape is None:
        matrix: Shape = (length + abs(offset),) * 2
    else:
        matrix = filled(shape, dims)
    y = zeros(b, (*lead, *matrix), x)
    cells = _diagonal(y, offset)
    if cells.shape[-1] != length:
        raise NotLoweredError(f"MatrixDiag of {length} elements in {matrix}")
    copy_into(b, cells, x)
    return y


@lowers("Shape", takes_halves=True)
def _shape(b: Builder, step: Lowered, x: Operand) -> Operand:
    shape, dtype = b.shape(x), step.dtypes[0]
    if dtype not in (int32, int64) or not shape:
        raise NotLoweredError(f"Shape as {dtype}")
    if all(map(is_known, shape)):
        return b.array(np.array(shape, dtype.numpy), dtype)
    y = b.storage((len(shape),), dtype)
    for i, n in enumerate(shape):
        copy_into(b, b.narrow(y, [i], (1,), [1]), _number(n, dtype))
    return y


def _number(n: int, dtype: DType) -> Operand:
    return array_literal(np.array(n), dtype) if is_known(n) else Size(n, dtype)
