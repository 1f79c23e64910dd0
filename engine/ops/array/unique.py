"""The distinct elements of a vector in the order in which they first occur."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import ANY, Array, DType, Tensor, TensorSpec, as_dtype, int32
from ..core.convert import convert_to_tensor
from ..core.registry import define, no_gradient


@define("UniqueWithCounts", dtypes=ANY)
def _unique(x: TensorSpec, *, dtype: DType) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The distinct elements of the vector x in the order of their first occurrence; for each
    element the index of its equal among them; how often each occurs.
    """
    if x.shape.rank not in (None, 1):
        raise ShapeError(f"UniqueWithCounts: expected a vector, got {x}", remedy="flatten it")
    some = TensorSpec([None], dtype)
    return TensorSpec([None], x.dtype), TensorSpec(x.shape, dtype), some


@_unique.kernel("cpu")
def _unique_kernel(x: Array, *, dtype: DType) -> tuple[Array, Array, Array]:
    # A NaN equals none, itself among them.
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    wanted = dtype.numpy
    return values[order], place[inverse].astype(wanted), counts[order].astype(wanted)


_unique.grad(no_gradient)


def unique_with_counts(
    x: Any, out_idx: Any = int32, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct elements of a vector, in the order in which they first occur.

    Args:
        x: (n), of any type.
        out_idx: the integer type of indices and counts.
        name: of the operation.

    Returns:
        The distinct elements, (m); for each element of `x` the index of its equal among them, (n);
        how often each occurs, (m).

    Raises:
        ShapeError: `x` is no vector.
    """
    values, indices, counts = _unique.many(convert_to_tensor(x), name=name, dtype=as_dtype(out_idx))
    return values, indices, counts
