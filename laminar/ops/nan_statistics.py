"""Reductions, running sums and quantiles that skip NaN."""

from __future__ import annotations

from typing import Any

from laminar.engine.graph import INEXACT, Tensor, bool_, canonical_axes, float64, int32
from laminar.engine.ops.array import axes
from laminar.engine.ops.array.along import take_along_axis
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.array.sort import sort
from laminar.engine.ops.core import basic
from laminar.engine.ops.math import arithmetic, cumulative, reduce
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import equal, is_nan, logical_not, where
from laminar.engine.ops.math.elementary import sqrt

from ..typing import DTypeLike, TensorLike
from .arguments import floating, known_rank, numeric, one_of, tensor
from .layout import sizes
from .recording import public
from .reduction import summable
from .statistics import Axis

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanpercentile",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
]


def _replaced(x: TensorLike, value: float) -> tuple[Tensor, Tensor | None]:
    """`x` with `value` for each NaN, and where those were (None for integers, which have none)."""
    x = tensor(x)
    if x.dtype not in INEXACT:
        return x, None
    missing = is_nan(x)
    return where(missing, tensor(value, x.dtype), x), missing


def _counted(x: TensorLike, axis: Axis, keepdims: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Floats with 0 for NaN, which of them are there (0 or 1), and how many over `axis`."""
    x = floating(x)
    values, missing = _replaced(x, 0.0)
    assert missing is not None
    present = cast(logical_not(missing), x.dtype)
    return values, present, reduce.reduce_sum(present, axis, keepdims=keepdims)


@public
def nansum(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` of what is not NaN.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nansum([1.0, np.nan, 3.0])
        Tensor(4., shape=(), dtype=float32)
    """
    return reduce.reduce_sum(summable(_replaced(x, 0.0)[0]), axis, keepdims=keepdims)


@public
def nanprod(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` of what is not NaN.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanprod([2.0, np.nan, 3.0])
        Tensor(6., shape=(), dtype=float32)
    """
    return reduce.reduce_prod(summable(_replaced(x, 1.0)[0]), axis, keepdims=keepdims)


@public
def nanmean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis` of what is not NaN; NaN where nothing is.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanmean([1.0, np.nan, 3.0])
        Tensor(2., shape=(), dtype=float32)
    """
    values, _, count = _counted(x, axis, keepdims)
    return arithmetic.divide(reduce.reduce_sum(values, axis, keepdims=keepdims), count)


@public
def nanvar(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean square of the distance from the mean, of what is not NaN.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanvar([1.0, np.nan, 3.0])
        Tensor(1., shape=(), dtype=float32)
    """
    values, present, count = _counted(x, axis, True)
    mean = arithmetic.divide(reduce.reduce_sum(values, axis, keepdims=True), count)
    distance = arithmetic.multiply(arithmetic.subtract(values, mean), present)
    total = reduce.reduce_sum(arithmetic.square(distance), axis, keepdims=keepdims)
    return arithmetic.divide(total, reduce.reduce_sum(present, axis, keepdims=keepdims))


@public
def nanstd(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The root of `nanvar`.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanstd([1.0, np.nan, 3.0])
        Tensor(1., shape=(), dtype=float32)
    """
    return sqrt(nanvar(x, axis, keepdims))


def _extreme(x: TensorLike, axis: Axis, keepdims: bool, sign: int) -> Tensor:
    """The greatest (or least) of what is not NaN; NaN where nothing is."""
    found = tensor(x)
    if found.dtype == bool_:
        logical = reduce.reduce_any if sign > 0 else reduce.reduce_all
        return logical(found, axis, keepdims=keepdims)
    op = reduce.reduce_max if sign > 0 else reduce.reduce_min
    values, missing = _replaced(found, -sign * float("inf"))
    extreme = op(values, axis, keepdims=keepdims)
    if missing is None:
        return extreme
    empty = reduce.reduce_all(missing, axis, keepdims=keepdims)
    return where(empty, tensor(float("nan"), extreme.dtype), extreme)


@public
def nanmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest over `axis` of what is not NaN; NaN where nothing is.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanmax([1.0, np.nan, 3.0])
        Tensor(3., shape=(), dtype=float32)
    """
    return _extreme(x, axis, keepdims, 1)


@public
def nanmin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The least over `axis` of what is not NaN; NaN where nothing is.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanmin([1.0, np.nan, 3.0])
        Tensor(1., shape=(), dtype=float32)
    """
    return _extreme(x, axis, keepdims, -1)


def _place(x: TensorLike, axis: int | None, keepdims: bool, sign: int) -> Tensor:
    values, missing = _replaced(numeric(x), -sign * float("inf"))
    op = reduce.argmax if sign > 0 else reduce.argmin
    found = op(values, axis, keepdims=keepdims)
    if missing is None:
        return found
    empty = reduce.reduce_all(missing, axis, keepdims=keepdims)
    return where(empty, tensor(-1, int32), found)


@public
def nanargmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the greatest of what is not NaN, int32; -1 where nothing is.

    Args:
        x: of any shape.
        axis: the axis; None for all elements in row order.
        keepdims: whether it stays, with size 1.

    Returns:
        int32, the shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanargmax([1.0, np.nan, 3.0])
        Tensor(2, shape=(), dtype=int32)
    """
    return _place(x, axis, keepdims, 1)


@public
def nanargmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the least of what is not NaN, int32; -1 where nothing is.

    Args:
        x: of any shape.
        axis: the axis; None for all elements in row order.
        keepdims: whether it stays, with size 1.

    Returns:
        int32, the shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanargmin([np.nan, 1.0, 3.0])
        Tensor(1, shape=(), dtype=int32)
    """
    return _place(x, axis, keepdims, -1)


@public
def nancumsum(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """As `cumsum`, with 0 for NaN.

    Args:
        x: of any shape.
        axis: one axis; None for a vector of the sums in row order.
        dtype: type in which it is computed, by default that of `x`; bools in int32.

    Returns:
        The shape of `x`, or a vector for None.

    Raises:
        ShapeError: the axis does not exist.

    Examples:
        >>> ops.nancumsum([2.0, np.nan, 3.0])
        Tensor([2., 2., 5.], shape=(3,), dtype=float32)
    """
    values = _of_type(_replaced(x, 0.0)[0], dtype)
    return cumulative.cumsum(*_along(values, axis))


@public
def nancumprod(x: TensorLike, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """As `cumprod`, with 1 for NaN.

    Args:
        x: of any shape.
        axis: one axis; None for a vector of the products in row order.
        dtype: type in which it is computed, by default that of `x`; bools in int32.

    Returns:
        The shape of `x`, or a vector for None.

    Raises:
        ShapeError: the axis does not exist.

    Examples:
        >>> ops.nancumprod([2.0, np.nan, 3.0])
        Tensor([2., 2., 6.], shape=(3,), dtype=float32)
    """
    values = _of_type(_replaced(x, 1.0)[0], dtype)
    return cumulative.cumprod(*_along(values, axis))


@public
def nanquantile(
    x: TensorLike, q: TensorLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """As `quantile`, of what is not NaN; NaN where nothing is.

    Args:
        x: any tensor.
        q: fractions from 0 to 1: one, or a vector, whose axis is the first of the result.
        axis: one axis or several; None for all.
        method: how a value between two elements is made; see `quantile`.
        keepdims: whether these axes stay, with size 1.

    Returns:
        Floats: the axis of `q` if it has one, then the shape of `x` without `axis`, or with size 1
        there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.nanquantile([1.0, np.nan, 3.0], 0.25)
        Tensor(1.5, shape=(), dtype=float32)
    """
    return _quantile_of_present(x, tensor(q, float64), axis, method, keepdims)


@public
def nanpercentile(
    x: TensorLike, q: TensorLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """As `nanquantile`, with `q` in parts of a hundred.

    Args:
        x: any tensor.
        q: parts of a hundred, from 0 to 100: one, or a vector, whose axis is the first of the
            result.
        axis: one axis or several; None for all.
        method: how a value between two elements is made; see `quantile`.
        keepdims: whether these axes stay, with size 1.

    Returns:
        Floats: the axis of `q` if it has one, then the shape of `x` without `axis`, or with size 1
        there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.nanpercentile([1.0, np.nan, 3.0], 50.0)
        Tensor(2., shape=(), dtype=float32)
    """
    fractions = arithmetic.divide(tensor(q, float64), tensor(100.0, float64))
    return _quantile_of_present(x, fractions, axis, method, keepdims)


@public
def nanmedian(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """As `median`, of what is not NaN; NaN where nothing is.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Examples:
        >>> ops.nanmedian([1.0, np.nan, 3.0])
        Tensor(2., shape=(), dtype=float32)
    """
    return _quantile_of_present(x, tensor(0.5, float64), axis, "midpoint", keepdims)


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile_of_present(
    x: TensorLike, q: Tensor, axis: Axis, method: str, keepdims: bool
) -> Tensor:
    one_of("nanquantile", "method", method, _METHODS)
    x = floating(x)
    rank = known_rank("nanquantile", x)
    reduced = canonical_axes("nanquantile", range(rank) if axis is None else axis, rank)
    kept = [i for i in range(rank) if i not in reduced]
    size = sizes(x)
    line = reshape(axes.transpose(x, [*kept, *reduced]), [*(size[i] for i in kept), -1])
    ordered = sort(line)  # NaN stands last
    there = cast(logical_not(is_nan(line)), float64)
    last: Any = reduce.reduce_sum(there, -1, keepdims=True) - 1
    place: Any = arithmetic.maximum(last * reshape(q, (-1,)), tensor(0.0, float64))
    lower, upper = arithmetic.floor(place), arithmetic.ceil(place)
    nearest = arithmetic.rint(place)
    weight = {
        "linear": place - lower,
        "midpoint": 0.5 * (upper - lower),
        "lower": basic.zeros_like(place),
        "higher": upper - lower,
        "nearest": nearest - lower,
    }[method]
    low, high = (take_along_axis(ordered, cast(p, int32), -1) for p in (lower, upper))
    between = low + cast(weight, x.dtype) * (high - low)
    found = where(equal(low, high), low, between)  # infinity - infinity is NaN
    found = axes.moveaxis(found, -1, 0)
    if not q.ndim:
        found = axes.squeeze(found, 0)
    return axes.expand_dims(found, [q.ndim + i for i in reduced]) if keepdims else found


def _of_type(x: Tensor, dtype: DTypeLike | None) -> Tensor:
    return numeric(x) if dtype is None else cast(x, dtype)


def _along(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    return (reshape(x, (-1,)), 0) if axis is None else (x, axis)
