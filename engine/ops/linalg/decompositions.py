"""Decompositions of matrices: Cholesky, QR, eigenvalues, singular values.

All take matrices along the last two axes, and stacks of them along the others.
"""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, UnimplementedError
from ...graph import (
    Array,
    Dim,
    OpView,
    Tensor,
    TensorSpec,
)
from ..array.axes import expand_dims
from ..array.diagonal import matrix_diag, tril
from ..array.index import get_item
from ..array.join import concat
from ..array.shape import dim_of, matrix_dims
from ..core.basic import constant, ones_like, zeros_like
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from ..math.arithmetic import add, divide, multiply, reciprocal, square, subtract
from ..math.cast import cast
from ..math.compare import equal, where
from ..math.complex_numbers import part_dtype, whole_dtype
from .matmul import adjoint, matmul
from .solve import MATRIX, lead, square_side, triangular_solve


def _half(x: Tensor) -> Tensor:
    return multiply(x, constant(0.5, x.dtype))


def _hermitian(x: Tensor) -> Tensor:
    """(x + x^H) / 2: what a matrix that is read as Hermitian has as gradient."""
    return _half(add(x, adjoint(x)))


@define("Cholesky", dtypes=MATRIX)
def _cholesky(x: TensorSpec) -> TensorSpec:
    """The lower triangular L with L L^H = x; of the Hermitian x, the lower triangle is read.

    An error where x is not positive definite. The gradient counts both triangles.
    """
    square_side("Cholesky", x)
    return x


@_cholesky.reference
def _cholesky_kernel(xp: Any, x: Array) -> Array:
    return xp.linalg.cholesky(x)


@_cholesky.grad
def _cholesky_grad(op: OpView, dl: Tensor) -> Grads:
    """Murray, "Differentiation of the Cholesky decomposition", 2016, arXiv:1602.07527, eq. 9, 10.

    dX = L^-H phi(L^H dL) L^-1, phi: the lower triangle, its diagonal halved.
    """
    (lower,) = op.outputs
    inner = matmul(adjoint(lower), dl)
    inner = add(_half(tril(inner)), _half(tril(inner, -1)))
    left = triangular_solve(lower, inner, lower=True, adjoint=True)
    return (_hermitian(adjoint(triangular_solve(lower, adjoint(left), lower=True, adjoint=True))),)


