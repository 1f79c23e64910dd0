"""Linear equations and what belongs to them: inverse, determinant, solve, pseudo-inverse.

All take matrices along the last two axes, and stacks of them along the others.
Source of the gradients: Giles, "An extended collection of matrix derivative results for forward
and reverse mode algorithmic differentiation", Oxford NA-08-01, 2008, section 2.
"""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...graph import (
    COMPLEX,
    Array,
    Dim,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    broadcast_shapes,
    float32,
    float64,
)
from ..array.axes import expand_dims, squeeze
from ..array.broadcast import broadcast_like, unbroadcast_batch
from ..array.creation import eye
from ..array.diagonal import tril, triu
from ..array.shape import dim_of, matrix_dims
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import add, conjugate, multiply, negative, subtract
from .matmul import adjoint, matmul

# What LAPACK computes in.
REAL_MATRIX = frozenset({float32, float64})
MATRIX = REAL_MATRIX | COMPLEX


def square_side(who: str, x: TensorSpec) -> Dim:
    """The side of square matrices; ShapeError when they are not square."""
    rows, columns = matrix_dims(who, x)
    if rows is not None and columns is not None and rows != columns:
        raise ShapeError(
            f"{who}: expected square matrices, got {x} ({rows} rows, {columns} columns)",
            remedy="use pinv or lstsq for matrices that are not square",
        )
    return columns if rows is None else rows


def lead(x: TensorSpec) -> TensorShape:
    """The axes of a stack of matrices."""
    return TensorShape(None) if x.shape.rank is None else TensorShape(x.shape[:-2])


@define("MatrixInverse", dtypes=MATRIX)
def inverse(x: TensorSpec) -> TensorSpec:
    """The inverse of square matrices; an error where one is singular."""
    square_side("MatrixInverse", x)
    return x


@inverse.reference
def _inverse_kernel(xp: Any, x: Array) -> Array:
    return xp.linalg.inv(x)


@inverse.grad
def _inverse_grad(op: OpView, dy: Tensor) -> Grads:
    """Giles, section 2.2.3: dX = -Y^T dY Y^T."""
    y = adjoint(op.outputs[0])
    return (negative(matmul(matmul(y, dy), y)),)


@define("MatrixDeterminant", dtypes=MATRIX)
def determinant(x: TensorSpec) -> TensorSpec:
    """The determinant of square matrices. The gradient exists where they are not singular."""
    square_side("MatrixDeterminant", x)
    return TensorSpec(lead(x), x.dtype)


@determinant.reference
def _determinant_kernel(xp: Any, x: Array) -> Array:
    return xp.linalg.det(x)


@determinant.grad
def _determinant_grad(op: OpView, dy: Tensor) -> Grads:
    """Giles, section 2.2.4: dX = dy y X^-T."""
    scale = multiply(dy, conjugate(op.outputs[0]))
    return (multiply(expand_dims(scale, (-2, -1)), adjoint(inverse(op.inputs[0]))),)


