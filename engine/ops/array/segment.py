"""Reductions over rows that share a number: `segment_ids[i]` says to which result row i goes.

Rows are summed in their order, sorted or not, so the result does not depend on chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import (
    INTEGER,
    NUMERIC,
    REAL,
    Array,
    Dim,
    DType,
    OpView,
    Tensor,
    TensorSpec,
    int32,
)
from ..core.arrays import computing_dtype
from ..core.basic import constant, ones_like, zeros_like
from ..core.op_def import Grads, OpDef
from ..core.registry import define
from ..math.arithmetic import add, conjugate, divide, multiply
from ..math.cast import cast
from ..math.compare import equal, where
from ..math.elementary import divide_no_nan
from ..math.reduce import reduce_max
from .join import concat
from .runs import combined_by_row
from .shape import dims_of, reshape, runtime_shape, split_shape


def _check(who: str, rows: TensorSpec, ids: TensorSpec) -> None:
    """Refuse ids that are not one for each row."""
    if ids.shape.rank not in (None, 1):
        raise ShapeError(f"{who}: segment_ids must be a vector, got {ids}", remedy="flatten both")
    if rows.shape.rank == 0:
        raise ShapeError(f"{who}: data has no axis of rows, got {rows}")
    if None not in (rows.shape.rank, ids.shape.rank):
        count, given = rows.shape[0], ids.shape[0]
        if None not in (count, given) and count != given:
            raise ShapeError(
                f"{who}: there must be one id for each row, got {given} ids for {count} rows "
                f"(data is {rows}, segment_ids is {ids})"
            )


def _in_order(xp: Any, rows: Array, ids: Array, size: int, is_sorted: bool) -> tuple[Array, Array]:
    """The rows with an id in range, and the ids, sorted by id; rows of one id keep their order."""
    valid = (ids >= 0) & (ids < size)
    rows, ids = rows[valid], ids[valid]
    if is_sorted:
        return rows, ids
    order = xp.argsort(ids, kind="stable")
    return rows[order], ids[order]


def _segment_op(
    type: str,
    doc: str,
    ufunc: str,
    empty: Callable[[DType], Any],
    *,
    dtypes: Collection[DType] = NUMERIC,
) -> OpDef:
    """Define an op that combines the rows of each segment by a function of the array library."""

    @define(type, dtypes={"data": dtypes, "segment_ids": INTEGER}, same_dtype=False)
    def op(
        data: TensorSpec,
        segment_ids: TensorSpec,
        *dims: TensorSpec,
        num_segments: Dim,
        is_sorted: bool = False,
    ) -> TensorSpec:
        _check(type, data, segment_ids)
        if data.shape.rank is None:
            return TensorSpec(None, data.dtype)
        return TensorSpec([num_segments, *data.shape[1:]], data.dtype)

    op.doc = doc

    def results(xp: Any, data: Array, size: int) -> Array:
        return xp.full((size, *data.shape[1:]), empty(DType(str(data.dtype))), data.dtype)

    @op.reference
    def portable(
        xp: Any,
        data: Array,
        ids: Array,
        *dims: Array,
        num_segments: Dim,
        is_sorted: bool,
    ) -> Array:
        (size,) = runtime_shape((num_segments,), dims)
        wide = data.astype(computing_dtype(xp, data), copy=False)
        found, is_named = combined_by_row(
            xp, wide, ids, size, getattr(xp, ufunc), is_sorted=is_sorted
        )
        is_named = is_named.reshape(-1, *[1] * (data.ndim - 1))
        return xp.where(is_named, found.astype(data.dtype, copy=False), results(xp, data, size))

    @op.kernel("cpu")
    def with_numpy(
        data: Array, ids: Array, *dims: Array, num_segments: Dim, is_sorted: bool
    ) -> Array:
        (size,) = runtime_shape((num_segments,), dims)
        wide = data.astype(computing_dtype(np, data), copy=False)
        rows, ids = _in_order(np, wide, ids, size, is_sorted)
        y = results(np, data, size)
        if ids.size:
            starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
            found = getattr(np, ufunc).reduceat(rows, starts, axis=0, dtype=rows.dtype)
            y[ids[starts]] = found.astype(data.dtype, copy=False)
        return y

    return op


def _lowest(dtype: DType) -> Any:
    return -np.inf if dtype.is_floating else np.iinfo(dtype.numpy).min


def _highest(dtype: DType) -> Any:
    return np.inf if dtype.is_floating else np.iinfo(dtype.numpy).max


_sum = _segment_op(
    "SegmentSum",
    "y[k] = the sum of data[i] over all i with segment_ids[i] = k. Ids out of range are left out.",
    "add",
    lambda dtype: 0,
)
_prod = _segment_op(
    "SegmentProd", "As SegmentSum, with the product; 1 of no rows.", "multiply", lambda dtype: 1
)
_max = _segment_op(
    "SegmentMax",
    "As SegmentSum, with the greatest element; of no rows, the least number (-inf) of the dtype.",
    "maximum",
    _lowest,
    dtypes=REAL,
)
_min = _segment_op(
    "SegmentMin",
    "As SegmentSum, with the least element; of no rows, the greatest number (inf) of the dtype.",
    "minimum",
    _highest,
    dtypes=REAL,
)


@define("SegmentSpread", dtypes={"y": NUMERIC, "segment_ids": INTEGER}, same_dtype=False)
def _spread(y: TensorSpec, segment_ids: TensorSpec, *, is_sorted: bool = False) -> TensorSpec:
    """x[i] = y[segment_ids[i]], and 0 where that is out of range: SegmentSum transposed."""
    if y.shape.rank is None or segment_ids.shape.rank is None:
        return TensorSpec(None, y.dtype)
    return TensorSpec([*segment_ids.shape, *y.shape[1:]], y.dtype)


@_spread.reference
def _spread_kernel(xp: Any, y: Array, ids: Array, *, is_sorted: bool) -> Array:
    if not len(y):
        return xp.zeros((*ids.shape, *y.shape[1:]), y.dtype)
    inside = (ids >= 0) & (ids < len(y))
    found = y[xp.where(inside, ids, 0)]
    found[~inside] = 0
    return found


@_spread.grad
def _spread_grad(op: OpView, dx: Tensor) -> Grads:
    (rows, *_), dims = dims_of(op.inputs[0])
    given = dims[:1] if rows is None else []
    sums = _sum(dx, op.inputs[1], *given, num_segments=rows, is_sorted=op.attrs["is_sorted"])
    return sums, None


def rows_at(y: Tensor, places: Tensor) -> Tensor:
    """y[places[k]], and 0 where the place is out of range, which is no error."""
    return _spread(y, places)


def _at_rows(op: OpView, y: Tensor) -> Tensor:
    """For each row of the data, what `y` holds for its segment."""
    return _spread(y, op.inputs[1], is_sorted=op.attrs["is_sorted"])


def _again(op: OpView, reduction: OpDef, data: Tensor) -> Tensor:
    """Another reduction over the same segments."""
    return reduction(data, *op.inputs[1:], **op.attrs)


def _to_data(op: OpView, dx: Tensor) -> Grads:
    return (dx, *(None for _ in op.inputs[1:]))


@_sum.grad
def _sum_grad(op: OpView, dy: Tensor) -> Grads:
    return _to_data(op, _at_rows(op, dy))


@_max.grad
@_min.grad
def _extreme_grad(op: OpView, dy: Tensor) -> Grads:
    # equal extremes share the gradient equally
    data = op.inputs[0]
    chosen = cast(equal(data, _at_rows(op, op.outputs[0])), data.dtype)
    share = divide_no_nan(dy, _again(op, _sum, chosen))
    return _to_data(op, multiply(chosen, _at_rows(op, share)))


@_prod.grad
def _prod_grad(op: OpView, dy: Tensor) -> Grads:
    # The product of the others is y / x; where x is 0, and there is no other 0, it is the product
    # of those that are not 0. (The slope of this formula is right where nothing is 0.)
    data = conjugate(op.inputs[0])
    zero = zeros_like(data)
    is_zero = equal(data, zero)
    zeros = _at_rows(op, _again(op, _sum, cast(is_zero, data.dtype)))
    nonzero = where(is_zero, ones_like(data), data)
    rest = _at_rows(op, _again(op, _prod, nonzero))
    others = where(
        is_zero,
        where(equal(zeros, ones_like(zeros)), rest, zero),
        divide(_at_rows(op, conjugate(op.outputs[0])), nonzero),
    )
    return _to_data(op, multiply(_at_rows(op, dy), others))


def _reduce(
    op: OpDef, data: Tensor, segment_ids: Tensor, num_segments: Any, is_sorted: bool
) -> Tensor:
    _check(op.type, data.spec, segment_ids.spec)
    count = _count(segment_ids) if num_segments is None else num_segments
    (attribute,), dims = split_shape([count])
    return op(data, segment_ids, *dims, num_segments=attribute, is_sorted=is_sorted)


def _count(ids: Tensor) -> Tensor:
    """The greatest id and one more: the number of segments that are mentioned."""
    with_none = concat([cast(ids, int32), constant([-1], int32)])
    return add(reduce_max(with_none), constant(1, int32))


def segment_sum(
    data: Tensor, segment_ids: Tensor, num_segments: Any = None, *, is_sorted: bool = False
) -> Tensor:
    """y[k] = the sum of the rows data[i] with segment_ids[i] = k; 0 where there is none.

    Args:
        data: (rows, ...).
        segment_ids: (rows,), integers; rows with an id out of range are left out.
        num_segments: the number of result rows, an int or a scalar tensor; by default one more than
            the greatest id.
        is_sorted: whether the ids are known to be in ascending order, which saves sorting them.

    Returns:
        (num_segments, ...), dtype of `data`.

    Raises:
        ShapeError: `segment_ids` is not one id for each row.
    """
    return _reduce(_sum, data, segment_ids, num_segments, is_sorted)


def segment_prod(
    data: Tensor, segment_ids: Tensor, num_segments: Any = None, *, is_sorted: bool = False
) -> Tensor:
    """The product of the rows of each segment, 1 where there is none; see `segment_sum`."""
    return _reduce(_prod, data, segment_ids, num_segments, is_sorted)


def segment_max(
    data: Tensor, segment_ids: Tensor, num_segments: Any = None, *, is_sorted: bool = False
) -> Tensor:
    """The greatest elements of each segment; see `segment_sum`.

    Where a segment has no rows, the least number of the dtype: -inf for floats.
    """
    return _reduce(_max, data, segment_ids, num_segments, is_sorted)


def segment_min(
    data: Tensor, segment_ids: Tensor, num_segments: Any = None, *, is_sorted: bool = False
) -> Tensor:
    """The least elements of each segment; see `segment_sum`.

    Where a segment has no rows, the greatest number of the dtype: inf for floats.
    """
    return _reduce(_min, data, segment_ids, num_segments, is_sorted)


def bincount(x: Tensor, weights: Tensor | None = None, size: Any = None) -> Tensor:
    """How often each of 0, 1, 2, ... is in `x`; with weights, the sum of them.

    Args:
        x: integers of any shape.
        weights: one for each element of `x`; by default 1, of dtype int32.
        size: how many numbers to count, an int or a scalar tensor; by default up to the greatest.

    Returns:
        (size,), dtype of `weights`.
    """
    ids = reshape(x, [-1])
    data = ones_like(cast(ids, int32)) if weights is None else reshape(weights, [-1])
    return _reduce(_sum, data, ids, size, False)
