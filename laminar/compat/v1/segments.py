"""Rows that share a number, as one: of numbers in order, or in any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import segment
from laminar.engine.ops.array import shape as shapes
from laminar.engine.ops.core.checks import assert_op
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import where
from laminar.engine.ops.math.elementary import sqrt
from laminar.engine.ops.math.reduce import reduce_all

from .adapting import v1
from .maths import truncatediv
from .values import dims_of, static, symbol, tensor


def _mean(rows: Tensor, ids: Tensor, size: Any, root: bool = False) -> Any:
    total = segment.segment_sum(rows, ids, size)
    counts = segment.segment_sum(lookup("OnesLike")(ids), ids, size)
    counts = cast(lookup("Maximum")(counts, tensor(1, counts.dtype)), rows.dtype)
    counts = shapes.reshape(counts, [-1, *[1] * (len(rows.shape) - 1)])
    if rows.dtype.is_integer:
        return truncatediv(total, counts)
    return lookup("Div")(total, sqrt(counts) if root else counts)


def _root_mean(rows: Tensor, ids: Tensor, size: Any) -> Any:
    return _mean(rows, ids, size, root=True)


def in_order(who: str, ids: Any) -> Tensor:
    """The numbers of segments, an error where they fall or are negative."""
    numbers = symbol(ids)
    if numbers.shape.rank not in (1, None):
        raise InvalidArgumentError(f"{who}: segment_ids must be a vector, got {numbers.spec}")
    rise = lookup("LessEqual")(numbers[:-1], numbers[1:])
    starts = lookup("GreaterEqual")(numbers[:1], tensor(0, numbers.dtype))
    holds = lookup("LogicalAnd")(reduce_all(rise), reduce_all(starts))
    message = f"{who}: segment_ids must rise from 0 on"
    held = assert_op(holds, numbers, message=message, summarize=10)
    with engine.control_dependencies([held] if hasattr(held, "op") else []):
        return lookup("Identity")(numbers)


def _zero_where_empty(fn: Callable[..., Any]) -> Callable[..., Any]:
    """0 for a number that no row has, where `fn` gives the least or the greatest value."""

    def over(rows: Tensor, ids: Tensor, size: Any) -> Any:
        found = fn(rows, ids, size)
        counts = segment.segment_sum(lookup("OnesLike")(ids), ids, size)
        empty = lookup("Equal")(counts, lookup("ZerosLike")(counts))
        column = shapes.reshape(empty, [-1, *[1] * (len(rows.shape) - 1)])
        return where(column, lookup("ZerosLike")(found), found)

    return over


def _sorted(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1()
    def over(data: Any, segment_ids: Any) -> Any:
        rows = tensor(data)
        return fn(rows, in_order(name, segment_ids), None)

    over.__name__ = over.__qualname__ = name
    over.__doc__ = f"{name}: over the rows that share a number; the numbers rise from 0 on."
    return over


segment_sum = _sorted("segment_sum", segment.segment_sum)
segment_prod = _sorted("segment_prod", segment.segment_prod)
segment_max = _sorted("segment_max", _zero_where_empty(segment.segment_max))
segment_min = _sorted("segment_min", _zero_where_empty(segment.segment_min))
segment_mean = _sorted("segment_mean", _mean)


def _unsorted(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1()
    def over(data: Any, segment_ids: Any, num_segments: Any) -> Any:
        rows, ids = tensor(data), tensor(segment_ids)
        rank = ids.shape.rank
        if rank is not None and rank != 1:
            front = [None if d is None else d for d in rows.shape][:rank]
            if not ids.shape.is_compatible_with(front):
                raise InvalidArgumentError(
                    f"{name}: the shape of data, {rows.shape}, must begin with that of "
                    f"segment_ids, {ids.shape}"
                )
            rest = dims_of(rows)[rank:]
            rows, ids = shapes.reshape(rows, [-1, *rest]), shapes.reshape(ids, [-1])
        return fn(rows, ids, static(num_segments))

    over.__name__ = over.__qualname__ = name
    over.__doc__ = (
        f"{name}: over the rows that share a number, in any order; negative ones are left out.\n\n"
        "The shape of `segment_ids` is the first part of that of `data`."
    )
    return over


unsorted_segment_sum = _unsorted("unsorted_segment_sum", segment.segment_sum)
unsorted_segment_prod = _unsorted("unsorted_segment_prod", segment.segment_prod)
unsorted_segment_max = _unsorted("unsorted_segment_max", segment.segment_max)
unsorted_segment_min = _unsorted("unsorted_segment_min", segment.segment_min)
unsorted_segment_mean = _unsorted("unsorted_segment_mean", _mean)
unsorted_segment_sqrt_n = _unsorted("unsorted_segment_sqrt_n", _root_mean)
