"""Ragged tensors of nested lists, of numbers, and to be fed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import Tensor, TensorShape, as_dtype, int32, int64
from ..array.segment import segment_sum
from ..core.arrays import to_array
from ..core.basic import ones_like, placeholder
from ..core.convert import convert_to_tensor
from ..math.cast import cast
from .ragged_rows import ragged_range as rows_of_numbers
from .ragged_rows import rows_of, splits_of
from .ragged_values import RaggedTensor


def ragged_arrays(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Sequence[int] | None = None,
    row_splits_dtype: Any = int64,
) -> Any:
    """As `ragged_constant`, of NumPy arrays: a value, such as a session is fed."""
    items = pylist.tolist() if isinstance(pylist, np.ndarray) else pylist
    if not isinstance(items, list | tuple):
        if ragged_rank or inner_shape:
            raise InvalidArgumentError(f"ragged_constant: {items!r} has no axis")
        return _array([items], dtype, ())[0]
    depth = _depth(items)
    inner = None if inner_shape is None else tuple(inner_shape)
    if ragged_rank is None:
        ragged_rank = max(depth - 1 - len(inner or ()), 0)
    if ragged_rank and ragged_rank >= depth and not _is_empty(items):
        raise InvalidArgumentError(
            f"ragged_constant: {pylist!r} has fewer than {ragged_rank} ragged axes"
        )
    if ragged_rank == 0:
        return _array(items, dtype, inner)
    kind = as_dtype(row_splits_dtype).numpy
    splits, rows = [], list(items)
    for _ in range(ragged_rank):
        if not all(isinstance(row, list | tuple) for row in rows):
            raise InvalidArgumentError(f"ragged_constant: {pylist!r} mixes lists and values")
        splits.append(np.cumsum([0, *map(len, rows)]).astype(kind))
        rows = [item for row in rows for item in row]
    return RaggedTensor(_array(rows, dtype, inner), splits)


def _array(items: Any, dtype: Any, inner: tuple[int, ...] | None) -> Any:
    wanted = None if dtype is None else as_dtype(dtype)
    if not len(items):
        kind = (wanted or as_dtype("float32")).numpy
        return np.zeros((0, *(inner or ())), kind)
    try:
        found, _ = to_array(list(items), wanted)
    except (ValueError, InvalidArgumentError) as cause:
        raise InvalidArgumentError(
            "ragged_constant: the values do not have one shape", remedy="raise ragged_rank"
        ) from cause
    if inner is not None and found.shape[1:] != inner:
        raise InvalidArgumentError(f"ragged_constant: values of {found.shape[1:]} are no {inner}")
    return found


def _depth(items: Any) -> int:
    """How deep the lists are nested, at the deepest; all values must stand at one depth."""
    if isinstance(items, np.ndarray):
        return items.ndim
    if not isinstance(items, list | tuple):
        return 0
    inside = [_depth(item) for item in items]
    kinds = {isinstance(item, list | tuple | np.ndarray) for item in items}
    if len(kinds) > 1:
        raise InvalidArgumentError("ragged_constant: lists and values stand side by side")
    return 1 + max(inside, default=0)


def _is_empty(items: Any) -> bool:
    """Whether there are no values, so that any number of axes will do."""
    return isinstance(items, list | tuple) and all(map(_is_empty, items))


def ragged_constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Sequence[int] | None = None,
    row_splits_dtype: Any = int64,
) -> Any:
    """A ragged tensor of nested lists; a tensor, where they are not nested.

    Args:
        pylist: lists in lists; all values stand at one depth.
        dtype: element type; by default what the values say.
        ragged_rank: how many axes are ragged; by default all but the first and, with
            `inner_shape`, those of it.
        inner_shape: of each innermost value.
        row_splits_dtype: int32 or int64.

    Raises:
        InvalidArgumentError: the lists are not nested so.

    Examples:
        >>> r = engine.ragged_constant([[1, 2], [3]])
        >>> r.flat_values, r.row_splits
        (Tensor([1, 2, 3], shape=(3,), dtype=int32), Tensor([0, 2, 3], shape=(3,), dtype=int64))
    """
    found = ragged_arrays(pylist, dtype, ragged_rank, inner_shape, row_splits_dtype)
    if not isinstance(found, RaggedTensor):
        return convert_to_tensor(found)
    values, splits = found
    return RaggedTensor(convert_to_tensor(values), [convert_to_tensor(s) for s in splits])


def ragged_numbers(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    row_splits_dtype: Any = int64,
) -> RaggedTensor:
    """For each row the numbers from `starts` to before `limits`; 0 to `starts` without these.

    Args:
        starts: (rows), or one number for all.
        limits: likewise.
        deltas: likewise, the distance of two.
        dtype: of the numbers.
        row_splits_dtype: int32 or int64.

    Examples:
        >>> engine.ragged_numbers([2, 0, 3]).to_list()
        [[0, 1], [], [0, 1, 2]]
    """
    if limits is None:
        starts, limits = 0, starts
    given = [starts, limits, deltas]
    if dtype is None:
        dtype = next(
            (x.dtype for x in map(convert_to_tensor, given) if not x.dtype.is_integer), None
        )
        dtype = dtype or next((x.dtype for x in given if isinstance(x, Tensor)), int32)
    own = [cast(convert_to_tensor(x), as_dtype(dtype)) for x in given]
    splits, values = rows_of_numbers(own[0], own[1], own[2], row_splits_dtype)
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def ragged_placeholder(
    dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """What a step is fed a ragged value for.

    Args:
        dtype: of the values.
        ragged_rank: how many axes are ragged; 0 for a placeholder of a tensor.
        value_shape: of each innermost value.
        name: of the operations.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.ragged_placeholder("int32", 1, []).shape
        (None, None)
    """
    own = name or "RaggedPlaceholder"
    if ragged_rank == 0:
        return placeholder(dtype, value_shape, own)
    inner = TensorShape(value_shape)
    shape = None if inner.rank is None else [None, *inner]
    values = placeholder(dtype, shape, f"{own}/flat_values")
    splits = [placeholder(int64, [None], f"{own}/row_splits_{i}") for i in range(ragged_rank)]
    return RaggedTensor(values, splits)


def row_splits_to_segment_ids(splits: Any, out_type: Any = None) -> Tensor:
    """The number of the row of each value.

    Examples:
        >>> engine.row_splits_to_segment_ids([0, 3, 3, 5])
        Tensor([0, 0, 0, 2, 2], shape=(5,), dtype=int64)
    """
    x = convert_to_tensor(splits) if hasattr(splits, "dtype") else convert_to_tensor(splits, int64)
    if x.shape.rank not in (None, 1):
        raise ShapeError(f"row_splits_to_segment_ids: splits are a vector, got {x.spec}")
    if x.shape.rank and x.shape[0] == 0:
        raise InvalidArgumentError("row_splits_to_segment_ids: splits begin with 0, got none")
    found = rows_of(x, x[-1])
    return found if out_type is None else cast(found, as_dtype(out_type))


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None
) -> Tensor:
    """Where the values of each number begin, of numbers that rise.

    Examples:
        >>> engine.segment_ids_to_row_splits([0, 0, 0, 2, 2])
        Tensor([0, 3, 3, 5], shape=(4,), dtype=int64)
    """
    given = hasattr(segment_ids, "dtype")
    x = convert_to_tensor(segment_ids) if given else convert_to_tensor(segment_ids, int64)
    found = splits_of(segment_sum(ones_like(x), x, num_segments, is_sorted=True))
    return found if out_type is None else cast(found, as_dtype(out_type))
