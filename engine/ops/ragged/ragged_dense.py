"""Ragged tensors of tensors and of sparse ones, and back."""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import Tensor, as_dtype, int64, string
from ..array.creation import full, sequence_mask, zeros
from ..array.gather import gather
from ..array.index import boolean_mask, get_item
from ..array.join import concat, stack
from ..array.shape import dim_of, reshape
from ..core import checks
from ..core.convert import convert_to_tensor
from ..math.arithmetic import add, maximum, minimum, subtract
from ..math.cast import cast
from ..math.compare import equal, less, where
from ..math.cumulative import cumprod
from ..math.reduce import reduce_all, reduce_max, reduce_sum
from ..sparse.sparse_values import SparseValues, as_sparse
from .ragged_rows import (
    lengths_of,
    longest,
    outer_size,
    places_in_rows,
    ragged_range,
    rows_of,
    splits_of,
)
from .ragged_values import RaggedTensor


def _sizes(x: Tensor) -> list[Any]:
    return [dim_of(x, axis=i) if d is None else d for i, d in enumerate(x.shape)]


def ragged_from_tensor(
    tensor: Any,
    lengths: Any = None,
    padding: Any = None,
    ragged_rank: int = 1,
    row_splits_dtype: Any = int64,
) -> RaggedTensor:
    """The rows of a tensor as a ragged one.

    Args:
        tensor: of more than `ragged_rank` axes.
        lengths: how much of each row counts, (rows); or a list of vectors, for nested rows.
        padding: instead of lengths: the value that fills rows up at their ends.
        ragged_rank: how many axes are ragged.
        row_splits_dtype: int32 or int64.

    Raises:
        InvalidArgumentError: lengths and padding are both given, or a rank of ragged axes that
            there are not.

    Examples:
        >>> engine.RaggedTensor.from_tensor([[5, 7, 0], [0, 0, 0], [6, 0, 0]], padding=0).to_list()
        [[5, 7], [], [6]]
    """
    x, kind = convert_to_tensor(tensor), as_dtype(row_splits_dtype)
    if lengths is not None and padding is not None:
        raise InvalidArgumentError("from_tensor: give lengths or a padding, not both")
    if isinstance(lengths, list | tuple) and lengths and not isinstance(lengths[0], int | float):
        ragged_rank = len(lengths)
        return _from_nested(x, lengths, kind)
    if ragged_rank < 1 or (x.shape.rank is not None and x.shape.rank <= ragged_rank):
        raise ShapeError(
            f"from_tensor: a tensor of {x.spec} has no {ragged_rank} axes of rows and one of values"
        )
    if x.shape.rank is None:
        raise ShapeError("from_tensor: the number of axes of the tensor must be known")
    sizes = _sizes(x)
    if ragged_rank > 1:
        inner = [_product(sizes[:ragged_rank]), *sizes[ragged_rank:]]
        rows = reshape(x, inner)
        found: Any = ragged_from_tensor(
            rows, None if lengths is None else lengths, padding, 1, kind
        )
        for axis in range(ragged_rank - 1, 0, -1):
            count, size = _product(sizes[:axis]), sizes[axis]
            found = RaggedTensor.from_row_splits(found, _even(count, size, kind), validate=False)
        return found  # type: ignore[no-any-return]  # the loop runs at least once
    flat = reshape(x, [_product(sizes[:2]), *sizes[2:]])
    if lengths is None and padding is None:
        return RaggedTensor.from_row_splits(flat, _even(sizes[0], sizes[1], kind), validate=False)
    if lengths is None:
        lengths = _without_padding(x, convert_to_tensor(padding, x.dtype))
    count = cast(convert_to_tensor(lengths), kind)
    zero, most = convert_to_tensor(0, kind), cast(convert_to_tensor(sizes[1]), kind)
    count = maximum(minimum(count, most), zero)
    mask = sequence_mask(count, sizes[1])
    return RaggedTensor.from_row_splits(boolean_mask(x, mask, 0), splits_of(count), validate=False)


