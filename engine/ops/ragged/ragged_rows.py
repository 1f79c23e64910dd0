"""RaggedRange, and what splits say of rows: lengths, and to which row each value belongs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, REAL, Array, Tensor, TensorSpec, as_dtype, int32
from ..array.creation import zeros
from ..array.join import concat
from ..array.search import searchsorted
from ..array.shape import dim_of
from ..core.convert import convert_to_tensor
from ..core.registry import define, no_gradient
from ..math.arithmetic import subtract
from ..math.cast import cast
from ..math.cumulative import cumsum
from ..math.reduce import reduce_max


@define("RaggedRange", dtypes=REAL)
def _ragged_range(
    starts: TensorSpec, limits: TensorSpec, deltas: TensorSpec, *, splits_dtype: str
) -> tuple[TensorSpec, TensorSpec]:
    """For each row the numbers starts, starts + deltas, ... while before limits: (splits, values).

    A scalar stands for one number for each row.
    """
    rows: int | None = 1
    for x in (starts, limits, deltas):
        if x.shape.rank not in (None, 0, 1):
            raise ShapeError(f"RaggedRange: expected vectors or scalars, got {x}")
        if x.shape.rank != 0:
            found = None if x.shape.rank is None else x.shape[0]
            if rows not in (1, None) and found not in (rows, None):
                raise ShapeError(f"RaggedRange: {rows} rows and {found} rows do not go together")
            rows = found if rows == 1 else rows
    count = None if rows is None else rows + 1
    return TensorSpec([count], as_dtype(splits_dtype)), TensorSpec([None], starts.dtype)


@_ragged_range.reference
def _ragged_range_kernel(
    xp: Any, starts: Array, limits: Array, deltas: Array, *, splits_dtype: str
) -> tuple[Array, Array]:
    # On the host: the values decide the shape of the result.
    given = [np.asarray(x.tolist(), str(x.dtype)) for x in (starts, limits, deltas)]
    first, last, step = np.broadcast_arrays(*(np.atleast_1d(x) for x in given))
    if not step.all():
        raise ShapeError("RaggedRange: a delta is 0, so its row would not end")
    wide: list[Any] = [
        x.astype(np.float64 if x.dtype.kind == "f" else np.int64) for x in (first, last, step)
    ]
    distance = wide[1] - wide[0]
    lengths: Any = -(-distance // wide[2])  # rounded up
    lengths = lengths.astype(np.int64)
    lengths = np.maximum(lengths, 0)
    splits = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.repeat(np.arange(len(lengths)), lengths)
    values = wide[0][rows] + (np.arange(splits[-1]) - splits[rows]) * wide[2][rows]
    return xp.asarray(splits.astype(splits_dtype)), xp.asarray(values.astype(first.dtype))


_ragged_range.grad(no_gradient)


def ragged_range(
    starts: Any, limits: Any, deltas: Any = 1, splits_dtype: Any = "int64"
) -> tuple[Tensor, Tensor]:
    """The splits and the values of rows of numbers, from `starts` to before `limits`.

    Args:
        starts: (rows), or one number for all.
        limits: likewise.
        deltas: likewise, the distance of two numbers of a row.
        splits_dtype: int32 or int64, of the splits.
    """
    first = convert_to_tensor(starts)
    others = [convert_to_tensor(x, first.dtype) for x in (limits, deltas)]
    splits, values = _ragged_range.many(first, *others, splits_dtype=as_dtype(splits_dtype))
    return splits, values


def lengths_of(splits: Any) -> Any:
    """How many values each row has."""
    return splits[1:] - splits[:-1]


def splits_of(lengths: Any) -> Tensor:
    """Where rows of these lengths begin, and where the last one ends."""
    x = convert_to_tensor(lengths)
    return concat([zeros([1], x.dtype), cumsum(x, 0)], 0)


def rows_of(splits: Tensor, count: Any) -> Tensor:
    """The number of the row of each of `count` values, in the type of the splits."""
    places = ragged_range(convert_to_tensor(0, splits.dtype), cast(count, splits.dtype))[1]
    found = searchsorted(splits, places, side="right")
    return cast(subtract(found, convert_to_tensor(1, found.dtype)), splits.dtype)


def places_in_rows(splits: Tensor) -> Tensor:
    """The place of each value in its row."""
    lengths = lengths_of(splits)
    return ragged_range(convert_to_tensor(0, splits.dtype), lengths)[1]


def outer_size(x: Any, dtype: Any = int32) -> Any:
    """The size of the first axis of a tensor."""
    known = x.shape[0] if x.shape.rank else None
    if known is not None:
        return convert_to_tensor(known, dtype)
    return cast(dim_of(x, axis=0), dtype)


def longest(splits: Tensor) -> Tensor:
    """The length of the longest row, 0 without rows."""
    none = zeros([1], splits.dtype)
    return reduce_max(concat([lengths_of(splits), none], 0))


@define("CheckRows", dtypes=INTEGER)
def _check_rows(x: TensorSpec, count: TensorSpec, *, are_splits: bool) -> TensorSpec:
    """`x` itself, once it is known to rise from 0 on: to `count` as splits, to below it as rows."""
    if x.shape.rank not in (None, 1):
        raise ShapeError(f"CheckRows: expected a vector, got {x}")
    return x


@_check_rows.reference
def _check_rows_kernel(xp: Any, x: Array, count: Array, *, are_splits: bool) -> Array:
    numbers, last = np.asarray(x.tolist(), np.int64), int(count)
    rises = bool((np.diff(numbers) >= 0).all())
    if are_splits:
        if not (len(numbers) and rises and numbers[0] == 0 and numbers[-1] == last):
            raise InvalidArgumentError(
                f"RaggedTensor: row_splits rise from 0 to the number of values, {last}; "
                f"got {_shown(numbers)}"
            )
    elif not rises or (len(numbers) and not 0 <= numbers[0] <= numbers[-1] < last):
        raise InvalidArgumentError(
            f"RaggedTensor: value_rowids rise, from 0 to below the number of rows, {last}; "
            f"got {_shown(numbers)}"
        )
    return x


_check_rows.grad(no_gradient)


def _shown(numbers: Any) -> str:
    return f"{numbers[:10].tolist()}{' ...' if len(numbers) > 10 else ''}"


def check_rows(x: Tensor, count: Any, *, are_splits: bool) -> Tensor:
    """`x`, splits or numbers of rows, once it is known to fit `count` values or rows.

    Raises:
        InvalidArgumentError: it does not; in a graph, when it is run.
    """
    return _check_rows(x, cast(count, x.dtype), are_splits=are_splits)
