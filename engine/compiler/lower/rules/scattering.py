"""Ops that write where numbers tell: along an axis, to rows of a table, to segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ....graph import DType, bool_, int32, int64
from ...ir.builder import Builder, as_it_is, broadcast
from ...ir.launch import Launch
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Alias, KernelArguments, KernelPlanner, Operand, Shape, Size, View
from ...kernels.other.first_occurrence import TABLE_PLACES, plan_first_occurrence
from ...kernels.other.scatter import plan_scatter
from .indexing import checked, numbers, wrapped
from .table import Lowered, filled, lowers


@lowers("TakeAlongAxisGrad")
def _take_along_grad(
    b: Builder, step: Lowered, dy: Operand, indices: Operand, *dims: Operand
) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    axis = step.attrs["axis"] % len(shape)
    if b.shape(dy)[axis] != 1:
        return _put(b, None, indices, dy, shape, axis, "add")
    places = wrapped(b, indices, shape[axis])
    at = b.iota(shape, axis, b.dtype(places))
    return b.compute(lambda s, i, j, d: s.where(i == j, d, 0), places, at, dy, dtype=b.dtype(dy))


@lowers("PutAlongAxis")
def _put_along_axis(
    b: Builder, step: Lowered, x: Operand, indices: Operand, values: Operand
) -> Operand:
    shape = b.shape(x)
    return _put(b, x, indices, values, shape, step.attrs["axis"] % len(shape), step.attrs["mode"])


def _put(
    b: Builder,
    x: Operand | None,
    indices: Operand,
    values: Operand,
    shape: Shape,
    axis: int,
    mode: str,
) -> Operand:
    """`x`, or zeros, of a shape, combined with values along an axis at indices."""
    count = b.shape(indices)[axis]
    named = (*shape[:axis], count, *shape[axis + 1 :])
    order = [a for a in range(len(shape)) if a != axis] + [axis]
    places = b.broadcast(checked(b, indices, shape[axis]), named)
    rows = b.map(as_it_is, [values], b.dtype(values), named)
    outer = tuple(shape[a] for a in order[:-1])
    found = _scattered(
        b,
        b.transpose(rows, order),
        b.transpose(places, order),
        (math.prod(outer), shape[axis], 1),
        mode,
        None if x is None else b.transpose(x, order),
        own_places=True,
    )
    back = sorted(range(len(order)), key=order.__getitem__)
    return b.transpose(b.reshape(found, (*outer, shape[axis])), back)


@lowers("GatherGrad")
def _gather_grad(
    b: Builder, step: Lowered, dy: Operand, indices: Operand, *dims: Operand
) -> Operand:
    shape, common = filled(step.attrs["shape"], dims), step.attrs["batch_dims"]
    axis = step.attrs["axis"] % len(shape)
    places = checked(b, indices, shape[axis])
    tables = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    if not common:
        return b.reshape(_scattered(b, dy, places, tables), shape)
    batch, named = b.shape(indices)[:common], b.shape(indices)[common:]
    if batch != shape[:common]:
        raise NotLoweredError(f"GatherGrad of {shape} by {b.shape(indices)}")
    # Those of a batch go with all that is before the axis.
    each = b.reshape(places, (*batch, *[1] * (axis - common), math.prod(named)))
    spread = b.whole(b.broadcast(each, (*shape[:axis], math.prod(named))))
    return b.reshape(_scattered(b, dy, spread, tables, own_places=True), shape)


@lowers("ScatterNd")
def _scatter_nd(b: Builder, step: Lowered, updates: Operand, *rest: Operand) -> Operand:
    count = step.attrs["num_indices"]
    shape = filled(step.attrs["shape"], rest[count:])
    indices = rest[:count]
    own = broadcast([b.shape(i) for i in indices])
    if b.shape(updates) != (*own, *shape[count:]):
        raise NotLoweredError(f"ScatterNd of {b.shape(updates)} into {shape}")
    tables = 1, math.prod(shape[:count]), math.prod(shape[count:])
    return b.reshape(_scattered(b, updates, _rows(b, indices, shape, own), tables), shape)


@lowers("TensorScatter")
def _tensor_scatter(
    b: Builder, step: Lowered, x: Operand, updates: Operand, *indices: Operand
) -> Operand:
    shape, count = b.shape(x), len(indices)
    own = broadcast([b.shape(i) for i in indices])
    if b.shape(updates) != (*own, *shape[count:]):
        raise NotLoweredError(f"TensorScatter of {b.shape(updates)} into {shape}")
    places = _rows(b, indices, shape, own)
    tables = 1, math.prod(shape[:count]), math.prod(shape[count:])
    return b.reshape(_scattered(b, updates, places, tables, step.attrs["mode"], x), shape)


def _rows(b: Builder, indices: Sequence[Operand], shape: Shape, own: Shape) -> Operand:
    """The numbers of the rows that indices of the leading axes of a shape name."""
    row: Operand | None = None
    for i, n in zip(indices, shape, strict=False):
        places = b.cast(checked(b, i, n), int64)
        row = (
            places
            if row is None
            else b.compute(lambda s, r, p, n: r * n + p, row, places, Size(n, int64))
        )
    assert row is not None
    return b.broadcast(row, own)


@lowers("SegmentSum")
def _segment_sum(b: Builder, step: Lowered, rows: Operand, ids: Operand, *dims: Operand) -> Operand:
    (size,) = filled((step.attrs["num_segments"],), dims)
    count, *rest = b.shape(rows)
    if b.shape(ids) != (count,):
        raise NotLoweredError(f"SegmentSum of {b.shape(rows)} by {b.shape(ids)}")
    found = _scattered(b, rows, numbers(b, ids), (1, size, math.prod(rest)))
    return b.reshape(found, (size, *rest))


@lowers("FirstOccurrence")
def _first_occurrence(b: Builder, step: Lowered, x: Operand) -> Operand:
    (count,) = b.shape(x)
    numbered = numbers(b, x)
    made = [((count,), int32), ((TABLE_PLACES * count,), int32)]
    planner = FirstPlanner(count, b.dtype(numbered))
    return b.kernel_call("first_occurrence", [numbered], made, planner)[0]


@dataclass(frozen=True)
class FirstPlanner(KernelPlanner):
    """The first place of each of `count` numbers."""

    count: int = field(repr=False)
    dtype: DType = field(repr=False)

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        (x,), (first, table) = arguments.inputs, arguments.outputs
        return plan_first_occurrence(
            x, first, table, arguments.real(self.count), self.dtype, arguments.target
        )


def put_rows(b: Builder, table: Operand, places: Operand, rows: Operand) -> View:
    """A table with other rows at places; those out of range name none."""
    shape, dtype = b.shape(table), b.dtype(table)
    (count,) = b.shape(places)
    places = numbers(b, places)
    if dtype == bool_ or b.shape(rows) != (count, *shape[1:]):
        raise NotLoweredError(f"rows {b.shape(rows)} for a table of {shape} {dtype}")
    sizes = 1, count, shape[0], math.prod(shape[1:])
    planner = ScatterPlanner("update", sizes, dtype, b.dtype(places))
    whole = b.whole(table)
    inputs = [rows, places, whole]
    alias = Alias(whole.storage, math.prod(b.shape(rows)))
    return b.kernel_call("put rows", inputs, [(shape, dtype)], planner, alias=alias)[0]


@dataclass(frozen=True)
class ScatterPlanner(KernelPlanner):
    """Rows combined with those of tables at places; without tables to start with, with zeros.

    Attributes:
        mode: "update", "add", "mul", "max" or "min".
        sizes: the number of tables, of places in each, of rows and of columns of a table.
        dtype: of the rows.
        index_dtype: of the places.
        own_places: whether each table has places of its own.
    """

    mode: str
    sizes: tuple[int, int, int, int] = field(repr=False)
    dtype: DType = field(repr=False)
    index_dtype: DType = field(repr=False)
    own_places: bool = False

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        rows, places, *start = arguments.inputs
        tables, count, size, width = map(arguments.real, self.sizes)
        return plan_scatter(
            self.mode,
            rows,
            places,
            start[0] if start else None,
            arguments.outputs[0],
            tables,
            count,
            size,
            width,
            self.dtype,
            self.index_dtype,
            arguments.target,
            own_indices=self.own_places,
        )


def _scattered(
    b: Builder,
    rows: Operand,
    places: Operand,
    tables: Shape,
    mode: str = "add",
    start: Operand | None = None,
    *,
    own_places: bool = False,
) -> View:
    """Tables, zeros or as they `start`, with each row combined with the one at its place.

    Args:
        b: what it is built with.
        rows: as many for each table as there are places.
        places: numbers of rows of a table.
        tables: how many there are, how many rows and columns they have.
        mode: "update", "add", "mul", "max" or "min".
        start: what they are before.
        own_places: whether each table has places of its own.
    """
    number, size, width = tables
    count = math.prod(b.shape(places))
    if own_places:
        count = math.prod(b.shape(places)[-1:])
    dtype, index_dtype = b.dtype(rows), b.dtype(places)
    if dtype == bool_ or math.prod(b.shape(rows)) != number * count * width:
        raise NotLoweredError(f"a scatter of {b.shape(rows)} {dtype}")
    planner = ScatterPlanner(mode, (number, count, size, width), dtype, index_dtype, own_places)
    inputs = [rows, places] if start is None else [rows, places, start]
    return b.kernel_call("scatter", inputs, [(tables, dtype)], planner)[0]
