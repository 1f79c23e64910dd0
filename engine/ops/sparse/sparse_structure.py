"""Sparse arrays in another order, of another shape, joined and cut.

The places are computed by ops; the values are gathered by them, so gradients reach the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph import INTEGER, Array, Tensor, TensorShape, TensorSpec, bool_, int64
from ..array.gather import gather
from ..array.join import concat, stack
from ..array.shape import static_shape
from ..core.basic import constant, ones_like, placeholder, zeros_like
from ..core.convert import convert_to_tensor
from ..core.entries import known_entries
from ..core.registry import define, no_gradient
from ..math.cast import cast_op
from .sparse_dense import sparse_tensor_to_dense
from .sparse_places import canonical, check_places, row_major
from .sparse_values import SparseValues, as_sparse, check_sparse

_INDICES = {"indices": INTEGER, "dense_shape": INTEGER}


@define("SparseOrder", dtypes=_INDICES)
def sparse_order(indices: TensorSpec, dense_shape: TensorSpec) -> TensorSpec:
    """The order, int64 (n), that brings the places into row-major order."""
    check_sparse("SparseOrder", indices, dense_shape)
    return TensorSpec([indices.shape[0] if indices.shape.rank == 2 else None], int64)


@sparse_order.kernel("cpu")
def _order_kernel(indices: Array, dense_shape: Array) -> Array:
    check_places("SparseOrder", indices, dense_shape)
    return row_major(indices).astype(np.int64)


def sparse_reorder(sparse: Any, name: str | None = None) -> SparseValues:
    """The same array with its places in row-major order; equal places keep their order.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_reorder(s))
        Tensor([[0, 5],
                [7, 0]], shape=(2, 2), dtype=int32)
    """
    x = as_sparse("sparse_reorder", sparse)
    order = sparse_order(x.indices, x.dense_shape, name=name)
    return SparseValues(gather(x.indices, order), gather(x.values, order), x.dense_shape)


def sparse_transpose(sparse: Any, perm: Sequence[int] | None = None) -> SparseValues:
    """The axes in another order: axis i of the result is axis perm[i]; reversed by default.

    Args:
        sparse: SparseValues of a known number of axes.
        perm: each axis once, from 0.

    Raises:
        InvalidArgumentError: `perm` is no order of the axes.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_transpose(s))
        Tensor([[0, 7],
                [5, 0]], shape=(2, 2), dtype=int32)
    """
    x = as_sparse("sparse_transpose", sparse)
    rank = static_shape(x.dense_shape).rank
    if perm is None:
        if rank is None:
            raise InvalidArgumentError("sparse_transpose: the number of axes must be known")
        perm = range(rank)[::-1]
    if rank is not None and sorted(perm) != list(range(rank)):
        raise InvalidArgumentError(f"sparse_transpose: {[*perm]} is no order of {rank} axes")
    axes = convert_to_tensor([*perm], int64)
    return sparse_reorder(
        SparseValues(gather(x.indices, axes, axis=1), x.values, gather(x.dense_shape, axes))
    )


@define("SparseReshape", dtypes={**_INDICES, "shape": INTEGER})
def reshape_op(
    indices: TensorSpec, dense_shape: TensorSpec, shape: TensorSpec
) -> tuple[TensorSpec, TensorSpec]:
    """The places under another shape, one entry of which may be -1, and that shape."""
    check_sparse("SparseReshape", indices, dense_shape)
    count = indices.shape[0] if indices.shape.rank == 2 else None
    axes = shape.shape[0] if shape.shape.rank == 1 else None
    return TensorSpec([count, axes], int64), TensorSpec([axes], int64)


@reshape_op.kernel("cpu")
def _reshape_kernel(indices: Array, dense_shape: Array, shape: Array) -> tuple[Array, Array]:
    check_places("SparseReshape", indices, dense_shape)
    old, new = [int(n) for n in dense_shape], [int(n) for n in shape]
    total, known = math.prod(old), math.prod(n for n in new if n != -1)
    if new.count(-1) > 1 or any(n < -1 for n in new):
        raise InvalidArgumentError(f"SparseReshape: {new} is no shape")
    if -1 in new:
        if not known or total % known:
            raise InvalidArgumentError(f"SparseReshape: {total} elements do not fit into {new}")
        new[new.index(-1)] = total // known
    elif total != known:
        raise InvalidArgumentError(
            f"SparseReshape: {old} has {total} elements, which do not fit into {new}"
        )
    flat = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(old):
        flat = flat * size + indices[:, axis]
    places = np.empty((len(indices), len(new)), np.int64)
    for axis in reversed(range(len(new))):
        flat, places[:, axis] = np.divmod(flat, new[axis]) if new[axis] else (flat, 0)
    return places, np.asarray(new, np.int64)


def sparse_reshape(sparse: Any, shape: Any, name: str | None = None) -> SparseValues:
    """The same elements in row-major order under another shape, one size of which may be -1.

    Args:
        sparse: SparseValues.
        shape: the sizes.
        name: of the operation.

    Raises:
        InvalidArgumentError: the numbers of elements (those that are not there count) differ, or
            several sizes are -1.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_reshape(s, (4,)))
        Tensor([0, 5, 7, 0], shape=(4,), dtype=int32)
    """
    x = as_sparse("sparse_reshape", sparse)
    wanted = sizes_of(shape)
    places, sizes = reshape_op.many(x.indices, x.dense_shape, wanted, name=name)
    known = known_entries(wanted)
    total = static_shape(x.dense_shape).num_elements()
    if known is not None and total is not None and known.count(-1) == 1:
        rest = math.prod(n for n in known if n not in (None, -1))
        known = [total // rest if n == -1 and rest else n for n in known]
    if known and None not in known and -1 not in known:
        sizes = convert_to_tensor(known, int64)
    return SparseValues(places, x.values, sizes)


def sizes_of(shape: Any) -> Tensor:
    """Sizes, numbers and scalar tensors, as an int64 vector."""
    if isinstance(shape, list | tuple) and any(isinstance(n, Tensor) for n in shape):
        return stack([sizes_of(n) for n in shape])
    if isinstance(shape, list | tuple | TensorShape):
        shape = np.asarray([*shape], np.int64)
    found = convert_to_tensor(shape)
    return found if found.dtype == int64 else cast_op(found, dtype=int64)


@define("SparseConcat", dtypes=INTEGER)
def concat_op(
    *given: TensorSpec, axis: int, expand: bool
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The places of arrays along `axis`, in order, the order of their values, the dense shape.

    `given` is the indices of each, then the dense shapes. `expand`: whether other sizes may differ,
    the result having the greatest; else they must agree.
    """
    count = len(given) // 2
    ranks = [
        check_sparse("SparseConcat", *pair) for pair in zip(given, given[count:], strict=False)
    ]
    rank = next((r for r in ranks if r is not None), None)
    places = [s.shape[0] if s.shape.rank == 2 else None for s in given[:count]]
    total = None if None in places else sum(n for n in places if n is not None)
    return TensorSpec([total, rank], int64), TensorSpec([total], int64), TensorSpec([rank], int64)


