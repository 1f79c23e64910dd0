"""Sums and maxima of sparse arrays over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import INTEGER, NUMERIC, REAL, Array, OpView, Tensor, TensorShape, TensorSpec
from ..array.axes import expand_dims
from ..array.gather import gather_nd
from ..array.shape import static_shape
from ..core.arrays import computing_dtype
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define, no_gradient
from ..math.arithmetic import multiply
from .sparse_places import check_places, groups_of, kept_axes
from .sparse_values import SparseValues, as_sparse, check_sparse, sparse_specs

_TYPES = {"indices": INTEGER, "dense_shape": INTEGER}


def _reduced_shape(sizes: Any, axes: Any, keepdims: bool) -> list[Any]:
    kept, _ = kept_axes("sparse reduction", axes, len(sizes))
    if keepdims:
        return [n if a in kept else 1 for a, n in enumerate(sizes)]
    return [sizes[a] for a in kept]


def _grouped(
    who: str, indices: Array, dense_shape: Array, values: Array, axes: Any, kind: str
) -> tuple[Array, Array, list[int]]:
    """The places that remain, the value of each, and the axes that remain."""
    check_places(who, indices, dense_shape)
    kept, _ = kept_axes(who, axes, len(dense_shape))
    places, numbers = groups_of(indices[:, kept])
    found = np.zeros(len(places), computing_dtype(np, values))
    if kind == "sum":
        np.add.at(found, numbers, values.astype(found.dtype, copy=False))
    else:
        found[numbers] = values
        np.maximum.at(found, numbers, values.astype(found.dtype, copy=False))
    return places, found.astype(values.dtype, copy=False), kept


@define(
    "SparseReduce",
    dtypes={**_TYPES, "values": NUMERIC},
    same_dtype=False,
)
def sparse_reduce(
    indices: TensorSpec,
    dense_shape: TensorSpec,
    values: TensorSpec,
    *,
    static: TensorShape,
    axes: tuple[int, ...] | None,
    keepdims: bool,
    kind: str,
) -> TensorSpec:
    """The dense "sum" or "max" over `axes`, all if None; 0 where there is nothing.

    `static`: what is known of the dense shape.
    """
    check_sparse("SparseReduce", indices, dense_shape)
    static = TensorShape(static)
    if static.rank is None:
        return TensorSpec(None if axes is not None and not keepdims else None, values.dtype)
    return TensorSpec(_reduced_shape(static, axes, keepdims), values.dtype)


@sparse_reduce.kernel("cpu")
def _reduce_kernel(
    indices: Array,
    dense_shape: Array,
    values: Array,
    *,
    static: TensorShape,
    axes: tuple[int, ...] | None,
    keepdims: bool,
    kind: str,
) -> Array:
    places, found, kept = _grouped("SparseReduce", indices, dense_shape, values, axes, kind)
    y = np.zeros([int(dense_shape[a]) for a in kept], values.dtype)
    if len(found):
        y[tuple(places.T)] = found if kept else found[0]
    return y.reshape(_reduced_shape(dense_shape.tolist(), axes, keepdims))


@sparse_reduce.grad
def _reduce_grad(op: OpView, dy: Tensor) -> Grads:
    indices, _, _ = op.inputs
    static = TensorShape(op.attrs["static"])
    if op.attrs["kind"] != "sum":
        return None, None, None
    if static.rank is None:
        raise ShapeError("the gradient of a sparse sum needs a known number of axes")
    kept, gone = kept_axes("SparseReduce", op.attrs["axes"], len(static))
    whole = dy if op.attrs["keepdims"] or not gone else expand_dims(dy, tuple(gone))
    mask = convert_to_tensor(np.asarray([a in kept for a in range(len(static))], np.int64))
    return None, None, gather_nd(whole, multiply(indices, mask))


@define("SparseReduceSparse", dtypes={**_TYPES, "values": REAL}, same_dtype=False)
def sparse_reduce_sparse(
    indices: TensorSpec,
    dense_shape: TensorSpec,
    values: TensorSpec,
    *,
    axes: tuple[int, ...] | None,
    keepdims: bool,
    kind: str,
) -> tuple[TensorSpec, ...]:
    """As SparseReduce, with a sparse result: its places, values and dense shape."""
    rank = check_sparse("SparseReduceSparse", indices, dense_shape)
    axes_left = None if rank is None else len(_reduced_shape([None] * rank, axes, keepdims))
    return sparse_specs(None, axes_left, values.dtype)


@sparse_reduce_sparse.kernel("cpu")
def _reduce_sparse_kernel(
    indices: Array,
    dense_shape: Array,
    values: Array,
    *,
    axes: tuple[int, ...] | None,
    keepdims: bool,
    kind: str,
) -> tuple[Array, ...]:
    places, found, kept = _grouped("SparseReduceSparse", indices, dense_shape, values, axes, kind)
    if keepdims:
        whole = np.zeros((len(places), len(dense_shape)), np.int64)
        whole[:, kept] = places
        places = whole
    shape = np.asarray(_reduced_shape(dense_shape.tolist(), axes, keepdims), np.int64)
    return places.astype(np.int64, copy=False), found, shape


sparse_reduce_sparse.grad(no_gradient)


def _axes(axis: Any) -> tuple[int, ...] | None:
    return None if axis is None else tuple(int(a) for a in np.ravel(axis))


def _dense(sparse: Any, axis: Any, keepdims: bool, kind: str, name: str | None) -> Tensor:
    x = as_sparse(f"sparse_reduce_{kind}", sparse)
    attrs = {"static": static_shape(x.dense_shape), "axes": _axes(axis), "keepdims": keepdims}
    return sparse_reduce(x.indices, x.dense_shape, x.values, kind=kind, name=name, **attrs)


def sparse_reduce_sum(
    sparse: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The sum over axes, as a dense tensor.

    Args:
        sparse: SparseValues of numbers.
        axis: an axis, several, or None for all.
        keepdims: whether reduced axes stay, of size 1.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_reduce_sum(s, 1)
        Tensor([5, 7], shape=(2,), dtype=int32)
    """
    return _dense(sparse, axis, keepdims, "sum", name)


