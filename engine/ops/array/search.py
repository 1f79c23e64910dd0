"""Find places: where a condition holds, where a value belongs in a sorted sequence, or stands."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import DENSE, REAL, STRING, Array, Tensor, TensorShape, TensorSpec, int32, int64
from ..core.arrays import in_order
from ..core.registry import define, no_gradient
from .join import one_or_all


@define("NonZero", dtypes=DENSE)
def _nonzero(x: TensorSpec) -> tuple[TensorSpec, ...]:
    """For each axis of x, the int32 coordinates of the elements that are not 0, in row order."""
    if not x.shape.rank:
        raise ShapeError(
            f"NonZero: expected a tensor with a known number of axes, at least one; got {x}",
            remedy="reshape a scalar to [1]",
        )
    return tuple(TensorSpec([None], int32) for _ in x.shape)


@_nonzero.reference
def _nonzero_kernel(xp: Any, x: Array) -> tuple[Array, ...] | Array:
    return one_or_all([places.astype(xp.int32) for places in xp.nonzero(x)])


_nonzero.grad(no_gradient)


def nonzero(x: Tensor) -> tuple[Tensor, ...]:
    """For each axis of `x`, the int32 coordinates of the elements that are not 0, in row order.

    Their number is known at run time only.
    """
    return _nonzero.many(x)


@define("ArgWhere", dtypes=DENSE)
def argwhere(x: TensorSpec) -> TensorSpec:
    """The coordinates, int64 (n, axes), of the elements that are not 0, in row order."""
    return TensorSpec([None, x.shape.rank], int64)


@argwhere.reference
def _argwhere_kernel(xp: Any, x: Array) -> Array:
    if not x.ndim:
        return xp.zeros((int(bool(x)), 0), xp.int64)
    return xp.stack(xp.nonzero(x), axis=-1).astype(xp.int64, copy=False)


argwhere.grad(no_gradient)


@define("SearchSorted", dtypes=REAL)
def _search_sorted(sequence: TensorSpec, values: TensorSpec, *, side: str) -> TensorSpec:
    """For each value v the int32 place i at which it would be inserted into the sorted sequence.

    side "left": sequence[i - 1] < v <= sequence[i]; "right": sequence[i - 1] <= v < sequence[i].
    A sequence (b..., n) with values (b..., m) is searched row by row.
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f'SearchSorted: side must be "left" or "right", got {side!r}')
    if sequence.shape.rank == 0:
        raise ShapeError(f"SearchSorted: the sorted sequence must have an axis, got {sequence}")
    if sequence.shape.rank in (1, None):
        return TensorSpec(values.shape, int32)
    rows = TensorShape(sequence.shape[:-1])
    if values.shape.rank is not None and not (
        len(values.shape) == len(sequence.shape) and rows.is_compatible_with(values.shape[:-1])
    ):
        raise ShapeError(
            f"SearchSorted: each row of the sorted sequences {sequence} needs a row of values, "
            f"got {values}"
        )
    return TensorSpec(values.shape, int32)


@_search_sorted.reference
def _search_sorted_kernel(xp: Any, sequence: Array, values: Array, *, side: str) -> Array:
    sequence, values = in_order(xp, sequence), in_order(xp, values)
    if sequence.ndim == 1:
        return xp.searchsorted(sequence, values, side=side).astype(xp.int32)
    if sequence.shape[:-1] != values.shape[:-1]:
        raise ShapeError(
            f"SearchSorted: {list(sequence.shape[:-1])} rows of sorted sequences, and "
            f"{list(values.shape[:-1])} rows of values"
        )
    places = xp.empty(values.shape, xp.int32)
    for row in np.ndindex(values.shape[:-1]):
        places[row] = xp.searchsorted(sequence[row], values[row], side=side)
    return places


_search_sorted.grad(no_gradient)


def searchsorted(sequence: Tensor, values: Tensor, side: str = "left") -> Tensor:
    """The place of each value in a sorted vector, or in that of its row, int32.

    Args:
        sequence: (n,), or (b..., n), ascending along the last axis.
        values: any shape, dtype of `sequence`; (b..., m) for several rows.
        side: "left" for the first place that keeps the order, "right" for the last.
    """
    return _search_sorted(sequence, values, side=side)


@define("FindSorted", dtypes=REAL | STRING)
def _find_sorted(sequence: TensorSpec, values: TensorSpec) -> TensorSpec:
    """For each value the int64 place of the first equal element of the sorted sequence, else -1."""
    if sequence.shape.rank not in (1, None):
        raise ShapeError(f"FindSorted: the sorted sequence must be a vector, got {sequence}")
    return TensorSpec(values.shape, int64)


@_find_sorted.reference
def _find_sorted_kernel(xp: Any, sequence: Array, values: Array) -> Array:
    if not len(sequence):
        return xp.full(values.shape, -1, xp.int64)
    places = xp.searchsorted(in_order(xp, sequence), in_order(xp, values))
    places = xp.minimum(places, len(sequence) - 1)
    return xp.where(sequence[places] == values, places, -1).astype(xp.int64)


_find_sorted.grad(no_gradient)


def find_sorted(sequence: Tensor, values: Tensor) -> Tensor:
    """Where each value stands in a sorted vector, int64; -1 where it does not.

    Args:
        sequence: (n,), ascending; numbers, or strings, which are in the order of their bytes.
        values: any shape, dtype of `sequence`.
    """
    return _find_sorted(sequence, values)
