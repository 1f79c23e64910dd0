"""Products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import ops
from ...errors import ShapeError
from ...graph import NUMERIC, Array, OpView, Tensor, TensorShape, TensorSpec, broadcast_shapes
from ...late import later
from ..core.arrays import rounded, widened
from ..core.kernels import HOST
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import conjugate

# So many multiplications are worth all threads, whose wait for more work slows down what follows.
_many_threads = later("laminar.engine.blas", "many_threads")
_LARGE = 1 << 29


@define("MatMul", dtypes=NUMERIC)
def matmul(
    a: TensorSpec, b: TensorSpec, *, transpose_a: bool = False, transpose_b: bool = False
) -> TensorSpec:
    """c[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; the leading axes broadcast.

    With `transpose_a`, a is given as [..., k, m]; with `transpose_b`, b as [..., n, k].
    """
    if a.shape.rank is None or b.shape.rank is None:
        return TensorSpec(None, a.dtype)
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise ShapeError(
            f"MatMul: both inputs need at least two axes, got a {a} and b {b}",
            remedy="reshape a vector to a row or a column, or use laminar.ops.matmul",
        )
    m, k = a.shape[-2:] if not transpose_a else a.shape[-1:-3:-1]
    k_b, n = b.shape[-2:] if not transpose_b else b.shape[-1:-3:-1]
    if k is not None and k_b is not None and k != k_b:
        raise ShapeError(
            f"MatMul: the inner dimensions differ: a is {a}, b is {b} ({k} != {k_b})",
            remedy=f"transpose b, or give it {k} rows",
        )
    lead = broadcast_shapes("MatMul", TensorShape(a.shape[:-2]), TensorShape(b.shape[:-2]))
    return TensorSpec([*lead, m, n], a.dtype)


@matmul.reference
def _matmul_kernel(xp: Any, a: Array, b: Array, *, transpose_a: bool, transpose_b: bool) -> Array:
    if transpose_a:
        a = xp.swapaxes(a, -1, -2)
    if transpose_b:
        b = xp.swapaxes(b, -1, -2)
    rows, matrix = widened(xp, a), widened(xp, b)
    if b.ndim == 2 < a.ndim and a.size:
        rows = rows.reshape(-1, a.shape[-1])  # one product, not one for each matrix of a
    if xp is HOST and rows.size * matrix.shape[-1] > _LARGE:
        with _many_threads():
            c = xp.matmul(rows, matrix)
    else:
        c = xp.matmul(rows, matrix)
    c = rounded(c, a.dtype)
    return c.reshape(*a.shape[:-1], b.shape[-1]) if rows.ndim < a.ndim else c


@matmul.grad
def _matmul_grad(op: OpView, dc: Tensor) -> Grads:
    a, b = (conjugate(x) for x in op.inputs)
    if op.attrs["transpose_a"]:
        da = matmul(b, dc, transpose_a=op.attrs["transpose_b"], transpose_b=True)
    else:
        da = matmul(dc, b, transpose_b=not op.attrs["transpose_b"])
    x, w = op.inputs
    if _is_one_for_all(x, w, op.attrs) and dc.shape[-1] is not None:
        # One matrix for all of a: one product of all rows, not a sum of one for each matrix.
        rows, drows = _all_rows(a), _all_rows(dc)
        left, right = (drows, rows) if op.attrs["transpose_b"] else (rows, drows)
        return ops.broadcast.unbroadcast_batch(da, op.inputs[0]), matmul(
            left, right, transpose_a=True
        )
    if op.attrs["transpose_b"]:
        db = matmul(dc, a, transpose_a=True, transpose_b=op.attrs["transpose_a"])
    else:
        db = matmul(a, dc, transpose_a=not op.attrs["transpose_a"])
    return ops.broadcast.unbroadcast_batch(da, op.inputs[0]), ops.broadcast.unbroadcast_batch(
        db, op.inputs[1]
    )


def _is_one_for_all(a: Tensor, b: Tensor, attrs: Mapping[str, Any]) -> bool:
    """Whether b is one matrix, and the rows of all matrices of a can be put below each other."""
    if a.shape.rank is None or b.shape.rank != 2 or attrs["transpose_a"]:
        return False
    return len(a.shape) > 2 and a.shape[-1] is not None


def _all_rows(x: Tensor) -> Tensor:
    return ops.shape.reshape(x, (-1, x.shape[-1]))


def matmul_nd(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product in NumPy's general form.

    A vector `a` counts as a row and a vector `b` as a column; that axis is not in the result.

    Raises:
        ShapeError: one is a scalar, the inner dimensions differ, or the leading axes do not
            broadcast.
    """
    ranks = a.shape.rank, b.shape.rank
    if ranks == (2, 2):
        return matmul(a, b)
    if 0 in ranks:
        raise ShapeError(
            f"matmul: expected vectors or matrices, got {a.spec} and {b.spec}",
            remedy="multiply by a scalar with *",
        )
    row, column = (rank == 1 for rank in ranks)
    c = matmul(
        ops.axes.expand_dims(a, 0) if row else a, ops.axes.expand_dims(b, 1) if column else b
    )
    dropped = [-2] * row + [-1] * column
    return ops.axes.squeeze(c, dropped) if dropped else c


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of the matrices along the last two axes."""
    return conjugate(ops.axes.swapaxes(x, -1, -2))
