"""Ragged tensors taken apart and put together: rows, slices, one behind the other, masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import Tensor, int64
from ..array import gather as gathering
from ..array import index, rearrange
from ..array import join as joining
from ..array.axes import expand_dims
from ..array.segment import segment_sum
from ..array.shape import dim_of, reshape
from ..array.sort import argsort
from ..core.convert import convert_to_tensor
from ..math.arithmetic import maximum, minimum
from ..math.cast import cast
from ..math.compare import less, where
from .ragged_dense import ragged_from_tensor
from .ragged_rows import lengths_of, outer_size, ragged_range, splits_of
from .ragged_values import RaggedTensor


def ragged_gather(params: Any, indices: Any) -> Any:
    """The rows params[i] for each index i.

    Args:
        params: a tensor or ragged.
        indices: whole numbers, a tensor or ragged.

    Examples:
        >>> r = engine.ragged_constant([[1, 2], [], [3]])
        >>> engine.ragged_gather(r, [2, 0, 2]).to_list()
        [[3], [1, 2], [3]]
    """
    if isinstance(indices, RaggedTensor):
        return indices.with_flat_values(ragged_gather(params, indices.flat_values))
    places = convert_to_tensor(indices)
    if not isinstance(params, RaggedTensor):
        return gathering.gather(convert_to_tensor(params), places)
    if places.shape.rank is None:
        raise ShapeError("ragged_gather: the number of axes of the indices must be known")
    if places.shape.rank == 0:
        return get_item(params, places)
    if places.shape.rank > 1:
        as_rows = ragged_from_tensor(
            places, ragged_rank=places.shape.rank - 1, row_splits_dtype=params.row_splits.dtype
        )
        return ragged_gather(params, as_rows)
    splits = convert_to_tensor(params.row_splits)
    starts = gathering.gather(splits[:-1], places)
    limits = gathering.gather(splits[1:], places)
    return _parts_of_rows(params, starts, limits)


def _parts_of_rows(x: RaggedTensor, starts: Tensor, limits: Tensor, step: Any = 1) -> RaggedTensor:
    """Rows of the values from `starts` to before `limits`."""
    splits, places = ragged_range(starts, limits, step, starts.dtype)
    return RaggedTensor.from_row_splits(ragged_gather(x.values, places), splits, validate=False)


def get_item(x: RaggedTensor, key: Any) -> Any:
    """x[key]: rows by a number or a slice, then what is in them.

    An axis of rows of different lengths takes a slice; a number there would not be in all of them.

    Raises:
        InvalidArgumentError: more keys than axes, or a number for an inner ragged axis.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    return _item(x, _without_ellipsis(x, keys))


def _without_ellipsis(x: RaggedTensor, keys: list[Any]) -> list[Any]:
    where_ = [i for i, k in enumerate(keys) if k is Ellipsis]
    if not where_:
        return keys
    if len(where_) > 1:
        raise InvalidArgumentError("a ragged tensor: only one ... can stand in an index")
    if x.shape.rank is None:
        raise ShapeError("a ragged tensor: ... needs a known number of axes")
    used = sum(k is not None and k is not Ellipsis for k in keys)
    filled = [slice(None)] * (x.shape.rank - used)
    return [*keys[: where_[0]], *filled, *keys[where_[0] + 1 :]]


def _item(x: Any, keys: list[Any]) -> Any:
    """What the keys, of which the first is of the outermost axis, take."""
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return convert_to_tensor(x)[tuple(keys)]
    first, *others = keys
    if first is None:
        return ragged_expand_dims(_item(x, others), 0)
    if isinstance(first, slice):
        if first == slice(None):
            return _inside(x, others)
        rows = ragged_range(convert_to_tensor(0, x.row_splits.dtype), x.nrows())[1]
        return _inside(ragged_gather(x, rows[first]), others)
    place = convert_to_tensor(first)
    if place.shape.rank not in (0, None):
        raise InvalidArgumentError(f"a ragged tensor: an index is a number, got {place.spec}")
    splits = convert_to_tensor(x.row_splits)
    begin, end = splits[:-1][place], splits[1:][place]
    values = x.values
    if isinstance(values, RaggedTensor):
        row = ragged_gather(values, ragged_range(begin, end)[1])
    else:
        row = convert_to_tensor(values)[begin:end]
    return _item(row, others)


