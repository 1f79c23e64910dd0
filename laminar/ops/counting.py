"""How often values occur."""

from __future__ import annotations

import numpy as np

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import INTEGER, Tensor, bool_, int32, int64, uint32, uint64
from laminar.engine.ops.array import axes, creation, join, segment
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.search import searchsorted
from laminar.engine.ops.array.shape import dim_of, reshape
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import equal, greater_equal, less_equal, logical_and, where
from laminar.engine.ops.math.reduce import reduce_max, reduce_min

from ..typing import TensorLike
from .arguments import floating, known_array, known_rank, tensor, whole
from .manipulation import ravel
from .recording import public

__all__ = ["bincount", "histogram"]


@public
def bincount(
    x: TensorLike, weights: TensorLike | None = None, minlength: int = 0, sparse: bool = False
) -> Tensor:
    """How often each whole number from 0 on occurs, or the sum of its weights.

    Args:
        x: (n,), or (batch, n) to count each row; whole numbers of at least 0. Negative ones that
            are known at run time only are not counted.
        weights: of the shape of `x`.
        minlength: the least length of the result, which else ends with the greatest number.
        sparse: must be false.

    Returns:
        (length,) or (batch, length): int32, or of the type of the weights.

    Raises:
        DTypeError: `x` has numbers with fractions.
        InvalidArgumentError: a negative number, or `minlength`.
        ShapeError: `x` has another number of axes.

    Examples:
        >>> ops.bincount([0, 1, 1, 3])
        Tensor([1, 2, 0, 1], shape=(4,), dtype=int32)
    """
    if sparse:
        raise InvalidArgumentError("bincount: there are dense tensors only, sparse must be false")
    minlength = whole("bincount", "minlength", minlength)
    if minlength < 0:
        raise InvalidArgumentError(f"bincount: minlength cannot be negative, got {minlength}")
    numbers = tensor(x)
    rank = known_rank("bincount", numbers)
    if rank not in (1, 2):
        raise ShapeError(f"bincount: expected (n,) or (batch, n), got {numbers.spec}")
    if numbers.dtype not in (*INTEGER, bool_):
        raise DTypeError(
            f"bincount: expected whole numbers, got {numbers.spec}", remedy="ops.cast(x, 'int32')"
        )
    known = known_array(numbers)
    if known is not None and known.size and known.min() < 0:
        raise InvalidArgumentError(f"bincount: a number is negative: {known.min()}")
    # One more than the greatest number may not fit into a narrower type.
    if numbers.dtype not in (int32, int64):
        numbers = cast(numbers, int64 if numbers.dtype in (uint32, uint64) else int32)
    amounts = None if weights is None else tensor(weights)
    # The greatest number may be -1, that of none at all.
    none = tensor([-1], numbers.dtype)
    greatest = reduce_max(join.concat((reshape(numbers, (-1,)), none), 0))
    length = cast(arithmetic.add(greatest, tensor(1, numbers.dtype)), int32)
    length = arithmetic.maximum(length, tensor(minlength, int32))
    if rank == 1:
        return segment.bincount(numbers, amounts, length)
    rows = numbers.shape[0]
    batch = dim_of(numbers, axis=0) if rows is None else tensor(rows, int32)
    # Each row counts into a stretch of its own.
    stretch = axes.expand_dims(creation.arange(batch, dtype=int32), 1)
    places = arithmetic.add(cast(numbers, int32), arithmetic.multiply(stretch, length))
    counts = segment.bincount(places, amounts, arithmetic.multiply(batch, length))
    return reshape(counts, (-1 if rows is None else rows, length))


@public
def histogram(
    x: TensorLike, bins: TensorLike = 10, range: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor]:
    """How many elements fall into each bin.

    Args:
        x: (n,), or one number.
        bins: the number of bins of equal width, or a vector with their n + 1 edges, rising.
        range: the lower and the upper end, by default the least and the greatest element; what lies
            outside is not counted.

    Returns:
        The counts (n,), in the type of the edges, and the edges (n + 1,). A bin holds its lower
        edge, the last one its upper edge too.

    Raises:
        ShapeError: `x` has several axes.
        DTypeError: `bins` is neither a whole number nor a vector.
        InvalidArgumentError: no bins, an empty range, known edges that fall, or known values
            whose range is not finite where none is given.

    Examples:
        >>> counts, edges = ops.histogram([1, 1, 2, 4], bins=3)
        >>> counts
        Tensor([2., 1., 1.], shape=(3,), dtype=float32)
        >>> edges
        Tensor([1., 2., 3., 4.], shape=(4,), dtype=float32)
    """
    values = floating(x)
    if known_rank("histogram", values) > 1:
        raise ShapeError(
            f"histogram: expected one axis, got {values.spec}", remedy="ops.ravel(x) has one"
        )
    values = ravel(values)
    edges = _edges(values, bins, range)
    last = get_item(edges, -1)
    inside = logical_and(greater_equal(values, get_item(edges, 0)), less_equal(values, last))
    place = arithmetic.subtract(searchsorted(edges, values, "right"), tensor(1, int32))
    known = edges.shape[0]
    count = (
        known - 1
        if known is not None
        else arithmetic.subtract(dim_of(edges, axis=0), tensor(1, int32))
    )
    final = arithmetic.subtract(tensor(count, int32), tensor(1, int32))
    place = where(equal(values, last), final, place)
    return segment.bincount(place, cast(inside, edges.dtype), count), edges


def _edges(values: Tensor, bins: TensorLike, ends: tuple[float, float] | None) -> Tensor:
    if not isinstance(bins, int):
        edges = tensor(bins, values.dtype)
        if known_rank("histogram", edges) != 1:
            raise DTypeError(
                f"histogram: bins must be a whole number, or a vector of edges, got {bins!r}"
            )
        known = known_array(edges)
        if known is not None and (known[1:] < known[:-1]).any():
            raise InvalidArgumentError(f"histogram: the edges {known.tolist()} do not rise")
        return edges
    if bins < 1:
        raise InvalidArgumentError(f"histogram: expected at least one bin, got {bins}")
    if ends is not None:
        if np.shape(ends) != (2,):
            raise InvalidArgumentError(f"histogram: range must be two numbers, got {ends!r}")
        low, high = ends
        if low > high:
            raise InvalidArgumentError(f"histogram: the range {ends} is empty")
        least, most = tensor(float(low), values.dtype), tensor(float(high), values.dtype)
    else:
        known = known_array(values)
        if known is not None and not np.isfinite(known).all():
            raise InvalidArgumentError(
                "histogram: the values are not all finite", remedy="give range="
            )
        least, most = reduce_min(values), reduce_max(values)
    half = tensor(0.5, values.dtype)
    same = equal(least, most)  # a single value gets a bin of width 1 around it
    least, most = (
        where(same, arithmetic.subtract(least, half), least),
        where(same, arithmetic.add(most, half), most),
    )
    return creation.linspace(least, most, bins + 1)
