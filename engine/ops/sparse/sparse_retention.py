"""Which elements of sparse arrays stay, and where: retain, reset the shape, fill rows, softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, Array, Tensor, TensorSpec, bool_, int64
from ..array.gather import gather
from ..array.join import concat
from ..array.search import nonzero
from ..array.segment import segment_max, segment_sum
from ..array.shape import dim_of, reshape
from ..core.basic import stop_gradient
from ..core.convert import convert_to_tensor
from ..core.registry import define, no_gradient
from ..math.arithmetic import divide, subtract
from ..math.elementary import exp
from .sparse_places import check_places, groups_of
from .sparse_structure import sizes_of
from .sparse_values import SparseValues, as_sparse, check_sparse

_INDICES = {"indices": INTEGER, "dense_shape": INTEGER}


def sparse_retain(sparse: Any, to_retain: Any) -> SparseValues:
    """The elements whose entry of the vector `to_retain` is True.

    Args:
        sparse: SparseValues of n elements.
        to_retain: (n,), bools.

    Returns:
        the elements that are kept, in the same shape.

    Raises:
        ShapeError: there is not one bool for each element.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_retain(s, [True, False]))
        Tensor([[0, 5],
                [0, 0]], shape=(2, 2), dtype=int32)
    """
    x = as_sparse("sparse_retain", sparse)
    flags = convert_to_tensor(to_retain, bool_)
    if not flags.shape.is_compatible_with(x.values.shape):
        raise ShapeError(
            f"sparse_retain: {x.values.spec} are the values, and to_retain is {flags.spec}"
        )
    (kept,) = nonzero(flags)
    return SparseValues(gather(x.indices, kept), gather(x.values, kept), x.dense_shape)


@define("SparseResetShape", dtypes=INTEGER)
def reset_op(indices: TensorSpec, dense_shape: TensorSpec, *wanted: TensorSpec) -> TensorSpec:
    """The shape that was wanted, if the old one fits into it; else the least one for the places."""
    rank = check_sparse("SparseResetShape", indices, dense_shape)
    for given in wanted:
        if given.shape.rank == 1 and None not in (rank, given.shape[0]) and rank != given.shape[0]:
            raise ShapeError(f"SparseResetShape: {given} is not for {rank} axes")
    return TensorSpec(dense_shape.shape, int64)


@reset_op.kernel("cpu")
def _reset_kernel(indices: Array, dense_shape: Array, *wanted: Array) -> Array:
    if not wanted:
        return indices.max(0) + 1 if len(indices) else np.zeros_like(dense_shape)
    (new,) = wanted
    if new.shape != dense_shape.shape or (new < dense_shape).any():
        raise InvalidArgumentError(
            f"sparse_reset_shape: {dense_shape.tolist()} does not fit into {new.tolist()}"
        )
    return new


def sparse_reset_shape(sparse: Any, new_shape: Any = None) -> SparseValues:
    """The same elements in another shape, which holds the old one; by default the least one.

    Args:
        sparse: SparseValues.
        new_shape: as many sizes, none below the old one; None for the least shape that holds all
            elements.

    Raises:
        InvalidArgumentError: the old shape does not fit into the new one.
        ShapeError: there is another number of axes.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_reset_shape(s, (2, 3)))
        Tensor([[0, 5, 0],
                [7, 0, 0]], shape=(2, 3), dtype=int32)
    """
    x = as_sparse("sparse_reset_shape", sparse)
    wanted = [] if new_shape is None else [sizes_of(new_shape)]
    return SparseValues(x.indices, x.values, reset_op(x.indices, x.dense_shape, *wanted))


@define("SparseFillRows", dtypes=_INDICES)
def sparse_fill_rows(
    indices: TensorSpec, dense_shape: TensorSpec
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Places with one in each empty row, which value each has (n for none), and the empty rows."""
    rank = check_sparse("SparseFillRows", indices, dense_shape)
    return TensorSpec([None, rank], int64), TensorSpec([None], int64), TensorSpec([None], bool_)


@sparse_fill_rows.kernel("cpu")
def _fill_kernel(indices: Array, dense_shape: Array) -> tuple[Array, Array, Array]:
    check_places("SparseFillRows", indices, dense_shape)
    if not len(dense_shape):
        raise InvalidArgumentError("sparse_fill_empty_rows: there are no rows")
    empty = np.ones(int(dense_shape[0]), bool)
    empty[indices[:, 0]] = False
    new = np.zeros((int(empty.sum()), len(dense_shape)), np.int64)
    new[:, 0] = np.flatnonzero(empty)
    source = np.concatenate([np.arange(len(indices)), np.full(len(new), len(indices))])
    places = np.concatenate([indices, new])
    order = np.argsort(places[:, 0], kind="stable")
    return places[order], source[order].astype(np.int64), empty


