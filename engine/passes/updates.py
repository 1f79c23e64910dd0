"""Updates of variables come last, so that a step that fails has changed nothing.

Those that cannot come last are recorded while they run, and taken back (`ops/state/undo.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..graph import Operation
from ..ops.control.dataflow import STEERING
from ..ops.core.basic import identity
from ..ops.core.cluster import cluster_op
from ..ops.core.registry import lookup
from ..ops.state.variable import (
    assign,
    assign_add,
    assign_sub,
    ensure_initialized,
    read_variable,
    var_handle,
)
from ..ops.state.variable_rows import assign_rows
from ..ops.state.variable_scatter import count_up_to, variable_scatter
from .inner_graphs import CONTROL_FLOW, inner_operations
from .order import sources_of

UPDATES = (assign, assign_add, assign_sub, assign_rows)
# What may come after updates, as it does not fail. Groups are NoOps.
_CANNOT_FAIL = (lookup("NoOp"), identity, read_variable)
_WRITERS = frozenset((*UPDATES, ensure_initialized, variable_scatter, count_up_to))


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


def places_to_record(operations: Sequence[Operation]) -> list[int]:
    """The places of what writes to variables before something that may fail.

    Args:
        operations: in the order in which they run.
    """
    found = []
    may_fail = False  # something that comes later
    for i in range(len(operations) - 1, -1, -1):
        op = operations[i]
        if writes_variables(op) and (may_fail or op.definition in CONTROL_FLOW):
            found.append(i)
        may_fail = may_fail or _may_fail(op)
    return found


def writes_variables(op: Operation) -> bool:
    """Whether it, or something inside of it, stores values in variables."""
    if op.definition is cluster_op:
        return any(step.definition in _WRITERS for step in op.attrs["body"].steps)
    if op.definition in CONTROL_FLOW:
        return any(inner.definition in _WRITERS for inner in inner_operations(op))
    return op.definition in _WRITERS


def _may_fail(op: Operation) -> bool:
    if op.definition not in UPDATES:
        return op.definition not in _CANNOT_FAIL
    handle, *given = op.inputs
    # A session's variable may have no value yet.
    is_there = op.definition is assign or handle.op.definition is not var_handle
    if op.definition is assign_rows:  # as many rows as places, whatever their number
        return not is_there
    return not (is_there and all(x.shape.is_fully_defined for x in given))


def _steer(operations: Sequence[Operation]) -> bool:
    return any(op.definition in STEERING for op in operations)
