"""Norms, traces and ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import Axes, Tensor, canonical_axes, int32
from ..array.axes import expand_dims, moveaxis
from ..array.diagonal import diagonal
from ..array.shape import matrix_dims
from ..core.basic import constant, zeros_like
from ..core.convert import convert_to_tensor
from ..math.arithmetic import absolute, multiply
from ..math.cast import cast
from ..math.compare import greater, not_equal
from ..math.elementary import flat_at_zero, power
from ..math.reduce import euclidean_norm, reduce_max, reduce_min, reduce_sum
from .decompositions import singular_values


def norm(
    x: Tensor, ord: float | str | None = None, axis: Axes | None = None, keepdims: bool = False
) -> Tensor:
    """The norm of vectors or matrices.

    Args:
        x: real, floating.
        ord: for vectors a number p: (sum |x|^p)^(1/p), with infinity: max |x|, -infinity: min |x|,
            0: how many are not 0. For matrices "fro": the root of the sum of squares, "nuc": the
            sum of the singular values, 2 and -2: the greatest and the least of them, 1 and -1: the
            greatest and the least sum of |x| over a column, infinity and -infinity: over a row.
            None: the root of the sum of squares.
        axis: one axis for vectors, two for matrices. By default all of `x`: with `ord` None, of any
            number of axes, else a vector or a matrix.
        keepdims: whether the axes stay, with size 1.

    The gradient of the norm of a vector is 0 where the vector is 0, and with p < 1 for each element
    that is.

    Raises:
        InvalidArgumentError: there is no such norm.
        ShapeError: neither one nor two axes.
    """
    if axis is None and ord is None:
        return euclidean_norm(x, None, keepdims)
    axes = canonical_axes("norm", range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) not in (1, 2):
        raise ShapeError(
            f"norm: expected one axis for vectors or two for matrices, got {axes} of {x.spec}",
            remedy="give axis=",
        )
    if isinstance(ord, Sequence | np.ndarray) and not isinstance(ord, str):
        raise InvalidArgumentError(f"norm: the order must be a number or a name, got {ord!r}")
    if ord is None or (ord == 2 and len(axes) == 1) or (ord == "fro" and len(axes) == 2):
        return euclidean_norm(x, axes, keepdims)
    if len(axes) == 1 and isinstance(ord, Real):
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2 and ord in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        return _matrix_norm(x, ord, axes, keepdims)
    kind = "vectors" if len(axes) == 1 else "matrices"
    raise InvalidArgumentError(
        f"norm: {ord!r} is not a norm of {kind}",
        remedy='see the docstring: vectors take numbers, matrices "fro", "nuc", 1, 2, inf',
    )


def _vector_norm(x: Tensor, p: float, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if p == 0:
        count = cast(not_equal(x, zeros_like(x)), x.dtype)
        return reduce_sum(count, axes, keepdims=keepdims)
    size = absolute(x)
    if p == math.inf:
        return reduce_max(size, axes, keepdims=keepdims)
    if p == -math.inf:
        return reduce_min(size, axes, keepdims=keepdims)
    if p == 1:
        return reduce_sum(size, axes, keepdims=keepdims)
    if p < 0:
        total = reduce_sum(power(size, constant(p, x.dtype)), axes, keepdims=keepdims)
        return power(total, constant(1 / p, x.dtype))
    powers = _power(size, p) if p > 1 else flat_at_zero(partial(_power, p=p), size)
    return flat_at_zero(partial(_power, p=1 / p), reduce_sum(powers, axes, keepdims=keepdims))


def _power(x: Tensor, p: float) -> Tensor:
    return power(x, constant(p, x.dtype))


def _matrix_norm(x: Tensor, ord: float | str, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    x = moveaxis(x, axes, (-2, -1))
    if ord in ("nuc", 2, -2):
        values = singular_values(x)
        reduce = {"nuc": reduce_sum, 2: reduce_max, -2: reduce_min}[ord]
        y = reduce(values, -1)
    else:
        over = -2 if ord in (1, -1) else -1
        sums = reduce_sum(absolute(x), over)
        y = reduce_max(sums, -1) if ord in (1, math.inf) else reduce_min(sums, -1)
    return expand_dims(y, axes) if keepdims else y


def trace(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of the elements x[..., r, r + offset, ...] of the matrices along two axes."""
    return reduce_sum(diagonal(x, offset, axis1, axis2), -1)


def matrix_rank(x: Tensor, tol: Any = None) -> Tensor:
    """How many singular values exceed `tol`; int32.

    Args:
        x: (..., m, n).
        tol: (...) or a number; by default max(m, n) * the precision of the type * the greatest one.
    """
    values = singular_values(x)
    if tol is None:
        rows, columns = matrix_dims("matrix_rank", x.spec)
        if rows is None or columns is None:
            raise ShapeError(
                f"matrix_rank: the default tolerance needs the sizes of {x.spec}",
                remedy="give tol=",
            )
        precision = max(rows, columns) * float(np.finfo(values.dtype.numpy).eps)
        limit = multiply(reduce_max(values, -1), constant(precision, values.dtype))
    else:
        limit = convert_to_tensor(tol, values.dtype)
    above = greater(values, expand_dims(limit, -1))
    return reduce_sum(cast(above, int32), -1)
