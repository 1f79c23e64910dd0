"""Matrices of a certain form, and their diagonals and triangles."""

from __future__ import annotations

from typing import Any, SupportsInt

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, as_dtype
from laminar.engine.ops.array import creation as engine
from laminar.engine.ops.array import diagonal as diagonals
from laminar.engine.ops.array.axes import expand_dims
from laminar.engine.ops.array.rearrange import flip
from laminar.engine.ops.array.shape import dim_of, reshape
from laminar.engine.ops.math import elementary as mathematics

from ..typing import DTypeLike, SizeLike, TensorLike
from .arguments import (
    dtype_or_float,
    known_rank,
    numeric,
    tensor,
)
from .creation import ones
from .recording import public
from .reduction import sum as _sum

__all__ = [
    "diag",
    "diagflat",
    "diagonal",
    "eye",
    "identity",
    "trace",
    "tri",
    "tril",
    "triu",
    "vander",
]


@public
def eye(
    N: SizeLike,  # noqa: N803  # NumPy's
    M: SizeLike | None = None,  # noqa: N803  # NumPy's
    k: int = 0,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """An N by M matrix with 1 on diagonal `k` (above the main one if positive), 0 elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns, by default `N`.
        k: which diagonal; one outside of the matrix leaves zeros.
        dtype: element type, by default the default float.

    Raises:
        DTypeError: a size is no whole number.

    Examples:
        >>> ops.eye(2, 3)
        Tensor([[1., 0., 0.],
                [0., 1., 0.]], shape=(2, 3), dtype=float32)
    """
    for size in (N, M):
        dtype_of = getattr(size, "dtype", None)
        if isinstance(size, float) or (dtype_of is not None and as_dtype(dtype_of).is_floating):
            raise DTypeError(f"eye: a size must be a whole number, got {size!r}")
    return engine.eye(N, M, k, dtype_or_float(dtype))


@public
def identity(n: SizeLike, dtype: DTypeLike | None = None) -> Tensor:
    """An n by n matrix with 1 on the main diagonal, 0 elsewhere.

    Examples:
        >>> ops.identity(2)
        Tensor([[1., 0.],
                [0., 1.]], shape=(2, 2), dtype=float32)
    """
    return engine.eye(n, None, 0, dtype_or_float(dtype))


@public
def tri(
    N: SizeLike,  # noqa: N803  # NumPy's
    M: SizeLike | None = None,  # noqa: N803  # NumPy's
    k: int = 0,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """An N by M matrix with 1 on and below diagonal `k`, 0 above.

    Examples:
        >>> ops.tri(3)
        Tensor([[1., 0., 0.],
                [1., 1., 0.],
                [1., 1., 1.]], shape=(3, 3), dtype=float32)
    """
    return diagonals.tril(ones((N, N if M is None else M), dtype), k)


@public
def diag(x: TensorLike, k: int = 0) -> Tensor:
    """The matrix with the vector `x` on diagonal `k`; of a matrix `x`, that diagonal.

    Raises:
        ShapeError: `x` is neither a vector nor a matrix.

    Examples:
        >>> ops.diag([1, 2])
        Tensor([[1, 0],
                [0, 2]], shape=(2, 2), dtype=int32)
    """
    return diagonals.diag(tensor(x), k)


@public
def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """The matrix with the elements of `x`, in row order, on diagonal `k`.

    Examples:
        >>> ops.diagflat([[1], [2]])
        Tensor([[1, 0],
                [0, 2]], shape=(2, 2), dtype=int32)
    """
    return diagonals.matrix_diag(reshape(tensor(x), (-1,)), k)


@public
def diagonal(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements x[..., i, i + offset, ...] of the matrices along two axes, as the last axis.

    Args:
        x: with at least two axes.
        offset: how far above the main diagonal (below it when negative).
        axis1: the axis of i.
        axis2: the axis of i + offset.

    Returns:
        The other axes, then one as long as the diagonal.

    Raises:
        ShapeError: an axis does not exist, or both are the same.

    Examples:
        >>> ops.diagonal([[1, 2], [3, 4]])
        Tensor([1, 4], shape=(2,), dtype=int32)
    """
    return diagonals.diagonal(tensor(x), offset, axis1, axis2)


@public
def trace(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum along a diagonal.

    Examples:
        >>> ops.trace([[1, 2], [3, 4]])
        Tensor(5, shape=(), dtype=int32)
    """
    return _sum(diagonals.diagonal(tensor(x), offset, axis1, axis2), -1)


@public
def tril(x: TensorLike, k: int = 0) -> Tensor:
    """`x` with zeros above diagonal `k` of its last two axes.

    Examples:
        >>> ops.tril([[1, 2], [3, 4]])
        Tensor([[1, 0],
                [3, 4]], shape=(2, 2), dtype=int32)
    """
    return diagonals.tril(tensor(x), k)


@public
def triu(x: TensorLike, k: int = 0) -> Tensor:
    """`x` with zeros below diagonal `k` of its last two axes.

    Examples:
        >>> ops.triu([[1, 2], [3, 4]])
        Tensor([[1, 2],
                [0, 4]], shape=(2, 2), dtype=int32)
    """
    return diagonals.triu(tensor(x), k)


@public
def vander(x: TensorLike, N: SupportsInt | None = None, increasing: bool = False) -> Tensor:  # noqa: N803  # NumPy's
    """The powers of the elements of a vector: row i holds x[i]**(N - 1), ..., x[i], 1.

    Args:
        x: a vector.
        N: how many powers, by default as many as elements.
        increasing: whether the powers rise along a row.

    Raises:
        DTypeError: `N` is no whole number, or `increasing` no boolean.
        InvalidArgumentError: `N` is negative.
        ShapeError: `x` is no vector.

    Examples:
        >>> ops.vander([1, 2, 3])
        Tensor([[1, 1, 1],
                [4, 2, 1],
                [9, 3, 1]], shape=(3, 3), dtype=int32)
    """
    x = numeric(x)
    if known_rank("vander", x) != 1:
        raise ShapeError(f"vander: expected a vector, got {x.spec}")
    if not isinstance(increasing, bool):
        raise DTypeError(f"vander: increasing must be True or False, got {increasing!r}")
    if N is not None:
        if not hasattr(N, "__index__"):
            raise DTypeError(f"vander: N must be a whole number, got {N!r}")
        if int(N) < 0:
            raise InvalidArgumentError(f"vander: N must be at least 0, got {N!r}")
        count: Any = int(N)
    else:
        count = dim_of(x, axis=0) if x.shape[0] is None else x.shape[0]
    powers = engine.arange(count, dtype=x.dtype)
    if not increasing:
        powers = flip(powers, 0)
    return mathematics.power(expand_dims(x, 1), powers)