def _from_nested(x: Tensor, lengths: Any, kind: Any) -> RaggedTensor:
    """The rows of a tensor, of which the lengths of each axis are given one behind the other."""
    first, *others = lengths
    found = ragged_from_tensor(x, first, None, 1, kind)
    if others:
        return found.with_values(_from_nested(found.flat_values, others, kind))
    return found


def _product(sizes: Any) -> Any:
    found: Any = 1
    for size in sizes:
        found = found * size
    return found


def _even(count: Any, size: Any, kind: Any) -> Tensor:
    """The splits of `count` rows of `size` values each."""
    rows = ragged_range(convert_to_tensor(0, kind), cast(convert_to_tensor(count), kind) + 1)[1]
    return rows * cast(convert_to_tensor(size), kind)  # type: ignore[no-any-return]  # tensors


def _without_padding(x: Tensor, padding: Tensor) -> Tensor:
    """How long the rows are without what is padding at their ends."""
    filled = equal(x, padding)
    if x.shape.rank is not None and x.shape.rank > 2:
        filled = reduce_all(filled, tuple(range(2, x.shape.rank)))
    places = cast(ragged_range(0, dim_of(x, axis=1))[1] + 1, int64)
    zero = convert_to_tensor(0, int64)
    ends = where(filled, zero, places)
    column = zeros([outer_size(x), 1], int64)
    return reduce_max(concat([ends, column], 1), 1)


def ragged_to_tensor(x: RaggedTensor, default_value: Any = None, shape: Any = None) -> Tensor:
    """All rows in one tensor, as long as the longest, or of a shape; the rest is `default_value`.

    Args:
        x: ragged.
        default_value: 0, False or "" unless told; a scalar, or what fits one inner value.
        shape: sizes to which rows are cut or filled; None for those that there are.
    """
    flat = convert_to_tensor(x.flat_values)
    if flat.shape.rank is None:
        raise ShapeError("to_tensor: the number of axes of the values must be known")
    if default_value is None:
        default_value = "" if flat.dtype == string else 0
    inner = _sizes(flat)[1:]
    default = full(inner, convert_to_tensor(default_value, flat.dtype))
    sizes = [None] * (x.ragged_rank + 1) if shape is None else list(shape)[: x.ragged_rank + 1]
    found = _filled(x, default, [None if n is None or n == -1 else n for n in sizes[1:]])
    if sizes[0] not in (None, -1):
        found = _resized(found, sizes[0], default)
    return found


def _filled(x: RaggedTensor, default: Tensor, widths: list[Any]) -> Tensor:
    inner = x.values
    if isinstance(inner, RaggedTensor):
        inner = _filled(inner, default, widths[1:])
    inner = convert_to_tensor(inner)
    one = full(_sizes(inner)[1:], default)  # what stands behind the values
    pool = concat([inner, one[None]], 0)
    splits = convert_to_tensor(x.row_splits)
    lengths = lengths_of(splits)
    zero = convert_to_tensor(0, splits.dtype)
    width = widths[0]
    if width is None:
        width = longest(splits)
    columns = ragged_range(zero, cast(convert_to_tensor(width), splits.dtype))[1]
    there = less(columns[None, :], lengths[:, None])
    places = where(there, add(splits[:-1][:, None], columns[None, :]), splits[-1])
    found = gather(pool, places)
    if isinstance(widths[0], int):
        known = [None if isinstance(n, Tensor) else n for n in _sizes(found)]
        if known[1] is None:
            found = reshape(found, [_sizes(found)[0], widths[0], *_sizes(found)[2:]])
    return found


def _resized(x: Tensor, rows: Any, default: Tensor) -> Tensor:
    """As many rows: the first ones, and others of the default value."""
    more = full([rows, *_sizes(x)[1:]], default)
    return get_item(concat([x, more], 0), slice(None, rows))


