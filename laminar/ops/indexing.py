"""Elements by their position, positions by their value, and order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import INTEGER, Tensor, bool_, canonical_axis, int32
from laminar.engine.ops.array import along, creation, gather, index, search
from laminar.engine.ops.array import sort as engine
from laminar.engine.ops.array.rearrange import flip
from laminar.engine.ops.array.shape import dim_of, reshape, reshape_like
from laminar.engine.ops.array.unique import unique as distinct
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import equal, greater, greater_equal, logical_not, where
from laminar.engine.ops.math.reduce import argmax as engine_argmax
from laminar.engine.ops.math.reduce import argmin as engine_argmin
from laminar.engine.ops.math.reduce import count_nonzero as engine_count_nonzero
from laminar.engine.ops.math.reduce import reduce_any

from ..typing import AxisLike, TensorLike
from .arguments import known_array, known_rank, numeric, pair, tensor, whole
from .recording import public

__all__ = [
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "count_nonzero",
    "digitize",
    "get_item",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique",
    "unravel_index",
]


def _integers(who: str, indices: Any) -> Tensor:
    found = tensor(indices)
    if found.dtype in INTEGER:
        return found
    if found.dtype != bool_:
        raise DTypeError(
            f"{who}: indices must be whole numbers, got {found.spec}",
            remedy="ops.cast(indices, 'int32')",
        )
    return cast(found, int32)


@public
def get_item(x: TensorLike, key: Any) -> Tensor:
    """x[key] as NumPy reads it.

    Args:
        x: any tensor.
        key: one item, or a tuple of: ints, slices, Ellipsis, None, integer arrays, masks.

    Raises:
        InvalidArgumentError: an index is out of range.
        DTypeError: the key is of another kind.

    Examples:
        >>> ops.get_item([[1, 2], [3, 4]], (0, slice(None)))
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    return index.get_item(tensor(x), key)


