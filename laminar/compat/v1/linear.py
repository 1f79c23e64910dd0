"""`tf.linalg`: what differs from laminar's own in arguments."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.linalg import matmul as products
from laminar.engine.ops.linalg import solve
from laminar.engine.ops.math import compare

from .adapting import v1
from .values import dims_of, operands, static, symbol, tensor


@v1(keep_dims="keepdims")
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The norm of vectors or matrices."""
    kind = None if ord == "euclidean" and axis is None else ord
    if kind == "euclidean":
        kind = "fro" if isinstance(axis, list | tuple) and len(axis) == 2 else 2
    place = static(axis)
    found: Tensor = ops.norm(
        tensor, kind, tuple(place) if isinstance(place, list) else place, bool(keepdims)
    )
    return found


@v1()
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None) -> Any:
    """(tensor / norm, norm) of vectors or matrices along axes; see `norm`."""
    size = norm(tensor, ord, axis, True)
    return symbol(tensor) / size, size


@v1()
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """(singular values, left, right vectors), or the values alone."""
    if not compute_uv:
        return ops.svd(tensor, compute_uv=False)
    u, s, v_h = ops.svd(tensor, full_matrices)
    return s, u, ops.conj(ops.swapaxes(v_h, -1, -2))


@v1()
def matrix_transpose(a: Any, conjugate: bool = False) -> Tensor:
    """The last two axes exchanged."""
    x = tensor(a)
    found: Tensor = ops.swapaxes(ops.conj(x) if conjugate else x, -1, -2)
    return found


@v1()
def adjoint(matrix: Any) -> Tensor:
    """The last two axes exchanged, and conjugated."""
    return products.adjoint(tensor(matrix))


def _maybe_adjoint(matrix: Any, is_adjoint: bool) -> Tensor:
    x = tensor(matrix)
    return products.adjoint(x) if is_adjoint else x


@v1()
def matrix_inverse(input: Any, adjoint: bool = False) -> Tensor:
    """The inverse of matrices, or of their adjoints."""
    found: Tensor = ops.inv(_maybe_adjoint(input, adjoint))
    return found


@v1()
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False) -> Tensor:
    """x with matrix @ x = rhs, or with the adjoint of the matrix."""
    a, b = operands(matrix, rhs)
    found: Tensor = ops.solve(_maybe_adjoint(a, adjoint), b)
    return found


@v1()
def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False
) -> Tensor:
    """x with matrix @ x = rhs of a triangular matrix, or with its adjoint."""
    a, b = operands(matrix, rhs)
    return solve.triangular_solve(a, b, lower=lower, adjoint=adjoint)


@v1()
def cholesky_solve(chol: Any, rhs: Any) -> Tensor:
    """x with chol @ adjoint(chol) @ x = rhs."""
    a, b = operands(chol, rhs)
    half = solve.triangular_solve(a, b, lower=True)
    return solve.triangular_solve(a, half, lower=True, adjoint=True)


@v1()
def matrix_set_diag(input: Any, diagonal: Any) -> Tensor:
    """Matrices with another main diagonal."""
    x, given = operands(input, diagonal)
    rows, columns = dims_of(x)[-2:]
    row = ops.expand_dims(creation.arange(rows), -1)
    on = lookup("Equal")(row, creation.arange(columns))
    side = ops.expand_dims(given, -1)
    if isinstance(rows, int) and isinstance(columns, int) and columns < rows:
        pairs = [(0, 0)] * (len(given.shape) - 1) + [(0, rows - columns)]
        side = ops.expand_dims(ops.pad(given, pairs), -1)
    return compare.where(on, ops.broadcast_to(side, dims_of(x)), x)


@v1()
def self_adjoint_eigvals(tensor: Any) -> Tensor:
    """The eigenvalues of symmetric matrices, rising."""
    found: Tensor = ops.eigh(tensor)[0]
    return found


@v1()
def matvec(a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False) -> Tensor:
    """The product of matrices and vectors."""
    x, y = operands(a, b)
    x = products.adjoint(x) if adjoint_a else ops.swapaxes(x, -1, -2) if transpose_a else x
    found: Tensor = ops.squeeze(lookup("MatMul")(x, ops.expand_dims(y, -1)), -1)
    return found
