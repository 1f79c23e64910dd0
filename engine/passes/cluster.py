"""Cluster: replace runs of operations that a device's compiler accepts by one operation each.

Operations are listed in an order in which all others come as early as they can, so that those that
can be clustered come in long runs. A run is one cluster: its operations stand together in a valid
order of the whole graph, so a cluster never waits for something that waits for it. Updates come
last where they can (updates.py): where an operation between two clusters raises, no variable is
changed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Mapping, Sequence

from ..dumps import dump, folder
from ..graph import GraphTensor, Operation, Tensor
from ..graph.text import graph_text
from ..ops.control.dataflow import STEERING
from ..ops.control.structured import SCAN, WHILE
from ..ops.core.cluster import ClusterBody, ClusterDevice, cluster_op
from ..ops.core.registry import definition_of
from ..ops.core.traits import Work
from .order import sources_of
from .parallelism import is_expensive
from .regions import regions
from .updates import last_updates

# A run of fewer operations is not worth a compilation, unless one of them has much to compute.
_LEAST = 3
_MUCH = 1024  # elements


def cluster(
    operations: Sequence[Operation],
    keep: Collection[GraphTensor],
    fed: Collection[GraphTensor],
    device: ClusterDevice,
    *,
    apart: bool = False,
) -> tuple[list[Operation], dict[int, Operation]]:
    """The operations with runs replaced by clusters.

    Args:
        operations: in an order in which inputs stand before consumers.
        keep: tensors that must be there at the end.
        fed: tensors whose values come from outside.
        device: what they run on: its compiler says what can be part of a cluster.
        apart: whether, inside of loops, what waits for something expensive that stays alone is in
            another cluster than what does not, so that the next iteration need not wait for it.

    Returns:
        The operations to run, and for each operation that is part of a cluster (by id) the
        cluster. A cluster makes the very tensors of its operations that are used outside of it.
    """
    given = {id(t) for t in fed}
    # By the place of an operation, its region: what is joined is of one. 0 for what stays alone.
    accepted = _accepted(operations, device)
    has_loops = any(op.definition in STEERING for op in operations)
    if has_loops:
        inside, ends = _numbered(operations, given, accepted if apart else None)
        has_loops = max(inside) > 1
    else:
        inside, ends = _before_begins(operations, given), {}
    for i, (op, is_so) in enumerate(zip(operations, accepted, strict=True)):
        if not is_so or any(id(y) in given for y in op.outputs):
            inside[i] = 0
    out: list[Operation] = []
    replaced: dict[int, Operation] = {}
    # By the id() of a tensor, its place among those to be kept.
    kept = {t: i for i, t in enumerate(dict.fromkeys(map(id, keep)))}
    users = _users(operations, given)
    runs = _runs(operations, inside, given, ends, has_loops=has_loops)
    if sum(len(run) for run, _ in runs) < len(operations):  # some wait for each other
        return list(operations), {}
    for run, clustered in runs:
        if not clustered or not _pays(run):
            out.extend(run)
            continue
        made = _as_cluster(run, kept, users, device)
        # A constant that is used elsewhere too stands in both places.
        members = {op.id for op in run}
        shared = [
            op
            for op in run
            if _is_constant(op) and any(_goes_out(y, members, kept, users) for y in op.outputs)
        ]
        out.extend([*shared, made])
        replaced |= {op.id: made for op in run}
        for op in shared:
            del replaced[op.id]
    if folder() is not None:
        name = next((op.name for op in out if op.definition is cluster_op), operations[0].name)
        before = graph_text(operations, list(keep), list(fed))
        dump(f"{name}.graph.txt", before, "the operations that go to the compiler")
        after = graph_text(out, list(keep), list(fed))
        dump(f"{name}.clustered.txt", after, "the same with what is compiled as one in one line")
    return out, replaced


def _numbered(
    operations: Sequence[Operation], given: Collection[int], accepted: Sequence[bool] | None
) -> tuple[list[int], Mapping[int, Sequence[int]]]:
    """The region of each operation, and for what loops give the places of what it waits for too.

    Loops and conditions are dataflow. Where `accepted` tells what does not stay alone, there is one
    for each number of expensive ones that do on a way to it.
    """
    found = regions(operations, given)
    numbers: dict[Hashable, int] = {None: 0}
    of: Sequence[Hashable] = found.of
    if accepted is not None:
        depths = _depths(operations, accepted)
        of = [None if r is None else (r, d) for r, d in zip(of, depths, strict=True)]
    return [numbers.setdefault(region, len(numbers)) for region in of], found.ends


def _before_begins(operations: Sequence[Operation], given: Collection[int]) -> list[int]:
    """The region of each operation where there are no loops: one, but for what begins something.

    What the first of these needs is a region, what else the next one needs another, and so on, so
    that they begin before the rest of the step is computed.
    """
    begins = [i for i, op in enumerate(operations) if definition_of(op).traits.begins]
    found = [len(begins) + 1] * len(operations)
    sources = sources_of(operations, given) if begins else []
    for number, begin in enumerate(begins, 1):
        left = [begin]
        while left:
            i = left.pop()
            if found[i] > number:
                found[i] = number
                left.extend(sources[i])
    return found


def _depths(operations: Sequence[Operation], accepted: Sequence[bool]) -> list[int]:
    """The largest number of expensive operations that stay alone on a way to each."""
    below: dict[int, int] = {}  # by the id of an operation: for what waits for it
    depths = []
    for op, is_so in zip(operations, accepted, strict=True):
        before = [x.op.id for x in op.inputs] + [c.id for c in op.control_inputs]
        depths.append(max((below.get(i, 0) for i in before), default=0))
        below[op.id] = depths[-1] + (not is_so and is_expensive(op))
    return depths


def _accepted(operations: Sequence[Operation], device: ClusterDevice) -> list[bool]:
    """Which operations may be part of a cluster."""
    compiler = device.compiler
    return [False] * len(operations) if compiler is None else compiler.accepts(operations)


def gains(operations: Sequence[Operation], device: ClusterDevice) -> bool:
    """Whether a plan of these operations can gain by clusters, in itself or in loops inside."""
    loops = any(definition_of(op).prepared is not None for op in operations)
    accepted = zip(operations, _accepted(operations, device), strict=True)
    return loops or _pays([op for op, is_so in accepted if is_so])


def _pays(run: Sequence[Operation]) -> bool:
    """Whether a run is worth a compilation."""
    if sum(not _is_constant(op) for op in run) >= _LEAST:
        return True
    return any(
        op.definition in (*SCAN, *WHILE)
        or (_computes(op) and any(map(_is_large, (*op.inputs, *op.outputs))))
        for op in run
        if op.inputs
    )


def _computes(op: Operation) -> bool:
    """Whether native code can be faster than the reference kernel."""
    return definition_of(op).traits.work is Work.COMPUTE


def _is_large(x: Tensor) -> bool:
    """Whether a tensor has, or may have, many elements."""
    if x.shape.rank is None:
        return True
    return math.prod(_MUCH if size is None else size for size in x.shape) >= _MUCH


def _is_constant(op: Operation) -> bool:
    return not op.inputs


def _goes_out(
    y: GraphTensor, members: set[int], kept: Collection[int], users: dict[int, set[int]]
) -> bool:
    """Whether a result is needed outside of the cluster of `members`."""
    return id(y) in kept or not users.get(id(y), set()) <= members


def _users(operations: Sequence[Operation], given: Collection[int]) -> dict[int, set[int]]:
    """users[tensor id]: the ids of the operations that take the tensor."""
    users: dict[int, set[int]] = {}
    for op in operations:
        for x in op.inputs:
            if id(x) not in given:
                users.setdefault(id(x), set()).add(op.id)
    return users


def _runs(
    operations: Sequence[Operation],
    inside: Sequence[int],
    given: Collection[int],
    ends: Mapping[int, Sequence[int]],
    *,
    has_loops: bool,
) -> list[tuple[list[Operation], bool]]:
    """Runs of operations of one region, in a valid order; true for those to be clustered."""
    sources = sources_of(operations, given)
    for i, more in ends.items():
        sources[i].update(more)
    waits = list(map(len, sources))
    consumers: list[list[int]] = [[] for _ in operations]
    for i, found in enumerate(sources):
        for j in found:
            consumers[j].append(i)
    ready: list[list[int]] = [[] for _ in range(max(inside, default=0) + 1)]  # heaps of places
    # In a loop, an update is one of its iteration.
    last = set[int]() if has_loops else last_updates(operations, sources)
    for i, count in enumerate(waits):
        if not count and i not in last:
            heapq.heappush(ready[inside[i]], i)
    runs: list[tuple[list[Operation], bool]] = []
    region: int | None = 0
    while region is not None:
        run: list[int] = []
        while True:
            if last and not any(ready):  # all else has its place
                for i in last:
                    if not waits[i]:
                        heapq.heappush(ready[inside[i]], i)
                last = set()
            if not ready[region]:
                break
            run.append(heapq.heappop(ready[region]))
            for i in consumers[run[-1]]:
                waits[i] -= 1
                if not waits[i] and i not in last:
                    heapq.heappush(ready[inside[i]], i)
        if run:
            order = run if has_loops else sorted(run)
            runs.append(([operations[i] for i in order], region > 0))
        region = next((k for k, places in enumerate(ready) if places), None)
    return runs


def _as_cluster(
    run: Sequence[Operation],
    kept: Mapping[int, int],
    users: dict[int, set[int]],
    device: ClusterDevice,
) -> Operation:
    members = {op.id for op in run}
    own = {id(y) for op in run for y in op.outputs}
    inputs = list({id(x): x for op in run for x in op.inputs if id(x) not in own}.values())
    outputs = [
        y
        for op in run
        if not _is_constant(op)
        for y in op.outputs
        if _goes_out(y, members, kept, users)
    ]
    outputs.sort(key=lambda y: kept.get(id(y), len(kept)))  # a plan that gives these gives all
    begin = next(op for op in run if not _is_constant(op))
    name = f"{begin.name}_cluster"
    body = ClusterBody.of(run, inputs, outputs, name, device)
    made = Operation(begin.graph, cluster_op, name, tuple(inputs), {"body": body}, (), begin.id)
    made._outputs = tuple(outputs)
    made.location, made.layer, made.device = begin.location, begin.layer, begin.device
    controls = {c.id: c for op in run for c in op.control_inputs if c.id not in members}
    made.control_inputs.extend(controls.values())
    return made