@public
def take(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """The slices of `x` along `axis` that `indices` name.

    Args:
        x: any tensor.
        indices: whole numbers, counted from the end when negative; any shape.
        axis: the axis; None takes from the elements in row order.

    Returns:
        The axis is replaced by the axes of `indices`.

    Raises:
        DTypeError: `indices` are no whole numbers.
        ShapeError: the axis does not exist.
        InvalidArgumentError: an index is out of range.

    Examples:
        >>> ops.take([10, 20, 30], [2, 0])
        Tensor([30, 10], shape=(2,), dtype=int32)
    """
    found = tensor(x)
    if axis is None:
        found, axis = reshape(found, (-1,)), 0
    return gather.gather(found, _integers("take", indices), axis)


@public
def take_along_axis(x: TensorLike, indices: TensorLike, axis: int | None = None) -> Tensor:
    """For each place of `indices` the element of `x` at that index along `axis`.

    Args:
        x: any tensor.
        indices: whole numbers, with as many axes as `x`; those other than `axis` broadcast.
        axis: the axis; None takes from the elements in row order.

    Raises:
        DTypeError: `indices` are no whole numbers.
        ShapeError: `axis` does not exist, or `indices` has another number of axes than `x`.
        InvalidArgumentError: an index is out of range.

    Examples:
        >>> ops.take_along_axis([[3, 1], [2, 4]], [[1], [0]], axis=1)
        Tensor([[1],
                [2]], shape=(2, 1), dtype=int32)
    """
    return along.take_along_axis(tensor(x), _integers("take_along_axis", indices), axis)


@public
def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the greatest element along `axis`, int32; the first of several.

    Args:
        x: any tensor.
        axis: the axis; None counts the elements in row order.
        keepdims: whether the axis stays, with size 1.

    Returns:
        int32, the shape of `x` without `axis`, or with size 1 there; NaN counts as the greatest.

    Raises:
        ShapeError: the axis does not exist.
        InvalidArgumentError: there are no elements.

    Examples:
        >>> ops.argmax([[1, 5, 2], [7, 0, 3]], axis=-1)
        Tensor([1, 0], shape=(2,), dtype=int32)
    """
    return engine_argmax(numeric(x), axis, keepdims=keepdims)


@public
def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the least element along `axis`, int32; the first of several; see `argmax`.

    Args:
        x: of any shape.
        axis: the axis; None for all elements in row order.
        keepdims: whether it stays, with size 1.

    Returns:
        int32, the shape of `x` without `axis`, or with size 1 there.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.argmin([[1, 5, 2], [7, 0, 3]], axis=-1)
        Tensor([0, 1], shape=(2,), dtype=int32)
    """
    return engine_argmin(numeric(x), axis, keepdims=keepdims)


@public
def count_nonzero(x: TensorLike, axis: AxisLike | None = None) -> Tensor:
    """How many elements are not 0, over `axis`, by default all; int32.

    Args:
        x: any tensor.
        axis: one axis or several; None for all.

    Returns:
        int32, the shape of `x` without `axis`.

    Raises:
        ShapeError: an axis does not exist.

    Examples:
        >>> ops.count_nonzero([[1, 0], [2, 3]], axis=1)
        Tensor([1, 2], shape=(2,), dtype=int32)
    """
    return engine_count_nonzero(tensor(x), axis)


@public
def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """For each axis, the int32 coordinates of the elements that are not 0, in row order.

    Examples:
        >>> ops.nonzero([[1, 0], [0, 2]])
        (Tensor([0, 1], shape=(2,), dtype=int32), Tensor([0, 1], shape=(2,), dtype=int32))
    """
    return search.nonzero(tensor(x))


@public
def sort(x: TensorLike, axis: int | None = -1) -> Tensor:
    """The elements along `axis` in rising order; None sorts all of them.

    Args:
        x: real numbers or bools; NaN comes last.
        axis: the axis; None for a vector of all elements.

    Raises:
        ShapeError: the axis does not exist.
        DTypeError: `x` is complex.

    Examples:
        >>> ops.sort([3, 1, 2])
        Tensor([1, 2, 3], shape=(3,), dtype=int32)
    """
    found = tensor(x)
    if axis is None:
        found, axis = reshape(found, (-1,)), 0
    return engine.sort(found, axis)


@public
def argsort(x: TensorLike, axis: int | None = -1) -> Tensor:
    """The int32 indices that sort `x` along `axis`; equal elements keep their order.

    Args:
        x: real numbers or bools; NaN comes last.
        axis: the axis; None for the numbers of all elements in row order.

    Returns:
        int32, the shape of `x`, or a vector for None.

    Raises:
        ShapeError: the axis does not exist.

    Examples:
        >>> ops.argsort([30, 10, 20])
        Tensor([1, 2, 0], shape=(3,), dtype=int32)
    """
    found = tensor(x)
    if axis is None:
        found, axis = reshape(found, (-1,)), 0
    return engine.argsort(found, axis)


@public
def argpartition(x: TensorLike, kth: int, axis: int | None = -1) -> Tensor:
    """Indices by which place `kth` along `axis` gets what sorting would put there.

    All that comes before is not greater, all that comes after not less. The order here is that of
    sorting.

    Args:
        x: real numbers or bools.
        kth: the place; negative ones count from the end.
        axis: the axis; None for the numbers of all elements in row order.

    Returns:
        int32, the shape of `x`, or a vector for None.

    Raises:
        InvalidArgumentError: `kth` is no place along the axis.

    Examples:
        >>> ops.argpartition([4, 1, 3, 2], kth=1)[:1]
        Tensor([1], shape=(1,), dtype=int32)
    """
    found = tensor(x)
    if axis is None:
        found, axis = reshape(found, (-1,)), 0
    axis = canonical_axis("argpartition", axis, known_rank("argpartition", found))
    size, kth = found.shape[axis], whole("argpartition", "kth", kth)
    if size is not None and not -size <= kth < size:
        raise InvalidArgumentError(f"argpartition: {kth} is no place along an axis of {size}")
    return engine.argsort(found, axis)


@public
def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: str = "left") -> Tensor:
    """The place of each value in a sorted vector, int32.

    Args:
        sorted_sequence: (n,), rising.
        values: any shape.
        side: "left" for the first place that keeps the order, "right" for the last.

    Raises:
        InvalidArgumentError: another side.

    Examples:
        >>> ops.searchsorted([1, 3, 5], [2, 3])
        Tensor([1, 1], shape=(2,), dtype=int32)
    """
    return search.searchsorted(*pair(sorted_sequence, values), side)


@public
def digitize(x: TensorLike, bins: TensorLike) -> Tensor:
    """The bin of each element: i where bins[i - 1] <= x < bins[i], int32.

    Args:
        x: any shape.
        bins: (n,), rising; 0 stands for below the first, n for not below the last. Where they are
            falling, i stands for bins[i - 1] > x >= bins[i].

    Raises:
        ShapeError: `bins` has another number of axes.
        InvalidArgumentError: `bins` are known and neither rise nor fall.

    Examples:
        >>> ops.digitize([0.5, 1.5, 9.0], bins=[1.0, 2.0])
        Tensor([0, 1, 2], shape=(3,), dtype=int32)
    """
    edges, values = pair(bins, x)
    if known_rank("digitize", edges) != 1:
        raise ShapeError(f"digitize: expected bins of one axis, got {edges.spec}")
    known = known_array(edges)
    if known is None:
        falls = reduce_any(greater(edges[:1], edges[-1:]))
        place = search.searchsorted(where(falls, flip(edges), edges), values, "right")
        return where(falls, arithmetic.subtract(dim_of(edges, axis=0), place), place)
    if not (known[1:] < known[:-1]).any():
        return search.searchsorted(edges, values, "right")
    if (known[1:] > known[:-1]).any():
        raise InvalidArgumentError(
            f"digitize: the bins neither rise nor fall: {known.tolist()}", remedy="sort them"
        )
    place = search.searchsorted(flip(edges), values, "right")
    return arithmetic.subtract(tensor(known.size, int32), place)


