"""The square root and the logarithm of square matrices.

Both are the principal ones, of matrices without eigenvalues on the closed negative real axis; of
others they are NaN. The gradient of a function f of matrices is found with f itself:

    f([[x^H, dy], [0, x^H]]) = [[f(x)^H, dx], [0, f(x)^H]]

Source: Higham, "Functions of Matrices", 2008: (6.15) and (6.28) for the root, algorithm 11.9 with
(11.18) for the logarithm, theorem 3.6 and (3.24) for the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import Array, OpView, Tensor, TensorSpec
from ..array.index import get_item
from ..array.join import concat
from ..array.shape import dim_of
from ..core.basic import zeros_like
from ..core.op_def import Grads, OpDef
from ..core.registry import define
from .matmul import adjoint
from .solve import MATRIX, square_side

_MOST = 60  # iterations: the distance squares itself from the time on that it is below 1
_ROOTS = 100  # square roots before the logarithm: numbers down to 2**-(2**100) would need them
_CLOSE = 0.25  # to the identity: there 9 nodes give the logarithm to 1e-17
_NODES = np.polynomial.legendre.leggauss(9)


def _norm(xp: Any, x: Array) -> Array:
    """The greatest sum of sizes in a column, with the last two axes kept."""
    return xp.max(xp.sum(xp.abs(x), -2, keepdims=True), -1, keepdims=True)


def _wide(xp: Any, x: Array) -> Array:
    """In double precision."""
    return x.astype(xp.result_type(x.dtype, xp.float64))


def _root(xp: Any, x: Array) -> Array:
    """By the iteration of Denman and Beavers, y -> x**(1/2) and z -> x**(-1/2), scaled."""
    n = x.shape[-1]
    y, z = x, xp.broadcast_to(xp.eye(n, dtype=x.dtype), x.shape)
    is_far = True
    for _ in range(_MOST):
        inverse_y, inverse_z = xp.linalg.inv(y), xp.linalg.inv(z)
        scale = 1.0
        if is_far:  # afterwards the determinants are 1 but for rounding
            logs = xp.linalg.slogdet(y)[1] + xp.linalg.slogdet(z)[1]
            scale = xp.exp(-logs / (2 * n))[..., None, None]
        before = y
        y = 0.5 * (scale * y + inverse_z / scale)
        z = 0.5 * (scale * z + inverse_y / scale)
        step = _norm(xp, y - before) / _norm(xp, y)
        is_far = bool(xp.any(step > 1e-2))
        if not xp.any(step > 4e-16 * n):
            break
    wrong = _norm(xp, y @ y - x) > 1e-6 * _norm(xp, x)  # it wanders, or circles
    return xp.where(wrong | ~xp.isfinite(y), xp.nan, y)


def _computed(xp: Any, fn: Any, x: Array) -> Array:
    """A function of stacks of matrices, NaN for those of a stack with a singular one."""
    if x.size == 0:
        return x
    try:
        return fn(xp, _wide(xp, x)).astype(x.dtype)
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return xp.full_like(x, xp.nan)
        return xp.stack([_computed(xp, fn, part) for part in x])


def _log(xp: Any, x: Array) -> Array:
    """2**k log(x**(1/2**k)), which is near the identity; there by Gauss and Legendre's rule."""
    one = xp.eye(x.shape[-1], dtype=x.dtype)
    count = 0
    while count < _ROOTS and xp.any(_norm(xp, x - one) > _CLOSE):
        x = _root(xp, x)
        count += 1
    rest = x - one
    total = xp.zeros_like(x)
    for node, weight in zip(*_NODES, strict=True):
        total += 0.5 * weight * xp.linalg.solve(one + 0.5 * (node + 1) * rest, rest)
    return 2.0**count * total


def _grad_of(op: OpDef) -> Any:
    def grad(view: OpView, dy: Tensor) -> Grads:
        (x,) = view.inputs
        turned = adjoint(x)
        above = concat([turned, dy], -1)
        below = concat([zeros_like(turned), turned], -1)
        whole = op(concat([above, below], -2))
        n = x.shape[-1] if x.shape.rank is not None else None
        side = dim_of(x, axis=-1) if n is None else n
        return (get_item(whole, (..., slice(None, side), slice(side, None))),)

    return grad


@define("MatrixSquareRoot", dtypes=MATRIX)
def sqrtm(x: TensorSpec) -> TensorSpec:
    """The y with y @ y = x whose eigenvalues have positive real parts."""
    square_side("MatrixSquareRoot", x)
    return x


@sqrtm.reference
def _sqrtm_kernel(xp: Any, x: Array) -> Array:
    return _computed(xp, _root, x)


@define("MatrixLogarithm", dtypes=MATRIX)
def logm(x: TensorSpec) -> TensorSpec:
    """The y with exp(y) = x whose eigenvalues have imaginary parts between -pi and pi."""
    square_side("MatrixLogarithm", x)
    return x


@logm.reference
def _logm_kernel(xp: Any, x: Array) -> Array:
    return _computed(xp, _log, x)


for _op in (sqrtm, logm):
    _op.grad(_grad_of(_op))
