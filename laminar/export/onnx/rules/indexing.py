"""Ops that pick elements: slices, rows by their numbers, the first of an order."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine.graph import Operation, as_dtype, canonical_axis

from ..table import rank_of, refused, rows, rule
from ..writer import GraphWriter

_END = np.iinfo(np.int64).max

rows({"Where": "Where"})


@rule("StridedSlice")
def _strided_slice(w: GraphWriter, op: Operation, x: str, *values: str) -> str:
    """Slice along the axes that are cut, drop those that are indexed, then add the new ones."""
    rank = rank_of(op.inputs[0])
    index = op.attrs["index"]
    taken = sum(entry not in ("new", "...") for entry in index)
    full = [*index] if "..." in index else [*index, "..."]
    place = full.index("...")
    full[place : place + 1] = [(None, None, None)] * (rank - taken)
    given = iter(values)

    def bound(item: Any, default: int) -> str:
        if item == "?":
            return w.vector(next(given))
        return w.ints([default if item is None else item])

    cuts: list[tuple[int, str, str, int]] = []
    dropped, new = [], []
    axis = kept = 0
    for entry in full:
        if entry == "new":
            new.append(kept)
            kept += 1
            continue
        if isinstance(entry, tuple):
            first, last, step = entry
            step = 1 if step is None else step
            if (first, last, step) != (None, None, 1):
                # Downwards it begins at the end, and goes on before the first.
                begin = bound(first, 0 if step > 0 else _END)
                cuts.append((axis, begin, bound(last, _END if step > 0 else -_END), step))
            kept += 1
        else:
            begin = bound(entry, 0)
            end = w.node("Add", begin, w.ints([1]))
            if entry == -1:
                end = w.ints([_END])
            cuts.append((axis, begin, end, 1))
            dropped.append(axis)
        axis += 1
    if cuts:
        axes, begins, ends, steps = zip(*cuts, strict=True)
        joined = [
            part[0] if len(part) == 1 else w.node("Concat", *part, axis=0)
            for part in (begins, ends)
        ]
        x = w.node("Slice", x, *joined, w.ints(axes), w.ints(steps))
    if dropped:
        x = w.node("Squeeze", x, w.ints(dropped))
    return w.node("Unsqueeze", x, w.ints(new)) if new else x


@rule("Gather")
def _gather(w: GraphWriter, op: Operation, x: str, indices: str) -> str:
    axis, batch = op.attrs["axis"], op.attrs["batch_dims"]
    axis = canonical_axis("Gather", axis, rank_of(op.inputs[0]))
    indices = w.cast(indices, "int64")
    if not batch:
        return w.node("Gather", x, indices, axis=axis)
    if axis != batch:
        raise refused(op, "its axis does not follow the batch")
    return w.node("GatherND", x, w.node("Unsqueeze", indices, w.ints([-1])), batch_dims=batch)


@rule("GatherNd")
def _gather_nd(w: GraphWriter, op: Operation, x: str, indices: str) -> str:
    return w.node("GatherND", x, w.cast(indices, "int64"))


@rule("TakeAlongAxis")
def _take_along_axis(w: GraphWriter, op: Operation, x: str, indices: str) -> str:
    return w.node("GatherElements", x, w.cast(indices, "int64"), axis=op.attrs["axis"])


@rule("OneHot")
def _one_hot(w: GraphWriter, op: Operation, indices: str) -> str:
    """Comparing with each class: an index that is none gives zeros alone."""
    rank, depth = rank_of(op.inputs[0]), op.attrs["depth"]
    axis = canonical_axis("OneHot", op.attrs["axis"], rank + 1)
    classes = np.arange(depth).reshape((depth,) + (1,) * (rank - axis))
    places = w.node("Unsqueeze", w.cast(indices, "int64"), w.ints([axis]))
    return w.cast(w.node("Equal", places, w.constant(classes, "int64")), op.outputs[0].dtype)


@rule("TopK")
def _top_k(w: GraphWriter, op: Operation, x: str) -> list[str]:
    values, places = w.nodes_of("TopK", [x, w.ints([op.attrs["k"]])], 2, sorted=1)
    return [values, w.cast(places, op.outputs[1].dtype)]


@rule("Sort", "ArgSort")
def _sort(w: GraphWriter, op: Operation, x: str) -> str:
    axis = canonical_axis(op.type, op.attrs["axis"], rank_of(op.inputs[0]))
    size = w.node("Shape", x, start=axis, end=axis + 1)
    largest = int(op.attrs["descending"])
    values, places = w.nodes_of("TopK", [x, size], 2, axis=axis, largest=largest, sorted=1)
    return values if op.type == "Sort" else w.cast(places, op.outputs[0].dtype)


@rule("SearchSorted")
def _search_sorted(w: GraphWriter, op: Operation, edges: str, values: str) -> str:
    """How many edges are below a value, or not above it."""
    if rank_of(op.inputs[0]) != 1:
        raise refused(op, "it searches in several lists")
    kind = "LessOrEqual" if op.attrs["side"] == "right" else "Less"
    below = w.node(kind, edges, w.node("Unsqueeze", values, w.ints([-1])))
    counted = w.node("ReduceSum", w.cast(below, "int64"), w.ints([-1]), keepdims=0)
    return w.cast(counted, op.outputs[0].dtype)


@rule("SegmentSum")
def _segment_sum(
    w: GraphWriter, op: Operation, data: str, ids: str, num_segments: str | None = None
) -> str:
    """Rows added where their numbers say; one row more takes those whose number is none."""
    known = op.attrs["num_segments"]
    total = w.ints([known]) if num_segments is None else w.vector(num_segments)
    ids = w.cast(ids, "int64")
    inside = w.node("And", w.node("GreaterOrEqual", ids, w.ints([0])), w.node("Less", ids, total))
    places = w.node("Unsqueeze", w.node("Where", inside, ids, total), w.ints([-1]))
    rest = [w.node("Shape", data, start=1)] if rank_of(op.inputs[0]) > 1 else []
    longer = w.node("Add", total, w.ints([1]))
    shape = w.node("Concat", longer, *rest, axis=0) if rest else longer
    blank = w.node("Expand", w.constant(0, as_dtype(op.inputs[0].dtype)), shape)
    added = w.node("ScatterND", blank, places, data, reduction="add")
    return w.node("Slice", added, w.ints([0]), total, w.ints([0]))
