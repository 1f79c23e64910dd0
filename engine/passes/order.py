"""Operations in an order in which they can run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..graph import Operation
from ..graph.order import topological
from ..ops.control.dataflow import NEXT_ITERATION
from .loop_frames import cycle_error


def sources_of(
    operations: Sequence[Operation],
    fed: Collection[int] = (),
    members: Mapping[int, Operation] | None = None,
) -> list[set[int]]:
    """By the place of an operation, the places of those that it waits for.

    What goes back to the start of a loop is not waited for.

    Args:
        operations: those that run.
        fed: the id() of tensors that are given.
        members: by the id of an operation that is part of another one, that one.
    """
    place = {op.id: i for i, op in enumerate(operations)}
    if members:
        place |= {member: place[op.id] for member, op in members.items()}
    sources: list[set[int]] = []
    for i, op in enumerate(operations):
        found = {
            place[x.op.id]
            for x in op.inputs
            if id(x) not in fed and x.op.id in place and x.op.definition is not NEXT_ITERATION
        }
        if op.control_inputs:
            found |= {place[c.id] for c in op.control_inputs if c.id in place}
        if members:
            found.discard(i)
        sources.append(found)
    return sources


def in_order(
    operations: Sequence[Operation],
    fed: Collection[int] = (),
    members: Mapping[int, Operation] | None = None,
) -> list[Operation]:
    """The operations, each after what it waits for, else as they stand; see `sources_of`.

    Raises:
        InvalidArgumentError: they wait for each other in a circle.
    """
    if not members and are_numbered_in_order(operations):
        return list(operations)
    order = topological(sources_of(operations, fed, members))
    if len(order) < len(operations):
        ordered = set(order)
        raise cycle_error([op for i, op in enumerate(operations) if i not in ordered])
    return [operations[i] for i in order]


def are_numbered_in_order(operations: Sequence[Operation]) -> bool:
    """Whether operations stand in the order of their numbers, and all they wait for before them."""
    last = -1
    for op in operations:
        number = op.id
        if number <= last:
            return False
        last = number
        for x in op.inputs:
            if x.op.id >= number:
                return False
        for c in op.control_inputs:
            if c.id >= number:
                return False
    return True
