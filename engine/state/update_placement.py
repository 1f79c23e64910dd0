"""Where the arithmetic of an update is done, and when: beside the variable that it updates.

An optimizer writes an update as plain operations. Were they computed where the gradients are, the
variable and its slots would travel there and back in each step; so they stand with the variable,
and the gradient alone travels. What needs no gradient, as a count of steps, waits for those that
do: of a step whose gradients never come, as their worker is lost, nothing has been done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..graph import Operation, resource
from .variable import Variable


def stand_with_variables(
    operations: Sequence[Operation], homes: Mapping[int, Operation], gradients: Sequence[Any]
) -> list[Operation]:
    """Place each operation that serves one variable's update alone with that variable.

    What serves several (a learning rate, the norm of all gradients) stays where it is.

    Args:
        operations: of a plain graph, in the order in which they were made.
        homes: by the id of a handle, of a variable or of a slot, the operation that makes the
            variable.
        gradients: what the update is made of: tensors of the graph.

    Returns:
        Those that change something: what an operation that stands for the update must wait for.
    """
    served: dict[int, set[Operation]] = {}  # by the id of an operation, the variables it serves
    effects: list[Operation] = []
    known = {op.id for op in operations}
    for op in reversed(operations):
        own = served.setdefault(op.id, set())
        handles = [x for x in op.inputs if x.dtype == resource]
        if op.definition.stateful or (handles and not op.definition.read_only):
            effects.append(op)
            own.update(homes[id(x)] for x in handles if id(x) in homes)
        for x in op.inputs:
            if x.op.id in known:
                served.setdefault(x.op.id, set()).update(own)
        if len(own) == 1 and not handles and not op.colocation:
            (home,) = own
            op.device, op.colocation = "", (home.name,)
    changes = effects[::-1]
    _wait_for_gradients(operations, changes, gradients)
    return changes


def _wait_for_gradients(
    operations: Sequence[Operation], changes: Sequence[Operation], gradients: Sequence[Any]
) -> None:
    """Have those that change something, and need no gradient, wait for those that do.

    Where one of these needs what is changed, they wait for the gradients.
    """
    given = [x.op for x in gradients]
    by_gradients = _needing(operations, {op.id for op in given})
    made = [op for op in changes if op.id in by_gradients]
    for op in changes:
        if op.id not in by_gradients:
            takers = _needing(operations, {op.id})
            is_needed = any(other.id in takers for other in made)
            for before in given if is_needed or not made else made:
                op.add_control_input(before)


def _needing(operations: Sequence[Operation], wanted: set[int]) -> set[int]:
    """The ids of operations that need one of those that are wanted, and of these."""
    found = set(wanted)
    for op in operations:
        before = (*op.control_inputs, *(x.op for x in op.inputs))
        if any(other.id in found for other in before):
            found.add(op.id)
    return found


@contextmanager
def beside(variable: Variable) -> Iterator[None]:
    """A block whose variables and operations are placed where a variable of a graph is."""
    graph = variable.graph
    if graph is None:
        yield
        return
    with graph.device(variable.op.device), graph.colocate_with(variable.op):
        yield
