"""What of a step several threads can run side by side.

Only what is expensive is worth the handing over: other operations are over before another thread
has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ..graph import GraphTensor, Operation, resource
from ..ops.control.structured import SCAN, WHILE, Body
from ..ops.core.graphs import needed_operations
from ..ops.core.registry import definition_of
from ..ops.core.traits import Work
from .inner_graphs import CONTROL_FLOW, inner_operations

# An operation on fewer elements than this is over before another thread has begun.
_FEW_ELEMENTS = 1 << 14


def is_expensive(op: Operation) -> bool:
    """Whether running an operation in another thread can be worth the handing over."""
    definition = definition_of(op)
    if definition.traits.work is Work.NONE:
        return False
    if definition.scalar is None:
        return True
    return any(_elements(y) >= _FEW_ELEMENTS for y in op.outputs)


def _elements(tensor: GraphTensor) -> int:
    if tensor.shape.rank is None:
        return _FEW_ELEMENTS
    count = 1
    for d in tensor.shape:
        count *= 64 if d is None else d  # a batch, as a guess
    return count


def is_worth_threads(operations: Sequence[Operation], fed: Collection[int]) -> bool:
    """Whether at least two expensive operations do not wait for each other, roughly.

    That holds for two at the same depth, the depth of an operation being the largest number of
    expensive ones on a way to it. `operations` stand in an order in which they can run.
    """
    depth: dict[int, int] = {}
    seen: set[int] = set()
    for op in operations:
        before = [depth.get(x.op.id, 0) for x in op.inputs if id(x) not in fed]
        before += [depth.get(c.id, 0) for c in op.control_inputs]
        own = max(before, default=0)
        if is_expensive(op):
            if own in seen:
                return True
            seen.add(own)
            own += 1
        depth[op.id] = own
    return False


def iterations_overlap(
    operations: Sequence[Operation], is_worth: Callable[[Operation], bool] = is_expensive
) -> bool:
    """Whether iterations of a While or Scan, also of one inside, could run side by side.

    Args:
        operations: of a step.
        is_worth: whether an operation of a body is worth a thread.
    """
    return any(
        _overlaps(inner, is_worth)
        for op in operations
        if op.definition in CONTROL_FLOW
        for inner in (op, *inner_operations(op))
        if inner.definition in (*WHILE, *SCAN)
    )


def _overlaps(loop: Operation, is_worth: Callable[[Operation], bool]) -> bool:
    """Whether something expensive in an iteration need not wait for all that is in the one before.

    What waits for itself, through what is carried from one iteration to the next, runs one
    iteration at a time; two that wait each for itself, but not for each other, run side by side.
    """
    attrs = loop.attrs
    if attrs.get("parallel_iterations", 2) < 2:
        return False
    body: Body = attrs["body"]
    waits = _Waits()
    members = waits.add(body)
    costly = [op for op in members if is_worth(op)]
    if not costly:
        return False
    carried = attrs["variables" if loop.definition in WHILE else "carries"]
    for x, y in zip(body.inputs[:carried], body.outputs, strict=False):
        waits.edge(id(x), y)
    if loop.definition in WHILE:
        condition: Body = attrs["condition"]
        tested = waits.add(condition)
        costly += [op for op in tested if is_worth(op)]
        for x, inner in zip(condition.inputs, body.inputs, strict=True):
            waits.edge(id(x), inner)
        for op in members:
            waits.edge(id(op), condition.outputs[0])
    # An iteration counts on when the effects of the one before have ended.
    effects = [id(op) for op in members if _uses_state(op)]
    for op in members:
        waits.on[id(op)] += effects
    found = [(id(op), waits.all_of(id(op))) for op in costly]
    if not all(i in reached for i, reached in found):
        return True
    first, behind = found[0]
    return any(i not in behind or first not in reached for i, reached in found)


def _uses_state(op: Operation) -> bool:
    return definition_of(op).stateful or any(x.dtype == resource for x in op.inputs)


class _Waits:
    """What waits for what in a loop: `on`, by the id() of operations and of inputs of bodies."""

    def __init__(self) -> None:
        self.on: dict[int, list[int]] = {}
        self._inputs: set[int] = set()

    def add(self, body: Body) -> list[Operation]:
        """Take in the operations of a body."""
        self._inputs |= {id(x) for x in body.inputs}
        outputs = [y for y in body.outputs if y is not None]
        members = needed_operations(outputs, body.effects, body.inputs)
        for op in members:
            for x in op.inputs:
                self.edge(id(op), x)
            self.on.setdefault(id(op), []).extend(map(id, op.control_inputs))
        return members

    def edge(self, waiting: int, tensor: GraphTensor | None) -> None:
        """Something waits for a tensor."""
        if tensor is not None:
            given = id(tensor) in self._inputs
            self.on.setdefault(waiting, []).append(id(tensor if given else tensor.op))

    def all_of(self, start: int) -> set[int]:
        """All that it waits for, sooner or later."""
        found: set[int] = set()
        left = list(self.on.get(start, ()))
        while left:
            i = left.pop()
            if i not in found:
                found.add(i)
                left.extend(self.on.get(i, ()))
        return found
