"""Quantiles, medians and correlations."""

from __future__ import annotations

from collections.abc import Sequence

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, float64
from laminar.engine.ops.array import axes
from laminar.engine.ops.array import quantile as engine
from laminar.engine.ops.core import basic
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math import arithmetic, reduce
from laminar.engine.ops.math.elementary import sqrt

from ..typing import TensorLike
from .arguments import floating, known_array, known_rank, tensor
from .recording import public

__all__ = [
    "corrcoef",
    "median",
    "percentile",
    "quantile",
]

Axis = int | Sequence[int] | None


@public
def quantile(
    x: TensorLike, q: TensorLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The values below which the fractions `q` of the elements lie.

    Args:
        x: any tensor.
        q: fractions from 0 to 1: one, or a vector, whose axis is the first of the result.
        axis: one axis or several, None for all.
        method: what to take between two elements: "linear", "lower", "higher", "midpoint" or
            "nearest".
        keepdims: whether the axes stay, with size 1.

    Returns:
        Floats: the axis of `q` if it has one, then the shape of `x` without `axis`, or with size 1
        there.

    Raises:
        ShapeError: an axis does not exist.
        InvalidArgumentError: another method, or a known fraction is not from 0 to 1.

    Examples:
        >>> ops.quantile([1.0, 2.0, 3.0, 5.0], 0.5)
        Tensor(2.5, shape=(), dtype=float32)
    """
    x = floating(x)
    return engine.quantile(x, _known_within("quantile", q, 1.0), axis, method, keepdims)


def _known_within(who: str, q: TensorLike, whole: float) -> Tensor:
    found = tensor(q, float64)
    known = known_array(found)
    if known is not None and not ((known >= 0) & (known <= whole)).all():
        raise InvalidArgumentError(f"{who}: q must be from 0 to {whole:g}, got {known.tolist()}")
    return found


@public
def percentile(
    x: TensorLike, q: TensorLike, axis: Axis = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """As `quantile`, with `q` in parts of a hundred.

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
        InvalidArgumentError: a known `q` is not from 0 to 100.
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.percentile([1.0, 2.0, 3.0, 5.0], 50.0)
        Tensor(2.5, shape=(), dtype=float32)
    """
    fractions = arithmetic.divide(_known_within("percentile", q, 100.0), tensor(100.0, float64))
    return engine.quantile(floating(x), fractions, axis, method, keepdims)


@public
def median(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The middle of the elements in rising order, or the mean of the two in the middle.

    Args:
        x: of any shape.
        axis: one axis or several; None for all.
        keepdims: whether these axes stay, with size 1.

    Returns:
        The shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.median([1.0, 9.0, 2.0])
        Tensor(2., shape=(), dtype=float32)
    """
    return engine.median(floating(x), axis, keepdims)


@public
def corrcoef(x: TensorLike) -> Tensor:
    """The correlation of each two rows: their covariance over the product of their deviations.

    Examples:
        >>> ops.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
        Tensor([[ 1., -1.],
                [-1.,  1.]], shape=(2, 2), dtype=float32)
    """
    x = floating(x)
    if known_rank("corrcoef", x) < 2:
        return basic.ones_like(reduce.reduce_sum(x))
    centred = arithmetic.subtract(x, reduce.reduce_mean(x, -1, keepdims=True))
    covariance = matmul(centred, centred, transpose_b=True)
    spread = sqrt(reduce.reduce_sum(arithmetic.square(centred), -1))
    scale = arithmetic.multiply(axes.expand_dims(spread, 1), spread)
    found = arithmetic.divide(covariance, scale)
    one = basic.ones_like(found)
    return arithmetic.maximum(arithmetic.minimum(found, one), arithmetic.negative(one))
