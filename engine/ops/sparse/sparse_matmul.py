"""Products of sparse and dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, NUMERIC, Array, Dim, OpView, Tensor, TensorSpec
from ..array.axes import swapaxes
from ..array.gather import gather
from ..array.index import get_item
from ..array.shape import static_shape
from ..core.arrays import computing_dtype
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import conjugate, multiply
from ..math.reduce import reduce_sum
from .sparse_places import check_places
from .sparse_values import SparseValues, as_sparse, check_sparse


@define(
    "SparseMatMul",
    dtypes={"indices": INTEGER, "dense_shape": INTEGER, "values": NUMERIC, "b": NUMERIC},
    same_dtype=False,
)
def sparse_matmul(
    indices: TensorSpec,
    dense_shape: TensorSpec,
    values: TensorSpec,
    b: TensorSpec,
    *,
    rows: Dim,
    adjoint: bool,
) -> TensorSpec:
    """c[m, n] = sum over k of a[m, k] * b[k, n], of the sparse matrix a or its adjoint.

    `rows`: m, where it is known.
    """
    if values.dtype != b.dtype:
        raise ShapeError(f"SparseMatMul: the types of {values} and {b} differ")
    if check_sparse("SparseMatMul", indices, dense_shape) not in (None, 2):
        raise ShapeError(f"SparseMatMul: expected a sparse matrix, got places {indices}")
    if b.shape.rank not in (None, 2):
        raise ShapeError(f"SparseMatMul: expected a dense matrix, got {b}")
    return TensorSpec([rows, b.shape[1] if b.shape.rank == 2 else None], values.dtype)


@sparse_matmul.kernel("cpu")
def _kernel(
    indices: Array, dense_shape: Array, values: Array, b: Array, *, rows: Dim, adjoint: bool
) -> Array:
    check_places("SparseMatMul", indices, dense_shape)
    to, inner = indices[:, int(adjoint)], indices[:, int(not adjoint)]
    size, depth = int(dense_shape[int(adjoint)]), int(dense_shape[int(not adjoint)])
    if depth != len(b):
        raise InvalidArgumentError(
            f"SparseMatMul: the inner sizes differ: {depth} of the sparse matrix, {len(b)}"
        )
    wide = computing_dtype(np, b)
    y = np.zeros((size, b.shape[1]), wide)
    if not len(to) or not y.size:
        return y.astype(b.dtype, copy=False)
    order = np.argsort(to, kind="stable")  # rows are summed in the order of their places
    to, inner = to[order], inner[order]
    factors = (values.conj() if adjoint else values)[order].astype(wide, copy=False)
    starts = np.flatnonzero(np.concatenate([[True], to[1:] != to[:-1]]))
    y[to[starts]] = np.add.reduceat(factors[:, None] * b[inner], starts, axis=0)
    return y.astype(b.dtype, copy=False)


@sparse_matmul.grad
def _grad(op: OpView, dc: Tensor) -> Grads:
    indices, dense_shape, values, b = op.inputs
    adjoint = op.attrs["adjoint"]
    first, second = get_item(indices, (..., 0)), get_item(indices, (..., 1))
    row, column = (second, first) if adjoint else (first, second)
    products = multiply(gather(dc, row), conjugate(gather(b, column)))
    dvalues = reduce_sum(products, axis=1)
    db = sparse_matmul(indices, dense_shape, values, dc, rows=b.shape[0], adjoint=not adjoint)
    return None, None, conjugate(dvalues) if adjoint else dvalues, db


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse matrix and a dense one, or the other way about.

    Args:
        sp_a: sparse (m, k), in any order of places; places that come twice add up.
        b: dense (k, n).
        adjoint_a, adjoint_b: whether the transposed conjugate of that matrix is meant.

    Returns:
        dense (m, n).

    Raises:
        InvalidArgumentError: a place lies outside, or the inner sizes differ.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_dense_matmul(s, engine.constant([[1], [10]]))
        Tensor([[50],
                [ 7]], shape=(2, 1), dtype=int32)
    """
    if isinstance(b, SparseValues) and not isinstance(sp_a, SparseValues):
        # a b = (b^H a^H)^H
        other = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a, name)
        return conjugate(swapaxes(other, -1, -2))
    x = as_sparse("sparse_dense_matmul", sp_a)
    dense = convert_to_tensor(b, None if isinstance(b, Tensor) else x.values.dtype)
    if adjoint_b:
        dense = conjugate(swapaxes(dense, -1, -2))
    known = static_shape(x.dense_shape)
    rows = known[int(adjoint_a)] if known.rank == 2 else None
    return sparse_matmul(
        x.indices, x.dense_shape, x.values, dense, rows=rows, adjoint=bool(adjoint_a), name=name
    )