def _inside(x: Any, keys: list[Any]) -> Any:
    """The keys in each row of `x`."""
    if not keys:
        return x
    if not isinstance(x, RaggedTensor):
        return convert_to_tensor(x)[(slice(None), *keys)]
    first, *others = keys
    if first is None:
        return ragged_expand_dims(_inside(x, others), 1)
    if not isinstance(first, slice):
        raise InvalidArgumentError(
            "a ragged tensor: rows of different lengths cannot be indexed by a number",
            remedy="take a slice, or to_tensor() first",
        )
    if first != slice(None):
        splits = convert_to_tensor(x.row_splits)
        x = _parts_of_rows(x, *_bounds(splits, first))
    values = x.values
    return x.with_values(_inside(values, others)) if others else x


def _bounds(splits: Tensor, key: slice) -> tuple[Tensor, Tensor, Any]:
    """Where a slice begins and ends in each row, among all values."""
    lengths, starts = lengths_of(splits), splits[:-1]
    zero, one = convert_to_tensor(0, splits.dtype), convert_to_tensor(1, splits.dtype)
    step = 1 if key.step is None else int(key.step)
    if step == 0:
        raise InvalidArgumentError("a ragged tensor: a slice with a step of 0 does not go on")
    lowest, highest = (zero, lengths) if step > 0 else (zero - one, lengths - one)

    def bound(given: Any, default: Any) -> Any:
        if given is None:
            return default
        n = cast(convert_to_tensor(given), splits.dtype)
        return minimum(
            maximum(where(less(n, zero), n + lengths, n + zero * lengths), lowest), highest
        )

    begin = bound(key.start, lowest + zero * lengths if step > 0 else highest)
    end = bound(key.stop, highest if step > 0 else lowest + zero * lengths)
    return starts + begin, starts + end, step


def ragged_expand_dims(x: Any, axis: int) -> Any:
    """With one more axis, of size 1."""
    if not isinstance(x, RaggedTensor):
        return expand_dims(convert_to_tensor(x), (axis,))
    rank = x.shape.rank
    if axis < 0:
        if rank is None:
            raise ShapeError("expand_dims: the number of axes must be known")
        axis += rank + 1
    if axis < 0 or (rank is not None and axis > rank):
        raise InvalidArgumentError(f"expand_dims: there is no place for axis {axis} among {rank}")
    if axis > 1:
        return x.with_values(ragged_expand_dims(x.values, axis - 1))
    kind = x.row_splits.dtype
    if axis == 0:
        splits = joining.stack([convert_to_tensor(0, kind), x.nrows()])
    else:
        splits = ragged_range(convert_to_tensor(0, kind), x.nrows() + convert_to_tensor(1, kind))[1]
    return RaggedTensor.from_row_splits(x, splits, validate=False)


def ragged_concat(xs: Sequence[Any], axis: int = 0) -> Any:
    """Ragged tensors one behind the other along an axis.

    Args:
        xs: at least one; tensors among them become ragged.
        axis: 0 for the rows of all; 1 joins row i of each; deeper ones likewise.

    Examples:
        >>> a, b = engine.ragged_constant([[1], [2, 3]]), engine.ragged_constant([[4, 5], []])
        >>> engine.ragged_concat([a, b], 1).to_list()
        [[1, 4, 5], [2, 3]]
    """
    parts = _alike("ragged_concat", xs)
    if not any(isinstance(x, RaggedTensor) for x in parts):
        return joining.concat(parts, axis)
    rank = parts[0].shape.rank
    if axis < 0:
        if rank is None:
            raise ShapeError("ragged_concat: the number of axes must be known")
        axis += rank
    if axis < 0 or (rank is not None and axis >= rank):
        raise InvalidArgumentError(f"ragged_concat: axis {axis} is none of {rank} axes")
    if len(parts) == 1:
        return parts[0]
    if axis == 0:
        return _behind(parts)
    if axis == 1:
        return _beside(parts)
    first = parts[0]
    return first.with_values(ragged_concat([x.values for x in parts], axis - 1))