def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular L with L L^H = x, or with `upper` U = L^H with U^H U = x.

    Args:
        x: (..., n, n), Hermitian and positive definite; its lower triangle is read.
        upper: which triangle the result is.

    Raises:
        InvalidArgumentError: a matrix is not positive definite.
    """
    lower = _cholesky(x)
    return adjoint(lower) if upper else lower


@define("Qr", dtypes=MATRIX)
def _qr(x: TensorSpec, *, mode: str) -> tuple[TensorSpec, TensorSpec]:
    """q with orthonormal columns and r upper triangular with q r = x.

    With k = min(m, n): "reduced": q [m, k], r [k, n]; "complete": q [m, m], r [m, n].
    """
    if mode not in ("reduced", "complete"):
        raise InvalidArgumentError(f'Qr: mode must be "reduced" or "complete", got {mode!r}')
    rows, columns = matrix_dims("Qr", x)
    if x.shape.rank is None:
        return x, x
    k = rows if mode == "complete" else _lesser(rows, columns)
    stack = lead(x)
    return TensorSpec([*stack, rows, k], x.dtype), TensorSpec([*stack, k, columns], x.dtype)


def _lesser(rows: Dim, columns: Dim) -> Dim:
    return None if rows is None or columns is None else min(rows, columns)


@_qr.reference
def _qr_kernel(xp: Any, x: Array, *, mode: str) -> tuple[Array, Array]:
    q, r = xp.linalg.qr(x, mode)
    return q, r


@_qr.grad
def _qr_grad(op: OpView, dq: Tensor | None, dr: Tensor | None) -> Grads:
    """With x = [x1, x2], r = [r1, r2], x1 and r1 as many columns as q has:

    dx2 = q dr2, and with dq' = dq + x2 dr2^H and M = r1 dr1^H - dq'^H q,
    dx1 = (dq' + q (tril(M) + tril(M, -1)^H)) r1^-H.

    Source: Roberts and Roberts, "QR and LQ Decomposition Matrix Backpropagation Algorithms for
    Square, Wide, and Deep Matrices", 2020, arXiv:2009.10071; for square and deep matrices Walter
    and Lehmann, 2010, arXiv:1001.1654.
    """
    (x,) = op.inputs
    q, r = op.outputs
    rows, columns = matrix_dims("Qr", x.spec)
    if op.attrs["mode"] == "complete" and (rows is None or columns is None or rows > columns):
        raise UnimplementedError(
            f"Qr: a complete decomposition of more rows than columns has no gradient: {x.spec}",
            remedy='use mode="reduced"',
        )
    dq = zeros_like(q) if dq is None else dq
    dr = zeros_like(r) if dr is None else dr
    if rows is not None and columns is not None and rows >= columns:
        return (_qr_grad_deep(q, r, dq, dr),)
    k = dim_of(q, axis=-1) if q.shape[-1] is None else q.shape[-1]
    rest = (..., slice(k, None))
    x2, dr2 = get_item(x, rest), get_item(dr, rest)
    first = (..., slice(None, k))
    dq = add(dq, matmul(x2, adjoint(dr2)))
    dx1 = _qr_grad_deep(q, get_item(r, first), dq, get_item(dr, first))
    return (concat([dx1, matmul(q, dr2)], -1),)


def _qr_grad_deep(q: Tensor, r: Tensor, dq: Tensor, dr: Tensor) -> Tensor:
    m = subtract(matmul(r, adjoint(dr)), matmul(adjoint(dq), q))
    symmetric = add(tril(m), adjoint(tril(m, -1)))
    b = add(dq, matmul(q, symmetric))
    return adjoint(triangular_solve(r, adjoint(b)))


def qr(x: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """q with orthonormal columns and r upper triangular with q r = x.

    Args:
        x: (..., m, n).
        mode: with k = min(m, n), "reduced": q (..., m, k) and r (..., k, n); "complete":
            q (..., m, m) and r (..., m, n), which has a gradient where m <= n.
    """
    q, r = _qr.many(x, mode=mode)
    return q, r


@define("Eigh", dtypes=MATRIX)
def _eigh(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """Rising eigenvalues w, and eigenvectors v as columns, of the Hermitian x: x v = v diag(w).

    The lower triangle of x is read. The gradient counts both triangles, and for v holds where the
    eigenvalues differ.
    """
    side = square_side("Eigh", x)
    real = part_dtype(x.dtype)
    if x.shape.rank is None:
        return TensorSpec(None, real), x
    return TensorSpec([*lead(x), side], real), x


@_eigh.reference
def _eigh_kernel(xp: Any, x: Array) -> tuple[Array, Array]:
    values, vectors = xp.linalg.eigh(x)
    return values, vectors


@_eigh.grad
def _eigh_grad(op: OpView, dw: Tensor | None, dv: Tensor | None) -> Grads:
    """dX = V (diag(dw) + F * (V^H dV)) V^H, F[i, j] = 1 / (w[j] - w[i]); made Hermitian.

    Source: Giles, 2008 (see solve.py), section 3.1.
    """
    w, v = op.outputs
    inner = None if dw is None else matrix_diag(cast(dw, v.dtype))
    if dv is not None:
        turned = multiply(cast(_inverse_distances(w), v.dtype), matmul(adjoint(v), dv))
        inner = turned if inner is None else add(inner, turned)
    if inner is None:
        return (None,)
    return (_hermitian(matmul(matmul(v, inner), adjoint(v))),)


def _inverse_distances(w: Tensor) -> Tensor:
    """f[..., i, j] = 1 / (w[..., j] - w[..., i]), and 0 where they are equal."""
    distance = subtract(expand_dims(w, -2), expand_dims(w, -1))
    is_equal = equal(distance, zeros_like(distance))
    safe = where(is_equal, ones_like(distance), distance)
    return where(is_equal, zeros_like(distance), reciprocal(safe))


def eigh(x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, rising, and eigenvectors of Hermitian matrices.

    Args:
        x: (..., n, n), of which the lower triangle is read.

    Returns:
        w (..., n), real, and v (..., n, n), whose column v[..., :, i] belongs to w[..., i].
    """
    values, vectors = _eigh.many(x)
    return values, vectors


@define("Eig", dtypes=MATRIX)
def _eig(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """Complex eigenvalues w, in no order, and eigenvectors v as columns: x v = v diag(w)."""
    side = square_side("Eig", x)
    dtype = whole_dtype(part_dtype(x.dtype))
    values = TensorSpec(None if x.shape.rank is None else [*lead(x), side], dtype)
    return values, TensorSpec(x.shape, dtype)


@_eig.reference
def _eig_kernel(xp: Any, x: Array) -> tuple[Array, Array]:
    values, vectors = xp.linalg.eig(x)
    dtype = xp.result_type(x.dtype, xp.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


_eig.grad(no_gradient)


def eig(x: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of square matrices, complex; no gradient flows through them.

    Args:
        x: (..., n, n).

    Returns:
        w (..., n), in no order, and v (..., n, n), whose column v[..., :, i] belongs to w[..., i].
    """
    values, vectors = _eig.many(x)
    return values, vectors


@define("Svd", dtypes=MATRIX)
def _svd(x: TensorSpec, *, full_matrices: bool) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """u, falling s >= 0, v^H with x = u diag(s) v^H, u and v of orthonormal columns.

    With k = min(m, n), u is [m, k] and v^H [k, n]; with `full_matrices` [m, m] and [n, n].
    """
    rows, columns = matrix_dims("Svd", x)
    real = part_dtype(x.dtype)
    if x.shape.rank is None:
        return x, TensorSpec(None, real), x
    k = _lesser(rows, columns)
    u = [rows, rows if full_matrices else k]
    vh = [columns if full_matrices else k, columns]
    stack = lead(x)
    return (
        TensorSpec([*stack, *u], x.dtype),
        TensorSpec([*stack, k], real),
        TensorSpec([*stack, *vh], x.dtype),
    )


@_svd.reference
def _svd_kernel(xp: Any, x: Array, *, full_matrices: bool) -> tuple[Array, Array, Array]:
    u, s, vh = xp.linalg.svd(x, full_matrices=full_matrices)
    return u, s, vh


@_svd.grad
def _svd_grad(op: OpView, du: Tensor | None, ds: Tensor | None, dvh: Tensor | None) -> Grads:
    """dX = [U (F * (U^T dU - dU^T U)) S + (I - U U^T) dU S^-1] V^T + U diag(ds) V^T
       + U [S (F * (V^T dV - dV^T V)) V^T + S^-1 dV^T (I - V V^T)],

    F[i, j] = 1 / (s[j]^2 - s[i]^2). It holds where the singular values differ and, for matrices
    that are not square, are not 0. For complex matrices only the part of s is defined.

    Source: Townsend, "Differentiating the Singular Value Decomposition", 2016, section 2.
    """
    (x,) = op.inputs
    u, s, vh = op.outputs
    rows, columns = matrix_dims("Svd", x.spec)
    if du is None and dvh is None:
        return (None if ds is None else _spread(u, s, vh, ds),)
    if x.dtype.is_complex:
        raise UnimplementedError(
            "Svd: the singular vectors of a complex matrix have no gradient: "
            "they are fixed up to a phase only",
            remedy="differentiate the singular values alone",
        )
    if op.attrs["full_matrices"] and (rows is None or rows != columns):
        raise UnimplementedError(
            f"Svd: the full singular vectors of {x.spec} have no gradient: "
            f"those beyond min(rows, columns) are not determined",
            remedy="use full_matrices=False",
        )
    return (_svd_grad_thin(u, s, vh, du, ds, dvh, is_square=rows is not None and rows == columns),)


def _svd_grad_thin(
    u: Tensor,
    s: Tensor,
    vh: Tensor,
    du: Tensor | None,
    ds: Tensor | None,
    dvh: Tensor | None,
    *,
    is_square: bool,
) -> Tensor:
    f = _inverse_distances(square(s))
    s_rows, s_columns = expand_dims(s, -1), expand_dims(s, -2)
    inner = matrix_diag(zeros_like(s) if ds is None else ds)
    outer = []
    if du is not None:
        m = matmul(adjoint(u), du)
        inner = add(inner, multiply(multiply(f, subtract(m, adjoint(m))), s_columns))
        if not is_square:
            outer.append(matmul(divide(subtract(du, matmul(u, m)), s_columns), vh))
    if dvh is not None:
        m = matmul(vh, adjoint(dvh))
        inner = add(inner, multiply(s_rows, multiply(f, subtract(m, adjoint(m)))))
        if not is_square:
            outer.append(matmul(u, divide(subtract(dvh, matmul(adjoint(m), vh)), s_rows)))
    dx = matmul(matmul(u, inner), vh)
    for part in outer:
        dx = add(dx, part)
    return dx


def _spread(u: Tensor, s: Tensor, vh: Tensor, ds: Tensor) -> Tensor:
    """U diag(dS) V^H (Giles, 2008, section 3.3), of thin or full u and vh."""
    k = dim_of(s, axis=-1) if s.shape[-1] is None else s.shape[-1]
    thin_u = get_item(u, (..., slice(None, k)))
    thin_vh = get_item(vh, (..., slice(None, k), slice(None)))
    return matmul(multiply(thin_u, cast(expand_dims(ds, -2), u.dtype)), thin_vh)


@define("SingularValues", dtypes=MATRIX)
def _singular_values(x: TensorSpec) -> TensorSpec:
    """The singular values of x, falling."""
    rows, columns = matrix_dims("SingularValues", x)
    real = part_dtype(x.dtype)
    stack = None if x.shape.rank is None else [*lead(x), _lesser(rows, columns)]
    return TensorSpec(stack, real)


@_singular_values.reference
def _singular_values_kernel(xp: Any, x: Array) -> Array:
    return xp.linalg.svd(x, compute_uv=False)


@_singular_values.grad
def _singular_values_op_grad(op: OpView, ds: Tensor) -> Grads:
    u, s, vh = _svd.many(op.inputs[0], full_matrices=False)
    return (_spread(u, s, vh, ds),)


def svd(x: Tensor, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """u, falling s >= 0, and v^H with x = u diag(s) v^H; the columns of u and v are orthonormal.

    Args:
        x: (..., m, n).
        full_matrices: whether u is (..., m, m) and v^H (..., n, n), rather than (..., m, k) and
            (..., k, n), k = min(m, n). Those of other than square matrices have no gradient.
    """
    u, s, vh = _svd.many(x, full_matrices=full_matrices)
    return u, s, vh


def singular_values(x: Tensor) -> Tensor:
    """The singular values of `x` (..., m, n), falling: (..., min(m, n))."""
    return _singular_values(x)
