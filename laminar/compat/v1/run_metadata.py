"""RunMetadata with the fields that TensorFlow's message has: lists of laminar's own records."""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine.runtime.options import CostNode, DeviceStats, NodeStats


class NodeExecStats:
    """One execution of an operation; times in microseconds, `_rel_` from its begin."""

    def __init__(self, stats: NodeStats) -> None:
        self.node_name = stats.name
        self.timeline_label = f"{stats.name} = {stats.type}()"
        self.thread_id = stats.thread
        self.all_start_micros = int(stats.start_us)
        self.op_start_rel_micros = 0
        self.op_end_rel_micros = self.all_end_rel_micros = max(1, round(stats.duration_us))


class DeviceStepStats:
    """What a device did in a step."""

    def __init__(self, stats: DeviceStats) -> None:
        self.device = stats.device
        self.node_stats = [NodeExecStats(node) for node in stats.nodes]


class StepStats(list[DeviceStats]):
    """What each device did."""

    @property
    def dev_stats(self) -> list[DeviceStepStats]:
        """The devices with what they ran."""
        return [DeviceStepStats(stats) for stats in self]


class CostGraphNode:
    """An operation with what it cost: microseconds in all."""

    def __init__(self, number: int, cost: CostNode) -> None:
        self.id, self.name, self.device = number, cost.name, cost.device
        self.compute_cost = round(cost.seconds * 1e6)


class CostGraph(list[CostNode]):
    """What each operation cost."""

    @property
    def node(self) -> list[CostGraphNode]:
        """The operations."""
        return [CostGraphNode(i, cost) for i, cost in enumerate(self)]


class RunMetadata(engine.RunMetadata):
    """See `laminar.engine.RunMetadata`."""

    step_stats: StepStats
    cost_graph: CostGraph

    def __init__(self) -> None:
        super().__init__(StepStats(), CostGraph())

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("step_stats", "cost_graph"):
            value = (StepStats if name == "step_stats" else CostGraph)(value)
        super().__setattr__(name, value)
