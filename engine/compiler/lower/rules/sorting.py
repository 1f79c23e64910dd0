"""Order along an axis.

Short lines are sorted by counting: the rank of an element is how many stand before it. That is one
comparison for each pair, but whole vectors of them, and no element waits for another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ....graph import FLOATING, DType, bool_, int32
from ...ir.builder import Builder, as_it_is
from ...ir.launch import Launch
from ...ir.not_lowered import NotLoweredError
from ...ir.program import IndirectLoad, KernelArguments, KernelPlanner, Operand, View
from ...ir.sizes import is_known
from ...ir.sort_keys import in_order, order_type
from ...kernels.other.top_k import plan_top_k
from .table import Lowered, lowers

# Longer lines take the reference kernel less time, by half or more: it sorts values by vectors,
# places one by one.
_LONGEST_OF_VALUES = 64
_LONGEST_OF_PLACES = 256


@lowers("Sort")
def _sort(b: Builder, step: Lowered, x: Operand) -> Operand:
    line = _line_at_end(b, x, step.attrs["axis"])
    if line.shape[-1] > _LONGEST_OF_VALUES:
        raise NotLoweredError(f"Sort of {line.shape[-1]} elements")
    order = _sorted_by_rank(b, line, descending=step.attrs["descending"])
    return _axis_back(b, _picked(b, line, order), step.attrs["axis"])


@lowers("ArgSort")
def _argsort(b: Builder, step: Lowered, x: Operand) -> Operand:
    line = _line_at_end(b, x, step.attrs["axis"])
    order = _sorted_by_rank(b, line, descending=step.attrs["descending"])
    return _axis_back(b, order, step.attrs["axis"])


@lowers("TopK")
def _top_k(b: Builder, step: Lowered, x: Operand) -> tuple[Operand | None, Operand]:
    count, line = step.attrs["k"], _line_at_end(b, x, -1)
    size = line.shape[-1]
    if not is_known(size) or count > _LONGEST_OF_PLACES:
        raise NotLoweredError(f"the greatest {count} of {size}")
    places = _greatest(b, line, count)
    if not step.attrs["sorted"]:
        places = _picked(b, places, _sorted_by_rank(b, places, descending=False))
    return (_picked(b, line, places) if step.live[0] else None), places


def _line_at_end(b: Builder, x: Operand, axis: int) -> View:
    """The operand with an axis as its last."""
    rank = len(b.shape(x))
    order = [a for a in range(rank) if a != axis % rank]
    return b.transpose(x, [*order, axis % rank])


def _axis_back(b: Builder, x: View, axis: int) -> View:
    """What `_line_at_end` has moved, where it was."""
    rank = len(x.shape)
    order = [*range(rank - 1)]
    order.insert(axis % rank, rank - 1)
    return b.transpose(x, order)


def _picked(b: Builder, x: View, places: View) -> View:
    """Elements of lines, by places that are within them."""
    start = x._replace(shape=places.shape, strides=(*x.strides[:-1], 0))
    found = IndirectLoad(start, (places,), (x.strides[-1],), (x.shape[-1],))
    return b.map(as_it_is, [found], b.dtype(x), places.shape)


def _sorted_by_rank(b: Builder, x: View, *, descending: bool) -> View:
    """The places of the elements of lines in their order, int32; of equal ones the first first.

    Raises:
        NotLoweredError: the lines are long, or nobody knows how long.
    """
    *outer, size = x.shape
    if not is_known(size) or size > _LONGEST_OF_PLACES:
        raise NotLoweredError(f"an order of {size} elements")
    # Lanes take elements, or ranks, side by side; what is added up comes one after the other.
    whole = (*outer, size, size)
    that, this = (b.iota(whole, len(outer) + i, int32) for i in (0, 1))

    def is_before(s: Any, other: Any, own: Any, j: Any, i: Any) -> Any:
        comes_first = other > own if descending else other < own
        return comes_first | ((other == own) & (j < i))

    keys = _keys(b, x)
    own = b.reshape(keys, (*outer, 1, size))
    others = b.reshape(keys, (*outer, size, 1))
    before = b.compute(is_before, others, own, that, this, dtype=bool_)
    ranks = b.reduce("sum", b.cast(before, int32), [len(outer)])
    # Which element has the rank: only one is not 0 of those that are added up.
    of_each = b.reshape(ranks, (*outer, size, 1))
    places = b.compute(
        lambda s, rank, i, j: s.where(rank == i, j, 0), of_each, this, that, dtype=int32
    )
    return b.reduce("sum", places, [len(outer)])


def _keys(b: Builder, x: View) -> View:
    """What stands for elements in comparisons, in memory: each is read as often as there are."""
    dtype = b.dtype(x)
    if dtype not in FLOATING:
        return x if dtype != bool_ else b.copy(b.cast(x, int32))
    return b.map(in_order, [x], order_type(dtype))


def _greatest(b: Builder, x: View, count: int) -> View:
    """The places of the greatest elements of lines, from the greatest down."""
    *outer, size = x.shape
    dtype = b.dtype(x)
    shape = (*outer, count)
    made = [(shape, order_type(dtype)), (shape, int32)]
    planner = TopKPlanner(math.prod(outer), size, count, dtype)
    return b.kernel_call("top_k", [x], made, planner)[1]


@dataclass(frozen=True)
class TopKPlanner(KernelPlanner):
    """Keys and places of the `count` greatest of each line of `size` elements."""

    lines: int = field(repr=False)
    size: int = field(repr=False)
    count: int
    dtype: DType = field(repr=False)

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        lines = arguments.real(self.lines)
        (x,), (keys, places) = arguments.inputs, arguments.outputs
        return plan_top_k(
            x, keys, places, lines, self.size, self.count, self.dtype, arguments.target
        )
