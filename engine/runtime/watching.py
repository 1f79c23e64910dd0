"""A run that is timed, limited or traced, as its `RunOptions` say."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from ..cancellation import CancellationManager
from ..errors import DeadlineExceededError
from ..graph.graphdef import GraphDef
from ..passes import StepGraph
from .options import RunMetadata, RunOptions
from .partitioned import Machine, PartitionedPlan
from .plan import Plan
from .step import StepContext
from .tracing import Tracer, run_cancellable


class DistantPlan(Protocol):
    """A plan that other processes run, and tell of."""

    def run(
        self,
        feeds: Sequence[Any],
        context: StepContext,
        options: RunOptions | None,
        metadata: RunMetadata | None,
    ) -> list[Any]:
        """Execute it on arrays, in the order of the feeds; gives host arrays."""


def run_watched(
    plan: Plan | PartitionedPlan | DistantPlan,
    values: Sequence[Any],
    step: StepContext,
    machine: Machine,
    options: RunOptions,
    metadata: RunMetadata | None,
    timeout: float,
) -> list[Any]:
    """What `plan` gives for `values`.

    Args:
        plan: of the operations one by one, where options.tells.
        values: its feeds.
        step: the context of this run alone.
        machine: whose plan it is.
        options: what is asked for.
        metadata: what is to be filled.
        timeout: in milliseconds, 0 for none.

    Raises:
        DeadlineExceededError: it took longer.
    """
    timer = _deadline(timeout, step.cancellation) if timeout else None
    if not isinstance(plan, Plan | PartitionedPlan):
        try:
            return plan.run(values, step, options, metadata)
        finally:
            if timer is not None:
                timer.cancel()
            step.cancellation.close()
            for cost in metadata.cost_graph if metadata is not None else ():
                machine.costs.take(cost)
    host = (plan.place if isinstance(plan, Plan) else "") or machine.devices.client.name
    tracer = Tracer(host) if options.trace else None
    step.runner = run_cancellable if tracer is None else tracer.run
    step.inner_runner = None if tracer is None else tracer.run
    try:
        return plan.run(values, step)
    finally:
        if timer is not None:
            timer.cancel()
        step.cancellation.close()
        if tracer is not None:
            tracer.teach(machine.costs)
        if metadata is not None:
            _tell(metadata, plan, options, tracer, host)


def _tell(
    metadata: RunMetadata,
    plan: Plan | PartitionedPlan,
    options: RunOptions,
    tracer: Tracer | None,
    host: str,
) -> None:
    if tracer is not None:
        metadata.step_stats = tracer.step_stats
        metadata.cost_graph = tracer.cost_graph()
    if options.output_partition_graphs:
        parts = [p.plan for p in plan.parts] if isinstance(plan, PartitionedPlan) else [plan]
        metadata.partition_graphs = [_as_run(p, host) for p in parts]


def _as_run(plan: Plan, host: str) -> GraphDef:
    """What a plan runs, with the device where it does."""
    graph = StepGraph.of([], plan.feeds, plan.operations).graph
    for op in graph.operations:
        op.device = host if plan.device is None else plan.device.name
    return graph.as_graph_def()


def _deadline(milliseconds: float, cancellation: CancellationManager) -> threading.Timer:
    """Cancels a step when its time is over, unless the timer is stopped before."""
    error = DeadlineExceededError(f"the step took longer than {milliseconds} ms")
    timer = threading.Timer(milliseconds / 1000, cancellation.cancel, [error])
    timer.daemon = True
    timer.start()
    return timer
