"""Rows of tables by their numbers: of tables in parts, and of sparse numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import engine, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.array import partition, segment
from laminar.engine.ops.array.creation import arange
from laminar.engine.ops.array.shape import reshape, size_of
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import where
from laminar.engine.ops.math.elementary import sqrt
from laminar.engine.ops.sparse.sparse_values import SparseValues

from .adapting import v1
from .maths import reduce_sum
from .values import dims_of, symbol, tensor

_COMBINERS = ("mean", "sqrtn", "sum")


def _clipped(rows: Any, num_axes: int, max_norm: Any) -> Any:
    """Each row, of which the first axes are none, no longer than `max_norm`."""
    if max_norm is None:
        return rows
    if rows.shape.rank is None:
        raise InvalidArgumentError("embedding_lookup: max_norm needs tables of known rank")
    norm = sqrt(reduce_sum(rows * rows, list(range(num_axes, len(rows.shape))), keepdims=True))
    limit = tensor(max_norm, rows.dtype)
    return rows * (limit / ops.maximum(norm, limit))


def _owner(ids: Tensor, tables: Sequence[Any], strategy: str) -> tuple[Tensor, Tensor]:
    """Which part has each of the ids, and as which row."""
    count = tensor(len(tables), ids.dtype)
    divide, modulo = lookup("FloorDiv"), lookup("FloorMod")
    if strategy == "mod":
        return modulo(ids, count), divide(ids, count)
    if strategy != "div":
        raise ValueError(f"partition_strategy must be 'mod' or 'div', got {strategy!r}")
    sizes = [cast(symbol(dims_of(tensor(t))[0]), ids.dtype) for t in tables]
    total = sizes[0]
    for size in sizes[1:]:
        total = lookup("Add")(total, size)
    each, more = divide(total, count), modulo(total, count)
    one = tensor(1, ids.dtype)
    longer, shorter = lookup("Add")(each, one), lookup("Maximum")(each, one)
    behind = lookup("Sub")(ids, more)
    owner = lookup("Maximum")(divide(ids, longer), divide(behind, shorter))
    row = where(lookup("Less")(owner, more), modulo(ids, longer), modulo(behind, shorter))
    return owner, row


@v1()
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Any:
    """The rows of a table for `ids`.

    Args:
        params: the table, or a list of its parts.
        ids: whole numbers of any shape.
        partition_strategy: how the rows are dealt out to parts: "mod", one after the other, so id
            i is row i // n of part i % n; "div", in runs of equal lengths, the first of which may
            be longer by one.
        validate_indices: accepted.
        max_norm: rows longer than this are shortened to it.
    """
    tables = list(params) if isinstance(params, list | tuple) else [params]
    if not tables:
        raise ValueError("embedding_lookup: there are no parts of a table")
    places = tensor(ids)
    rank = places.shape.rank
    if len(tables) == 1:
        return _clipped(engine.embedding_lookup(tables[0], places), rank or 0, max_norm)
    flat = reshape(symbol(places), (-1,))
    owner, row = _owner(flat, tables, partition_strategy)
    parts = partition.dynamic_partition(row, cast(owner, "int32"), len(tables))
    order = partition.dynamic_partition(arange(size_of(flat)), cast(owner, "int32"), len(tables))
    found = [gathering.gather(tensor(t), own) for t, own in zip(tables, parts, strict=True)]
    joined = partition.dynamic_stitch(order, found)
    rows = reshape(joined, [*dims_of(places), *dims_of(tensor(tables[0]))[1:]])
    return _clipped(rows, rank or 0, max_norm)


@v1()
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    combiner: str | None = None,
    max_norm: Any = None,
) -> Any:
    """For each row of a sparse matrix of ids, their rows of the table as one.

    Args:
        params: the table, or a list of its parts.
        sp_ids: the ids; each row has at least one.
        sp_weights: numbers at the same places, or None for ones.
        partition_strategy: see `embedding_lookup`.
        combiner: "sum" of weighted rows, "mean" (over the sum of the weights; the default), or
            "sqrtn" (over the root of the sum of their squares).
        max_norm: rows longer than this are shortened to it.
    """
    combiner = combiner or "mean"
    if combiner not in _COMBINERS:
        raise ValueError(f"combiner must be one of {', '.join(_COMBINERS)}, got {combiner!r}")
    if not isinstance(sp_ids, SparseValues):
        raise TypeError(f"sp_ids must be a SparseTensor, got {sp_ids!r}")
    if sp_weights is not None and not isinstance(sp_weights, SparseValues):
        raise TypeError(f"sp_weights must be a SparseTensor or None, got {sp_weights!r}")
    numbers = cast(tensor(sp_ids.indices)[:, 0], "int32")
    rows = embedding_lookup(params, tensor(sp_ids.values), partition_strategy, max_norm=max_norm)
    if sp_weights is None:
        weights = lookup("OnesLike")(cast(numbers, rows.dtype))
    else:
        weights = cast(tensor(sp_weights.values), rows.dtype)
    column = reshape(weights, [-1, *[1] * (len(rows.shape) - 1)])
    total = segment.segment_sum(rows * column, numbers)
    if combiner == "sum":
        return total
    over = segment.segment_sum(column if combiner == "mean" else column * column, numbers)
    return lookup("Div")(total, over if combiner == "mean" else sqrt(over))


@v1()
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: Any = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
) -> Any:
    """`embedding_lookup_sparse` where rows may be empty, and ids and weights no such.

    Args:
        embedding_weights: the table, or a list of its parts.
        sparse_ids: (..., entries) of any number of axes; negative ids are left out.
        sparse_weights: numbers at the same places, or None for ones; but for "sum", those that are
            not above 0 are left out.
        combiner, partition_strategy, max_norm: see `embedding_lookup_sparse`.
        default_id: what stands in rows without ids; without it, they are zeros.

    Returns:
        (..., size of a row).
    """
    tables = (
        embedding_weights if isinstance(embedding_weights, list | tuple) else [embedding_weights]
    )
    if not tables:
        raise ValueError("safe_embedding_lookup_sparse: there are no parts of a table")
    if sparse_weights is not None and any(tensor(t).dtype != sparse_weights.dtype for t in tables):
        raise TypeError("safe_embedding_lookup_sparse: weights and table must have one type")
    lead = symbol(sparse_ids.dense_shape)[:-1]
    last = symbol(sparse_ids.dense_shape)[-1:]
    flat_shape = lookup("Concat")(reshape(ops.prod(lead), (1,)), last, axis=0)
    ids = _flat(sparse_ids, flat_shape)
    weights = None if sparse_weights is None else _flat(sparse_weights, flat_shape)
    valid = lookup("GreaterEqual")(ids.values, tensor(0, ids.values.dtype))
    if weights is not None and combiner != "sum":
        positive = lookup("Greater")(weights.values, tensor(0, weights.values.dtype))
        valid = lookup("LogicalAnd")(valid, positive)
    ids = engine.sparse_retain(ids, valid)
    ids, is_empty = engine.sparse_fill_empty_rows(ids, 0 if default_id is None else default_id)
    if weights is not None:
        kept = engine.sparse_retain(weights, valid)
        weights, _ = engine.sparse_fill_empty_rows(kept, 1.0)
    found = embedding_lookup_sparse(
        embedding_weights, ids, weights, partition_strategy, combiner, max_norm
    )
    if default_id is None:
        found = where(reshape(is_empty, (-1, 1)), lookup("ZerosLike")(found), found)
    rank = sparse_ids.shape.rank
    sizes = [cast(lead[i], "int32") for i in range((rank or 2) - 1)]
    known = sparse_ids.shape
    dims = [d if known.rank and (d := known[i]) is not None else s for i, s in enumerate(sizes)]
    return reshape(found, [*dims, *dims_of(found)[1:]])


def _flat(sparse: Any, shape: Tensor) -> SparseValues:
    found: SparseValues = engine.sparse_reshape(sparse, shape)
    return found
