"""Cluster: replace runs of operations that a compiler accepts by one operation each.

Operations are listed in an order in which all others come as early as they can, so that those that
can be clustered come in long runs. A run is one cluster: its operations stand together in a valid
order of the whole graph, so a cluster never waits for something that waits for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

from ..graph import GraphTensor, Operation
from ..ops.cluster import Body, Step, accepts, cluster_op
from ..ops.registry import OpDef

# A run of fewer operations is not worth a compilation.
_LEAST = 3


def cluster(
    operations: Sequence[Operation],
    keep: Collection[GraphTensor],
    fed: Collection[GraphTensor] = (),
) -> tuple[list[Operation], dict[int, Operation]]:
    """The operations with runs replaced by clusters.

    Args:
        operations: in an order in which inputs stand before consumers.
        keep: tensors that must be there at the end.
        fed: tensors whose values come from outside.

    Returns:
        The operations to run, and for each operation that is part of a cluster (by id) the
        cluster. A cluster makes the very tensors of its operations that are used outside of it.
    """
    given = {id(t) for t in fed}
    inside = [accepts(op) and not any(id(y) in given for y in op.outputs) for op in operations]
    out: list[Operation] = []
    replaced: dict[int, Operation] = {}
    kept = {id(t) for t in keep}
    users = _users(operations, given)
    for run, clustered in _runs(operations, inside, given):
        if not clustered or sum(not _is_constant(op) for op in run) < _LEAST:
            out.extend(run)
            continue
        made = _as_cluster(run, kept, users)
        # A constant that is used elsewhere too stands in both places.
        shared = [op for op in run if _is_constant(op) and _is_used(op, run, kept, users)]
        out.extend([*shared, made])
        replaced |= {op.id: made for op in run}
        for op in shared:
            del replaced[op.id]
    return out, replaced


def _is_constant(op: Operation) -> bool:
    return not op.inputs


def _is_used(
    op: Operation,
    run: Sequence[Operation],
    kept: Collection[int],
    users: dict[int, set[int]],
) -> bool:
    """Whether the result of an operation is needed outside of its run."""
    (y,) = op.outputs
    return id(y) in kept or bool(users.get(id(y), set()) - {other.id for other in run})


def _users(operations: Sequence[Operation], given: Collection[int]) -> dict[int, set[int]]:
    """users[tensor id]: the ids of the operations that take the tensor."""
    users: dict[int, set[int]] = {}
    for op in operations:
        for x in op.inputs:
            if id(x) not in given:
                users.setdefault(id(x), set()).add(op.id)
    return users


def _runs(
    operations: Sequence[Operation], inside: Sequence[bool], given: Collection[int]
) -> list[tuple[list[Operation], bool]]:
    """Runs of operations of one kind, in a valid order; true for those to be clustered."""
    place = {op.id: i for i, op in enumerate(operations)}
    waits = [0] * len(operations)
    consumers: list[list[int]] = [[] for _ in operations]
    for i, op in enumerate(operations):
        sources = {place[x.op.id] for x in op.inputs if id(x) not in given}
        sources |= {place[c.id] for c in op.control_inputs if c.id in place}
        waits[i] = len(sources)
        for j in sources:
            consumers[j].append(i)
    ready: tuple[list[int], list[int]] = ([], [])  # others, to be clustered: heaps of places
    for i, count in enumerate(waits):
        if not count:
            heapq.heappush(ready[inside[i]], i)
    runs: list[tuple[list[Operation], bool]] = []
    while ready[0] or ready[1]:
        kind = not ready[0]
        run: list[Operation] = []
        while ready[kind]:
            i = heapq.heappop(ready[kind])
            run.append(operations[i])
            for j in consumers[i]:
                waits[j] -= 1
                if not waits[j]:
                    heapq.heappush(ready[inside[j]], j)
        runs.append((run, kind))
    return runs


def _as_cluster(
    run: Sequence[Operation], kept: Collection[int], users: dict[int, set[int]]
) -> Operation:
    members = {op.id for op in run}
    own = {id(y) for op in run for y in op.outputs}
    inputs = list({id(x): x for op in run for x in op.inputs if id(x) not in own}.values())
    number = {id(x): i for i, x in enumerate(inputs)}
    specs = [x.spec for x in inputs]
    steps = []
    outputs: list[GraphTensor] = []
    for op in run:
        (y,) = op.outputs
        definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
        number[id(y)] = len(specs)
        steps.append(
            Step(definition, tuple(number[id(x)] for x in op.inputs), op.attrs, len(specs))
        )
        specs.append(y.spec)
        if not _is_constant(op) and _is_used(op, run, kept, users):
            outputs.append(y)
    body = Body(steps, specs, len(inputs), [number[id(y)] for y in outputs])
    first = next(op for op in run if not _is_constant(op))
    made = Operation(
        first.graph,
        cluster_op,
        f"{first.name}_cluster",
        tuple(inputs),
        {"body": body},
        (),
        first.id,
    )
    made._outputs = tuple(outputs)
    made.location, made.layer, made.device = first.location, first.layer, first.device
    controls = {c.id: c for op in run for c in op.control_inputs if c.id not in members}
    made.control_inputs.extend(controls.values())
    return made
