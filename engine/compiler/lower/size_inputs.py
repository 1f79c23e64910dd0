"""Which inputs of a cluster are sizes: numbers that shapes are made of, not data."""

from __future__ import annotations

from ...graph import GraphTensor, int32, int64
from ...ops.control.structured import SCAN
from ...ops.core.basic import const_op
from ...ops.core.cluster import ClusterBody, ClusterOp
from ...ops.core.registry import definition_of
from .loops import LOOPS, traced
from .rules.table import LOWERINGS


def is_size(x: GraphTensor) -> bool:
    """Whether a scalar is a size, or computed from sizes, so that a shape can be made of it."""
    if x.shape.rank != 0 or x.dtype not in (int32, int64):
        return False
    definition = definition_of(x.op)
    if definition is const_op or definition.traits.shape_query:
        return True
    return definition.traits.on_sizes is not None and all(map(is_size, x.op.inputs))


def sizes_among_inputs(body: ClusterBody, *, of_loop: bool = False) -> list[int]:
    """The inputs whose values are sizes: they lead to the `*dims` of an operation.

    Those of the body of a loop may be: whether they are, the operation that is the loop tells.
    """
    made = {step.outputs[0]: step for step in body.steps if len(step.outputs) == 1}
    found: dict[int, None] = {}
    todo: list[int] = []
    for step in body.steps:
        names = step.definition.input_names
        if step.definition in LOOPS:
            todo.extend(_sizes_of_loop(step))
        elif names and (names[-1] == "dims" or step.definition.traits.size_inputs):
            places = range(len(names) - 1, len(step.inputs))
            todo.extend(step.inputs[i] for i in places if of_loop or not _is_data(step, i))
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
        elif v in made and made[v].definition.traits.on_sizes is not None:
            todo.extend(made[v].inputs)
    return list(found)


def _is_data(step: ClusterOp, i: int) -> bool:
    """Whether an input of a step is known to be no size: a block begins where data says."""
    op, rule = step.operation, LOWERINGS.get(step.definition.type)
    if op is None or rule is None or not rule.places_from_data:
        return False
    return not is_size(op.inputs[i])


def _sizes_of_loop(step: ClusterOp) -> list[int]:
    """The values that a loop takes as sizes: what its graphs do, and a number of results."""
    attrs = step.attrs
    graph = attrs["body"]
    is_scan = step.definition in SCAN
    first = attrs["carries"] + attrs["slices"] if is_scan else attrs["variables"]
    inner = sizes_among_inputs(traced(graph, range(len(graph.outputs))), of_loop=True)
    found = [step.inputs[i + 1] for i in inner if i >= first and not _is_data(step, i + 1)]
    if is_scan and (attrs["slices"] or len(graph.outputs) > attrs["carries"]):
        found.append(step.inputs[0])
    if not is_scan:
        inner = sizes_among_inputs(traced(attrs["condition"], [0]), of_loop=True)
        found.extend(step.inputs[i + 1] for i in inner if i >= first and not _is_data(step, i + 1))
    return found
