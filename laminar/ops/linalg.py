"""Linear algebra: factors, inverses, solutions, norms. Leading axes are stacks of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.gradients import jvp as engine_jvp
from laminar.engine.graph import Tensor
from laminar.engine.ops.linalg import decompositions, lu, norms
from laminar.engine.ops.linalg import solve as engine
from laminar.tree import map_structure

from ..typing import AxisLike, TensorLike
from .arguments import floating, floating_pair, one_of, tensor
from .recording import public

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "det",
    "eig",
    "eigh",
    "inv",
    "jvp",
    "lstsq",
    "lu_factor",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
]


@public
def cholesky(x: TensorLike, upper: bool = False) -> Tensor:
    """The lower triangular L with L L^T = x, or the upper triangular U with U^T U = x.

    Args:
        x: (..., n, n), symmetric and positive definite.
        upper: which of the two.

    Returns:
        (..., n, n), with 0 in the other triangle. Of `x` the lower triangle is read.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 4.2.

    Examples:
        >>> ops.cholesky([[4.0, 2.0], [2.0, 5.0]])
        Tensor([[2., 0.],
                [1., 2.]], shape=(2, 2), dtype=float32)
    """
    return decompositions.cholesky(floating(x), upper)


@public
def cholesky_inverse(x: TensorLike, upper: bool = False) -> Tensor:
    """The inverse of a matrix, given its Cholesky factor.

    Args:
        x: (..., n, n), what `cholesky` gives.
        upper: whether it is the upper factor.

    Returns:
        (..., n, n): (L L^T)^-1, or (U^T U)^-1.

    Examples:
        >>> ops.cholesky_inverse([[2.0, 0.0], [1.0, 2.0]])
        Tensor([[ 0.3125, -0.125 ],
                [-0.125 ,  0.25  ]], shape=(2, 2), dtype=float32)
    """
    return engine.cholesky_inverse(floating(x), upper)


@public
def det(x: TensorLike) -> Tensor:
    """The determinant of (..., n, n).

    Args:
        x: (..., n, n), floating.

    Returns:
        (...): the product of the pivots of `lu_factor`, with the sign of the exchanges.

    Raises:
        ShapeError: the last two axes differ in size.

    Examples:
        >>> ops.det([[1.0, 2.0], [3.0, 4.0]])
        Tensor(-2., shape=(), dtype=float32)
    """
    return engine.determinant(floating(x))


@public
def slogdet(x: TensorLike) -> tuple[Tensor, Tensor]:
    """sign and logarithm with det(x) = sign * exp(logarithm).

    Args:
        x: (..., n, n), floating.

    Returns:
        sign, (...): 1, -1, or 0 of a singular matrix; and the logarithm of |det(x)|, (...),
        -infinity of a singular one. It does not overflow where the determinant does.

    Raises:
        ShapeError: the last two axes differ in size.

    Examples:
        >>> ops.slogdet([[0.0, 2.0], [3.0, 0.0]])
        (Tensor(-1., shape=(), dtype=float32), Tensor(1.7918, shape=(), dtype=float32))
    """
    return engine.slogdet(floating(x))


@public
def eig(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Complex eigenvalues (..., n) and eigenvectors (..., n, n), as columns; no gradient.

    Args:
        x: (..., n, n), floating.

    Returns:
        w, (..., n), in no order, and v, (..., n, n), complex, with x v = v diag(w); columns have
        norm 1.

    Raises:
        ShapeError: the last two axes differ in size.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 7.5.

    Examples:
        >>> values, vectors = ops.eig([[2.0, 0.0], [0.0, 3.0]])
        >>> values
        Tensor([2.+0.j, 3.+0.j], shape=(2,), dtype=complex64)
    """
    return decompositions.eig(floating(x))


