"""Where numbers come for the first time, and sums of the rows that belong to equal ones."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...graph import INTEGER, Array, Tensor, TensorSpec, int32
from ..core.registry import define, no_gradient
from .segment import segment_sum
from .shape import dim_of


@define("FirstOccurrence", dtypes=INTEGER)
def first_occurrence(x: TensorSpec) -> TensorSpec:
    """y[k] = the least j with x[j] = x[k], of a vector of whole numbers; int32."""
    if x.shape.rank not in (1, None):
        raise ShapeError(f"FirstOccurrence: expected a vector, got {x}", remedy="reshape it")
    return TensorSpec(x.shape, int32)


@first_occurrence.reference
def _first_occurrence_kernel(xp: Any, x: Array) -> Array:
    order = xp.argsort(x, kind="stable")  # of equal ones, the first comes first
    return order[xp.searchsorted(x[order], x)].astype(xp.int32)


first_occurrence.grad(no_gradient)


def sum_repeats(rows: Tensor, first: Tensor) -> Tensor:
    """The sum of all rows of each number where it comes first, and zeros where it comes again.

    Equal numbers are added in their order.

    Args:
        rows: (n, ...).
        first: (n,), what FirstOccurrence makes of the numbers of the rows.
    """
    count = first.shape[0] if first.shape.rank else None
    return segment_sum(rows, first, dim_of(first, axis=0) if count is None else count)