def sparse_reduce_max(
    sparse: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The greatest element that is there; 0 where there is none; see `sparse_reduce_sum`.

    Args:
        sparse: SparseValues of numbers.
        axis: an axis, several, or None for all.
        keepdims: whether reduced axes stay, of size 1.
        name: of the operation.

    Raises:
        InvalidArgumentError: an axis does not exist.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_reduce_max(s, 1)
        Tensor([5, 7], shape=(2,), dtype=int32)
    """
    return _dense(sparse, axis, keepdims, "max", name)


def _sparse(sparse: Any, axis: Any, keepdims: bool, kind: str, name: str | None) -> SparseValues:
    x = as_sparse(f"sparse_reduce_{kind}_sparse", sparse)
    attrs = {"axes": _axes(axis), "keepdims": keepdims, "kind": kind}
    found = sparse_reduce_sparse.many(x.indices, x.dense_shape, x.values, name=name, **attrs)
    return SparseValues(*found)


def sparse_reduce_sum_sparse(
    sparse: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> SparseValues:
    """As `sparse_reduce_sum`, with a sparse result.

    Args:
        sparse: SparseValues of numbers.
        axis: an axis, several, or None for all.
        keepdims: whether reduced axes stay, of size 1.
        name: of the operation.

    Returns:
        an element wherever one of those that are summed is there.

    Raises:
        InvalidArgumentError: an axis does not exist.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_reduce_sum_sparse(s, 1))
        Tensor([5, 7], shape=(2,), dtype=int32)
    """
    return _sparse(sparse, axis, keepdims, "sum", name)


def sparse_reduce_max_sparse(
    sparse: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> SparseValues:
    """As `sparse_reduce_max`, with a sparse result.

    Args:
        sparse: SparseValues of numbers.
        axis: an axis, several, or None for all.
        keepdims: whether reduced axes stay, of size 1.
        name: of the operation.

    Returns:
        an element wherever one of those that are compared is there.

    Raises:
        InvalidArgumentError: an axis does not exist.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_reduce_max_sparse(s, 1))
        Tensor([5, 7], shape=(2,), dtype=int32)
    """
    return _sparse(sparse, axis, keepdims, "max", name)
