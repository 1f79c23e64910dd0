"""Ragged tensors computed with: elementwise, and over an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import Operators, Tensor, float64, int32
from ..array import segment
from ..array.axes import expand_dims
from ..array.gather import gather, gather_along
from ..array.shape import dim_of
from ..core import checks
from ..core.basic import ones_like
from ..core.convert import convert_to_tensor
from ..math import reduce
from ..math.arithmetic import divide, maximum, multiply
from ..math.cast import cast
from ..math.compare import equal, greater, not_equal
from .ragged_dense import coordinates
from .ragged_rows import lengths_of, longest, places_in_rows, splits_of
from .ragged_structure import get_item, ragged_expand_dims
from .ragged_values import RaggedTensor


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `op` makes of the flat values of ragged arguments, in their rows.

    Args:
        op: it keeps the size of the first axis.
        args, kwargs: what it takes; ragged tensors, also in lists, stand for their flat values, and
            have the same rows.

    Raises:
        InvalidArgumentError: the rows of two arguments differ; in a graph, when it is run.

    Examples:
        >>> r = engine.ragged_constant([[1, 2], [], [3]])
        >>> engine.map_flat_values(lambda x: x * 10, r).to_list()
        [[10, 20], [], [30]]
    """
    found: list[RaggedTensor] = []

    def flat(x: Any) -> Any:
        if isinstance(x, RaggedTensor):
            found.append(x)
            return x.flat_values
        return type(x)(map(flat, x)) if type(x) in (list, tuple) else x

    values = [flat(x) for x in args]
    named = {key: flat(x) for key, x in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    splits = _common(found)
    return RaggedTensor(op(*values, **named), splits)


def _common(xs: list[RaggedTensor]) -> tuple[Any, ...]:
    """The splits of ragged tensors of the same rows, once it is known that they are."""
    first, *others = xs
    if any(x.ragged_rank != first.ragged_rank for x in others):
        ranks = [x.ragged_rank for x in xs]
        raise ShapeError(f"ragged tensors of {ranks} ragged axes do not have the same rows")
    found = list(first.nested_row_splits)
    for other in others:
        for axis, theirs in enumerate(other.nested_row_splits):
            if theirs is found[axis]:
                continue
            mine = convert_to_tensor(found[axis])
            found[axis] = _same(mine, cast(convert_to_tensor(theirs), mine.dtype))
    return tuple(found)


def _same(mine: Tensor, theirs: Tensor) -> Tensor:
    if not mine.shape.is_compatible_with(theirs.shape):
        raise InvalidArgumentError(
            f"ragged tensors of {mine.shape} and {theirs.shape} splits differ"
        )
    holds = checks.check(equal(mine, theirs), "ragged tensors have different rows", [mine, theirs])
    return multiply(mine, cast(holds, mine.dtype))


def elementwise(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An elementwise op of ragged tensors and of tensors that broadcast to their rows.

    Args:
        op: the op.
        args: operands; a tensor of fewer axes than are ragged, or with sizes of 1, broadcasts.
        kwargs: what else it takes.
    """
    like = next(x for x in args if isinstance(x, RaggedTensor))
    return map_flat_values(op, *(_spread(x, like) for x in args), **kwargs)


def _spread(x: Any, like: RaggedTensor) -> Any:
    """An operand, such that it broadcasts to the flat values of `like`."""
    if (
        isinstance(x, RaggedTensor | str | bytes)
        or not isinstance(x, Operators | list | tuple)
        and not hasattr(x, "shape")
    ):
        return x
    dense = convert_to_tensor(x)
    inner = convert_to_tensor(like.flat_values).shape.rank
    if dense.shape.rank is None or inner is None:
        raise ShapeError("a tensor and a ragged one: the numbers of axes must be known")
    if dense.shape.rank < inner:
        return dense
    rank = inner + like.ragged_rank
    if dense.shape.rank > rank:
        raise ShapeError(f"{dense.spec} has more axes than the ragged tensor, {rank}")
    missing = rank - dense.shape.rank
    if missing:
        dense = expand_dims(dense, tuple(range(missing)))
    places = coordinates(like)
    own = []
    for axis, place in enumerate(places):
        if dense.shape[axis] == 1:
            own.append(multiply(place, convert_to_tensor(0, place.dtype)))
            continue
        size = dim_of(dense, axis=axis)
        many = not_equal(size, convert_to_tensor(1, size.dtype))
        if axis:
            lengths = lengths_of(convert_to_tensor(like.nested_row_splits[axis - 1]))
            fits = equal(lengths, cast(size, lengths.dtype))
        else:
            fits = equal(cast(like.nrows(), size.dtype), size)
        fits = checks.check(fits | equal(size, convert_to_tensor(1, size.dtype)), _UNEVEN)
        used = cast(many, place.dtype) * cast(reduce.reduce_all(fits), place.dtype)
        own.append(multiply(place, used))
    return gather_along(dense, own)


_UNEVEN = "a tensor does not broadcast to the rows of a ragged one: sizes of an axis differ"


class _Elementwise:
    """The operators of tensors, of ragged ones."""

    def __init__(self) -> None:
        self._tensors = Operators.table

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = getattr(self._tensors, name)
        return lambda *args: elementwise(op, *args)

    @staticmethod
    def get_item(x: RaggedTensor, index: Any) -> Any:
        return get_item(x, index)

    @staticmethod
    def round(x: RaggedTensor, digits: int) -> Any:
        return x.with_flat_values(Operators.table.round(x.flat_values, digits))


def RaggedOperators() -> Any:  # noqa: N802  # stands for a class
    """The table of operators of ragged tensors."""
    return _Elementwise()


_SEGMENTS: dict[str, Callable[..., Tensor]] = {
    "sum": segment.segment_sum,
    "prod": segment.segment_prod,
    "max": segment.segment_max,
    "min": segment.segment_min,
}
_WHOLE: dict[str, Callable[..., Tensor]] = {
    "sum": reduce.reduce_sum,
    "prod": reduce.reduce_prod,
    "max": reduce.reduce_max,
    "min": reduce.reduce_min,
    "mean": reduce.reduce_mean,
    "all": reduce.reduce_all,
    "any": reduce.reduce_any,
}


def ragged_reduce(kind: str, x: RaggedTensor, axis: Any = None, keepdims: bool = False) -> Any:
    """A reduction of a ragged tensor.

    Args:
        kind: "sum", "prod", "max", "min", "mean", "all" or "any".
        x: ragged.
        axis: the axes over which it goes; None for all, which gives a scalar.
        keepdims: whether they stay, of size 1.

    Examples:
        >>> r = engine.ragged_constant([[3, 1, 4], [], [1]])
        >>> engine.ragged_reduce("sum", r, 1)
        Tensor([8, 0, 1], shape=(3,), dtype=int32)
        >>> engine.ragged_reduce("sum", r, 0)
        Tensor([4, 1, 4], shape=(3,), dtype=int32)
    """
    if kind not in _WHOLE:
        raise InvalidArgumentError(
            f"ragged_reduce: expected one of {', '.join(_WHOLE)}, got {kind}"
        )
    if axis is None:
        return _WHOLE[kind](x.flat_values, keepdims=keepdims)
    rank = x.shape.rank
    given = list(axis) if isinstance(axis, list | tuple) else [axis]
    if rank is None and any(a < 0 for a in given):
        raise ShapeError("ragged_reduce: the number of axes must be known")
    axes = sorted({a + rank if a < 0 else a for a in given}, reverse=True)
    if rank is not None and axes and not 0 <= axes[-1] <= axes[0] < rank:
        raise InvalidArgumentError(f"ragged_reduce: axis {axis} is not one of {rank} axes")
    if kind == "mean":
        counts = x.with_flat_values(ones_like(convert_to_tensor(x.flat_values)))
        both = (ragged_reduce("sum", of, axis, keepdims) for of in (x, counts))
        return _divided(*both)
    found: Any = x
    for a in axes:
        found = _over(kind, found, a, keepdims)
    return found


def _over(kind: str, x: Any, axis: int, keepdims: bool) -> Any:
    if not isinstance(x, RaggedTensor):
        return _WHOLE[kind](x, (axis,), keepdims)
    if kind in ("all", "any"):
        # Of nothing, the least is the greatest number there is, and the greatest the least one.
        numbers = x.with_flat_values(cast(x.flat_values, int32))
        found = _over("min" if kind == "all" else "max", numbers, axis, keepdims)
        return _each(lambda n: greater(n, convert_to_tensor(0, int32)), found)
    if axis > 1:
        return x.with_values(_over(kind, x.values, axis - 1, keepdims))
    splits = convert_to_tensor(x.row_splits)
    if axis == 1:
        found = ragged_segments(kind, x.values, x.value_rowids(), x.nrows())
    else:
        found = ragged_segments(kind, x.values, places_in_rows(splits), longest(splits))
    return ragged_expand_dims(found, axis) if keepdims else found


def _divided(total: Any, count: Any) -> Any:
    if isinstance(total, RaggedTensor):
        return map_flat_values(_divided, total, count)
    if total.dtype.is_integer:
        return divide(cast(total, float64), cast(count, float64))
    return divide(total, count)


def _each(op: Callable[..., Any], x: Any) -> Any:
    return map_flat_values(op, x) if isinstance(x, RaggedTensor) else op(x)


def ragged_segments(kind: str, values: Any, ids: Tensor, count: Any) -> Any:
    """Values that share a number as one; of ragged values, their rows element by element."""
    if not isinstance(values, RaggedTensor):
        return _SEGMENTS[kind](values, ids, cast(count, int32))
    # Row k of the result is as long as the longest of the rows with number k.
    lengths = lengths_of(convert_to_tensor(values.row_splits))
    most = segment.segment_max(lengths, ids, cast(count, int32))
    splits = splits_of(maximum(most, convert_to_tensor(0, most.dtype)))
    owner = gather(ids, values.value_rowids())
    inner = gather(splits, owner) + places_in_rows(convert_to_tensor(values.row_splits))
    found = ragged_segments(kind, values.values, inner, splits[-1])
    return RaggedTensor.from_row_splits(found, splits, validate=False)
