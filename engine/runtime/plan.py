"""The executor: an operation runs once all its inputs are there.

A `Plan` is made once for a set of feeds, fetches and targets, and run many times, by any number of
threads. Where nothing steers or waits, the order is settled when the plan is made: a step is one
walk over a list, whose state is local to it:
    values[slot]: the value of a tensor, dropped as soon as its last consumer has run.
Everything else (loops and conditions as dataflow, kernels that wait, several threads) is a
`DataflowRun`, which decides as it goes what can run next.
"""

from __future__ import annotations

import functools
import itertools
import operator
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..devices import local_devices
from ..graph import GraphTensor, Operation
from ..ops.control.dataflow import STEERING
from ..ops.core.cluster import ClusterBody, cluster_op
from ..ops.core.dispatch import as_array
from ..ops.core.failures import located
from ..ops.core.kernels import hush, restore
from ..ops.core.op_def import PlanOptions
from ..ops.core.transfer import recv, send
from ..ops.state.undo import recorded
from ..passes import (
    Preparation,
    StepGraph,
    gains,
    is_unfed_constant,
    is_worth_threads,
    lower,
    places_to_record,
    update_waits,
    writes_variables,
)
from ..timeline import Recording
from .dataflow_executor import DataflowRun
from .frames import FrameLayouts
from .node import Node
from .pool import inter_op_pool
from .step import StepContext

_ndarray = np.ndarray


# A cluster, and what picks its inputs out of the feeds, and the fetches out of its outputs if they
# are not those in order.
_Pick: TypeAlias = Callable[[Sequence[Any]], Any]
_Alone: TypeAlias = tuple[ClusterBody, _Pick, _Pick | None]


