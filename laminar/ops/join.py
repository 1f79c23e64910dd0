"""Tensors put together, and cut apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, SupportsInt

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import GraphTensor, Tensor, canonical_axis
from laminar.engine.ops.array import axes, creation
from laminar.engine.ops.array import join as engine
from laminar.engine.ops.array.shape import dim_of, reshape

from ..typing import TensorLike
from .arguments import known_rank, known_size, tensor, tensors, whole
from .recording import public

__all__ = [
    "append",
    "array_split",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "meshgrid",
    "split",
    "stack",
    "vsplit",
    "vstack",
]


@public
def concatenate(xs: TensorLike, axis: int = 0) -> Tensor:
    """Tensors one after the other along `axis`.

    Args:
        xs: a sequence of tensors of one rank (or a tensor, whose slices these are), which are
            converted to their common type.
        axis: the only axis in which their sizes may differ.

    Returns:
        The size along `axis` is the sum of theirs.

    Raises:
        InvalidArgumentError: there are none.
        ShapeError: they differ in another axis.

    Examples:
        >>> ops.concatenate([[[1, 2]], [[3, 4]]], axis=0)
        Tensor([[1, 2],
                [3, 4]], shape=(2, 2), dtype=int32)
    """
    whole = _uncounted(xs)
    if whole is not None:
        at = canonical_axis("concatenate", axis, len(whole.shape) - 1)
        moved = axes.moveaxis(whole, 0, at)
        kept = [i for i in range(len(moved.shape)) if i != at + 1]
        sizes = [moved.shape[i] or dim_of(moved, axis=i) for i in kept]
        sizes[at] = -1
        return reshape(moved, sizes)
    return engine.concat(tensors(xs), axis)


def _uncounted(xs: Any) -> Tensor | None:
    """A tensor whose slices are the items, where their number is known at run time only."""
    x = xs.__laminar_tensor__() if hasattr(xs, "__laminar_tensor__") else xs
    if isinstance(x, GraphTensor) and x.shape.rank and x.shape[0] is None:
        return x
    return None


@public
def append(x1: TensorLike, x2: TensorLike, axis: int | None = None) -> Tensor:
    """`x2` after `x1` along `axis`; None appends the elements of both in row order.

    Args:
        x1: any tensor.
        x2: any tensor; both are converted to their common type.
        axis: the only axis in which their sizes may differ; None for a vector of all elements.

    Returns:
        The size along `axis` is the sum of both.

    Raises:
        ShapeError: they differ in another axis, or the axis does not exist.

    Examples:
        >>> ops.append([1, 2], [3])
        Tensor([1, 2, 3], shape=(3,), dtype=int32)
    """
    a, b = tensors((x1, x2))
    if axis is None:
        a, b, axis = reshape(a, (-1,)), reshape(b, (-1,)), 0
    return engine.concat((a, b), axis)


@public
def stack(x: TensorLike, axis: int = 0) -> Tensor:
    """Tensors of one shape as the slices of a new axis.

    Args:
        x: a sequence of tensors of one shape, which are converted to their common type.
        axis: the place of the new axis in the result.

    Returns:
        One axis more than each has; along `axis` as many slices as there are tensors.

    Raises:
        InvalidArgumentError: there are none.
        ShapeError: the shapes differ, or the result has no such axis.

    Examples:
        >>> ops.stack([[1, 2], [3, 4]], axis=1)
        Tensor([[1, 3],
                [2, 4]], shape=(2, 2), dtype=int32)
    """
    whole = _uncounted(x)
    if whole is not None:
        return axes.moveaxis(whole, 0, axis)
    return engine.stack(tensors(x), axis)


@public
def hstack(xs: TensorLike) -> Tensor:
    """Tensors side by side: along axis 1, vectors along axis 0.

    Examples:
        >>> ops.hstack([[1, 2], [3]])
        Tensor([1, 2, 3], shape=(3,), dtype=int32)
    """
    found = [_with_rank("hstack", x, 1) for x in tensors(xs)]
    return engine.concat(found, 0 if found and found[0].ndim == 1 else 1)


@public
def vstack(xs: TensorLike) -> Tensor:
    """Tensors one below the other, along axis 0; a vector is a row.

    Examples:
        >>> ops.vstack([[1, 2], [3, 4]])
        Tensor([[1, 2],
                [3, 4]], shape=(2, 2), dtype=int32)
    """
    return engine.concat([_with_rank("vstack", x, 2) for x in tensors(xs)], 0)


@public
def dstack(xs: TensorLike) -> Tensor:
    """Tensors one behind the other, along axis 2; a matrix is a layer.

    Examples:
        >>> ops.dstack([[1, 2], [3, 4]])
        Tensor([[[1, 3],
                 [2, 4]]], shape=(1, 2, 2), dtype=int32)
    """
    return engine.concat([_with_rank("dstack", x, 3) for x in tensors(xs)], 2)


def _with_rank(who: str, x: Tensor, least: int) -> Tensor:
    """`x` with at least so many axes: [n] becomes [1, n], and [m, n] becomes [m, n, 1]."""
    rank = known_rank(who, x)
    if rank == 0:
        return reshape(x, (1,) * least)
    if rank == 1 and least > 1:
        x = axes.expand_dims(x, 0)
    return axes.expand_dims(x, 2) if least == 3 and x.ndim == 2 else x


@public
def split(
    x: TensorLike, indices_or_sections: int | Iterable[SupportsInt], axis: int = 0
) -> list[Tensor]:
    """`x` cut along `axis`.

    Args:
        x: any tensor.
        indices_or_sections: the number of equal pieces, or the places at which to cut.
        axis: the axis to cut.

    Returns:
        The pieces, k + 1 of them for k places; a place beyond the end leaves an empty piece.

    Raises:
        InvalidArgumentError: less than one piece, or places that fall.
        ShapeError: the axis cannot be cut into so many equal pieces.

    Examples:
        >>> first, second, third = ops.split(np.arange(5), [2, 4])
        >>> second
        Tensor([2, 3], shape=(2,), dtype=int64)
    """
    x = tensor(x)
    if not np.iterable(indices_or_sections):
        count = whole("split", "the number of pieces", indices_or_sections)
        return list(engine.split(x, count, axis))
    return _cut(x, [whole("split", "a place", i) for i in indices_or_sections], axis)


def _cut(x: Tensor, places: list[int], axis: int) -> list[Tensor]:
    rank = known_rank("split", x)
    size = x.shape[canonical_axis("split", axis, rank)]
    if size is not None:
        places = [min(max(i + size if i < 0 else i, 0), size) for i in places]
    elif any(i < 0 for i in places):
        raise ShapeError(
            f"split: a place counted from the end needs an axis of known size, got {x.spec}"
        )
    sizes = [b - a for a, b in itertools.pairwise([0, *places])]
    if any(n < 0 for n in sizes):
        raise InvalidArgumentError(f"split: the places must not fall, got {places}")
    return list(engine.split(x, [*sizes, -1], axis))


@public
def array_split(
    x: TensorLike, indices_or_sections: int | Iterable[SupportsInt], axis: int = 0
) -> list[Tensor]:
    """As `split`, but the pieces may differ by one in size: the first ones are the longer.

    Args:
        x: any tensor.
        indices_or_sections: the number of pieces, or the places at which to cut.
        axis: the axis to cut; for a number of pieces its size must be known.

    Returns:
        The pieces; some are empty where there are more of them than slices.

    Raises:
        InvalidArgumentError: less than one piece.
        ShapeError: the axis does not exist.

    Examples:
        >>> [part.shape for part in ops.array_split(np.arange(7), 3)]
        [(3,), (2,), (2,)]
    """
    x = tensor(x)
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, axis)
    if indices_or_sections < 1:
        raise InvalidArgumentError(
            f"array_split: expected at least one piece, got {indices_or_sections}"
        )
    each, longer = divmod(known_size("array_split", x, axis), indices_or_sections)
    sizes = [each + (i < longer) for i in range(indices_or_sections)]
    return list(engine.split(x, sizes, axis))


@public
def hsplit(x: TensorLike, indices_or_sections: int | Iterable[SupportsInt]) -> list[Tensor]:
    """`x` cut along axis 1; a vector along axis 0.

    Args:
        x: with at least one axis.
        indices_or_sections: as in `split`: the number of equal pieces, or the places at which to
            cut.

    Raises:
        ShapeError: it cannot be cut into so many equal pieces, or `x` is a scalar.

    Examples:
        >>> ops.hsplit(np.array([[1, 2], [3, 4]]), 2)
        [Tensor([[1],
                [3]], shape=(2, 1), dtype=int64), Tensor([[2],
                [4]], shape=(2, 1), dtype=int64)]
    """
    x = tensor(x)
    return split(x, indices_or_sections, 0 if known_rank("hsplit", x) == 1 else 1)


@public
def vsplit(x: TensorLike, indices_or_sections: int | Iterable[SupportsInt]) -> list[Tensor]:
    """`x` cut along axis 0.

    Args:
        x: with at least one axis.
        indices_or_sections: as in `split`: the number of equal pieces, or the places at which to
            cut.

    Raises:
        ShapeError: it cannot be cut into so many equal pieces.

    Examples:
        >>> ops.vsplit(np.array([[1, 2], [3, 4]]), 2)
        [Tensor([[1, 2]], shape=(1, 2), dtype=int64), Tensor([[3, 4]], shape=(1, 2), dtype=int64)]
    """
    return split(x, indices_or_sections, 0)


@public
def dsplit(x: TensorLike, indices_or_sections: int | Iterable[SupportsInt]) -> list[Tensor]:
    """`x` cut along axis 2.

    Args:
        x: with at least three axes.
        indices_or_sections: as in `split`: the number of equal pieces, or the places at which to
            cut.

    Raises:
        ShapeError: it cannot be cut into so many equal pieces, or there is no axis 2.

    Examples:
        >>> [part.shape for part in ops.dsplit(np.zeros((1, 2, 4)), 2)]
        [(1, 2, 2), (1, 2, 2)]
    """
    return split(x, indices_or_sections, 2)


@public
def meshgrid(*x: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, from those along each axis.

    Args:
        *x: vectors; what has more axes is taken in row order.
        indexing: "xy" puts the first vector along axis 1 and the second along axis 0, "ij" puts
            each along its own axis.

    Returns:
        For each vector a tensor with one axis for each of them.

    Raises:
        InvalidArgumentError: another indexing.

    Examples:
        >>> rows, columns = ops.meshgrid([1, 2, 3], [4, 5])
        >>> rows
        Tensor([[1, 2, 3],
                [1, 2, 3]], shape=(2, 3), dtype=int32)
        >>> columns
        Tensor([[4, 4, 4],
                [5, 5, 5]], shape=(2, 3), dtype=int32)
    """
    vectors = [v if v.ndim < 2 else reshape(v, (-1,)) for v in map(tensor, x)]
    return list(creation.meshgrid(*vectors, indexing=indexing))
