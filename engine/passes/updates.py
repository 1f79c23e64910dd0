"""Updates of variables come last, so that a step that fails has changed nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..graph import Operation
from ..ops.control.dataflow import STEERING
from ..ops.core.basic import identity
from ..ops.core.cluster import cluster_op
from ..ops.core.registry import lookup
from ..ops.state.variable import assign, assign_add, assign_sub, read_variable
from ..ops.state.variable_rows import assign_rows
from .order import sources_of

UPDATES = (assign, assign_add, assign_sub, assign_rows)
# What may come after updates, as it does not fail. Groups are NoOps.
_CANNOT_FAIL = (lookup("NoOp"), identity, read_variable)


def last_updates(operations: Sequence[Operation], sources: Sequence[Collection[int]]) -> set[int]:
    """The places of the updates that can come last, and of what waits for them.

    All that waits for an update is among them: other updates, and what cannot fail. So is what
    takes the same variable later, though it waits for nothing: it finds the value as before.

    Args:
        operations: in an order in which they can run.
        sources: by the place of an operation, the places of those that it waits for.
    """
    updates = [_is_update(op) for op in operations]
    if not any(updates):
        return set()
    waiters: list[list[int]] = [[] for _ in operations]
    updated: dict[int, list[int]] = {}  # by a variable's handle, its updates so far
    after = set[int]()  # updates, and what waits for one
    for i, op in enumerate(operations):
        for j in sources[i]:
            waiters[j].append(i)
        for x in op.inputs if updated else ():
            for j in updated.get(id(x), ()):
                waiters[j].append(i)
        if op.definition in UPDATES:
            updated.setdefault(id(op.inputs[0]), []).append(i)
        if updates[i] or not after.isdisjoint(sources[i]):
            after.add(i)
    last = set[int]()
    for i in sorted(after, reverse=True):
        harmless = updates[i] or operations[i].definition in _CANNOT_FAIL
        if harmless and last.issuperset(waiters[i]):
            last.add(i)
    return last


def _is_update(op: Operation) -> bool:
    """Whether it updates variables, and does nothing else that others wait for."""
    if op.definition is cluster_op:
        return any(step.definition in UPDATES for step in op.attrs["body"].steps)
    return op.definition in UPDATES


def updates_last(operations: Sequence[Operation], fed: Collection[int]) -> list[Operation]:
    """Operations in an order in which they can run, with the last updates at the end.

    Where loops are dataflow, an update is one of its iteration, and stays.
    """
    if not any(op.definition in UPDATES for op in operations) or _steer(operations):
        return list(operations)
    last = last_updates(operations, sources_of(operations, fed))
    first = [op for i, op in enumerate(operations) if i not in last]
    return first + [operations[i] for i in sorted(last)]


def update_waits(
    operations: Sequence[Operation], fed: Collection[int], members: Mapping[int, Operation]
) -> dict[int, set[int]]:
    """What the last updates are to wait for where nothing else keeps the order of operations.

    An update waits for no operation that may itself wait for something, such as a queue's element,
    unless the update waits for that anyway, alone or with its group: somebody may look at the
    variable before giving the element.

    Returns:
        By the place of an update, the places of the operations.
    """
    if _steer(operations):
        return {}
    sources = sources_of(operations, fed, members)
    last = last_updates(operations, sources)
    if not last:
        return {}
    queued: list[set[int]] = []  # by place, the operations before it that may wait
    ends = set(range(len(operations))) - last
    for i, op in enumerate(operations):
        own = {i} if getattr(op.definition, "async_kernel", None) is not None else set()
        queued.append(own.union(*(queued[j] for j in sources[i])))
        if i not in last:
            ends -= sources[i]
    for i in sorted(last, reverse=True):  # those of a group wait for the same
        for j in sources[i] & last:
            queued[j] |= queued[i]
    return {i: {j for j in ends if queued[j] <= queued[i]} for i in last}


def _steer(operations: Sequence[Operation]) -> bool:
    return any(op.definition in STEERING for op in operations)
