"""LU: triangular factors of a matrix, with rows exchanged."""

from __future__ import annotations

import math
from typing import Any

from ...errors import UnimplementedError
from ...graph import Array, OpView, Tensor, TensorSpec, int32
from ..array.along import take_along_axis
from ..array.axes import expand_dims
from ..array.diagonal import tril, triu
from ..array.shape import matrix_dims
from ..array.sort import argsort
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import add
from .matmul import adjoint, matmul
from .solve import MATRIX, identity_like, lead, triangular_solve


@define("Lu", dtypes=MATRIX)
def _lu(x: TensorSpec) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """x with its rows exchanged is l u, l unit lower and u upper triangular.

    Outputs: l below the diagonal and u from the diagonal on, in one matrix; for each step i the row
    that was exchanged with row i; the rows of x in the order they come to stand in. The greatest
    element of a column becomes the pivot.
    """
    rows, columns = matrix_dims("Lu", x)
    if x.shape.rank is None:
        return x, TensorSpec(None, int32), TensorSpec(None, int32)
    steps = None if rows is None or columns is None else min(rows, columns)
    stack = lead(x)
    return x, TensorSpec([*stack, steps], int32), TensorSpec([*stack, rows], int32)


@_lu.reference
def _lu_kernel(xp: Any, x: Array) -> tuple[Array, Array, Array]:
    """Gaussian elimination, one column of all matrices at a time.

    Source: Golub and Van Loan, "Matrix Computations", 4th edition, algorithm 3.4.1.
    """
    rows, columns = x.shape[-2:]
    steps = min(rows, columns)
    count = math.prod(x.shape[:-2])
    a = x.reshape((count, rows, columns)).copy()
    pivots = xp.zeros((count, steps), xp.int32)
    order = xp.broadcast_to(xp.arange(rows, dtype=xp.int32), (count, rows)).copy()
    each = xp.arange(count)
    for i in range(steps):
        pivot = xp.argmax(xp.abs(a[:, i:, i]), axis=1) + i
        pivots[:, i] = pivot
        for table in (a, order):
            row = table[:, i].copy()
            table[:, i] = table[each, pivot]
            table[each, pivot] = row
        value = a[:, i, i, None]
        a[:, i + 1 :, i] /= xp.where(value == 0, xp.ones_like(value), value)
        a[:, i + 1 :, i + 1 :] -= a[:, i + 1 :, i, None] * a[:, i, None, i + 1 :]
    stack = x.shape[:-2]
    return a.reshape(x.shape), pivots.reshape((*stack, steps)), order.reshape((*stack, rows))


@_lu.grad
def _lu_grad(op: OpView, dlu: Tensor | None, *others: Tensor | None) -> Grads:
    """With P the exchange of rows: dX = P^T L^-H (tril(L^H dL, -1) + triu(dU U^H)) U^-H.

    Source: de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using triangular
    factorization", Mathematics of Computation 80, 2011, section 3.
    """
    if dlu is None:
        return (None,)
    (x,) = op.inputs
    lu, _, order = op.outputs
    rows, columns = matrix_dims("Lu", x.spec)
    if rows is not None and columns is not None and rows != columns:
        raise UnimplementedError(
            f"Lu: only square matrices have a gradient, got {x.spec}",
            remedy="decompose a square part of the matrix",
        )
    lower, upper = add(tril(lu, -1), identity_like(lu)), triu(lu)
    inner = tril(matmul(adjoint(lower), tril(dlu, -1)), -1)
    inner = add(inner, triu(matmul(triu(dlu), adjoint(upper))))
    left = triangular_solve(lower, inner, lower=True, adjoint=True)
    exchanged = adjoint(triangular_solve(upper, adjoint(left)))
    return (take_along_axis(exchanged, expand_dims(argsort(order), -1), -2),)


def lu_factor(x: Tensor) -> tuple[Tensor, Tensor]:
    """The LU decomposition with rows exchanged, packed as LAPACK does.

    Args:
        x: (..., m, n); a gradient flows through square matrices.

    Returns:
        (..., m, n): below the diagonal l, whose own diagonal is 1, from the diagonal on u; and
        (..., min(m, n)), int32: at step i row i was exchanged with this one, counted from 0.
    """
    lu, pivots, _ = _lu.many(x)
    return lu, pivots
