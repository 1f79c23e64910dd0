"""DirectSession: the engine of sessions that run in this process.

State of a `DirectSession`:
    _plans[key]: the plan of a set of fetches and feeds, made at its first run (and again when an
        operation has been changed, or the graph has captured more);
    _resources: the containers that hold the values of variables.
Both are guarded by `_lock`; a plan, once made, is run by any number of threads at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..cancellation import CancellationManager
from ..errors import CancelledError, DeadlineExceededError
from ..graph import EagerTensor, Graph, GraphTensor, Operation, resource, string
from ..passes import Program
from .config import SessionConfig
from .devices import DeviceList, list_devices
from .executor import Plan
from .options import RunMetadata, RunOptions
from .partial import DirectPartialStep
from .partitioned import Machine, PartitionedPlan
from .placement import Placement
from .resources import SHARED, SessionResources
from .step import StepContext
from .targets import Element
from .tracing import Tracer, run_cancellable


class DirectSession:
    """Runs steps in this process; see `SessionEngine`.

    Args:
        target: "".
        graph: what is run; it is shared, not copied.
        config: the devices and their use.
    """

    def __init__(self, target: str, graph: Graph, config: SessionConfig) -> None:
        self._graph = graph
        self._resources = SessionResources()
        self._context = StepContext(self._resources.get, CancellationManager())
        self._machine = Machine(config)
        self._plans: dict[Any, Plan | PartitionedPlan] = {}
        self._lock = threading.Lock()
        self._timeout = config.operation_timeout_in_ms

    @staticmethod
    def reset(target: str, containers: Sequence[str] | None) -> None:
        """Empty containers that the sessions of this process share."""
        SHARED.reset(containers)

    def extend(self, operations: Sequence[Operation]) -> None:
        """Nothing travels: the graph is shared."""

    def run(
        self,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        values: Sequence[Any],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[Any]:
        """One step: the values of `elements`, None for an operation."""
        captures = self._graph.captures
        key = (tuple(map(id, elements)), tuple(map(id, feeds)), len(captures), self._graph.edits)
        plan = self._plans.get(key)
        if plan is None:
            with self._lock:
                plan = self._plans.get(key)
                if plan is None:
                    tensors = [e for e in elements if isinstance(e, GraphTensor)]
                    targets = [e for e in elements if isinstance(e, Operation)]
                    taken = [*feeds, *(inner for _, inner in captures.values())]
                    plan = self._plans[key] = self._machine.plan(tensors, taken, targets)
        outer = self._captured()
        if options is None and not self._timeout:
            results = plan.run([*values, *outer], self._context)
        else:
            results = self._run_watched(plan, [*values, *outer], options or RunOptions(), metadata)
        found = iter(results)
        return [fetched(e, next(found)) if isinstance(e, GraphTensor) else None for e in elements]

    def _captured(self) -> list[Any]:
        pairs = self._graph.captures.values()
        return [t.value for t, _ in pairs if isinstance(t, EagerTensor)]

    def _run_watched(
        self,
        plan: Plan | PartitionedPlan,
        values: Sequence[Any],
        options: RunOptions,
        metadata: RunMetadata | None,
    ) -> list[Any]:
        step = self._context.step()
        tracer = Tracer(self._machine.devices[0].name) if options.trace else None
        step.runner = run_cancellable if tracer is None else tracer.run
        timeout = options.timeout_in_ms or self._timeout
        timer = _deadline(timeout, step.cancellation) if timeout else None
        try:
            return plan.run(values, step)
        finally:
            if timer is not None:
                timer.cancel()
            step.cancellation.close()
            if tracer is not None:
                tracer.teach(self._machine.costs)
            if metadata is not None:
                self._tell(metadata, plan, options, tracer)

    def _tell(
        self,
        metadata: RunMetadata,
        plan: Plan | PartitionedPlan,
        options: RunOptions,
        tracer: Tracer | None,
    ) -> None:
        if tracer is not None:
            metadata.step_stats = tracer.step_stats
            metadata.cost_graph = tracer.cost_graph()
        if options.output_partition_graphs:
            parts = [p.plan for p in plan.parts] if isinstance(plan, PartitionedPlan) else [plan]
            metadata.partition_graphs = [
                Program.of([], p.feeds, p.operations).graph.as_graph_def() for p in parts
            ]

    def partial(
        self, elements: Sequence[Element], feeds: Sequence[GraphTensor]
    ) -> DirectPartialStep:
        """Begin a step that is fed and fetched bit by bit."""
        given = [inner for _, inner in self._graph.captures.values()]
        return DirectPartialStep(
            self._machine, self._context, elements, feeds, given, self._captured(), fetched
        )

    @property
    def placement(self) -> Placement | None:
        """Where the operations of the last new signature are; None where nothing was placed."""
        return self._machine.placement

    def list_devices(self) -> DeviceList:
        """The devices there are."""
        return list_devices(self._machine.config.device_count)

    def close(self) -> None:
        """Cancel what runs, free what is kept."""
        self._context.cancellation.cancel(CancelledError("the session was closed"))
        self._resources.clear()
        with self._lock:
            self._plans.clear()


def _deadline(milliseconds: float, cancellation: CancellationManager) -> threading.Timer:
    """Cancels a step when its time is over, unless the timer is stopped before."""
    error = DeadlineExceededError(f"the step took longer than {milliseconds} ms")
    timer = threading.Timer(milliseconds / 1000, cancellation.cancel, [error])
    timer.daemon = True
    timer.start()
    return timer


def fetched(tensor: GraphTensor, value: Any) -> Any:
    """A fetched value as the user gets it: an array that no later step changes, or a scalar."""
    if tensor.dtype == resource:
        return value
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return value.item() if tensor.dtype == string else value[()]
        return value.copy()  # a variable may hold the array itself
    return value
