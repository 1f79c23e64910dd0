"""Quantiles and the median, from the sorted elements."""

from __future__ import annotations

import math
from typing import Any

from ...errors import InvalidArgumentError
from ...graph import Axes, Tensor, canonical_axes, float64, int32, int64
from ..core.basic import constant
from ..core.convert import convert_to_tensor
from ..math.arithmetic import add, ceil, floor, multiply, rint, subtract
from ..math.cast import cast
from ..math.compare import equal, is_nan, where
from .axes import expand_dims, moveaxis, transpose
from .gather import gather
from .padding import pad
from .shape import dim_of, reshape
from .sort import sort

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    x: Tensor, q: Any, axis: Axes | None = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The values below which the fractions `q` of the elements lie.

    Of n elements in rising order, quantile q stands at place p = q * (n - 1). Between two places
    the result is, by `method`: "linear": lower + (p - floor(p)) * (higher - lower); "midpoint":
    their mean; "lower"; "higher"; "nearest": the nearer one, of two the one at the even place.

    Args:
        x: floating.
        q: fractions from 0 to 1, of any shape.
        axis: one axis or several, or None for all.
        method: what to take between two elements.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The axes of `q`, then those of `x` that are left. NaN where an element is NaN, or where
        there is none.

    Raises:
        InvalidArgumentError: an unknown method.

    Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician
        50, 1996, definition 7.
    """
    if method not in _METHODS:
        raise InvalidArgumentError(
            f"quantile: method must be one of {', '.join(_METHODS)}, got {method!r}"
        )
    axes = canonical_axes("quantile", range(x.ndim) if axis is None else axis, x.ndim)
    ordered = sort(_joined(x, axes))
    if ordered.shape[-1] == 0:  # of nothing the quantile is NaN, as NumPy has it
        ordered = pad(ordered, [*[(0, 0)] * (ordered.ndim - 1), (0, 1)], value=math.nan)
    last = subtract(dim_of(ordered, axis=-1), constant(1, int32))
    fractions = cast(q, float64) if isinstance(q, Tensor) else convert_to_tensor(q, float64)
    place = multiply(fractions, cast(last, float64))
    if method == "linear":
        y = _between(ordered, place, subtract(place, floor(place)))
    elif method == "midpoint":
        y = _between(
            ordered, place, multiply(subtract(ceil(place), floor(place)), constant(0.5, float64))
        )
    else:
        pick = {"lower": floor, "higher": ceil, "nearest": rint}[method]
        y = _at(ordered, pick(place))
    rank = fractions.ndim
    y = moveaxis(y, range(y.ndim - rank, y.ndim), range(rank))
    greatest = gather(ordered, last, -1)  # NaN where there is one: NaN sorts last
    y = where(is_nan(greatest), greatest, y)
    return expand_dims(y, [rank + i for i in axes]) if keepdims else y


def _joined(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """`x` with `axes` as one, the last."""
    rest = [i for i in range(x.ndim) if i not in axes]
    if len(axes) == 1:
        return transpose(x, [*rest, *axes])
    sizes = [x.shape[i] for i in axes]
    known = [n for n in sizes if n is not None]
    joined = math.prod(known) if len(known) == len(sizes) else -1
    lead = [dim_of(x, axis=i) if x.shape[i] is None else x.shape[i] for i in rest]
    return reshape(transpose(x, [*rest, *axes]), [*lead, joined])


def _at(ordered: Tensor, place: Tensor) -> Tensor:
    return gather(ordered, cast(place, int64), -1)


def _between(ordered: Tensor, place: Tensor, fraction: Tensor) -> Tensor:
    lower, higher = _at(ordered, floor(place)), _at(ordered, ceil(place))
    weight = cast(fraction, ordered.dtype)
    inside = add(lower, multiply(weight, subtract(higher, lower)))
    return where(equal(lower, higher), lower, inside)  # infinity - infinity is NaN


def median(x: Tensor, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The middle of the elements in rising order, or the mean of the two in the middle.

    Args:
        x: floating.
        axis: one axis or several, or None for all.
        keepdims: whether the axes stay, with size 1.
    """
    return quantile(x, 0.5, axis, "midpoint", keepdims)
