"""Arithmetic of sparse arrays, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError
from ...graph import INTEGER, Array, Tensor, TensorSpec, int64
from ..array.gather import gather, gather_nd
from ..array.join import concat
from ..array.points import scatter_points
from ..array.shape import reshape, shape_of
from ..core.convert import convert_to_tensor
from ..core.registry import define, no_gradient
from ..math.arithmetic import add, divide, maximum, minimum, multiply
from ..math.compare import greater_equal
from ..math.complex_numbers import magnitude
from .sparse_places import check_places
from .sparse_retention import sparse_retain, sparse_union
from .sparse_values import SparseValues, as_sparse, check_sparse


def _joined(
    who: str, a: Any, b: Any, combine: Callable[[Tensor, Tensor], Tensor], name: str | None
) -> SparseValues:
    """What `combine` makes of two arrays wherever one has an element; 0 stands for what is not."""
    x, y = as_sparse(who, a), as_sparse(who, b)
    if x.values.dtype != y.values.dtype:
        raise DTypeError(
            f"{who}: two sparse arrays must have one type, got {x.dtype} and {y.dtype}",
            remedy="cast one",
        )
    places, first, second = sparse_union.many(
        x.indices, y.indices, x.dense_shape, y.dense_shape, name=name
    )
    zero = reshape(convert_to_tensor(0, x.values.dtype), [1])
    left = gather(concat([x.values, zero]), first)
    right = gather(concat([y.values, zero]), second)
    return SparseValues(places, combine(left, right), x.dense_shape)


def sparse_add(a: Any, b: Any, threshold: Any = 0, name: str | None = None) -> Any:
    """a + b, of which at least one is sparse.

    Args:
        a, b: sparse arrays of one shape, or a sparse array and a tensor of its shape.
        threshold: of two sparse arrays, sums whose magnitude is below it are left out.

    Returns:
        a sparse array of two; a tensor, of a sparse and a dense one.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_add(s, s))
        Tensor([[ 0, 10],
                [14,  0]], shape=(2, 2), dtype=int32)
    """
    if not isinstance(b, SparseValues):
        a, b = b, a
    if not isinstance(b, SparseValues):
        raise InvalidArgumentError("sparse_add: at least one of the two must be sparse")
    if not isinstance(a, SparseValues):
        x = as_sparse("sparse_add", b)
        dense = convert_to_tensor(a, x.values.dtype)
        shape = shape_of(dense, dtype=int64)
        return add(dense, scatter_points(x.values, x.indices, shape, static=dense.shape), name=name)
    total = _joined("sparse_add", a, b, add, name)
    if isinstance(threshold, int | float) and threshold == 0:
        return total
    least = convert_to_tensor(threshold, magnitude(total.values).dtype)
    return sparse_retain(total, greater_equal(magnitude(total.values), least))


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseValues:
    """The greater of two elements; what is not there counts as 0.

    Args:
        sp_a: SparseValues.
        sp_b: SparseValues of the same shape and type.
        name: of the operation.

    Returns:
        an element wherever one of them has one.

    Raises:
        InvalidArgumentError: the shapes differ.
        DTypeError: one is no SparseValues, or the types differ.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_maximum(s, s))
        Tensor([[0, 5],
                [7, 0]], shape=(2, 2), dtype=int32)
    """
    return _joined("sparse_maximum", sp_a, sp_b, maximum, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseValues:
    """The lesser of two elements; what is not there counts as 0.

    Args:
        sp_a: SparseValues.
        sp_b: SparseValues of the same shape and type.
        name: of the operation.

    Returns:
        an element wherever one of them has one.

    Raises:
        InvalidArgumentError: the shapes differ.
        DTypeError: one is no SparseValues, or the types differ.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_minimum(s, s))
        Tensor([[0, 5],
                [7, 0]], shape=(2, 2), dtype=int32)
    """
    return _joined("sparse_minimum", sp_a, sp_b, minimum, name)


@define("SparseBroadcast", dtypes=INTEGER)
def sparse_broadcast(indices: TensorSpec, dense_shape: TensorSpec, shape: TensorSpec) -> TensorSpec:
    """Where a dense array of `shape` has what stands at each place once it is broadcast."""
    check_sparse("SparseBroadcast", indices, dense_shape)
    count = indices.shape[0] if indices.shape.rank == 2 else None
    return TensorSpec([count, shape.shape[0] if shape.shape.rank == 1 else None], int64)


@sparse_broadcast.kernel("cpu")
def _broadcast_kernel(indices: Array, dense_shape: Array, shape: Array) -> Array:
    check_places("SparseBroadcast", indices, dense_shape)
    rank = len(shape)
    own = dense_shape[len(dense_shape) - rank :]
    if rank > len(dense_shape) or ((shape != own) & (shape != 1)).any():
        raise InvalidArgumentError(
            f"a dense array of shape {shape.tolist()} cannot be broadcast to that of the sparse "
            f"one, {dense_shape.tolist()}"
        )
    return np.where(shape == 1, 0, indices[:, len(dense_shape) - rank :])


sparse_broadcast.grad(no_gradient)


def _with_dense(
    sparse: Any, dense: Any, combine: Callable[[Tensor, Tensor], Tensor]
) -> SparseValues:
    x = as_sparse("a sparse array and a dense one", sparse)
    y = convert_to_tensor(dense, None if isinstance(dense, Tensor) else x.values.dtype)
    places = sparse_broadcast(x.indices, x.dense_shape, shape_of(y, dtype=int64))
    return SparseValues(x.indices, combine(x.values, gather_nd(y, places)), x.dense_shape)


def add_dense(sparse: Any, dense: Any) -> SparseValues:
    """The elements that are there, plus those of a dense array, which is broadcast to the shape."""
    return _with_dense(sparse, dense, add)


def multiply_dense(sparse: Any, dense: Any) -> SparseValues:
    """The elements, times those of a dense array, which is broadcast to the shape."""
    return _with_dense(sparse, dense, multiply)


def divide_dense(sparse: Any, dense: Any) -> SparseValues:
    """The elements, divided by those of a dense array, which is broadcast to the shape."""
    return _with_dense(sparse, dense, divide)
