"""Functions of matrices, and decompositions, where TensorFlow 1 has them in its own form."""

from __future__ import annotations

import math
from typing import Any

from laminar import engine, ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.linalg import matmul as products
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import where

from .adapting import v1
from .arrays import eye
from .linear import cholesky_solve
from .values import as_kind, dims_of, operands, symbol, tensor

# By the size of the numbers: the coefficients of the Pade approximant of exp, and up to which norm
# it is exact to rounding. Source: Higham, "The scaling and squaring method for the matrix
# exponential revisited", SIAM Journal on Matrix Analysis and Applications 26, 2005, table 2.3.
_PADE = {
    4: ((17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1), 3.925724783138660),
    8: (
        (
            64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
            129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920, 40840800,
            960960, 16380, 182, 1,
        ),
        5.371920351148152,
    ),
}  # fmt: skip


@v1()
def matrix_exponential(input: Any) -> Any:
    """exp(x) = 1 + x + x @ x / 2 + ... of square matrices.

    Source: Higham, see above: an approximant of x / 2**s, squared s times.
    """
    x = symbol(input)
    rank = x.shape.rank
    if rank is None or rank < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"expm: expected square matrices, got {x.spec}")
    if 0 in x.shape:
        return x
    coefficients, limit = _PADE[x.dtype.size // (2 if x.dtype.is_complex else 1)]
    norm = ops.max(ops.sum(ops.abs(x), -2), -1)
    exponent = ops.ceil(ops.log(ops.maximum(norm, limit) / limit) / math.log(2.0))
    scale = cast(lookup("Pow")(tensor(2.0, exponent.dtype), exponent), x.dtype)
    small = x / ops.reshape(scale, [*dims_of(scale), 1, 1])
    one = eye(dims_of(x)[-1], dtype=x.dtype)
    square = small @ small
    power, odd, even = one, coefficients[1] * one, coefficients[0] * one
    for i in range(2, len(coefficients), 2):
        power = power @ square
        even = even + coefficients[i] * power
        odd = odd + coefficients[i + 1] * power
    odd = small @ odd
    result = ops.solve(even - odd, even + odd)
    times = ops.reshape(exponent, [*dims_of(exponent), 1, 1])
    most = ops.max(exponent)

    def squared(i: Any, y: Any) -> Any:
        return i + 1.0, where(lookup("Less")(i, times), y @ y, y)

    begin = (lookup("ZerosLike")(most), result)
    return engine.while_loop(lambda i, y: lookup("Less")(i, most), squared, begin)[1]


@v1()
def lu(input: Any, output_idx_type: Any = "int32") -> tuple[Tensor, Tensor]:
    """(l below the diagonal and u, packed; p), where the rows input[p] are l @ u."""
    packed, _, order = lookup("Lu").many(tensor(input))
    return packed, cast(order, as_kind(output_idx_type))


@v1()
def lu_reconstruct(lower_upper: Any, perm: Any) -> Any:
    """The matrices that `lu` has decomposed."""
    packed, order = tensor(lower_upper), tensor(perm)
    lower = ops.tril(packed, -1) + eye(dims_of(packed)[-1], dtype=packed.dtype)
    back = ops.argsort(order, -1)
    count = len(order.shape) - 1
    return gathering.gather(lower @ ops.triu(packed), back, count, count)


@v1()
def lu_solve(lower_upper: Any, perm: Any, rhs: Any) -> Any:
    """x with matrix @ x = rhs, of the matrices that `lu` has decomposed."""
    packed, b = operands(lower_upper, rhs)
    order = tensor(perm)
    count = len(order.shape) - 1
    lower = ops.tril(packed, -1) + eye(dims_of(packed)[-1], dtype=packed.dtype)
    half = ops.solve_triangular(lower, gathering.gather(b, order, count, count), lower=True)
    return ops.solve_triangular(ops.triu(packed), half)


@v1()
def lu_matrix_inverse(lower_upper: Any, perm: Any) -> Any:
    """The inverse of the matrices that `lu` has decomposed."""
    packed = tensor(lower_upper)
    dims = dims_of(packed)
    return lu_solve(packed, perm, eye(dims[-1], batch_shape=dims[:-2], dtype=packed.dtype))


@v1()
def matrix_solve_ls(matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True) -> Any:
    """x for which |matrix @ x - rhs|**2 + l2_regularizer * |x|**2 is least.

    Args:
        matrix: (..., m, n).
        rhs: (..., m, k).
        l2_regularizer: a number.
        fast: whether by the normal equations, which square the condition of the matrix; else by
            an orthogonal decomposition, without l2_regularizer. Of more columns than rows, x is
            the shortest.
    """
    a, b = operands(matrix, rhs)
    if not fast:
        return ops.lstsq(a, b)
    h = products.adjoint(a)
    rows, columns = a.shape[-2:]
    wide = rows is not None and columns is not None and rows < columns
    gram = a @ h if wide else h @ a
    gram = gram + tensor(l2_regularizer, a.dtype) * eye(dims_of(gram)[-1], dtype=a.dtype)
    factor = ops.cholesky(gram)
    return h @ cholesky_solve(factor, b) if wide else cholesky_solve(factor, h @ b)
