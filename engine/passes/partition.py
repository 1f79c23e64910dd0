"""Partition: cut a placed graph into one graph for each device, joined by Send and Recv.

An edge within a device stays. A tensor that is used on another device is sent there once, whoever
uses it: x -> Send | Recv -> users. The control edges from one device to an operation elsewhere
become the transfer of an empty tensor: ops -> Const -> Send | Recv -> Identity -> op. What is fed
is a placeholder of each part that uses it. A constant that nobody has pinned is copied to where it
is used. The given graph stays as it is.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 3.2.2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..errors import InternalError
from ..graph import Graph, GraphTensor, Operation, TensorShape, float32, resource
from ..ops.control.dataflow import NEXT_ITERATION
from ..ops.core.basic import const_op, identity, placeholder_op
from ..ops.core.op_def import OpDef
from ..ops.core.transfer import from_upper_half, recv, send, upper_half
from .partition_loops import LoopFrame, PartLoops
from .purity import is_unfed_constant
from .step_graph import StepGraph

Lossy = Callable[[GraphTensor, str, str], bool]


@dataclass
class Part:
    """What runs in one place.

    Attributes:
        location: the place.
        graph: its operations.
        feeds: (number of the feed, the placeholder that takes it).
        fetches: (number of the fetch, the tensor that gives it).
        targets: operations to run besides.
        origins: by the id of an operation, the one of the whole graph that it is a copy of.
        receives: by the id of a Recv, the tensor of the whole graph that it receives.
        crossings: by the id of a Send or Recv, the number of the transfer; they are numbered in an
            order in which they can happen.
        late: the ids of the Recvs that are held back; see `delay_receives`.
    """

    location: str
    graph: Graph = field(default_factory=Graph)
    feeds: list[tuple[int, GraphTensor]] = field(default_factory=list)
    fetches: list[tuple[int, GraphTensor]] = field(default_factory=list)
    targets: list[Operation] = field(default_factory=list)
    origins: dict[int, Operation] = field(default_factory=dict)
    receives: dict[int, GraphTensor] = field(default_factory=dict)
    crossings: dict[int, int] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)

    @functools.cached_property
    def step(self) -> StepGraph:
        """What runs there, as a step of its own; asked for when the part is whole."""
        fetches, feeds = [t for _, t in self.fetches], [t for _, t in self.feeds]
        return StepGraph(fetches, feeds, self.targets, self.graph)


def never_lossy(tensor: GraphTensor, source: str, target: str) -> bool:
    """No transfer may lose bits."""
    return False


def partition(
    step: StepGraph,
    location: Callable[[Operation], str],
    *,
    incarnation: Callable[[str], int],
    lossy: Lossy = never_lossy,
    ordered: bool = False,
) -> dict[str, Part]:
    """Cut a graph by location.

    Args:
        step: what is cut.
        location: where an operation runs: its device, or its task.
        incarnation: of a location, which its Sends and Recvs name.
        lossy: whether a float32 tensor may lose its lower bits from one location to another.
        ordered: whether Sends and Recvs keep one order that holds across all parts: needed where
            the parts are rewritten by a pass that joins operations (see `_Cutting.order`).

    Returns:
        The parts that have something to do, by location.
    """
    operations = step.operations
    cutting = _Cutting(operations, location, incarnation, step.feeds, lossy)
    for op in operations:
        if not cutting.is_copied_where_used(op):
            cutting.copy(op)
    cutting.close_loops()
    for i, t in enumerate(step.fetches):
        if not cutting.is_fed(t):
            part = cutting.part(location(t.op))
            part.fetches.append((i, cutting.tensor(t, part)))
    for op in step.targets:
        part = cutting.part(location(op))
        part.targets.append(cutting.operation(op, part))
    if ordered:
        cutting.order()
    return cutting.parts


def _goes_back(x: GraphTensor) -> bool:
    """Whether a tensor leads to the next iteration of a loop."""
    return x.op.definition is NEXT_ITERATION


class _Crossing(NamedTuple):
    """A transfer."""

    send: Operation
    recv: Operation


class _Cutting:
    """The parts while they are made.

    `_copies[location][op id]` is the copy of an operation; `_received[location][tensor id]` the
    tensor that stands for one of another part; `_finished[location][op ids]` the operation that has
    run when those of another part have.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        location: Callable[[Operation], str],
        incarnation: Callable[[str], int],
        feeds: Sequence[GraphTensor],
        lossy: Lossy,
    ) -> None:
        self.parts: dict[str, Part] = {}
        self._known = {op.id for op in operations}
        self._location = location
        self._incarnation = incarnation
        self._lossy = lossy
        self._feeds = {id(t): i for i, t in enumerate(feeds)}
        self._loops = PartLoops(operations, self._feeds)
        self._copies: dict[str, dict[int, Operation]] = {}
        self._received: dict[str, dict[int, GraphTensor]] = {}
        self._finished: dict[str, dict[tuple[int, ...], Operation]] = {}
        self._crossings: list[_Crossing] = []

    def is_fed(self, t: GraphTensor) -> bool:
        """Whether the value of a tensor comes from outside."""
        return id(t) in self._feeds

    def is_copied_where_used(self, op: Operation) -> bool:
        """Whether an operation is a constant that may stand anywhere."""
        return not op.device and is_unfed_constant(op, self._feeds)

    def part(self, location: str) -> Part:
        """The part of a location."""
        found = self.parts.get(location)
        if found is None:
            found = self.parts[location] = Part(location)
        return found

    # Copying

    def copy(self, op: Operation) -> Operation:
        """The operation in its own part."""
        return self.operation(op, self.part(self._location(op)))

    def operation(self, op: Operation, part: Part) -> Operation:
        """The copy of an operation in a part."""
        copies = self._copies.setdefault(part.location, {})
        found = copies.get(op.id)
        if found is None:
            inputs = [self.tensor(x, part) for x in op.inputs if not _goes_back(x)]
            controls = self._controls(op, part)
            found = self._add(part, op.definition, inputs, op.attrs, op.name, op)  # type: ignore[arg-type]  # the table's only kind
            found.control_inputs.extend(dict.fromkeys(controls))
            for y, twin in zip(op.outputs, found.outputs, strict=True):
                twin.set_shape(y.shape)
            copies[op.id] = found
            part.origins[found.id] = op
        return found

    def tensor(self, x: GraphTensor, part: Part) -> GraphTensor:
        """What stands for a tensor in a part."""
        if self.is_fed(x):
            return self._fed(x, part)
        if self._location(x.op) == part.location or self.is_copied_where_used(x.op):
            return self.operation(x.op, part).outputs[x.value_index]
        received = self._received.setdefault(part.location, {})
        found = received.get(id(x))
        if found is None:
            found = received[id(x)] = self._transfer(x, part)
        return found

    def _fed(self, x: GraphTensor, part: Part) -> GraphTensor:
        received = self._received.setdefault(part.location, {})
        found = received.get(id(x))
        if found is None:
            attrs = {"shape": x.shape, "dtype": x.dtype}
            name = f"_arg_{x.op.name}_{x.value_index}"
            op = self._add(part, placeholder_op, (), attrs, name, x.op)
            found = received[id(x)] = op.outputs[0]
            part.feeds.append((self._feeds[id(x)], found))
        return found

    def _add(
        self,
        part: Part,
        definition: OpDef,
        inputs: Sequence[GraphTensor],
        attrs: Mapping[str, Any],
        name: str,
        origin: Operation,
    ) -> Operation:
        op = part.graph.add(definition, inputs, attrs, name=name)
        op.location, op.layer, op.device = origin.location, origin.layer, part.location
        return op

    def close_loops(self) -> None:
        """Give each Merge of a loop what comes from the iteration before."""
        for location, copies in self._copies.items():
            part = self.parts[location]
            for found in list(copies.values()):
                for x in part.origins[found.id].inputs:
                    if _goes_back(x):
                        part.graph.add_input(found, self.tensor(x, part))

    # Crossing

    def _transfer(self, x: GraphTensor, part: Part) -> GraphTensor:
        if x.dtype == resource:
            raise InternalError(f"the handle {x.name} is used on {part.location}, away from it")
        source = self.part(self._location(x.op))
        sent = self.operation(x.op, source).outputs[x.value_index]
        lossy = x.dtype == float32 and self._lossy(x, source.location, part.location)
        if lossy:
            half = self._add(source, upper_half, [sent], {}, f"_half_{x.op.name}", x.op)
            sent = half.outputs[0]
        came = self._pair(sent, x.name.replace(":", "_"), source, part, x.op)
        part.receives[came.op.id] = x
        if lossy:
            return self._add(part, from_upper_half, [came], {}, f"_full_{x.op.name}", x.op).outputs[
                0
            ]
        return came

    def _controls(self, op: Operation, part: Part) -> list[Operation]:
        """What has run in a part when all that an operation waits for has."""
        found = []
        awaited: dict[str, list[Operation]] = {}  # by location, outside of loops
        for control in op.control_inputs:
            if control.id not in self._known:
                continue
            location = self._location(control)
            if (
                location == part.location
                or self.is_copied_where_used(control)
                or self._loops.frame(control) is not None
            ):
                found.append(self._control(control, part))
            else:
                awaited.setdefault(location, []).append(control)
        found += [self._finish(ops, part) for ops in awaited.values()]
        return found

    def _control(self, op: Operation, part: Part) -> Operation:
        """What has run in a part when an operation has."""
        if self._location(op) == part.location or self.is_copied_where_used(op):
            return self.operation(op, part)
        return self._finish([op], part)

    def _finish(self, ops: Sequence[Operation], part: Part) -> Operation:
        """What has run in a part when operations of one other part have: one transfer for all."""
        finished = self._finished.setdefault(part.location, {})
        key = tuple(op.id for op in ops)
        found = finished.get(key)
        if found is None:
            op = ops[-1]
            source = self.part(self._location(op))
            attrs = {"value": np.zeros(0, "float32"), "dtype": float32}
            dummy = self._add(source, const_op, (), attrs, f"_done_{op.name}", op)
            dummy.control_inputs.extend(self.operation(c, source) for c in ops)
            came = self._pair(dummy.outputs[0], f"done_{op.name}", source, part, op)
            found = self._add(part, identity, [came], {}, f"_after_{op.name}", op)
            finished[key] = found
        return found

    def _pair(
        self, x: GraphTensor, name: str, source: Part, target: Part, origin: Operation
    ) -> GraphTensor:
        """A Send in one part and the Recv in the other."""
        edge = {
            "tensor_name": f"edge_{len(self._crossings)}_{name}",
            "send_device": source.location,
            "send_device_incarnation": self._incarnation(source.location),
            "recv_device": target.location,
        }
        sent = self._add(source, send, [x], edge, f"_send_{name}", origin)
        source.targets.append(sent)
        attrs = {"shape": TensorShape(x.shape), "dtype": x.dtype, **edge}
        came = self._add(target, recv, (), attrs, f"_recv_{name}", origin)
        frame = self._loops.frame(origin)
        if frame is not None:
            came.control_inputs.append(self._turning(frame, target))
        source.crossings[sent.id] = target.crossings[came.id] = len(self._crossings)
        self._crossings.append(_Crossing(sent, came))
        return came.outputs[0]

    def _turning(self, frame: LoopFrame, part: Part) -> Operation:
        """What runs in each iteration of a loop in a part."""

        def own(op: Operation) -> Operation | None:
            return self.operation(op, part) if self._location(op) == part.location else None

        return self._loops.turning(
            frame, part.location, part.graph, own, lambda x: self.tensor(x, part)
        )

    def order(self) -> None:
        """Let Sends go in the order of the crossings, and each Recv wait for those before it.

        The crossings are numbered in an order in which they can happen. If parts join operations
        so that each respects this one order, no two of them can come to wait for each other; what
        each knows of its own Sends and Recvs would not be enough for that.
        """
        last: dict[str, Operation] = {}  # by location, the Send before
        for crossing in self._crossings:
            for op in (crossing.send, crossing.recv):
                before = last.get(op.device)
                if before is not None:
                    op.control_inputs.append(before)
            last[crossing.send.device] = crossing.send