@public
def eigh(x: TensorLike) -> tuple[Tensor, Tensor]:
    """Rising eigenvalues (..., n) and eigenvectors (..., n, n) of symmetric matrices.

    Args:
        x: (..., n, n), symmetric; the lower triangle is read.

    Returns:
        w, (..., n), and v, (..., n, n), orthogonal, with x = v diag(w) v^T; of the dtype of `x`.

    Raises:
        ShapeError: the last two axes differ in size.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 8.3.

    Examples:
        >>> values, vectors = ops.eigh([[2.0, 1.0], [1.0, 2.0]])
        >>> values
        Tensor([1., 3.], shape=(2,), dtype=float32)
    """
    return decompositions.eigh(floating(x))


@public
def inv(x: TensorLike) -> Tensor:
    """The inverse of (..., n, n).

    Returns:
        (..., n, n): y with x y = y x = 1.

    Raises:
        InvalidArgumentError: a matrix is singular.

    Args:
        x: (..., n, n), floating.

    Examples:
        >>> ops.inv([[2.0, 0.0], [0.0, 4.0]])
        Tensor([[0.5 , 0.  ],
                [0.  , 0.25]], shape=(2, 2), dtype=float32)
    """
    return engine.inverse(floating(x))


@public
def pinv(x: TensorLike, rcond: float | None = None) -> Tensor:
    """The Moore-Penrose inverse of (..., m, n).

    Args:
        x: the matrices.
        rcond: singular values up to `rcond` times the greatest count as 0.

    Returns:
        (..., n, m): v diag(1 / s) u^T, over the singular values s of x = u diag(s) v^T that count.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 5.5.

    Examples:
        >>> ops.pinv([[2.0, 0.0], [0.0, 0.0]])
        Tensor([[0.5, 0. ],
                [0. , 0. ]], shape=(2, 2), dtype=float32)
    """
    return engine.pinv(floating(x), rcond)


@public
def lstsq(a: TensorLike, b: TensorLike, rcond: float | None = None) -> Tensor:
    """The x of least norm among those that minimise |a x - b|.

    Args:
        a: (..., m, n).
        b: (..., m, k), or (..., m).
        rcond: see `pinv`.

    Returns:
        (..., n, k), or (..., n).

    Raises:
        ShapeError: a and b differ in m.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 5.5.

    Examples:
        >>> ops.lstsq(np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0, 5.0]))
        Tensor([1., 2.], shape=(2,), dtype=float64)
    """
    return engine.lstsq(*floating_pair(a, b), rcond)


@public
def lu_factor(x: TensorLike) -> tuple[Tensor, Tensor]:
    """The factors of (..., n, n) with rows exchanged: x[rows] = L U.

    Args:
        x: (..., n, n), floating.

    Returns:
        L below the diagonal (where it is 1) and U on and above it, in one matrix; and for each step
        the row that was exchanged with it, int32.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 3.4.

    Examples:
        >>> lu, pivots = ops.lu_factor([[1.0, 2.0], [4.0, 2.0]])
        >>> lu
        Tensor([[4.  , 2.  ],
                [0.25, 1.5 ]], shape=(2, 2), dtype=float32)
        >>> pivots
        Tensor([1, 1], shape=(2,), dtype=int32)
    """
    return lu.lu_factor(floating(x))


@public
def matrix_rank(x: TensorLike, tol: TensorLike | None = None) -> Tensor:
    """How many singular values of (..., m, n) are greater than `tol`, int32.

    Args:
        x: (..., m, n), floating.
        tol: by default max(m, n) times the machine epsilon times the greatest singular value.

    Returns:
        (...), int32.

    Examples:
        >>> ops.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
        Tensor(1, shape=(), dtype=int32)
    """
    return norms.matrix_rank(floating(x), tol)


@public
def norm(
    x: TensorLike, ord: Any = None, axis: AxisLike | None = None, keepdims: bool = False
) -> Tensor:
    """The norm of vectors or matrices.

    Args:
        x: any tensor.
        ord: for vectors a number p; for matrices "fro", "nuc", 1, -1, 2, -2 or +-infinity; None:
            the root of the sum of squares.
        axis: one axis for vectors, two for matrices; None for all of `x`.
        keepdims: whether the axes stay, with size 1.

    Returns:
        `x` without the axes, or with size 1 there. Of vectors (sum of |x|^p)^(1/p), for p =
        infinity the greatest |x|; of matrices "fro": the root of the sum of squares, "nuc": the sum
        of the singular values, 2 (-2): the greatest (least) of them, 1 (-1): the greatest (least)
        sum of |x| over a column, infinity (-infinity): over a row.

    Examples:
        >>> ops.norm([3.0, 4.0])
        Tensor(5., shape=(), dtype=float32)
    """
    return norms.norm(floating(x), ord, tuple(axis) if isinstance(axis, list) else axis, keepdims)