def ragged_from_sparse(st_input: Any, row_splits_dtype: Any = int64) -> RaggedTensor:
    """The rows of a sparse matrix whose values stand, without gaps, at the beginnings of its rows.

    Raises:
        ShapeError: it is no matrix.
        InvalidArgumentError: there are gaps; in a graph, when it is run.
    """
    if not isinstance(st_input, SparseValues):
        raise InvalidArgumentError(f"from_sparse: expected SparseValues, got {st_input!r}")
    x = as_sparse("from_sparse", st_input)
    if x.shape.rank not in (None, 2):
        raise ShapeError(f"from_sparse: expected a sparse matrix, got one of shape {x.shape}")
    kind = as_dtype(row_splits_dtype)
    rows = cast(x.indices[:, 0], kind)
    found = RaggedTensor.from_value_rowids(x.values, rows, cast(x.dense_shape[0], kind))
    columns = cast(x.indices[:, 1], kind)
    gapless = checks.check(
        equal(columns, places_in_rows(found.row_splits)),
        "from_sparse: the values of a row do not stand at its beginning, without gaps",
    )
    splits = found.row_splits + cast(
        subtract(reduce_sum(cast(gapless, kind)), len_of(columns)), kind
    )
    return RaggedTensor(found.flat_values, (splits,))


def len_of(x: Tensor) -> Tensor:
    """The number of elements of a vector, in its type."""
    return outer_size(x, x.dtype)  # type: ignore[no-any-return]  # a tensor


def ragged_to_sparse(x: RaggedTensor) -> SparseValues:
    """As SparseValues: value k of row i stands at (i, k)."""
    flat = convert_to_tensor(x.flat_values)
    if flat.shape.rank is None:
        raise ShapeError("to_sparse: the number of axes of the values must be known")
    places = [cast(p, int64) for p in coordinates(x)]
    inner = [cast(convert_to_tensor(n), int64) for n in _sizes(flat)[1:]]
    sizes = cast(bounding_shape(x), int64)
    if inner:
        each = _product(inner)
        row, place = ragged_range(convert_to_tensor(0, int64), full([outer_size(flat)], each))
        owner = rows_of(row, row[-1])
        places = [gather(p, owner) for p in places]
        strides = cumprod(stack(inner), 0, reverse=True, exclusive=True)
        for i, size in enumerate(inner):
            places.append(place // strides[i] % size)
    return SparseValues(stack(places, 1), reshape(flat, [-1]), sizes)


def coordinates(x: RaggedTensor) -> list[Tensor]:
    """For each flat value its row, its place in it, and so on: one vector for each axis."""
    splits = [convert_to_tensor(s) for s in x.nested_row_splits]
    found = [rows_of(splits[0], splits[0][-1]), places_in_rows(splits[0])]
    for own in splits[1:]:
        owner = rows_of(own, own[-1])
        found = [gather(p, owner) for p in found] + [places_in_rows(own)]
    return found


def bounding_shape(x: RaggedTensor, axis: Any = None, out_type: Any = None) -> Tensor:
    """The number of rows, the length of the longest row of each ragged axis, and the inner sizes.

    Args:
        x: ragged.
        axis: of which axes, a number or several; None for all.
        out_type: int32 or int64; by default that of the splits.
    """
    kind = as_dtype(out_type) if out_type is not None else as_dtype(x.row_splits.dtype)
    flat = convert_to_tensor(x.flat_values)
    sizes = [cast(x.nrows(), kind)]
    for splits in x.nested_row_splits:
        sizes.append(cast(longest(convert_to_tensor(splits)), kind))
    inner = [cast(convert_to_tensor(n), kind) for n in _sizes(flat)[1:]]
    found = stack(sizes + inner)
    return found if axis is None else gather(found, convert_to_tensor(axis))