class Plan:
    """How to run a step.

    Args:
        step: what is to be computed. What the pipeline has not listed yet goes through its end, as
            it is: a part of a step, or the graph inside of an operation.
        compiled: whether operations are clustered, and clusters run as native code.
        device: what binds the kernels (see engine/devices); None for the plain CPU.
        is_part: whether others run at the same time, which may fail after its updates.
        in_order: whether what it sends and receives keeps one order with all other parts, so that
            the thread of the part may wait for what it receives.
        name: of the graph, if it is one inside of an operation.

    Attributes:
        nodes: what runs, in an order in which it can.
        device: what binds the kernels, None for the plain CPU.
        place: the name of the plain CPU that it is for, where there are several; "" otherwise.
        feeds: the tensors that are given.
        is_one_cluster: whether that is all it runs.
        records: whether it stores something in variables before something that may fail, which is
            recorded in `StepContext.undo`.

    Raises:
        UnimplementedError: an operation has no kernel.
        InvalidArgumentError: operations wait for each other, or the frames of loops do not match.
    """

    def __init__(
        self,
        step: StepGraph,
        *,
        compiled: bool = False,
        device: Any = None,
        is_part: bool = False,
        in_order: bool = False,
        name: str = "",
    ) -> None:
        self.name = name
        if step.schedule is None:
            step.compiled, step.device = compiled, device
            step = lower(Preparation(step, optimize=False, devices=None)).step
        assert step.schedule is not None, "the pipeline ends with it"
        operations, feeds, fetches = step.schedule, step.feeds, step.fetches
        fed = {id(t) for t in feeds}
        constants = {op.id for op in operations if is_unfed_constant(op, fed)}
        running = [op for op in operations if op.id not in constants]
        self.device = device
        self.place = ""
        self.feeds = list(feeds)
        self._num_feeds = len(feeds)
        slots = _number(feeds, operations)
        self._initial: list[Any] = [None] * max(len(feeds), max(slots.values(), default=-1) + 1)
        kept = set()
        for op in operations:
            if op.id in constants:
                slot = slots[id(op.outputs[0])]
                self._initial[slot] = as_array(Node(op, [], device).call())
                kept.add(slot)
        self.nodes = [Node(op, [slots[id(x)] for x in op.inputs], device) for op in running]
        self._fetches = [slots[id(t)] for t in fetches]
        self._settle(slots, fed, kept, PlanOptions(compiled, device))
        self._steers = any(
            n.definition in STEERING or (n.waits and not (in_order and n.definition is recv))
            for n in self.nodes
        )
        self.is_one_cluster = len(self.nodes) == 1 and self.nodes[0].definition is cluster_op
        # What runs op by op on another device than the host is told late of checks that failed.
        is_late = device is not None and not device.is_host and not self.is_one_cluster
        self.records = self._record(running, any_order=self._steers or is_part or is_late)
        self._walk = _walk_of(self.nodes)
        index = {op.id: i for i, op in enumerate(running)}
        index |= {member: index[op.id] for member, op in step.members.items()}
        constant_values = [
            (op.outputs[0], self._initial[slots[id(op.outputs[0])]])
            for op in operations
            if op.id in constants
        ]

        def lay_out() -> FrameLayouts:
            waits = update_waits(running, fed, step.members)
            return FrameLayouts(running, feeds, fetches, constant_values, index, waits)

        self._lay_out = lay_out
        if self._steers:
            _ = self.layout  # raises for frames that do not match
        self._is_wide = is_worth_threads(running, fed)
        self._alone = self._only_cluster()

    @functools.cached_property
    def layout(self) -> FrameLayouts:
        """What waits for what, for runs that decide as they go."""
        return self._lay_out()

    def _settle(
        self, slots: dict[int, int], fed: set[int], kept: set[int], options: PlanOptions
    ) -> None:
        """Say where outputs go, which values end where, and make the kernels that depend on it."""
        last: dict[int, int] = {}
        for i, node in enumerate(self.nodes):
            for slot in node.inputs:
                last[slot] = i
        kept |= set(self._fetches)
        for i, node in enumerate(self.nodes):
            # A fed output keeps its fed value though the operation runs.
            wanted = [
                -1 if id(y) in fed or not (slot in last or slot in kept) else slot
                for y in node.op.outputs
                for slot in [slots[id(y)]]
            ]
            node.outputs = wanted
            ended = {s for s in node.inputs if last[s] == i and s not in kept}
            node.drops = tuple(sorted(ended))
            prepared = node.definition.prepared
            if prepared is not None:
                node.call = prepared(node.op.attrs, [slot >= 0 for slot in wanted], options)

    def _record(self, running: Sequence[Operation], *, any_order: bool) -> bool:
        """Have kernels recorded that store something before something may fail."""
        places = places_to_record(running)
        if any_order:
            places = [i for i, op in enumerate(running) if writes_variables(op)]
        for i in places:
            self.nodes[i].call = recorded(self.nodes[i].call)
        return bool(places)

    @property
    def operations(self) -> list[Operation]:
        """What a run executes."""
        return [node.op for node in self.nodes]

    @property
    def gains_by_compiling(self) -> bool:
        """Whether native code can make it faster."""
        return gains(self.operations, self.device or local_devices().client)

    def _only_cluster(self) -> _Alone | None:
        """Where the plan is one cluster that makes all fetches of feeds: how to run that alone."""
        if len(self.nodes) != 1 or self._steers or self.device is not None:
            return None
        node = self.nodes[0]
        if node.definition is not cluster_op or not {*self._fetches} <= {*node.outputs}:
            return None
        if not all(slot < self._num_feeds for slot in node.inputs):
            return None
        results = None
        if node.outputs != self._fetches:  # some of them are one tensor
            results = operator.itemgetter(*map(node.outputs.index, self._fetches))
        if node.inputs == list(range(self._num_feeds)):
            return node.op.attrs["body"], tuple, results
        if len(node.inputs) < 2:
            return None  # what picks one thing gives no tuple
        return node.op.attrs["body"], operator.itemgetter(*node.inputs), results

    def run(self, feeds: Sequence[Any], context: StepContext) -> list[Any]:
        """Execute the plan on arrays, in the order of its feeds; gives arrays.

        Raises:
            LaminarError: a kernel failed; the error names its operation and the user's line.
        """
        if self.records and context.undo is None:
            with context.undoing() as step:
                return self.run(feeds, step)
        alone = self._alone
        if alone is not None and context.runner is None and alone[0].native is not None:
            inputs = alone[1](feeds)
            try:
                found: list[Any] = alone[0].native(context, *inputs)
            except Exception as cause:
                if getattr(cause, "operation", None) is not None:
                    raise  # of an operation inside of this one
                raise located(self.nodes[0].op, inputs, cause) from cause
            return found if alone[2] is None else list(alone[2](found))
        before = hush()
        try:
            if context.runner is not None:
                return context.runner(self, context, feeds)
            if Recording.active is not None:
                return Recording.active.run_plan(self, context, feeds)
            return self.execute(context, feeds)
        finally:
            restore(before)

    def run_inside(self, context: StepContext, feeds: Sequence[Any]) -> list[Any]:
        """As `run`, inside a run of another plan: a kernel that runs a graph calls this."""
        runner = context.inner_runner
        return self.execute(context, feeds) if runner is None else runner(self, context, feeds)

    def execute(self, context: StepContext, feeds: Sequence[Any]) -> list[Any]:
        """As `run`, watched by nobody."""
        if self._steers or (self._is_wide and inter_op_pool(context) is not None):
            return DataflowRun(self.nodes, self.layout, context, feeds).wait()
        values = self._initial.copy()
        values[: self._num_feeds] = feeds
        node = None
        try:
            for node, shape, call, first, second, out, drops in self._walk:  # noqa: B007  for errors
                if shape == 1:
                    y = call(values[first])
                elif shape == 2:
                    y = call(values[first], values[second])
                elif shape == 0:
                    y = call(*[values[i] for i in first])
                else:
                    y = call(context, *[values[i] for i in first])
                if type(out) is list:
                    for slot, part in zip(out, y, strict=True):
                        if slot >= 0:
                            values[slot] = as_array(part)
                elif out >= 0:
                    values[out] = y if type(y) is _ndarray else as_array(y)
                for slot in drops:
                    values[slot] = None
        except Exception as cause:
            if node is None or getattr(cause, "operation", None) is not None:
                raise  # of an operation inside of this one
            raise located(node.op, [values[i] for i in node.inputs], cause) from cause
        return [values[slot] for slot in self._fetches]