@concat_op.kernel("cpu")
def _concat_kernel(*given: Array, axis: int, expand: bool) -> tuple[Array, Array, Array]:
    count = len(given) // 2
    indices, shapes = given[:count], given[count:]
    rank = len(shapes[0])
    if any(len(s) != rank for s in shapes):
        raise InvalidArgumentError(
            f"SparseConcat: the numbers of axes differ: {[len(s) for s in shapes]}"
        )
    axis = canonical("SparseConcat", axis, rank)
    for places, shape in zip(indices, shapes, strict=True):
        check_places("SparseConcat", places, shape)
    sizes = np.max(shapes, axis=0)
    others = np.arange(rank) != axis
    if not expand and any((shape[others] != sizes[others]).any() for shape in shapes):
        raise InvalidArgumentError(
            f"SparseConcat: the shapes {[s.tolist() for s in shapes]} differ besides axis {axis}",
            remedy="expand_nonconcat_dims=True takes the greatest",
        )
    starts = np.cumsum([0, *(s[axis] for s in shapes)])
    sizes[axis] = starts[-1]
    moved = [
        places + np.where(others, 0, start)
        for places, start in zip(indices, starts[:-1], strict=True)
    ]
    joined = np.concatenate(moved)
    order = row_major(joined)
    return joined[order], order.astype(np.int64), sizes