def _alike(who: str, xs: Sequence[Any]) -> list[Any]:
    """All with as many ragged axes, and splits of one type."""
    if not isinstance(xs, list | tuple) or isinstance(xs, RaggedTensor) or not xs:
        raise InvalidArgumentError(f"{who}: expected a list of ragged tensors, got {xs!r}")
    ragged = [x for x in xs if isinstance(x, RaggedTensor)]
    if not ragged:
        return [convert_to_tensor(x) for x in xs]
    given = [
        x if isinstance(x, RaggedTensor) else convert_to_tensor(x, ragged[0].dtype) for x in xs
    ]
    ranks = {x.shape.rank for x in given if x.shape.rank is not None}
    if len(ranks) > 1:
        raise ShapeError(f"{who}: the numbers of axes differ: {sorted(ranks)}")
    most = max(x.ragged_rank for x in ragged)
    kinds = {x.row_splits.dtype for x in ragged}
    kind = kinds.pop() if len(kinds) == 1 else int64
    parts = [_of_rank(x, most, kind) for x in given]
    return [x if x.row_splits.dtype == kind else x.with_row_splits_dtype(kind) for x in parts]


def _of_rank(x: Any, ragged_rank: int, kind: Any) -> RaggedTensor:
    if not isinstance(x, RaggedTensor):
        return ragged_from_tensor(x, ragged_rank=ragged_rank, row_splits_dtype=kind)
    if x.ragged_rank < ragged_rank:
        return x.with_values(_of_rank(x.values, ragged_rank - 1, kind))
    return x


def _behind(parts: list[Any]) -> RaggedTensor:
    values = ragged_concat([x.values for x in parts], 0)
    lengths = [lengths_of(convert_to_tensor(x.row_splits)) for x in parts]
    return RaggedTensor.from_row_splits(
        values, splits_of(joining.concat(lengths, 0)), validate=False
    )


def _beside(parts: list[Any]) -> RaggedTensor:
    """Row i of each, as one row: all rows in turn, of which as many as there are parts are one."""
    joined = _behind(parts)
    kind, count = joined.row_splits.dtype, len(parts)
    rows = ragged_range(convert_to_tensor(0, kind), parts[0].nrows())[1]
    total = [cast(x.nrows(), kind) for x in parts]
    starts = [convert_to_tensor(0, kind)]
    for size in total[:-1]:
        starts.append(starts[-1] + size)
    order = reshape(joining.stack([rows + s for s in starts], 1), [-1])
    turned = ragged_gather(joined, order)
    splits = convert_to_tensor(turned.row_splits)[::count]
    return RaggedTensor.from_row_splits(turned.values, splits, validate=False)


def ragged_stack(xs: Sequence[Any], axis: int = 0) -> Any:
    """Ragged tensors, of one number of axes, along a new axis.

    Examples:
        >>> a, b = engine.ragged_constant([[1], [2, 3]]), engine.ragged_constant([[4, 5]])
        >>> engine.ragged_stack([a, b]).to_list()
        [[[1], [2, 3]], [[4, 5]]]
    """
    if not isinstance(xs, list | tuple) or isinstance(xs, RaggedTensor) or not xs:
        raise InvalidArgumentError(f"ragged_stack: expected a list of ragged tensors, got {xs!r}")
    if not any(isinstance(x, RaggedTensor) for x in xs):
        # Tensors of different sizes: their first axis becomes ragged.
        given = [convert_to_tensor(x) for x in xs]
        if axis == 0 and given[0].shape.rank:
            lengths = joining.stack([outer_size(x, int64) for x in given])
            return RaggedTensor.from_row_lengths(joining.concat(given, 0), lengths, validate=False)
        return joining.stack(given, axis)
    parts = _alike("ragged_stack", xs)
    rank = parts[0].shape.rank
    place = axis + rank + 1 if axis < 0 and rank is not None else axis
    return ragged_concat([ragged_expand_dims(x, place) for x in parts], place)


def ragged_tile(x: RaggedTensor, multiples: Sequence[int]) -> RaggedTensor:
    """Repeated along its axes, each so many times."""
    found: Any = x
    for axis, times in enumerate(multiples):
        if times < 0:
            raise InvalidArgumentError(f"tile: multiples are at least 0, got {times}")
        if axis > x.ragged_rank:
            rest = [1] * (axis - x.ragged_rank) + [times]
            flat = convert_to_tensor(found.flat_values)
            own = [*rest, *[1] * (len(flat.shape) - len(rest))]
            found = found.with_flat_values(rearrange.tile(flat, own))
        elif times == 0:
            found = get_item(found, (*[slice(None)] * axis, slice(0, 0)))
        elif times > 1:
            found = ragged_concat([found] * times, axis)
    return found  # type: ignore[no-any-return]  # it began as one


