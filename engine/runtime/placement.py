"""Placement: a device for each operation.

The step is simulated, operation by operation as their inputs come to be there, and each group of
operations that stand together (see colocation.py) gets its device when its first member's turn
comes: by the policy "priority", the device of the highest type that has room; by "simulated", the
one where the operation finishes first. What was learned (see learned_placement.py) comes before.

State of the simulation: `_free_at[device]` is when a device has done what it was given,
`_arrives[tensor, device]` when a tensor is there, `_held[device]` the known bytes that are alive.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, sections 3.2.1 and 4.3.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from ..devices import Device, DeviceSet
from ..devices.registry import priority_of
from ..errors import InvalidArgumentError, ResourceExhaustedError
from ..graph import (
    GraphTensor,
    Operation,
    TensorShape,
    as_dtype,
    resource,
)
from ..ops.control.dataflow import NEXT_ITERATION
from ..ops.state.variable import var_handle
from .colocation import Group, Groups
from .config import POLICIES
from .cost import CostModel, Costs, known_bytes, tensor_bytes

_log = logging.getLogger("laminar.placement")

Choose = Callable[[Groups], Mapping[str, str]]


@dataclass(frozen=True)
class Decision:
    """Where an operation runs, and why."""

    operation: str
    type: str
    device: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operation} ({self.type}): {self.device}: {self.reason}"


@dataclass
class Placement:
    """The device of each operation.

    Attributes:
        devices: by the operation's id.
        decisions: the same, in the order in which they were taken, with reasons.
        times: by the operation's id, when it starts and finishes in the simulation, in seconds.
        has_choice: whether an operation could be on another device.
    """

    devices: dict[int, Device] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    times: dict[int, tuple[float, float]] = field(default_factory=dict)
    has_choice: bool = False

    @property
    def makespan(self) -> float:
        """How long the simulated step takes, in seconds."""
        return max((finish for _, finish in self.times.values()), default=0.0)

    @property
    def used(self) -> list[Device]:
        """The devices that have operations, each once."""
        return list({id(d): d for d in self.devices.values()}.values())

    def log(self) -> None:
        """Write the decisions to the log "laminar.placement"."""
        for decision in self.decisions:
            _log.info("%s", decision)


def place(
    operations: Sequence[Operation],
    devices: DeviceSet,
    *,
    fetches: Collection[GraphTensor] = (),
    feeds: Collection[GraphTensor] = (),
    costs: Costs | None = None,
    policy: str = "priority",
    soft: bool = False,
    settled: MutableMapping[str, str] | None = None,
    choose: Choose | None = None,
) -> Placement:
    """Choose a device for each operation.

    Args:
        operations: what a step runs, inputs before consumers.
        devices: to choose from.
        fetches: tensors that are kept to the end of the step.
        feeds: tensors that are given.
        costs: of operations and transfers, by default estimated.
        policy: "priority"; "simulated", or "learned", which is the same but for what `choose` says.
        soft: whether an operation goes elsewhere when its constraint cannot be met.
        settled: by the name of an operation that owns state, its device from now on; what is
            chosen here is added.
        choose: gives, for the groups of this step, devices by the names of their owners; a group
            that it does not name, or whose device is not feasible or full, is placed by the policy.

    Raises:
        InvalidArgumentError: no device can run an operation, or constraints contradict each other.
        ResourceExhaustedError: no device has room.
    """
    groups = Groups(operations, devices, feeds, soft=soft, settled=settled or {})
    chosen = {} if choose is None else choose(groups)
    simulation = _Simulation(
        operations, devices, fetches, feeds, costs or CostModel(), policy, chosen
    )
    placement = simulation.run(groups)
    if settled is not None:
        for op in operations:
            if any(y.dtype == resource for y in op.outputs):
                settled.setdefault(op.name, placement.devices[op.id].name)
    return placement


def all_on(device: Device, operations: Sequence[Operation]) -> Placement:
    """The placement of a step that has no choice."""
    why = "the only device"
    decisions = [Decision(op.name, op.type, device.name, why) for op in operations]
    return Placement({op.id: device for op in operations}, decisions)


class _Simulation:
    """A step on all devices at once, in estimated time."""

    def __init__(
        self,
        operations: Sequence[Operation],
        devices: DeviceSet,
        fetches: Collection[GraphTensor],
        feeds: Collection[GraphTensor],
        costs: Costs,
        policy: str,
        chosen: Mapping[str, str],
    ) -> None:
        if policy not in POLICIES:
            raise InvalidArgumentError(
                f"placement must be one of {', '.join(POLICIES)}, got {policy!r}"
            )
        self._operations = {op.id: op for op in operations}
        self._devices = devices
        self._costs = costs
        self._greedy = policy != "priority"
        self._chosen = chosen
        self._fed = {id(t) for t in feeds}
        self._kept = {id(t) for t in fetches}
        self._free_at = {id(d): 0.0 for d in devices}
        self._held = {id(d): 0 for d in devices}
        self._arrives: dict[tuple[int, int], float] = {}
        self._finish: dict[int, float] = {}
        self._uses: dict[int, int] = {}  # tensor id -> consumers that have not run
        self._places: dict[int, dict[int, int]] = {}  # tensor id -> device -> bytes held there
        self._placement = Placement()

    def run(self, groups: Groups) -> Placement:
        """Place everything."""
        waits: dict[int, int] = {}
        consumers: dict[int, list[int]] = {}
        for op in self._operations.values():
            sources = waits_for(op, self._fed, self._operations)
            waits[op.id] = len(sources)
            for i in sources:
                consumers.setdefault(i, []).append(op.id)
            for x in op.inputs:
                self._uses[id(x)] = self._uses.get(id(x), 0) + 1
        ready = [(0.0, i) for i, n in waits.items() if not n]
        heapq.heapify(ready)
        chosen: dict[int, tuple[Device, str]] = {}  # by the group
        while ready:
            _, i = heapq.heappop(ready)
            op = self._operations[i]
            group = groups.of(op)
            found = chosen.get(id(group))
            if found is None:
                found = chosen[id(group)] = self._choose(op, group)
            elif not self._has_room(op, found[0]):
                raise self._no_room(op, group)
            self._settle(op, *found)
            for j in consumers.get(i, ()):
                waits[j] -= 1
                if not waits[j]:
                    before = waits_for(self._operations[j], self._fed, self._operations)
                    at = max(self._finish[k] for k in before)
                    heapq.heappush(ready, (at, j))
        return self._placement

    def _choose(self, op: Operation, group: Group) -> tuple[Device, str]:
        candidates = [d for d in group.feasible if self._has_room(op, d)]
        if not candidates:
            raise self._no_room(op, group)
        self._placement.has_choice |= len(candidates) > 1
        if len(candidates) == 1:
            why = group.reason or self._only(group, candidates[0])
            return candidates[0], why.rstrip("; ,")
        wish = self._chosen.get(group.owner.name)
        for d in candidates:
            if d.name == wish:
                return d, f"{group.reason}chosen by measured steps"
        if not self._greedy:
            wanted = [d for d in candidates if priority_of(d.device_type) >= 0] or candidates
            return wanted[0], f"{group.reason}first of {len(candidates)} by priority"
        finish = {d.name: self._times(op, d)[1] for d in candidates}
        device = min(candidates, key=lambda d: finish[d.name])
        times = ", ".join(f"{t * 1e6:.1f} us on {n}" for n, t in finish.items())
        return device, f"{group.reason}finishes first: {times}"

    def _only(self, group: Group, device: Device) -> str:
        if len(group.feasible) > 1:
            return "the only device with room"
        if len(self._devices) == 1:
            return "the only device"
        return "the only device with a kernel"

    def _times(self, op: Operation, device: Device) -> tuple[float, float]:
        """When an operation would start and finish on a device."""
        start = self._free_at[id(device)]
        for x in op.inputs:
            if id(x) not in self._fed and x.op.id in self._finish:
                start = max(start, self._arrival(x, device))
        for c in op.control_inputs:
            source = self._placement.devices.get(c.id)
            if source is not None:
                delay = self._costs.transfer_seconds(0, source, device)
                start = max(start, self._finish[c.id] + delay)
        return start, start + self._costs.compute_seconds(op, device)

    def _arrival(self, x: GraphTensor, device: Device) -> float:
        known = self._arrives.get((id(x), id(device)))
        if known is not None:  # it crosses once, whoever else takes it there
            return known
        source = self._placement.devices[x.op.id]
        finish = self._finish[x.op.id]
        if source is device:
            return finish
        return finish + self._costs.transfer_seconds(tensor_bytes(x), source, device)

    def _settle(self, op: Operation, device: Device, reason: str) -> None:
        """Put an operation on a device, and go on in time."""
        start, finish = self._times(op, device)
        for x in op.inputs:
            if id(x) not in self._fed and x.op.id in self._finish:
                self._arrives.setdefault((id(x), id(device)), self._arrival(x, device))
                self._hold(x, device)
        for y in op.outputs:
            self._hold(y, device)
        for t in (*op.inputs, *op.outputs):
            self._uses[id(t)] = self._uses.get(id(t), 0) - (t.op is not op)
            if not self._uses[id(t)] and id(t) not in self._kept:
                for place, nbytes in self._places.pop(id(t), {}).items():
                    self._held[place] -= nbytes
        if op.definition is var_handle:  # the value stays when the step is over
            self._held[id(device)] += _state_bytes(op)
        self._finish[op.id] = self._free_at[id(device)] = finish
        self._placement.devices[op.id] = device
        self._placement.times[op.id] = start, finish
        decision = Decision(op.name, op.type, device.name, reason)
        self._placement.decisions.append(decision)

    def _hold(self, t: GraphTensor, device: Device) -> None:
        places = self._places.setdefault(id(t), {})
        if id(device) not in places:
            places[id(device)] = known_bytes(t)
            self._held[id(device)] += known_bytes(t)

    def _needs(self, op: Operation, device: Device) -> int:
        """The bytes that an operation adds to what a device holds."""
        coming = [
            x
            for x in {id(x): x for x in op.inputs}.values()
            if id(x) not in self._fed and id(device) not in self._places.get(id(x), {})
        ]
        total = sum(map(known_bytes, (*coming, *op.outputs)))
        return total + (_state_bytes(op) if op.definition is var_handle else 0)

    def _has_room(self, op: Operation, device: Device) -> bool:
        limit = device.limit_bytes
        return limit is None or self._held[id(device)] + self._needs(op, device) <= limit

    def _no_room(self, op: Operation, group: Group) -> ResourceExhaustedError:
        rooms = ", ".join(
            f"{d.name} holds {self._held[id(d)]} of {d.limit_bytes} bytes and would need "
            f"{self._needs(op, d)} more"
            for d in group.feasible
        )
        return ResourceExhaustedError(
            f"operation {op.name!r} ({op.type}) finds no room: {rooms}",
            remedy="use more devices, a higher memory limit, or smaller tensors",
            location=op.location,
            layer=op.layer,
        )


def waits_for(op: Operation, fed: Collection[int], among: Mapping[int, Operation]) -> set[int]:
    """What must run before an operation; the edge back to the start of a loop does not count.

    Args:
        op: the operation.
        fed: ids of the tensors that are given.
        among: the operations of the step, by id.
    """
    found = {
        x.op.id for x in op.inputs if id(x) not in fed and x.op.definition is not NEXT_ITERATION
    }
    found |= {c.id for c in op.control_inputs}
    return found & among.keys()


def _state_bytes(op: Operation) -> int:
    """The bytes of the variable that a handle stands for, as far as they are known."""
    elements = TensorShape(op.attrs["shape"]).num_elements()
    return 0 if elements is None else elements * as_dtype(op.attrs["dtype"]).size
