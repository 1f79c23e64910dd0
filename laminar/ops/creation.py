"""Tensors made of a rule: constants, ranges, grids, diagonals, windows."""

from __future__ import annotations

import math
import operator
from typing import Any, SupportsInt

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, as_dtype, float64
from laminar.engine.ops.array import creation as engine
from laminar.engine.ops.array import diagonal as diagonals
from laminar.engine.ops.array.axes import expand_dims
from laminar.engine.ops.array.broadcast import broadcast_like
from laminar.engine.ops.array.rearrange import flip
from laminar.engine.ops.array.shape import dim_of, reshape
from laminar.engine.ops.core import basic
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math import elementary as mathematics
from laminar.engine.ops.math.cast import cast

from ..typing import DTypeLike, ShapeLike, SizeLike, TensorLike
from .arguments import (
    common,
    dtype_or_float,
    known_array,
    known_rank,
    numeric,
    tensor,
)
from .recording import public
from .reduction import sum as _sum

__all__ = [
    "arange",
    "array",
    "bartlett",
    "blackman",
    "diag",
    "diagflat",
    "diagonal",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "hamming",
    "hanning",
    "identity",
    "kaiser",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "trace",
    "tri",
    "tril",
    "triu",
    "vander",
    "zeros",
    "zeros_like",
]