_NOWHERE = -1


def _entry(node: Node) -> tuple[Any, ...]:
    """What the walk needs of a node: (node, how to call it, kernel, two inputs or all, output...).

    The commonest kernels, of one or two arrays, are called without making a list.
    """
    inputs, outputs = node.inputs, node.outputs
    out = outputs[0] if len(outputs) == 1 else outputs or _NOWHERE
    if node.needs_context:
        return node, 3, node.call, inputs, 0, out, node.drops
    if len(inputs) == 1:
        return node, 1, node.call, inputs[0], 0, out, node.drops
    if len(inputs) == 2:
        return node, 2, node.call, inputs[0], inputs[1], out, node.drops
    return node, 0, node.call, inputs, 0, out, node.drops


class _Arrivals:
    """What asynchronous kernels call when they have ended, while one thread waits for all of them.

    `_results` are outputs by the number of the kernel; `_left` of them are missing. Both are
    guarded by `_lock`.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._results: list[Any] = [None] * count
        self._left = count
        self._ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def take(self, number: int, result: Any) -> None:
        """A kernel has ended with its outputs."""
        with self._lock:
            self._results[number] = result
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._ended.put(None)

    def fail(self, error: BaseException) -> None:
        """A kernel has ended with an error."""
        self._ended.put(error)

    def wait(self) -> list[Any]:
        """The outputs of all; raises the first error."""
        error = self._ended.get()
        if error is not None:
            raise error
        return self._results


class _Done:
    """What one of them calls."""

    __slots__ = ("_arrivals", "_number", "fail")

    def __init__(self, arrivals: _Arrivals, number: int) -> None:
        self._arrivals, self._number = arrivals, number
        self.fail = arrivals.fail

    def __call__(self, result: Any) -> None:
        self._arrivals.take(self._number, result)


def _awaited(nodes: Sequence[Node], context: StepContext) -> list[Any]:
    """What receives without inputs give, which all wait at the same time."""
    arrivals = _Arrivals(len(nodes))
    for number, node in enumerate(nodes):
        node.call(context, _Done(arrivals, number))
    return arrivals.wait()


def _sent(nodes: Sequence[Node], context: StepContext, *values: Any) -> None:
    """Send values one after the other; to another task they go together."""
    assert context.rendezvous is not None, "a part of a step has one"
    with context.rendezvous.together():
        for node, value in zip(nodes, values, strict=True):
            node.call(context, value)


def _walk_of(nodes: Sequence[Node]) -> list[tuple[Any, ...]]:
    """The entries of the walk; receives, and sends, one after the other are one of them."""
    found: list[tuple[Any, ...]] = []
    for (waits, sends), group in itertools.groupby(
        nodes, lambda node: (node.waits, node.definition is send)
    ):
        several = list(group)
        if sends and len(several) > 1:
            inputs = [slot for node in several for slot in node.inputs]
            drops = tuple(slot for node in several for slot in node.drops)
            sent = functools.partial(_sent, several)
            found.append((several[0], 3, sent, inputs, 0, _NOWHERE, drops))
        elif waits:
            outputs = [slot for node in several for slot in node.outputs]
            call = functools.partial(_awaited, several)
            found.append((several[0], 3, call, (), 0, outputs, ()))
        else:
            found += map(_entry, several)
    return found


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