def sparse_fill_empty_rows(
    sparse: Any, default_value: Any, name: str | None = None
) -> tuple[SparseValues, Tensor]:
    """With `default_value` at [row, 0, ...] of each row that has nothing; and which rows these are.

    Args:
        sparse: (rows, ...).
        default_value: a scalar.

    Returns:
        the sparse array, and bool (rows): whether it was empty.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [0, 0]])
        >>> filled, empty = engine.sparse_fill_empty_rows(s, 9)
        >>> engine.sparse_tensor_to_dense(filled), empty
        (Tensor([[0, 5],
                [9, 0]], shape=(2, 2), dtype=int32), Tensor([False,  True], shape=(2,), dtype=bool))
    """
    x = as_sparse("sparse_fill_empty_rows", sparse)
    default = convert_to_tensor(default_value, x.values.dtype)
    if default.shape.rank not in (None, 0):
        raise ShapeError(f"sparse_fill_empty_rows: the default is a scalar, got {default.spec}")
    places, source, empty = sparse_fill_rows.many(x.indices, x.dense_shape, name=name)
    values = gather(concat([x.values, reshape(default, [1])]), source)
    return SparseValues(places, values, x.dense_shape), empty


@define("SparseGroups", dtypes=INTEGER)
def sparse_groups(indices: TensorSpec, dense_shape: TensorSpec) -> TensorSpec:
    """For each place the number of its group: those that agree on all axes but the last."""
    if check_sparse("SparseGroups", indices, dense_shape) in (0, 1):
        raise ShapeError(f"sparse_softmax: expected at least two axes, got places {indices}")
    return TensorSpec([indices.shape[0] if indices.shape.rank == 2 else None], int64)


@sparse_groups.kernel("cpu")
def _groups_kernel(indices: Array, dense_shape: Array) -> Array:
    check_places("SparseGroups", indices, dense_shape)
    return groups_of(indices[:, :-1])[1]


def sparse_softmax(sparse: Any, name: str | None = None) -> SparseValues:
    """exp(v) / sum of exp over the elements that are there of the same row (the last axis).

    Args:
        sparse: SparseValues of floats with at least two axes.
        name: not used.

    Returns:
        elements at the same places; those of a row sum to 1.

    Raises:
        ShapeError: there are less than two axes.
        DTypeError: `sparse` is no SparseValues, or has integers.

    Examples:
        >>> s = engine.sparse_from_dense([[0.0, 5.0], [7.0, 7.0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_softmax(s))
        Tensor([[0. , 1. ],
                [0.5, 0.5]], shape=(2, 2), dtype=float32)
    """
    x = as_sparse("sparse_softmax", sparse)
    groups = sparse_groups(x.indices, x.dense_shape)
    count = dim_of(x.values, axis=0)
    top = stop_gradient(gather(segment_max(x.values, groups, count), groups))
    shares = exp(subtract(x.values, top))
    total = gather(segment_sum(shares, groups, count), groups)
    return SparseValues(x.indices, divide(shares, total), x.dense_shape)


@define("SparseUnion", dtypes=INTEGER)
def sparse_union(
    a: TensorSpec, b: TensorSpec, a_shape: TensorSpec, b_shape: TensorSpec
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The places of either array in order, and which value of each stands there: n where none."""
    rank = check_sparse("SparseUnion", a, a_shape)
    check_sparse("SparseUnion", b, b_shape)
    return TensorSpec([None, rank], int64), TensorSpec([None], int64), TensorSpec([None], int64)


@sparse_union.kernel("cpu")
def _union_kernel(a: Array, b: Array, a_shape: Array, b_shape: Array) -> tuple[Array, Array, Array]:
    if a_shape.tolist() != b_shape.tolist():
        raise InvalidArgumentError(
            f"two sparse arrays must have one shape, got {a_shape.tolist()} and {b_shape.tolist()}"
        )
    check_places("SparseUnion", a, a_shape)
    check_places("SparseUnion", b, b_shape)
    places, numbers = groups_of(np.concatenate([a, b]))
    sources = []
    for count, own in ((len(a), numbers[: len(a)]), (len(b), numbers[len(a) :])):
        source = np.full(len(places), count, np.int64)
        source[own] = np.arange(count)
        sources.append(source)
    return places, sources[0], sources[1]


for _op in (reset_op, sparse_fill_rows, sparse_groups, sparse_union):
    _op.grad(no_gradient)
