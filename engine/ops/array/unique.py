"""The distinct elements of a tensor: in rising order, or as they first occur."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import (
    ANY,
    BOOLEAN,
    REAL,
    Array,
    Dim,
    DType,
    Tensor,
    TensorSpec,
    as_dtype,
    canonical_axis,
    int32,
)
from ..core.arrays import in_order
from ..core.convert import convert_to_tensor
from ..core.registry import define, no_gradient


@define("Unique", dtypes=REAL | BOOLEAN)
def _unique(
    x: TensorSpec, *, axis: int | None
) -> tuple[TensorSpec, TensorSpec, TensorSpec, TensorSpec]:
    """The distinct elements of x, or slices along `axis`, in rising order.

    Outputs: they; the index of the first of each; for each element of x the index of its equal
    among the distinct ones; how often each occurs. The indices and counts are int32; their number
    is known at run time only.
    """
    some = TensorSpec([None], int32)
    if axis is None:
        return TensorSpec([None], x.dtype), some, TensorSpec(x.shape, int32), some
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype), some, some, some
    place = canonical_axis("Unique", axis, len(x.shape))
    dims: list[Dim] = list(x.shape)
    size, dims[place] = dims[place], None
    return TensorSpec(dims, x.dtype), some, TensorSpec([size], int32), some


@_unique.reference
def _unique_kernel(xp: Any, x: Array, *, axis: int | None) -> tuple[Array, ...]:
    comparable = in_order(xp, x)
    values, first, inverse, counts = xp.unique(
        comparable,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=axis,
        equal_nan=False,
    )
    inverse = inverse.reshape(x.shape if axis is None else (x.shape[axis],))
    return values.astype(x.dtype, copy=False), *(
        i.astype(xp.int32) for i in (first, inverse, counts)
    )


_unique.grad(no_gradient)


def unique(x: Tensor, axis: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The distinct elements of `x`, or its distinct slices along `axis`, in rising order.

    Args:
        x: real numbers or bools.
        axis: the axis whose slices are compared; None compares all elements.

    Returns:
        The distinct ones; the index of the first occurrence of each; the index, for each element
        (shaped like `x`) or slice, of its equal among the distinct ones; the counts.
    """
    values, first, inverse, counts = _unique.many(x, axis=axis)
    return values, first, inverse, counts


@define("UniqueWithCounts", dtypes=ANY)
def _unique_in_order(x: TensorSpec, *, dtype: DType) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The distinct elements of the vector x in the order of their first occurrence; for each
    element the index of its equal among them; how often each occurs.
    """
    if x.shape.rank not in (None, 1):
        raise ShapeError(f"UniqueWithCounts: expected a vector, got {x}", remedy="flatten it")
    some = TensorSpec([None], dtype)
    return TensorSpec([None], x.dtype), TensorSpec(x.shape, dtype), some


@_unique_in_order.kernel("cpu")
def _unique_in_order_kernel(x: Array, *, dtype: DType) -> tuple[Array, Array, Array]:
    # A NaN equals none, itself among them.
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    wanted = dtype.numpy
    return values[order], place[inverse].astype(wanted), counts[order].astype(wanted)


_unique_in_order.grad(no_gradient)


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

    Examples:
        >>> values, places, counts = engine.unique_with_counts(engine.constant([3, 1, 3]))
        >>> values, counts
        (Tensor([3, 1], shape=(2,), dtype=int32), Tensor([2, 1], shape=(2,), dtype=int32))
    """
    values, indices, counts = _unique_in_order.many(
        convert_to_tensor(x), name=name, dtype=as_dtype(out_idx)
    )
    return values, indices, counts