def ragged_boolean_mask(data: Any, mask: Any) -> Any:
    """The elements of `data` where `mask` is True; the axes of the mask stay, but for the last.

    Args:
        data: a tensor or ragged.
        mask: bools of the first axes of `data`, a tensor or ragged.

    Examples:
        >>> r = engine.ragged_constant([[1, 2], [], [3]])
        >>> engine.ragged_boolean_mask(
        ...     r, engine.ragged_constant([[False, True], [], [True]])
        ... ).to_list()
        [[2], [], [3]]
    """
    if not isinstance(mask, RaggedTensor):
        flags = convert_to_tensor(mask)
        if flags.shape.rank is None:
            raise ShapeError("ragged_boolean_mask: the number of axes of the mask must be known")
        if flags.shape.rank == 0:
            raise ShapeError("ragged_boolean_mask: the mask has no axis")
        if flags.shape.rank > 1:
            rank = flags.shape.rank - 1
            mask = ragged_from_tensor(flags, ragged_rank=rank)
        elif not isinstance(data, RaggedTensor):
            return index.boolean_mask(convert_to_tensor(data), flags, 0)
        else:
            places = index.boolean_mask(
                ragged_range(convert_to_tensor(0, data.row_splits.dtype), data.nrows())[1], flags, 0
            )
            return ragged_gather(data, places)
    if not isinstance(data, RaggedTensor):
        data = ragged_from_tensor(data, ragged_rank=mask.ragged_rank)
    if mask.ragged_rank > 1:
        return data.with_values(ragged_boolean_mask(data.values, mask.values))
    flags = convert_to_tensor(mask.flat_values)
    splits = convert_to_tensor(mask.row_splits)
    if flags.shape.rank is not None and flags.shape.rank > 1:  # the innermost axis of the mask
        inner = ragged_from_tensor(flags, ragged_rank=flags.shape.rank - 1)
        return data.with_values(ragged_boolean_mask(data.values, inner))
    kept = cast(flags, splits.dtype)
    lengths = segment_sum(kept, mask.value_rowids(), cast(mask.nrows(), "int32"))
    values = ragged_boolean_mask(data.values, flags)
    return RaggedTensor.from_row_splits(values, splits_of(lengths), validate=False)


def ragged_where(condition: RaggedTensor) -> Tensor:
    """The coordinates, int64 (n, axes), of the true elements, in row order."""
    sparse = condition.with_flat_values(cast(condition.flat_values, "int32")).to_sparse()
    return index.boolean_mask(sparse.indices, cast(sparse.values, "bool"), 0)


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any) -> RaggedTensor:
    """Row k holds the elements of `data` whose number in `partitions` is k, in their order.

    Args:
        data: a tensor or ragged.
        partitions: whole numbers from 0 to below `num_partitions`, of the first axes of `data`.
        num_partitions: how many there are.
    """
    if isinstance(partitions, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            raise ShapeError("stack_dynamic_partitions: ragged numbers need ragged data")
        return stack_dynamic_partitions(data.values, partitions.values, num_partitions)
    ids = convert_to_tensor(partitions)
    if ids.shape.rank is None:
        raise ShapeError("stack_dynamic_partitions: the number of axes must be known")
    if ids.shape.rank == 0:
        return RaggedTensor.from_value_rowids(
            ragged_expand_dims(data, 0), cast(ids, int64)[None], num_partitions
        )
    if ids.shape.rank > 1:
        rows: Any = data.values if isinstance(data, RaggedTensor) else None
        flat = reshape(ids, [-1, *list(ids.shape[2:])])
        if rows is None:
            x = convert_to_tensor(data)
            sizes = [dim_of(x, axis=i) if d is None else d for i, d in enumerate(x.shape)]
            rows = reshape(x, [-1, *sizes[2:]])
        return stack_dynamic_partitions(rows, flat, num_partitions)
    order = argsort(ids)
    values = ragged_gather(data, order)
    return RaggedTensor.from_value_rowids(
        values, cast(gathering.gather(ids, order), int64), num_partitions
    )