@public
def qr(x: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """q with orthonormal columns and r upper triangular with q r = x.

    Args:
        x: (..., m, n).
        mode: "reduced" for min(m, n) columns of q, "complete" for m.

    Returns:
        q, (..., m, k), and r, (..., k, n); k = min(m, n), or m with "complete".

    Raises:
        InvalidArgumentError: another mode.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 5.2.

    Examples:
        >>> q, r = ops.qr([[3.0, 1.0], [4.0, 2.0]])
        >>> ops.abs(r)
        Tensor([[5. , 2.2],
                [0. , 0.4]], shape=(2, 2), dtype=float32)
    """
    one_of("qr", "mode", mode, ("reduced", "complete"))
    return decompositions.qr(floating(x), mode)


@public
def solve(a: TensorLike, b: TensorLike) -> Tensor:
    """x with a x = b.

    Args:
        a: (..., n, n).
        b: (..., n, k), or (..., n).

    Returns:
        (..., n, k), or (..., n): x, by `lu_factor`.

    Raises:
        InvalidArgumentError: a matrix is singular.
        ShapeError: `a` is not square, or `b` has other rows.

    Examples:
        >>> ops.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 8.0])
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    return engine.solve(*floating_pair(a, b))


@public
def solve_triangular(a: TensorLike, b: TensorLike, lower: bool = False) -> Tensor:
    """x with t x = b, where t is the upper (or `lower`) triangle of `a`.

    Args:
        a: (..., n, n); the other triangle is not read.
        b: (..., n, k), or (..., n).
        lower: which triangle.

    Returns:
        (..., n, k), or (..., n).

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 3.1.

    Examples:
        >>> ops.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [2.0, 3.0], lower=True)
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    return engine.triangular_solve(*floating_pair(a, b), lower)


@public
def svd(x: TensorLike, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """u, falling s >= 0, and v^T with x = u diag(s) v^T; or s alone.

    Args:
        x: (..., m, n).
        full_matrices: whether u and v are square.
        compute_uv: whether to compute u and v at all.

    Returns:
        u, (..., m, k), s, (..., k), and v^T, (..., k, n), with k = min(m, n); u is (..., m, m) and
        v^T (..., n, n) with `full_matrices`. Without `compute_uv` s alone.

    Source: Golub and Van Loan, "Matrix Computations", 4th ed., 2013, section 8.6.

    Examples:
        >>> u, s, v = ops.svd([[3.0, 0.0], [0.0, 4.0]])
        >>> s
        Tensor([4., 3.], shape=(2,), dtype=float32)
    """
    x = floating(x)
    return decompositions.svd(x, full_matrices) if compute_uv else decompositions.singular_values(x)


@public
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """The value of `fun` and its derivative in a direction.

    Args:
        fun: takes the primals; with `has_aux` it returns a pair (value, anything).
        primals: where to evaluate, a tuple or list of arguments.
        tangents: the direction, of the same form.
        has_aux: see `fun`.

    Returns:
        (value, derivative), and what `fun` returned besides with `has_aux`.

    Examples:
        >>> ops.jvp(lambda x: x * x, primals=(ops.array([3.0]),), tangents=(ops.array([1.0]),))
        (Tensor([9.], shape=(1,), dtype=float32), Tensor([6.], shape=(1,), dtype=float32))
    """
    if len(primals) != len(tangents):
        raise InvalidArgumentError(f"jvp: {len(primals)} primals, but {len(tangents)} tangents")
    return engine_jvp(
        fun, map_structure(tensor, tuple(primals)), map_structure(tensor, tuple(tangents)), has_aux
    )