@public
def array(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `x`: a number, nested list, array or tensor.

    Args:
        x: Python's floats become the default float, its integers int32; arrays keep their type.
        dtype: element type; a number with a fraction is no integer.

    Raises:
        InvalidArgumentError: the rows of a list differ in length, or a number does not fit `dtype`.

    Examples:
        >>> ops.array([1, 2], dtype="float32")
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    return tensor(x, None if dtype is None else as_dtype(dtype))


def _filled(shape: ShapeLike, value: TensorLike, dtype: DTypeLike | None) -> Tensor:
    return engine.full(shape, tensor(value, dtype_or_float(dtype)))


@public
def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` with `fill_value` everywhere.

    Args:
        shape: ints or scalar integer tensors.
        fill_value: a number, or anything that broadcasts to `shape`.
        dtype: element type, by default the default float.

    Examples:
        >>> ops.full((2, 2), 7)
        Tensor([[7., 7.],
                [7., 7.]], shape=(2, 2), dtype=float32)
    """
    return _filled(shape, fill_value, dtype)


@public
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` with 0 everywhere; by default of the default float.

    Examples:
        >>> ops.zeros((2,))
        Tensor([0., 0.], shape=(2,), dtype=float32)
    """
    return _filled(shape, 0, dtype)


@public
def ones(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` with 1 everywhere; by default of the default float.

    Examples:
        >>> ops.ones((2,))
        Tensor([1., 1.], shape=(2,), dtype=float32)
    """
    return _filled(shape, 1, dtype)


@public
def empty(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` whose values do not matter (they are 0).

    Examples:
        >>> ops.empty((2, 3)).shape
        (2, 3)
    """
    return _filled(shape, 0, dtype)


@public
def full_like(x: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of the shape of `x`, and by default of its type, with `fill_value` everywhere.

    Examples:
        >>> ops.full_like([1, 2], 7)
        Tensor([7, 7], shape=(2,), dtype=int32)
    """
    x = tensor(x)
    return broadcast_like(tensor(fill_value, x.dtype if dtype is None else as_dtype(dtype)), x)


@public
def zeros_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Zeros of the shape of `x`, and by default of its type.

    Examples:
        >>> ops.zeros_like([5, 6])
        Tensor([0, 0], shape=(2,), dtype=int32)
    """
    found = basic.zeros_like(tensor(x))
    return found if dtype is None else cast(found, dtype)


@public
def ones_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Ones of the shape of `x`, and by default of its type.

    Examples:
        >>> ops.ones_like([5, 6])
        Tensor([1, 1], shape=(2,), dtype=int32)
    """
    found = basic.ones_like(tensor(x))
    return found if dtype is None else cast(found, dtype)


@public
def empty_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor like `x` whose values do not matter (they are 0).

    Examples:
        >>> ops.empty_like([[1, 2, 3]]).shape
        (1, 3)
    """
    found = basic.zeros_like(tensor(x))
    return found if dtype is None else cast(found, dtype)


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
    return diagonals.tril(_filled((N, N if M is None else M), 1, dtype), k)


@public
def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The vector start, start + step, ... while below `stop` (above it for a negative step).

    Args:
        start: the first element; where `stop` is left out, 0 to `start` is meant.
        stop: the bound, itself left out.
        step: the distance, by default 1.
        dtype: element type; by default what the numbers have in common.

    Examples:
        >>> ops.arange(1, 10, 3)
        Tensor([1, 4, 7], shape=(3,), dtype=int32)
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = common(*(v for v in (start, stop, step) if v is not None))
    return engine.arange(start, stop, 1 if step is None else step, as_dtype(dtype))


@public
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """`num` values from `start` to `stop` at equal distances.

    Args:
        start: the first value, a number or a tensor.
        stop: the last value; without `endpoint`, the one after it.
        num: how many values.
        endpoint: whether `stop` is the last value.
        retstep: whether to return the distance too, as a second result.
        dtype: element type, by default floating.
        axis: the place of the new axis.

    Examples:
        >>> ops.linspace(0.0, 1.0, num=5)
        Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], shape=(5,), dtype=float32)
    """
    found = common(start, stop, 0.0) if dtype is None else as_dtype(dtype)
    wide = found if found.is_floating else float64
    first, last = tensor(start, wide), tensor(stop, wide)
    count = operator.index(num)
    values = cast(engine.linspace(first, last, count, endpoint, axis=axis), found)
    if not retstep:
        return values
    parts = count - 1 if endpoint else count
    step = arithmetic.divide(arithmetic.subtract(last, first), tensor(float(parts), wide))
    return values, step


@public
def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: TensorLike = 10,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """`num` values from base**start to base**stop, each the same factor times the one before.

    Args:
        start: the first exponent, a number or a tensor.
        stop: the last exponent; without `endpoint`, the one after it.
        num: how many values.
        endpoint: whether base**stop is the last value.
        base: what is raised to the powers.
        dtype: element type, by default floating.
        axis: the place of the new axis.

    Examples:
        >>> ops.logspace(0.0, 3.0, num=4)
        Tensor([   1.,   10.,  100., 1000.], shape=(4,), dtype=float32)
    """
    found = common(start, stop, 0.0) if dtype is None else as_dtype(dtype)
    wide = found if found.is_floating else float64
    exponents = engine.linspace(tensor(start, wide), tensor(stop, wide), num, endpoint, axis=axis)
    return cast(mathematics.power(tensor(base, wide), exponents), found)


@public
def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """`num` values from `start` to `stop`, each the same factor times the one before.

    Args:
        start: the first value, a number or a tensor, not 0.
        stop: the last value, of the same sign; without `endpoint`, the one after it.
        num: how many values.
        endpoint: whether `stop` is the last value.
        dtype: element type, by default floating.
        axis: the place of the new axis.

    Raises:
        InvalidArgumentError: an end is 0.

    Examples:
        >>> ops.geomspace(1.0, 1000.0, num=4)
        Tensor([   1.    ,   10.    ,  100.    , 1000.0001], shape=(4,), dtype=float32)
    """
    found = common(start, stop, 0.0) if dtype is None else as_dtype(dtype)
    wide = found if found.is_floating else float64
    first, last = tensor(start, wide), tensor(stop, wide)
    for name, end in (("start", first), ("stop", last)):
        known = known_array(end)
        if known is not None and (known == 0).any():
            raise InvalidArgumentError(f"geomspace: no factor leads to or from 0, got it as {name}")
    sign = arithmetic.sign(first)
    low, high = (mathematics.log(arithmetic.multiply(v, sign)) for v in (first, last))
    values = mathematics.exp(engine.linspace(low, high, num, endpoint, axis=axis))
    return cast(arithmetic.multiply(values, expand_dims(sign, axis)), found)


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


def _phase(n: SupportsInt) -> tuple[Tensor, float]:
    """The places 0, 1, ... of a window of length `n`, and the last of them (at least 1)."""
    count = int(n)
    return engine.arange(max(count, 0), dtype=dtype_or_float(None)), float(max(count - 1, 1))


def _cosine_window(n: SupportsInt, *terms: float) -> Tensor:
    """Sum over k of terms[k] * cos(2 pi k i / (n - 1)), and 1 for a window of one point."""
    if int(n) == 1:
        return _filled((1,), 1, None)
    i, last = _phase(n)
    window = basic.zeros_like(i)
    for k, term in enumerate(terms):
        angle = arithmetic.multiply(i, tensor(2 * math.pi * k / last, i.dtype))
        wave = arithmetic.multiply(mathematics.cos(angle), tensor(term, i.dtype))
        window = arithmetic.add(window, wave)
    return window


@public
def hanning(x: SupportsInt) -> Tensor:
    """The Hann window of `x` points: 0.5 - 0.5 cos(2 pi i / (x - 1)).

    Examples:
        >>> ops.hanning(5)
        Tensor([0. , 0.5, 1. , 0.5, 0. ], shape=(5,), dtype=float32)
    """
    return _cosine_window(x, 0.5, -0.5)


@public
def hamming(x: SupportsInt) -> Tensor:
    """The Hamming window of `x` points: 0.54 - 0.46 cos(2 pi i / (x - 1)).

    Examples:
        >>> ops.hamming(5)
        Tensor([0.08, 0.54, 1.  , 0.54, 0.08], shape=(5,), dtype=float32)
    """
    return _cosine_window(x, 0.54, -0.46)


@public
def blackman(x: SupportsInt) -> Tensor:
    """The Blackman window: 0.42 - 0.5 cos(t) + 0.08 cos(2 t) with t = 2 pi i / (x - 1).

    Examples:
        >>> ops.blackman(5)
        Tensor([-0.  ,  0.34,  1.  ,  0.34, -0.  ], shape=(5,), dtype=float32)
    """
    return _cosine_window(x, 0.42, -0.5, 0.08)


@public
def bartlett(x: SupportsInt) -> Tensor:
    """The triangular window of `x` points, 0 at both ends.

    Examples:
        >>> ops.bartlett(5)
        Tensor([0. , 0.5, 1. , 0.5, 0. ], shape=(5,), dtype=float32)
    """
    if int(x) == 1:
        return _filled((1,), 1, None)
    i, last = _phase(x)
    rising = arithmetic.multiply(i, tensor(2 / last, i.dtype))
    falling = arithmetic.subtract(tensor(2.0, i.dtype), rising)
    return arithmetic.minimum(rising, falling)


@public
def kaiser(x: SupportsInt, beta: TensorLike) -> Tensor:
    """The Kaiser window of `x` points: i0(beta sqrt(1 - (2 i / (x - 1) - 1)**2)) / i0(beta).

    Examples:
        >>> ops.kaiser(5, beta=4.0)
        Tensor([0.0885, 0.6334, 1.    , 0.6334, 0.0885], shape=(5,), dtype=float32)
    """
    if int(x) == 1:
        return _filled((1,), 1, None)
    i, last = _phase(x)
    scale = tensor(beta, i.dtype)
    centred = arithmetic.subtract(
        arithmetic.multiply(i, tensor(2 / last, i.dtype)), tensor(1.0, i.dtype)
    )
    inside = arithmetic.subtract(tensor(1.0, i.dtype), arithmetic.square(centred))
    inside = arithmetic.maximum(inside, basic.zeros_like(inside))  # rounding may go below 0
    height = mathematics.i0(arithmetic.multiply(scale, mathematics.sqrt(inside)))
    return arithmetic.divide(height, mathematics.i0(scale))
