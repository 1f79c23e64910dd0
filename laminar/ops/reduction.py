"""Sums, means, extremes and their like over some axes, and running along one.

`axis` is one axis or several, None all of them; `keepdims` leaves them with size 1. Bools and small
integers are summed in 32 bits; means of integers are floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import (
    DType,
    Tensor,
    as_dtype,
    bool_,
    canonical_axis,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)
from laminar.engine.ops.array.broadcast import broadcast_like
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.math import arithmetic, cumulative
from laminar.engine.ops.math import reduce as engine
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import logical_and, logical_or, not_equal

from ..typing import DTypeLike, TensorLike
from .arguments import boolean, common, floating, known_rank, numeric, tensor
from .recording import public

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "average",
    "cumprod",
    "cumsum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "trapezoid",
    "var",
]

Axis = int | Sequence[int] | None

# What the sum of small numbers is counted in.
_SUM_DTYPE: dict[DType, DType] = {
    bool_: int32,
    int8: int32,
    int16: int32,
    uint8: uint32,
    uint16: uint32,
}


def summable(x: Tensor) -> Tensor:
    """`x` in the type that its sums and products have."""
    wide = _SUM_DTYPE.get(x.dtype)
    return x if wide is None else cast(x, wide)


@public
def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.sum([[1, 2], [3, 4]], axis=0)
        Tensor([4, 6], shape=(2,), dtype=int32)
    """
    return engine.reduce_sum(summable(tensor(x)), axis, keepdims=keepdims)


@public
def prod(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, dtype: DTypeLike | None = None
) -> Tensor:
    """The product over `axis`; computed in `dtype` if one is given.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.
        dtype: type in which it is computed.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.prod([[1, 2], [3, 4]], axis=1)
        Tensor([ 2, 12], shape=(2,), dtype=int32)
    """
    x = tensor(x)
    x = summable(x) if dtype is None else cast(x, as_dtype(dtype))
    return engine.reduce_prod(x, axis, keepdims=keepdims)


@public
def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.mean([[1.0, 3.0], [4.0, 8.0]], axis=1)
        Tensor([2., 6.], shape=(2,), dtype=float32)
    """
    return engine.reduce_mean(floating(x), axis, keepdims=keepdims)


@public
def var(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean square of the distance from the mean, over `axis`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.var([1.0, 3.0, 5.0])
        Tensor(2.6667, shape=(), dtype=float32)
    """
    return engine.reduce_variance(floating(x), axis, keepdims=keepdims)