@public
def unravel_index(indices: TensorLike, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """For each axis of `shape`, the coordinates of elements numbered in row order.

    Args:
        indices: whole numbers; negative ones count from the end.
        shape: of the tensor that they number the elements of.

    Returns:
        For each axis of `shape` a tensor of the shape and type of `indices`.

    Raises:
        DTypeError: `indices` are no whole numbers.
        InvalidArgumentError: known ones that the tensor does not have.

    Examples:
        >>> ops.unravel_index([5, 1], (2, 3))
        (Tensor([1, 0], shape=(2,), dtype=int32), Tensor([2, 1], shape=(2,), dtype=int32))
    """
    rest = _integers("unravel_index", indices)
    sizes = shape if np.iterable(shape) else (shape,)
    shape = tuple([whole("unravel_index", "a size", size) for size in sizes])
    known, count = known_array(rest), prod(shape)
    if known is not None and ((known < -count) | (known >= count)).any():
        raise InvalidArgumentError(
            f"unravel_index: a tensor of the shape {shape} has {count} elements, "
            f"got the indices {known.tolist()}"
        )
    coordinates = []
    for size in reversed(shape):
        length = tensor(size, rest.dtype)
        coordinates.append(arithmetic.mod(rest, length))
        rest = arithmetic.floor_divide(rest, length)
    return tuple(reversed(coordinates))


@public
def unique(
    x: TensorLike,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: TensorLike | None = None,
) -> Any:
    """The distinct elements of `x`, or distinct slices along `axis`, in rising order.

    Args:
        x: real numbers or bools.
        sorted: accepted for its name: the result is always sorted.
        return_index: whether to return the index of the first occurrence of each.
        return_inverse: whether to return, for each element, the index of its equal.
        return_counts: whether to return how often each occurs.
        axis: the axis whose slices are compared; None compares all elements.
        size: how many to return: cut off, or filled up.
        fill_value: what fills up, by default the least.

    Returns:
        The distinct ones, or a tuple of them and what was asked for.

    Raises:
        DTypeError: `x` is complex.

    Examples:
        >>> ops.unique([3, 1, 3, 2])
        Tensor([1, 2, 3], shape=(3,), dtype=int32)
    """
    values, first, inverse, counts = distinct(tensor(x), axis)
    place = 0 if axis is None else axis
    if size is not None:
        values = _sized(values, place, size, fill_value)
        first, counts = _sized(first, 0, size, None), _sized(counts, 0, size, 0)
    wanted = [values]
    if return_index:
        wanted.append(first)
    if return_inverse:
        wanted.append(inverse)
    if return_counts:
        wanted.append(counts)
    return values if len(wanted) == 1 else tuple(wanted)


def _sized(x: Tensor, axis: int, size: int, fill: Any) -> Tensor:
    """`x` with `size` slices along `axis`: cut off, or filled up with `fill` or the first slice."""
    places = creation.arange(size, dtype=int32)
    count = dim_of(x, axis=axis)
    missing = greater_equal(places, count)
    taken = gather.gather(x, where(missing, zeros_like(places), places), axis)
    if fill is None:
        return taken
    rank = known_rank("unique", x)
    missing = reshape(missing, [size if i == axis % rank else 1 for i in range(rank)])
    return where(missing, tensor(fill, x.dtype), taken)


@public
def isin(
    x1: TensorLike, x2: TensorLike, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element of `x1` is among the elements of `x2`.

    Args:
        x1: any shape.
        x2: any shape.
        assume_unique: accepted for its name.
        invert: whether to say where it is not.

    Returns:
        Bools of the shape of `x1`.

    Examples:
        >>> ops.isin([1, 2, 3], [2, 5])
        Tensor([False,  True, False], shape=(3,), dtype=bool)
    """
    a, b = pair(x1, x2)
    flat = reshape(a, (-1, 1))
    found = reduce_any(equal(flat, reshape(b, (1, -1))), 1)
    found = reshape_like(found, a)
    return logical_not(found) if invert else found
