"""Graphs that a worker runs again and again: a task's share of a signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from laminar.engine.devices import DeviceSet
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, GraphTensor, Operation, as_dtype, resource, string
from laminar.engine.graph.exchange import export_graph
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.control.dataflow import NEXT_ITERATION
from laminar.engine.ops.core.graphs import import_graph_def
from laminar.engine.ops.core.transfer import recv
from laminar.engine.passes.partition import Part
from laminar.engine.runtime import PartitionedPlan
from laminar.engine.runtime.partitioned import PartPlan
from laminar.engine.runtime.rendezvous import RendezvousKey

from .messages import check_nodes
from .tasks import task_of


@dataclass(frozen=True)
class RegisteredGraph:
    """What the devices of a task do in the steps of a signature.

    Attributes:
        plan: runs it.
        feeds: by the number of a value, what takes it.
        receives: by the name of another task, the keys under which it sends in every step.
    """

    plan: PartitionedPlan
    feeds: Mapping[int, GraphTensor]
    receives: Mapping[str, Sequence[RendezvousKey]]

    def check(self, values: Sequence[Any]) -> None:
        """InvalidArgumentError, DTypeError or ShapeError for values that are not its feeds."""
        if len(values) != len(self.feeds):
            raise InvalidArgumentError(
                f"a step has {len(self.feeds)} feeds here, and came with {len(values)} values"
            )
        for i, tensor in self.feeds.items():
            check_value(tensor, values[i])


def check_value(tensor: GraphTensor, value: Any) -> None:
    """DTypeError or ShapeError for a value that came from another process, and is not a tensor's.

    Args:
        tensor: what is fed.
        value: with what.
    """
    if tensor.dtype == resource or not isinstance(value, np.ndarray):
        return  # a handle, or a value that is known to this process
    dtype = string if value.dtype == object else as_dtype(value.dtype)
    if dtype != tensor.dtype:
        raise DTypeError(f"{tensor.name} is {tensor.dtype}, fed {dtype}")
    if not tensor.shape.is_compatible_with(value.shape):
        raise ShapeError(f"{tensor.name} is {tensor.spec}, fed {list(value.shape)}")


def read_parts(
    parts: Sequence[Any], devices: DeviceSet, task: str, *, compiled: bool
) -> RegisteredGraph:
    """The graph that a master registers.

    Args:
        parts: Part messages. The fetches of all are numbered one after the other.
        devices: of the task.
        task: its name.
        compiled: whether native code runs what it can.

    Raises:
        LaminarError: a graph is not well formed, or needs what the task does not have.
    """
    plans: list[PartPlan] = []
    feeds: dict[int, GraphTensor] = {}
    num_fetches = 0
    for message in parts:
        part = _read_part(message, num_fetches)
        num_fetches += len(part.fetches)
        feeds |= dict(part.feeds)
        plans.append(PartPlan(part, devices.named(part.location), compiled=compiled))
    if not plans:
        raise InvalidArgumentError("a graph is registered without any part")
    if sorted(feeds) != list(range(len(feeds))):
        raise InvalidArgumentError(f"feeds are numbered from 0, got {sorted(feeds)[:10]}")
    late = {name for message in parts for name in message.late}
    receives = _receives(plans, task, late)
    return RegisteredGraph(PartitionedPlan(plans, num_fetches, {}), feeds, receives)


def _receives(
    plans: Sequence[PartPlan], task: str, late: Set[str]
) -> dict[str, list[RendezvousKey]]:
    """By the names of other tasks, what comes from there in every step: all, but for loops."""
    operations = [op for plan in plans for op in plan.part.graph.operations]
    if any(op.definition is NEXT_ITERATION for op in operations):
        return {}
    found: dict[str, list[RendezvousKey]] = {}
    for op in operations:
        if op.definition is recv and op.name not in late:
            a = op.attrs
            source = task_of(a["send_device"])
            if source != task:
                key = RendezvousKey(
                    a["send_device"],
                    a["send_device_incarnation"],
                    a["recv_device"],
                    a["tensor_name"],
                )
                found.setdefault(source, []).append(key)
    return found


def write_part(to: Any, part: Part, feeds: dict[int, int]) -> None:
    """Put what one device does into a Part message.

    Args:
        to: the message.
        part: of a graph that was cut.
        feeds: by the number of a feed of the step, its number among those of the task; what is not
            there yet is added.
    """
    to.device = part.location
    to.graph.CopyFrom(export_graph(part.graph, exact=True).message)
    for index, tensor in part.feeds:
        to.feed.add(index=feeds.setdefault(index, len(feeds)), tensor=tensor.name)
    to.fetch.extend(tensor.name for _, tensor in part.fetches)
    to.target.extend(op.name for op in part.targets)
    to.late.extend(op.name for op in part.graph.operations if op.id in part.late)


def _read_part(message: Any, first_fetch: int) -> Part:
    check_nodes(message.graph)
    part = Part(message.device, Graph())
    names = [*(f.tensor for f in message.feed), *message.fetch, *message.target]
    with part.graph.as_default():
        found = import_graph_def(GraphDef(message.graph), None, names, name="", allow_internal=True)
    feeds, fetches, targets = _split(found, len(message.feed), len(message.fetch))
    part.feeds = [(f.index, _tensor(t)) for f, t in zip(message.feed, feeds, strict=True)]
    part.fetches = [(first_fetch + i, _tensor(t)) for i, t in enumerate(fetches)]
    part.targets = [_operation(op) for op in targets]
    return part


def _split(found: Sequence[Any], *sizes: int) -> list[Sequence[Any]]:
    """A sequence in pieces of these sizes, and the rest."""
    pieces = []
    for size in sizes:
        pieces.append(found[:size])
        found = found[size:]
    return [*pieces, found]


def _tensor(element: GraphTensor | Operation) -> GraphTensor:
    if not isinstance(element, GraphTensor):
        raise InvalidArgumentError(f"{element.name!r} is an operation, where a tensor is meant")
    return element


def _operation(element: GraphTensor | Operation) -> Operation:
    if not isinstance(element, Operation):
        raise InvalidArgumentError(f"{element.name!r} is a tensor, where an operation is meant")
    return element