@public
def std(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The root of the mean square of the distance from the mean, over `axis`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.std([1.0, 3.0, 5.0])
        Tensor(1.633, shape=(), dtype=float32)
    """
    return engine.reduce_std(floating(x), axis, keepdims=keepdims)


@public
def max(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, initial: TensorLike | None = None
) -> Tensor:
    """The greatest element over `axis`; at least `initial` if that is given.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.
        initial: a value that counts as one more element.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.max([[1, 5], [4, 2]], axis=1)
        Tensor([5, 4], shape=(2,), dtype=int32)
    """
    x = tensor(x)
    if x.dtype == bool_:
        found = engine.reduce_any(x, axis, keepdims=keepdims)
        return found if initial is None else logical_or(found, boolean(initial))
    if initial is None:
        return engine.reduce_max(x, axis, keepdims=keepdims)
    least = tensor(initial, x.dtype)
    return arithmetic.maximum(_of_any(engine.reduce_max, x, axis, keepdims, least), least)


@public
def min(
    x: TensorLike, axis: Axis = None, keepdims: bool = False, initial: TensorLike | None = None
) -> Tensor:
    """The least element over `axis`; at most `initial` if that is given.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.
        initial: a value that counts as one more element.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.min([[1, 5], [4, 2]], axis=1)
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    x = tensor(x)
    if x.dtype == bool_:
        found = engine.reduce_all(x, axis, keepdims=keepdims)
        return found if initial is None else logical_and(found, boolean(initial))
    if initial is None:
        return engine.reduce_min(x, axis, keepdims=keepdims)
    most = tensor(initial, x.dtype)
    return arithmetic.minimum(_of_any(engine.reduce_min, x, axis, keepdims, most), most)


def _of_any(
    reduce: Callable[..., Tensor], x: Tensor, axis: Axis, keepdims: bool, empty: Tensor
) -> Tensor:
    """A reduction, or `empty` at each place where there is nothing to reduce."""
    if x.shape.num_elements() != 0:
        return reduce(x, axis, keepdims=keepdims)
    nothing = engine.reduce_sum(x, axis, keepdims=keepdims)
    return broadcast_like(empty, nothing)


@public
def amax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest element over `axis`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.amax([[1, 5], [4, 2]], axis=0)
        Tensor([4, 5], shape=(2,), dtype=int32)
    """
    return max(x, axis, keepdims)


@public
def amin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The least element over `axis`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.amin([[1, 5], [4, 2]], axis=0)
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    return min(x, axis, keepdims)


@public
def ptp(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest element less the least, over `axis`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.ptp([1, 9, 4])
        Tensor(8, shape=(), dtype=int32)
    """
    return arithmetic.subtract(numeric(max(x, axis, keepdims)), numeric(min(x, axis, keepdims)))


@public
def all(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether every element over `axis` holds (is not 0).

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.all([[True, False], [True, True]], axis=1)
        Tensor([False,  True], shape=(2,), dtype=bool)
    """
    return engine.reduce_all(boolean(x), axis, keepdims=keepdims)


@public
def any(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether some element over `axis` holds (is not 0).

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.any([[False, False], [True, False]], axis=1)
        Tensor([False,  True], shape=(2,), dtype=bool)
    """
    return engine.reduce_any(boolean(x), axis, keepdims=keepdims)


@public
def average(x: TensorLike, axis: Axis = None, weights: TensorLike | None = None) -> Tensor:
    """The mean over `axis`, weighted if `weights` are given.

    Args:
        x: any tensor.
        axis: one axis or several, None for all.
        weights: of the shape of `x`, or a vector of its size along the one axis.

    Returns:
        The shape of `x` without `axis`; integers give the default float, weights whose sum is 0
        give NaN.

    Raises:
        ShapeError: an axis does not exist, or the weights do not fit.

    Examples:
        >>> ops.average([1.0, 2.0, 6.0], weights=[3, 1, 1])
        Tensor(2.2, shape=(), dtype=float32)
    """
    if weights is None:
        return mean(x, axis)
    dtype = common(x, weights, 0.0)
    values, factors = tensor(x, dtype), tensor(weights, dtype)
    if isinstance(axis, int) and factors.shape.rank == 1:
        rank = known_rank("average", values)
        factors = reshape(factors, [-1 if i == axis % rank else 1 for i in range(rank)])
    factors = broadcast_like(factors, values)
    total = engine.reduce_sum(arithmetic.multiply(values, factors), axis)
    return arithmetic.divide(total, engine.reduce_sum(factors, axis))


def _running(x: TensorLike, axis: int | None, dtype: DTypeLike | None) -> tuple[Tensor, int]:
    x = numeric(x) if dtype is None else cast(tensor(x), as_dtype(dtype))
    return (reshape(x, (-1,)), 0) if axis is None else (x, axis)


@public
def cumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of each element and those before it along `axis`; None runs in row order.

    Args:
        x: of any shape.
        axis: one axis; None for a vector of the sums in row order.
        dtype: type in which it is computed, by default that of `x`; bools in int32.

    Returns:
        The shape of `x`, or a vector for None; in the type of `x`, where small integers wrap around
        (a sum or product of all is int32).

    Raises:
        ShapeError: the axis does not exist.

    Examples:
        >>> ops.cumsum([[1, 2], [3, 4]], axis=1)
        Tensor([[1, 3],
                [3, 7]], shape=(2, 2), dtype=int32)
    """
    return cumulative.cumsum(*_running(x, axis, dtype))


@public
def cumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """The product of each element and those before it along `axis`; None runs in row order.

    Args:
        x: of any shape.
        axis: one axis; None for a vector of the products in row order.
        dtype: type in which it is computed, by default that of `x`; bools in int32.

    Returns:
        The shape of `x`, or a vector for None; in the type of `x`, where small integers wrap around
        (a sum or product of all is int32).

    Raises:
        ShapeError: the axis does not exist.

    Examples:
        >>> ops.cumprod([1, 2, 3, 4])
        Tensor([ 1,  2,  6, 24], shape=(4,), dtype=int32)
    """
    return cumulative.cumprod(*_running(x, axis, dtype))


@public
def diff(a: TensorLike, n: int = 1, axis: int = -1) -> Tensor:
    """The difference of each element and the one before it along `axis`, `n` times over.

    Args:
        a: with at least one axis; of bools it is whether the two differ.
        n: how many times, at least 0.
        axis: one axis.

    Returns:
        The shape of `a` with `n` elements less along `axis`, none at the least.

    Raises:
        InvalidArgumentError: `n` is negative.
        ShapeError: the axis does not exist.

    Examples:
        >>> ops.diff([1, 4, 9, 16])
        Tensor([3, 5, 7], shape=(3,), dtype=int32)
    """
    x = tensor(a)
    if n < 0:
        raise InvalidArgumentError(f"diff: n cannot be negative, got {n}")
    lead = (slice(None),) * canonical_axis("diff", axis, known_rank("diff", x))
    for _ in range(n):
        later, earlier = (get_item(x, (*lead, part)) for part in (slice(1, None), slice(None, -1)))
        x = not_equal(later, earlier) if x.dtype == bool_ else arithmetic.subtract(later, earlier)
    return x


@public
def trapezoid(
    y: TensorLike, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1
) -> Tensor:
    """The integral of `y` along `axis` by trapezoids.

    Args:
        y: the values.
        x: where they stand, of the shape of `y` or a vector; None: `dx` apart.
        dx: the distance where `x` is None.
        axis: the axis to integrate along.

    Returns:
        The shape of `y` without `axis`; integers give the default float.

    Raises:
        ShapeError: the axis does not exist.

    Examples:
        >>> ops.trapezoid([1.0, 2.0, 3.0])
        Tensor(4., shape=(), dtype=float32)
    """
    y = floating(y)
    rank = known_rank("trapezoid", y)
    axis = canonical_axis("trapezoid", axis, rank)
    if x is None:
        widths = tensor(dx, y.dtype)
    else:
        places = tensor(x, y.dtype)
        widths = diff(places, axis=axis if places.ndim == rank else -1)
        if places.ndim == 1:
            widths = reshape(widths, [-1 if i == axis else 1 for i in range(rank)])
    lead = (slice(None),) * axis
    later, earlier = (get_item(y, (*lead, part)) for part in (slice(1, None), slice(None, -1)))
    heights = arithmetic.multiply(arithmetic.add(later, earlier), tensor(0.5, y.dtype))
    return engine.reduce_sum(arithmetic.multiply(heights, widths), axis)
