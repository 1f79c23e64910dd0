"""Runs that are watched: they can be stopped between any two operations, and may be timed.

A plan runs by itself, unless the step's context has a `runner`: then that runs it. What is here
attaches to the executor from outside, and a plain run pays nothing for it.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .dataflow_executor import DataflowRun
from .options import CostNode, DeviceStats, NodeStats
from .step import StepContext

if TYPE_CHECKING:
    from ..graph import Operation
    from .cost import CostModel
    from .node import Node
    from .plan import Plan


def run_cancellable(plan: Plan, context: StepContext, feeds: Sequence[Any]) -> list[Any]:
    """Run a plan so that it stops between operations when the step is cancelled."""
    return DataflowRun(plan.nodes, plan.layout, context, feeds).wait()


class Tracer:
    """Runs the plans of one step and times their operations.

    `_stats[device]` and `_operations[name]` tell what ran; guarded by `_lock`, since the parts of a
    step run side by side. What is inside of conditions and loops has its graph's name as scope.

    Args:
        host: the name of the device of plans that name none.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._lock = threading.Lock()
        self._stats: dict[str, DeviceStats] = {}
        self._operations: dict[str, Operation] = {}

    def run(self, plan: Plan, context: StepContext, feeds: Sequence[Any]) -> list[Any]:
        """Run a plan, cancellable, and keep the time of each operation."""
        device = self._host if plan.device is None else plan.device.name
        scope = f"{plan.name}/" if plan.name else ""
        with self._lock:
            stats = self._stats.setdefault(device, DeviceStats(device))
            self._operations.update((scope + node.op.name, node.op) for node in plan.nodes)
        nodes = [self._timed(node, stats, scope) for node in plan.nodes]
        return DataflowRun(nodes, plan.layout, context, feeds).wait()

    @property
    def step_stats(self) -> list[DeviceStats]:
        """What each device did."""
        return list(self._stats.values())

    def cost_graph(self) -> list[CostNode]:
        """What each operation cost."""
        found: list[CostNode] = []
        for stats in self._stats.values():
            by_name: dict[str, list[NodeStats]] = {}
            for node in stats.nodes:
                by_name.setdefault(node.name, []).append(node)
            for name, nodes in by_name.items():
                op = self._operations[name]
                found.append(
                    CostNode(
                        name,
                        stats.device,
                        tuple(x.name for x in op.inputs),
                        tuple(c.name for c in op.control_inputs),
                        sum(n.duration_us for n in nodes) * 1e-6,
                        max(n.output_bytes for n in nodes),
                        len(nodes),
                    )
                )
        return found

    def teach(self, costs: CostModel) -> None:
        """Tell a cost model what was measured, for later placements."""
        for node in self.cost_graph():
            costs.take(node)

    def _timed(self, node: Node, stats: DeviceStats, scope: str) -> Node:
        twin = copy.copy(node)
        kernel, op = node.call, node.op

        def record(start: int, result: Any) -> None:
            end = time.perf_counter_ns()
            began = (time.time_ns() - (end - start)) * 1e-3
            spent = (end - start) * 1e-3
            thread = threading.get_ident()
            entry = NodeStats(scope + op.name, op.type, began, spent, _nbytes(result), thread)
            with self._lock:
                stats.nodes.append(entry)

        def call(*arguments: Any) -> Any:
            start = time.perf_counter_ns()
            result = kernel(*arguments)
            record(start, result)
            return result

        def begin(context: Any, done: Any, *arguments: Any) -> None:
            kernel(context, _TimedDone(done, record), *arguments)

        twin.call = begin if node.waits else call
        return twin


class _TimedDone:
    """The `done` of an asynchronous kernel whose time is taken."""

    def __init__(self, done: Any, record: Any) -> None:
        self._done = done
        self._record = record
        self._start = time.perf_counter_ns()
        self.fail = done.fail

    def __call__(self, result: Any) -> None:
        self._record(self._start, result)
        self._done(result)


def _nbytes(result: Any) -> int:
    if isinstance(result, tuple | list):
        return sum(map(_nbytes, result))
    return int(getattr(result, "nbytes", 0))
