"""Which inputs of a cluster are sizes: numbers that shapes are made of, not data."""

from __future__ import annotations

from ..graph import int32, int64
from ..ops.cluster import Body, Step
from ..ops.control import SCAN
from .native_loops import LOOPS, traced
from .steps import ON_SIZES

# Through these the numbers for a shape come.
_SIZE_OPS = frozenset({*ON_SIZES, "Cast", "Identity"})
# Inputs whose scalars are sizes and places, besides those called "dims".
_PLACES = frozenset(
    {
        *("Range", "Slice", "SliceUpdate", "StridedSlice", "StridedSliceGrad", "ScatterNd"),
        "JoinShares",
    }
)


def sizes_among_inputs(body: Body) -> list[int]:
    """The inputs whose values are sizes: they lead to the `*dims` of an operation."""
    made = {step.outputs[0]: step for step in body.steps if len(step.outputs) == 1}
    found: dict[int, None] = {}
    todo: list[int] = []
    for step in body.steps:
        names = step.definition.input_names
        if step.definition.type in LOOPS:
            todo.extend(_sizes_of_loop(step))
        elif names and (names[-1] == "dims" or step.definition.type in _PLACES):
            todo.extend(step.inputs[len(names) - 1 :])
    seen = set()
    while todo:
        v = todo.pop()
        if v in seen:
            continue
        seen.add(v)
        if v < body.num_inputs:
            spec = body.specs[v]
            if spec.dtype in (int32, int64) and spec.shape.rank == 0:
                found[v] = None
        elif v in made and made[v].definition.type in _SIZE_OPS:
            todo.extend(made[v].inputs)
    return list(found)


def _sizes_of_loop(step: Step) -> list[int]:
    """The values that a loop takes as sizes: what its graphs do, and a number of results."""
    attrs = step.attrs
    graph = attrs["body"]
    is_scan = step.definition in SCAN
    first = attrs["carries"] + attrs["slices"] if is_scan else attrs["variables"]
    inner = sizes_among_inputs(traced(graph, range(len(graph.outputs))))
    found = [step.inputs[i + 1] for i in inner if i >= first]
    if is_scan and (attrs["slices"] or len(graph.outputs) > attrs["carries"]):
        found.append(step.inputs[0])
    if not is_scan:
        inner = sizes_among_inputs(traced(attrs["condition"], [0]))
        found.extend(step.inputs[i + 1] for i in inner if i >= first)
    return found
