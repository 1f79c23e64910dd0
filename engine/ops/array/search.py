"""Find places: where a condition holds, where a value belongs in a sorted sequence, or stands."""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import DENSE, REAL, STRING, Array, Tensor, TensorSpec, int32, int64
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


@define("SearchSorted", dtypes=REAL)
def _search_sorted(sequence: TensorSpec, values: TensorSpec, *, side: str) -> TensorSpec:
    """For each value v the int32 place i at which it would be inserted into the sorted sequence.

    side "left": sequence[i - 1] < v <= sequence[i]; "right": sequence[i - 1] <= v < sequence[i].
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f'SearchSorted: side must be "left" or "right", got {side!r}')
    if sequence.shape.rank not in (1, None):
        raise ShapeError(
            f"SearchSorted: the sorted sequence must be a vector, got {sequence}",
            remedy="search each row on its own",
        )
    return TensorSpec(values.shape, int32)


@_search_sorted.reference
def _search_sorted_kernel(xp: Any, sequence: Array, values: Array, *, side: str) -> Array:
    found = xp.searchsorted(in_order(xp, sequence), in_order(xp, values), side=side)
    return found.astype(xp.int32)


_search_sorted.grad(no_gradient)


def searchsorted(sequence: Tensor, values: Tensor, side: str = "left") -> Tensor:
    """The place of each value in a sorted vector, int32.

    Args:
        sequence: (n,), ascending.
        values: any shape, dtype of `sequence`.
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
