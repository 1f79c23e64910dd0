"""The executor: an operation runs once all its inputs are there.

A `Plan` is made once for a set of feeds, fetches and targets, and run many times, by any number of
threads. A step's state is local to `run`:
    values[slot]: the value of a tensor, dropped as soon as its last consumer has run;
    pending[i]: how many inputs of node i (data and control) are missing; it is in `ready` exactly
        when that is 0 and it has not run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..errors import LaminarError
from ..graph import GraphTensor, Operation
from ..ops.dispatch import as_array, kernel_failure
from ..ops.registry import HOST, OpDef
from ..passes import cluster, needed_operations


class StepContext:
    """The machine as the kernels of one step see it."""

    xp = HOST

    def __init__(self, get: Callable[[str, str, Callable[[], Any]], Any] | None = None) -> None:
        self._get = get

    def resource(self, container: str, name: str, make: Callable[[], Any]) -> Any:
        """The resource of that name; without containers, one of its own."""
        return make() if self._get is None else self._get(container, name, make)


class _Node:
    """An operation, ready to run."""

    __slots__ = ("attrs", "consumers", "effect", "inputs", "kernel", "op", "outputs", "single")

    def __init__(self, op: Operation, inputs: list[int], outputs: list[int]) -> None:
        definition: OpDef = op.definition  # type: ignore[assignment]  # the table's only kind
        self.op = op
        self.inputs = inputs
        self.attrs = op.attrs
        self.set_outputs(outputs)
        self.effect = definition.context_kernel is not None
        self.kernel: Callable[..., Any] = (
            definition.context_kernel
            if definition.context_kernel is not None
            else definition.bind("cpu", HOST)
        )
        self.consumers: list[int] = []

    def set_outputs(self, slots: list[int]) -> None:
        """Say where the outputs go; -1 for nowhere."""
        self.outputs = slots
        self.single = slots[0] if len(slots) == 1 else None


def _is_constant(op: Operation, fed: Collection[int]) -> bool:
    """Whether an operation gives the same value in every run, and waits for nothing."""
    return op.type == "Const" and not op.control_inputs and id(op.outputs[0]) not in fed


def _number(feeds: Sequence[GraphTensor], operations: Sequence[Operation]) -> dict[int, int]:
    """A slot for each tensor: the feeds first, in order."""
    slots: dict[int, int] = {}
    for i, t in enumerate(feeds):
        slots.setdefault(id(t), i)
    free = len(feeds)
    for op in operations:
        for y in op.outputs:
            if id(y) not in slots:
                slots[id(y)] = free
                free += 1
    return slots


class Plan:
    """How to compute `fetches` and run `targets` from `feeds`.

    Args:
        fetches: the tensors to compute.
        feeds: the tensors that are given.
        targets: operations to run besides.
        compiled: whether operations are clustered, and clusters run as native code.

    Raises:
        UnimplementedError: an operation has no kernel.
    """

    def __init__(
        self,
        fetches: Sequence[GraphTensor],
        feeds: Sequence[GraphTensor] = (),
        targets: Sequence[Operation] = (),
        *,
        compiled: bool = False,
    ) -> None:
        operations = needed_operations(fetches, targets, feeds)
        replaced: dict[int, Operation] = {}
        if compiled:
            operations, replaced = cluster(operations, fetches, feeds)
        fed = {id(t) for t in feeds}
        slots = _number(feeds, operations)
        self._num_feeds = len(feeds)
        self._initial: list[Any] = [None] * (max(slots.values(), default=-1) + 1)
        self._initial.extend([None] * (len(feeds) - len(self._initial)))
        self._uses = [0] * len(self._initial)
        constants = {op.id for op in operations if _is_constant(op, fed)}
        for op in operations:
            if op.id in constants:
                slot = slots[id(op.outputs[0])]
                self._initial[slot] = as_array(_Node(op, [], []).kernel(**op.attrs))
                self._uses[slot] = 1  # one more than consumers take: it stays
        running = [op for op in operations if op.id not in constants]
        self._nodes = [_Node(op, [slots[id(x)] for x in op.inputs], []) for op in running]
        self._fetches = [slots[id(t)] for t in fetches]
        self._pending: list[int] = []
        index = {op.id: i for i, op in enumerate(running)}
        index |= {member: index[op.id] for member, op in replaced.items()}
        for i, node in enumerate(self._nodes):
            op = node.op
            # A fed output keeps its fed value though the operation runs.
            node.set_outputs([-1 if id(y) in fed else slots[id(y)] for y in op.outputs])
            sources = [*(x.op for x in op.inputs if id(x) not in fed), *op.control_inputs]
            waits = {index[s.id] for s in sources if s.id in index} - {i}
            self._pending.append(len(waits))
            for j in waits:
                self._nodes[j].consumers.append(i)
        for slot in (*(s for node in self._nodes for s in node.inputs), *self._fetches):
            self._uses[slot] += 1
        self._sources = [i for i, n in enumerate(self._pending) if n == 0]

    @property
    def operations(self) -> list[Operation]:
        """What a run executes."""
        return [node.op for node in self._nodes]

    def run(self, feeds: Sequence[Any], context: StepContext) -> list[Any]:
        """Execute the plan on arrays, in the order of its feeds; gives arrays.

        Raises:
            LaminarError: a kernel failed; the error names its operation and the user's line.
        """
        nodes, uses = self._nodes, self._uses.copy()
        pending = self._pending.copy()
        values = self._initial.copy()
        values[: self._num_feeds] = feeds
        ready = deque(self._sources)
        with np.errstate(all="ignore"):  # IEEE values are the result; nothing is printed
            while ready:
                node = nodes[ready.popleft()]
                arguments = [values[slot] for slot in node.inputs]
                try:
                    if node.effect:
                        result = node.kernel(context, *arguments, **node.attrs)
                    else:
                        result = node.kernel(*arguments, **node.attrs)
                except Exception as cause:
                    raise _located(node.op, arguments, cause) from cause
                single = node.single
                if single is None:
                    for slot, y in zip(node.outputs, result, strict=True):
                        if slot >= 0 and uses[slot]:
                            values[slot] = as_array(y)
                elif single >= 0 and uses[single]:
                    values[single] = as_array(result)
                for slot in node.inputs:
                    uses[slot] -= 1
                    if not uses[slot]:
                        values[slot] = None
                for i in node.consumers:
                    pending[i] -= 1
                    if not pending[i]:
                        ready.append(i)
        return [values[slot] for slot in self._fetches]


def _located(op: Operation, arguments: Sequence[Any], cause: Exception) -> LaminarError:
    """The error of a kernel, with the operation's name and the user's line that made it."""
    kind: type[LaminarError]
    if isinstance(cause, LaminarError):
        kind, message, remedy = type(cause), cause.message, cause.remedy
    else:
        kind, message = kernel_failure(op.type, arguments, cause)
        remedy = None
    return kind(
        f"{message} [operation {op.name!r}]",
        remedy=remedy,
        location=op.location,
        layer=op.layer,
    )