def sparse_concat(
    axis: int,
    sp_inputs: Sequence[Any],
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseValues:
    """Sparse arrays one behind the other along `axis`, the places in order.

    Args:
        axis: of all of them.
        sp_inputs: of one type and number of axes.
        expand_nonconcat_dims: whether other sizes may differ; the result has the greatest.

    Raises:
        InvalidArgumentError: other sizes differ.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_concat(1, [s, s]))
        Tensor([[0, 5, 0, 5],
                [7, 0, 7, 0]], shape=(2, 4), dtype=int32)
    """
    xs = [as_sparse("sparse_concat", x) for x in sp_inputs]
    if not xs:
        raise InvalidArgumentError("sparse_concat: there is nothing to join")
    if len(xs) == 1:
        return xs[0]
    places, order, shape = concat_op.many(
        *(x.indices for x in xs),
        *(x.dense_shape for x in xs),
        axis=int(axis),
        expand=bool(expand_nonconcat_dims),
        name=name,
    )
    return SparseValues(places, gather(concat([x.values for x in xs]), order), shape)


@define("SparseSlice", dtypes=INTEGER)
def slice_op(
    indices: TensorSpec, dense_shape: TensorSpec, start: TensorSpec, size: TensorSpec
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The places within start ... start + size, which values they have, and the shape of that."""
    rank = check_sparse("SparseSlice", indices, dense_shape)
    return TensorSpec([None, rank], int64), TensorSpec([None], int64), TensorSpec([rank], int64)


@slice_op.kernel("cpu")
def _slice_kernel(
    indices: Array, dense_shape: Array, start: Array, size: Array
) -> tuple[Array, Array, Array]:
    check_places("SparseSlice", indices, dense_shape)
    if start.shape != dense_shape.shape or size.shape != dense_shape.shape:
        raise InvalidArgumentError(
            f"SparseSlice: start {start.tolist()} and size {size.tolist()} need an entry for each "
            f"of {len(dense_shape)} axes"
        )
    if (start < 0).any() or (size < 0).any():
        raise InvalidArgumentError("SparseSlice: start and size cannot be negative")
    end = np.minimum(start + size, dense_shape)
    inside = ((indices >= start) & (indices < end)).all(axis=1)
    return indices[inside] - start, np.flatnonzero(inside), np.maximum(end - start, 0)


def sparse_slice(sparse: Any, start: Any, size: Any, name: str | None = None) -> SparseValues:
    """The part from `start`, of `size`, which ends where the array does.

    Args:
        sparse: SparseValues.
        start, size: an entry for each axis.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_slice(s, [0, 1], [2, 1]))
        Tensor([[5],
                [0]], shape=(2, 1), dtype=int32)
    """
    x = as_sparse("sparse_slice", sparse)
    places, kept, shape = slice_op.many(
        x.indices, x.dense_shape, sizes_of(start), sizes_of(size), name=name
    )
    return SparseValues(places, gather(x.values, kept), shape)


@define("SparsePiece", dtypes=INTEGER)
def sparse_piece(
    dense_shape: TensorSpec, *, axis: int, index: int, count: int
) -> tuple[TensorSpec, TensorSpec]:
    """Start and size of piece `index` of `count`: the first ones are longer by one if need be."""
    return TensorSpec(dense_shape.shape, int64), TensorSpec(dense_shape.shape, int64)


@sparse_piece.kernel("cpu")
def _piece_kernel(dense_shape: Array, *, axis: int, index: int, count: int) -> tuple[Array, Array]:
    axis = canonical("sparse_split", axis, len(dense_shape))
    whole = int(dense_shape[axis])
    if not 0 < count <= whole:
        raise InvalidArgumentError(f"sparse_split: {count} pieces of an axis of {whole}")
    base, extra = divmod(whole, count)
    start, size = np.zeros_like(dense_shape), dense_shape.copy()
    start[axis], size[axis] = index * base + min(index, extra), base + (index < extra)
    return start, size


def sparse_split(
    sparse: Any, num_split: int, axis: int, name: str | None = None
) -> list[SparseValues]:
    """`num_split` parts along an axis; the first ones are longer by one where need be.

    Args:
        sparse: SparseValues.
        num_split: how many parts, at most the size of the axis.
        axis: the axis to cut; negative numbers count from the end.
        name: of the operations.

    Raises:
        InvalidArgumentError: the axis does not exist, or there are not so many parts.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> left, right = engine.sparse_split(s, 2, axis=1)
        >>> engine.sparse_tensor_to_dense(left)
        Tensor([[0],
                [7]], shape=(2, 1), dtype=int32)
    """
    x = as_sparse("sparse_split", sparse)
    if num_split < 1:
        raise InvalidArgumentError(f"sparse_split: num_split must be positive, got {num_split}")
    parts = []
    for index in range(num_split):
        start, size = sparse_piece.many(x.dense_shape, axis=int(axis), index=index, count=num_split)
        parts.append(sparse_slice(x, start, size, name))
    return parts


def sparse_expand_dims(sparse: Any, axis: int = -1, name: str | None = None) -> SparseValues:
    """With an axis of size 1 before `axis`, or at the end for -1.

    Args:
        sparse: SparseValues of a known number of axes.
        axis: the place in the result; negative numbers count from its end.
        name: not used.

    Raises:
        InvalidArgumentError: the result has no such axis.
        DTypeError: `sparse` is no SparseValues.

    Examples:
        >>> s = engine.sparse_from_dense([[0, 5], [7, 0]])
        >>> engine.sparse_tensor_to_dense(engine.sparse_expand_dims(s, 0))
        Tensor([[[0, 5],
                 [7, 0]]], shape=(1, 2, 2), dtype=int32)
    """
    x = as_sparse("sparse_expand_dims", sparse)
    rank = static_shape(x.dense_shape).rank
    if rank is None:
        raise InvalidArgumentError("sparse_expand_dims: the number of axes must be known")
    place = canonical("sparse_expand_dims", axis, rank + 1)
    column = zeros_like(gather(x.indices, convert_to_tensor([0]), axis=1))
    sizes = convert_to_tensor([1], int64)
    before, after = list(range(place)), list(range(place, rank))
    columns = [gather(x.indices, convert_to_tensor(a), axis=1) for a in (before, after) if a]
    lengths = [gather(x.dense_shape, convert_to_tensor(a)) for a in (before, after) if a]
    columns.insert(1 if before else 0, column)
    lengths.insert(1 if before else 0, sizes)
    return SparseValues(concat(columns, 1), x.values, concat(lengths))


def sparse_merge(
    sp_ids: Any,
    sp_values: Any,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseValues:
    """Values at the places that numbers name: y[..., ids[..., k]] = values[..., k].

    Args:
        sp_ids: int32 or int64 (..., n), from 0 to vocab_size - 1; or a list, of several last axes.
        sp_values: (..., n) with the same places, of any type.
        vocab_size: the size of the last axis, or a list of sizes.
        already_sorted: whether the result is in order as it comes.

    Examples:
        >>> ids = engine.SparseValues([[0, 0], [1, 0]], engine.constant([2, 0], "int64"), [2, 1])
        >>> values = engine.SparseValues([[0, 0], [1, 0]], [0.5, 1.5], [2, 1])
        >>> engine.sparse_tensor_to_dense(engine.sparse_merge(ids, values, vocab_size=3))
        Tensor([[0. , 0. , 0.5],
                [1.5, 0. , 0. ]], shape=(2, 3), dtype=float32)
    """
    several = isinstance(sp_ids, list)
    ids = [as_sparse("sparse_merge", i) for i in (sp_ids if several else [sp_ids])]
    values = as_sparse("sparse_merge", sp_values)
    sizes = vocab_size if isinstance(vocab_size, list | tuple) else [vocab_size]
    if len(sizes) != len(ids):
        raise InvalidArgumentError(f"sparse_merge: {len(ids)} ids, and {len(sizes)} sizes")
    rank = static_shape(ids[0].dense_shape).rank
    if rank is None:
        raise InvalidArgumentError("sparse_merge: the number of axes must be known")
    rows = convert_to_tensor(list(range(rank - 1)), "int32")
    columns = [gather(ids[0].indices, rows, axis=1)] if rank > 1 else []
    columns += [stack([cast_op(i.values, dtype=int64)], 1) for i in ids]
    lengths = [gather(ids[0].dense_shape, rows)] if rank > 1 else []
    found = SparseValues(concat(columns, 1), values.values, concat([*lengths, sizes_of([*sizes])]))
    return found if already_sorted else sparse_reorder(found, name)


def sparse_to_indicator(sparse: Any, vocab_size: int, name: str | None = None) -> Tensor:
    """Whether each number below `vocab_size` is among the values of a row.

    Args:
        sparse: int32 or int64 (..., n), whose values are from 0 to vocab_size - 1.
        vocab_size: the size of the last axis of the result.

    Returns:
        bool (..., vocab_size).

    Examples:
        >>> s = engine.SparseValues([[0, 0], [1, 0]], engine.constant([2, 0], "int64"), [2, 1])
        >>> engine.sparse_to_indicator(s, 3)
        Tensor([[False, False,  True],
                [ True, False, False]], shape=(2, 3), dtype=bool)
    """
    x = as_sparse("sparse_to_indicator", sparse)
    places = sparse_merge(x, x.with_values(ones_like(cast_op(x.values, dtype=int64))), vocab_size)
    flags = places.with_values(cast_op(places.values, dtype=bool_))
    return sparse_tensor_to_dense(flags, False, validate_indices=False, name=name)


def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseValues:
    """SparseValues that are fed: feed_dict={it: SparseValues(arrays...)}.

    Args:
        dtype: of the values.
        shape: of the array, as far as it is known.
        name: of the operations.

    Examples:
        >>> fed = engine.SparseValues(
        ...     np.array([[0, 1]]), np.array([5.0], "float32"), np.array([2, 2])
        ... )
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     s = engine.sparse_placeholder("float32", (2, 2))
        ...     total = engine.sparse_reduce_sum(s)
        ...     session.run(total, {s: fed})
        np.float32(5.0)
    """
    known = TensorShape(shape)
    under = "" if name is None else f"{name}/"
    axes = known.rank
    indices = placeholder(int64, [None, axes], under + "indices" if name else None)
    values = placeholder(dtype, [None], under + "values" if name else None)
    under_shape = under + "shape" if name else None
    if shape is None or not known.is_fully_defined:
        return SparseValues(indices, values, placeholder(int64, [axes], under_shape))
    with indices.graph.as_default():
        return SparseValues(indices, values, constant([*known], int64, name=under_shape))


for _op in (sparse_order, reshape_op, concat_op, slice_op, sparse_piece):
    _op.grad(no_gradient)