@define("LogDeterminant", dtypes=REAL_MATRIX)
def _slogdet(x: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """The sign of the determinant of square matrices, and the logarithm of its magnitude."""
    square_side("LogDeterminant", x)
    return TensorSpec(lead(x), x.dtype), TensorSpec(lead(x), x.dtype)


@_slogdet.reference
def _slogdet_kernel(xp: Any, x: Array) -> tuple[Array, Array]:
    sign, logarithm = xp.linalg.slogdet(x)
    return sign, logarithm


@_slogdet.grad
def _slogdet_grad(op: OpView, dsign: Tensor | None, dlogarithm: Tensor | None) -> Grads:
    if dlogarithm is None:
        return (None,)
    return (multiply(expand_dims(dlogarithm, (-2, -1)), adjoint(inverse(op.inputs[0]))),)


def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """sign and logarithm with det(x) = sign * exp(logarithm): no overflow for large matrices.

    Args:
        x: (..., n, n), real. A singular matrix gives 0 and -infinity.
    """
    sign, logarithm = _slogdet.many(x)
    return sign, logarithm


def _solve_rule(who: str, a: TensorSpec, b: TensorSpec) -> TensorSpec:
    n = square_side(who, a)
    rows, columns = matrix_dims(who, b)
    if n is not None and rows is not None and n != rows:
        raise ShapeError(
            f"{who}: a has {n} rows and b has {rows}: a is {a}, b is {b}",
            remedy="give b a row for each equation",
        )
    stack = broadcast_shapes(who, lead(a), lead(b))
    return TensorSpec(None if stack.rank is None else [*stack, rows, columns], b.dtype)


def _adjoint_array(xp: Any, a: Array) -> Array:
    a = xp.swapaxes(a, -1, -2)
    return a.conj() if a.dtype.kind == "c" else a


@define("Solve", dtypes=MATRIX)
def _solve(a: TensorSpec, b: TensorSpec, *, adjoint: bool) -> TensorSpec:
    """x with a x = b, or a^H x = b with `adjoint`, for square a; the stacks broadcast."""
    return _solve_rule("Solve", a, b)


@_solve.reference
def _solve_kernel(xp: Any, a: Array, b: Array, *, adjoint: bool) -> Array:
    return xp.linalg.solve(_adjoint_array(xp, a) if adjoint else a, b)


@_solve.grad
def _solve_grad(op: OpView, dx: Tensor) -> Grads:
    """Giles, section 2.3.1: dB = A^-T dX, dA = -dB X^T."""
    a, b = op.inputs
    (x,) = op.outputs
    is_adjoint = op.attrs["adjoint"]
    db = _solve(a, dx, adjoint=not is_adjoint)
    da = matmul(x, adjoint(db)) if is_adjoint else matmul(db, adjoint(x))
    return unbroadcast_batch(negative(da), a), unbroadcast_batch(db, b)


def solve(a: Tensor, b: Tensor) -> Tensor:
    """x with a x = b.

    Args:
        a: (..., n, n).
        b: (..., n, k), or (..., n) with exactly one axis less than `a`. The stacks broadcast.

    Raises:
        ShapeError: the shapes do not fit.
        InvalidArgumentError: a matrix is singular.
    """
    if a.shape.rank is not None and b.shape.rank == len(a.shape) - 1:
        return squeeze(_solve(a, expand_dims(b, -1), adjoint=False), -1)
    return _solve(a, b, adjoint=False)


# Up to this size substitution goes row by row; above it, by halves through matrix products.
_ROWS = 16


@define("TriangularSolve", dtypes=MATRIX)
def _triangular_solve(a: TensorSpec, b: TensorSpec, *, lower: bool, adjoint: bool) -> TensorSpec:
    """x with t x = b, or t^H x = b with `adjoint`; t is the lower, or upper, triangle of a.

    The stacks broadcast. A zero on the diagonal gives infinities.
    """
    return _solve_rule("TriangularSolve", a, b)


@_triangular_solve.reference
def _triangular_solve_kernel(xp: Any, a: Array, b: Array, *, lower: bool, adjoint: bool) -> Array:
    if adjoint:
        a, lower = _adjoint_array(xp, a), not lower
    stack = xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _substitute(xp, a, xp.broadcast_to(b, (*stack, *b.shape[-2:])), lower)


def _substitute(xp: Any, a: Array, b: Array, lower: bool) -> Array:
    n = a.shape[-1]
    if n > _ROWS:
        half = n // 2
        top, bottom = b[..., :half, :], b[..., half:, :]
        if lower:
            top = _substitute(xp, a[..., :half, :half], top, lower)
            bottom = bottom - xp.matmul(a[..., half:, :half], top)
            bottom = _substitute(xp, a[..., half:, half:], bottom, lower)
        else:
            bottom = _substitute(xp, a[..., half:, half:], bottom, lower)
            top = top - xp.matmul(a[..., :half, half:], bottom)
            top = _substitute(xp, a[..., :half, :half], top, lower)
        return xp.concatenate([top, bottom], axis=-2)
    x = b.copy()
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        x[..., i : i + 1, :] -= xp.matmul(a[..., i : i + 1, known], x[..., known, :])
        x[..., i, :] /= a[..., i, i, None]
    return x


@_triangular_solve.grad
def _triangular_solve_grad(op: OpView, dx: Tensor) -> Grads:
    """As for Solve; only the triangle that is read has a gradient."""
    a, b = op.inputs
    (x,) = op.outputs
    lower, is_adjoint = op.attrs["lower"], op.attrs["adjoint"]
    db = _triangular_solve(a, dx, lower=lower, adjoint=not is_adjoint)
    da = matmul(x, adjoint(db)) if is_adjoint else matmul(db, adjoint(x))
    da = negative(tril(da) if lower else triu(da))
    return unbroadcast_batch(da, a), unbroadcast_batch(db, b)


def triangular_solve(a: Tensor, b: Tensor, lower: bool = False, adjoint: bool = False) -> Tensor:
    """x with t x = b, where t is a triangle of `a`.

    Args:
        a: (..., n, n); of it only the triangle is read.
        b: (..., n, k), or (..., n) with one axis less than `a`.
        lower: whether t is the lower triangle.
        adjoint: solve with the conjugate transpose of t.

    Raises:
        ShapeError: the shapes do not fit.
    """
    if a.shape.rank is not None and b.shape.rank == len(a.shape) - 1:
        x = _triangular_solve(a, expand_dims(b, -1), lower=lower, adjoint=adjoint)
        return squeeze(x, -1)
    return _triangular_solve(a, b, lower=lower, adjoint=adjoint)


@define("PseudoInverse", dtypes=MATRIX)
def _pinv(x: TensorSpec, *, rcond: float | None) -> TensorSpec:
    """The Moore-Penrose inverse.

    Singular values up to `rcond` times the greatest count as 0; by default rcond is max(m, n)
    times the precision of the type. The gradient holds where the rank does not change.
    """
    rows, columns = matrix_dims("PseudoInverse", x)
    if x.shape.rank is None:
        return x
    return TensorSpec([*x.shape[:-2], columns, rows], x.dtype)


@_pinv.reference
def _pinv_kernel(xp: Any, x: Array, *, rcond: float | None) -> Array:
    if rcond is None:
        rcond = max(x.shape[-2:]) * float(xp.finfo(x.dtype).eps)
    return xp.linalg.pinv(x, rcond)


@_pinv.grad
def _pinv_grad(op: OpView, dp: Tensor) -> Grads:
    """The transpose of dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P.

    Source: Golub and Pereyra, "The Differentiation of Pseudo-Inverses and Nonlinear Least Squares
    Problems Whose Variables Separate", SIAM J. Numer. Anal. 10, 1973, equation 4.12.
    """
    (a,) = op.inputs
    (p,) = op.outputs
    ph, dph = adjoint(p), adjoint(dp)
    first = matmul(matmul(ph, dp), ph)
    second = matmul(matmul(dph, p), ph)
    second = subtract(second, matmul(a, matmul(p, second)))
    third = matmul(matmul(ph, p), dph)
    third = subtract(third, matmul(matmul(third, p), a))
    return (subtract(add(second, third), first),)


def pinv(x: Tensor, rcond: float | None = None) -> Tensor:
    """The Moore-Penrose inverse.

    Args:
        x: (..., m, n).
        rcond: singular values up to `rcond` times the greatest count as 0; by default max(m, n)
            times the precision of the type.
    """
    return _pinv(x, rcond=rcond)


def lstsq(a: Tensor, b: Tensor, rcond: float | None = None) -> Tensor:
    """The x of least norm among those that minimise |a x - b|.

    Args:
        a: (..., m, n), of any rank.
        b: (..., m, k), or (..., m) with one axis less than `a`.
        rcond: see `pinv`.
    """
    if a.shape.rank is not None and b.shape.rank == len(a.shape) - 1:
        return squeeze(lstsq(a, expand_dims(b, -1), rcond), -1)
    return matmul(pinv(a, rcond), b)


def matrix_power(x: Tensor, n: int) -> Tensor:
    """Square matrices to a whole power, by repeated squaring; a negative one inverts them."""
    if n < 0:
        return matrix_power(inverse(x), -n)
    if n == 0:
        return identity_like(x)
    half = matrix_power(x, n // 2) if n > 1 else None
    if half is None:
        return x
    even = matmul(half, half)
    return matmul(even, x) if n % 2 else even


def identity_like(x: Tensor) -> Tensor:
    """An identity matrix for each of the square matrices `x`."""
    side = square_side("identity", x.spec)
    return broadcast_like(eye(dim_of(x, axis=-1) if side is None else side, dtype=x.dtype), x)


def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    """The inverse of a matrix, of which `factor` is the Cholesky factor."""
    inverted = triangular_solve(factor, identity_like(factor), lower=not upper)
    if upper:
        return matmul(inverted, adjoint(inverted))
    return matmul(adjoint(inverted), inverted)
