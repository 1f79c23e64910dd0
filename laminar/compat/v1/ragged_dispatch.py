"""What functions of tensors compute of ragged ones: elementwise, or by their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import engine
from laminar.engine.graph import as_dtype, int64
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.ragged import ragged_structure as structure
from laminar.engine.ops.ragged.ragged_math import elementwise, ragged_segments

from .embeddings import embedding_lookup
from .ragged_tensors import symbols
from .values import static

# Each of operands that broadcast; others go by their rows (`_BY_ROWS`).
_ELEMENTWISE = frozenset(
    """
    abs acos acosh add add_n angle as_string asin asinh atan atan2 atanh bitcast cast ceil
    check_numerics clip_by_value complex conj cos cosh decode_base64 digamma div div_no_nan divide
    encode_base64 equal erf erfc exp expm1 floor floor_div floordiv floormod greater greater_equal
    identity imag invert is_finite is_inf is_nan less less_equal lgamma log log1p log_sigmoid
    logical_and logical_not logical_or logical_xor lower maximum minimum mod multiply negative
    not_equal ones_like pow real realdiv reciprocal regex_full_match regex_replace rint round rsqrt
    saturate_cast sigmoid sign sin sinh sqrt square squared_difference stop_gradient string_join
    string_length string_lower string_strip string_to_hash_bucket_fast string_to_hash_bucket_strong
    string_to_number string_upper substr subtract tan tanh truediv truncatediv truncatemod
    unicode_script unicode_transcode upper zeros_like strip
    """.split()  # noqa: SIM905  # as a list, each word has a line of its own
)


def of_ragged(name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The result of the function of that name, some of whose arguments are ragged.

    Raises:
        NotImplementedError: there is none.
    """
    if name in _ELEMENTWISE:
        if args and isinstance(args[0], list):  # add_n, strings.join
            return elementwise(lambda *xs: fn(list(xs), *args[1:], **kwargs), *args[0])
        named = {k: v for k, v in kwargs.items() if isinstance(v, engine.RaggedTensor)}
        others = {k: v for k, v in kwargs.items() if k not in named}
        keys = list(named)

        def call(*values: Any) -> Any:
            own = values[: len(args)]
            return fn(*own, **dict(zip(keys, values[len(args) :], strict=True)), **others)

        return elementwise(call, *args, *named.values())
    row = _BY_ROWS.get(name)
    if row is None:
        raise NotImplementedError(name)
    return row(*args, **kwargs)


def _reduction(kind: str) -> Callable[..., Any]:
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Any:
        axes = static(reduction_indices if axis is None else axis)
        return engine.ragged_reduce(kind, input_tensor, axes, bool(keepdims or keep_dims))

    return reduce


def _gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: int | None = None,
    batch_dims: int = 0,
) -> Any:
    if axis:
        raise ValueError("gather: of ragged tensors, only rows can be gathered (axis 0)")
    if batch_dims:
        return batch_gather(params, indices)
    return engine.ragged_gather(symbols(params), symbols(indices))


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """Row i of the result holds what row i of `indices` names of row i of `params`."""
    own, places = symbols(params), symbols(indices)
    if not isinstance(own, engine.RaggedTensor):
        own = engine.RaggedTensor.from_tensor(own)
    if not isinstance(places, engine.RaggedTensor):
        places = engine.RaggedTensor.from_tensor(places, row_splits_dtype=own.row_splits.dtype)
        dense = True
    else:
        dense = False
    starts = engine.ragged_gather(own.row_splits[:-1], places.value_rowids())
    flat = cast(places.values, own.row_splits.dtype) + starts
    found = places.with_values(engine.ragged_gather(own.values, flat))
    return (
        found.to_tensor() if dense and not isinstance(found.values, engine.RaggedTensor) else found
    )


def _gather_nd(params: Any, indices: Any, name: str | None = None, batch_dims: int = 0) -> Any:
    places = symbols(indices)
    if batch_dims or isinstance(places, engine.RaggedTensor) or places.shape.rank != 2:
        raise ValueError("gather_nd: of ragged tensors, places are a matrix of whole numbers")
    found: Any = symbols(params)
    columns = [places[:, i] for i in range(places.shape[1] or 0)]
    rows = columns[0]
    for column in columns[1:]:
        if isinstance(found, engine.RaggedTensor):
            kind = found.row_splits.dtype
            start = engine.ragged_gather(found.row_splits[:-1], rows)
            rows, found = start + cast(column, kind), found.values
        else:
            width = lookup("Dim")(found, axis=1)
            rows = cast(rows, int64) * cast(width, int64) + cast(column, int64)
            found = lookup("Reshape")(found, shape=(-1, *found.shape[2:]))
    return engine.ragged_gather(found, rows)


def _where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    if x is None and y is None:
        return structure.ragged_where(condition)
    return elementwise(lookup("Where"), condition, x, y)


def _boolean_mask(tensor: Any, mask: Any, name: str | None = None, axis: Any = None) -> Any:
    return engine.ragged_boolean_mask(symbols(tensor), symbols(mask))


def _size(input: Any, name: str | None = None, out_type: Any = "int32") -> Any:
    return cast(lookup("Size")(input.flat_values), as_dtype(out_type))


def _rank(input: Any, name: str | None = None) -> Any:
    return lookup("Rank")(input.flat_values) + input.ragged_rank


def _concat(values: Any, axis: Any, name: str | None = None) -> Any:
    return engine.ragged_concat([symbols(x) for x in values], static(axis))


def _stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    return engine.ragged_stack([symbols(x) for x in values], axis)


def _expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    return structure.ragged_expand_dims(input, static(dim if axis is None else axis))


def _tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    return structure.ragged_tile(input, list(static(multiples)))


def _embedding_lookup(params: Any, ids: Any, *args: Any, **kwargs: Any) -> Any:
    return ids.with_flat_values(embedding_lookup(params, ids.flat_values, *args, **kwargs))


def _segments(kind: str) -> Callable[..., Any]:
    def combine(
        data: Any, segment_ids: Any, num_segments: Any = None, name: str | None = None
    ) -> Any:
        ids = symbols(segment_ids)
        if isinstance(ids, engine.RaggedTensor):
            if not isinstance(data, engine.RaggedTensor):
                raise ValueError("ragged segment_ids need ragged data")
            return combine(data.values, ids.values, num_segments)
        return ragged_segments(kind, data, cast(ids, int64), symbols(num_segments))

    return combine


_BY_ROWS: dict[str, Callable[..., Any]] = {
    **{f"unsorted_segment_{kind}": _segments(kind) for kind in ("sum", "prod", "min", "max")},
    **{
        f"reduce_{kind}": _reduction(kind)
        for kind in ("sum", "prod", "min", "max", "mean", "any", "all")
    },
    "batch_gather": batch_gather,
    "boolean_mask": _boolean_mask,
    "concat": _concat,
    "embedding_lookup": _embedding_lookup,
    "expand_dims": _expand_dims,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "rank": _rank,
    "size": _size,
    "stack": _stack,
    "tile": _tile,
    "where": _where,
    "where_v2": _where,
}
