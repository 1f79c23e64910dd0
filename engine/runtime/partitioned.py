"""Plans for more than one device: each part runs as a plan of its own, in a thread of its own.

`Machine.plan` decides: what lands on one plain CPU is an ordinary `Plan`, with nothing added to it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from ..cancellation import CancellationManager
from ..collector import few_full_passes
from ..devices import Device, DeviceSet, asked_types, check_type, local_devices, with_types
from ..errors import CancelledError, LaminarError
from ..graph import DeviceSpec, DType, EagerTensor, Graph, GraphTensor, Operation
from ..ops.control.dataflow import STEERING
from ..ops.core.cluster import cluster_op
from ..ops.state.variable import fetched
from ..passes import StepGraph, gains, prepare
from ..passes.inner_graphs import CONTROL_FLOW, inner_operations
from ..passes.order import in_order
from ..passes.partition import Part, never_lossy, partition
from ..passes.partition_receives import delay_receives
from .colocation import Groups
from .config import SessionConfig
from .cost import CostModel, tensor_bytes
from .fetched_tensor import Source, tensor_from
from .placement import Placement, place
from .placement_search import PlacementProblem
from .plan import Plan
from .pool import has_inter_op_threads
from .rendezvous import Rendezvous, RendezvousKey
from .step import StepContext
from .workers import WORKERS

# What is to stand where, by the names of operations; the rest as the policy says.
Proposal = Callable[[PlacementProblem], Mapping[str, str]]


class Machine:
    """The devices that a session or a function runs on, and how it uses them.

    Args:
        config: its options.
        pools_cpus: whether native code for CPUs alone is one plan, all of whose kernels have the
            threads of all CPUs; otherwise each CPU works on its part, with its share of them.
        devices: there are these; None for those of this process.

    Attributes:
        config: its options.
        placement: of the plan made last, None where there was no choice.
        devices: there are these; a step that does not name those of a type below priority 0, for
            which nobody asked, runs without them.
        costs: of operations, estimated or measured.
        settled: by the name of an operation that owns state, its device; with
            `place_pruned_graph=False`, of every operation.

    Examples:
        >>> machine = engine.Machine(engine.SessionConfig(device_count={"cpu": 2}))
        >>> len(machine.devices)
        2
    """

    def __init__(
        self,
        config: SessionConfig | None = None,
        *,
        pools_cpus: bool = False,
        devices: DeviceSet | None = None,
    ) -> None:
        self.config = config or SessionConfig()
        self.pools_cpus = pools_cpus
        self.devices = devices or local_devices(
            self.config.device_count, self.config.memory_limit_bytes
        )
        if not self.config.allow_growth:
            for device in self.devices:
                device.reserve()
        self._asked = asked_types(self.config.device_count)
        self.costs = CostModel()
        self.placement: Placement | None = None
        self.settled: dict[str, str] = {}
        self._placed = (-1, -1)  # the version and edits of the graph that was placed as a whole

    @property
    def held(self) -> MutableMapping[str, str]:
        """Of what is settled, that which a step has to find where it is.

        A learned placement moves state between the CPUs of this process: that copies nothing.
        """
        if self.config.placement != "learned":
            return self.settled
        hosts = {d.name for d in self.devices if d.is_host}
        return {name: place for name, place in self.settled.items() if place not in hosts}

    def devices_for(self, operations: Sequence[Operation]) -> DeviceSet:
        """The devices that take part in a step.

        Raises:
            NotFoundError: an operation names a type of devices that nobody has registered.
        """
        named = {op.device: op for op in operations}
        for op in operations:
            if op.definition in CONTROL_FLOW:
                named |= {inner.device: inner for inner in inner_operations(op)}
        types = set[str]()
        for name, op in named.items():
            kind = DeviceSpec.from_string(name).kind
            if kind is not None:
                check_type(kind, op)
                types.add(kind)
        return with_types(self.devices, self._asked | types)

    def place_graph(self, graph: Graph) -> None:
        """Place a whole graph, if the config says so; the steps of it keep to that.

        Raises:
            InvalidArgumentError, NotFoundError, ResourceExhaustedError: as `plan`.
        """
        now = (graph.version, graph.edits)
        if self.config.place_pruned_graph or now == self._placed:
            return
        operations = in_order(graph.operations)
        found = place(
            operations,
            self.devices_for(operations),
            feeds=[inner for _, inner in graph.captures.values()],
            costs=self.costs,
            policy=self.config.placement,
            soft=self.config.allow_soft_placement,
            settled=self.settled,
        )
        self.settled |= {op.name: found.devices[op.id].name for op in operations}
        self._placed = now

    @few_full_passes()
    def plan(
        self, step: StepGraph, *, compiled: bool = False, optimize: bool = False
    ) -> Plan | PartitionedPlan:
        """How to run a step.

        Args:
            step: what to compute; it is left as it is.
            compiled: whether operations are clustered, and clusters run as native code.
            optimize: whether laminar's rewrites run though the config does not ask for them.

        Raises:
            InvalidArgumentError: an operation cannot be placed.
            ResourceExhaustedError: the devices' memory limits do not suffice.
            UnimplementedError: an operation has no kernel.
        """
        return self.proposed_plan(step, None, compiled=compiled, optimize=optimize)

    def proposed_plan(
        self, step: StepGraph, proposal: Proposal | None, *, compiled: bool, optimize: bool
    ) -> Plan | PartitionedPlan:
        """As `plan`, with operations placed as `proposal` says where they may be there."""
        step.compiled = compiled
        taking_part = self.devices_for(step.operations)
        devices = StepDevices(self, taking_part, compiled=compiled, proposal=proposal)
        self.placement = None
        made = prepare(step, optimize=optimize or self.config.optimize, devices=devices)
        if made.parts is None:
            plan, used = Plan(made.step), devices.placement.used
            plan.place = used[0].name if used else ""
            return plan
        return self.parts_plan(made.step, made.parts, devices)

    def parts_plan(
        self, step: StepGraph, cut: Mapping[str, Part], devices: StepDevices
    ) -> PartitionedPlan:
        """How to run a step that was cut, what each device does by its name."""
        parts = [
            PartPlan(
                part,
                self.devices.named(name),
                compiled=devices.compiled,
                is_alone=len(cut) == 1,
            )
            for name, part in cut.items()
        ]
        return PartitionedPlan(parts, len(step.fetches), passed_on(step))


class StepDevices:
    """The devices of a machine as the pipeline sees them, for one step.

    Attributes:
        devices: those that take part.
        placement: where the operations are, once they have been placed.
        compiled: whether parts run native code.
    """

    def __init__(
        self,
        machine: Machine,
        devices: DeviceSet,
        *,
        compiled: bool,
        proposal: Proposal | None = None,
    ) -> None:
        self.machine = machine
        self.devices = devices
        self.compiled = compiled
        self._proposal = proposal
        self.placement = Placement()

    def have_choice(self, step: StepGraph) -> bool:
        """Whether an operation may run elsewhere than the others."""
        machine, config = self.machine, self.machine.config
        plain = self.devices.is_plain and not config.log_device_placement
        if plain and config.allow_soft_placement:
            return False
        if self.compiled and machine.pools_cpus and all(d.is_plain for d in self.devices):
            return False
        return not plain or any(op.device for op in step.operations)

    def have_threads(self) -> bool:
        """Whether operations of one step may run side by side."""
        own = self.machine.config.inter_op_threads
        return max(own) > 1 if own else has_inter_op_threads()

    def place(self, step: StepGraph) -> bool:
        """Choose a device for each operation; whether the step is to be cut."""
        machine, config, proposal = self.machine, self.machine.config, self._proposal

        def choose(groups: Groups) -> Mapping[str, str]:
            assert proposal is not None
            return proposal(
                PlacementProblem(step.operations, self.devices, groups, step.feeds, machine.costs)
            )

        held = machine.held
        found = self.placement = machine.placement = place(
            step.operations,
            self.devices,
            fetches=step.fetches,
            feeds=step.feeds,
            costs=machine.costs,
            policy=config.placement,
            soft=config.allow_soft_placement,
            settled=held,
            choose=None if proposal is None else choose,
        )
        machine.settled |= held
        if config.log_device_placement:
            found.log()
        return len(found.used) > 1 or not all(d.is_plain for d in self.devices)

    def partition(self, step: StepGraph) -> dict[str, Part]:
        """What each of the devices that were chosen runs."""
        placement, devices, costs = self.placement, self.machine.devices, self.machine.costs
        wish = self.machine.config.lossy_transfers
        # What is received in each iteration of a loop is not held back by what is outside of it,
        # and there is no one order of what happens in each.
        loops = any(op.definition in STEERING for op in step.operations)
        self.compiled = self.compiled and not loops
        cut = partition(
            step,
            lambda op: placement.devices[op.id].name,
            incarnation=lambda name: devices.named(name).incarnation,
            lossy=wish if callable(wish) else (lambda *_: True) if wish else never_lossy,
            ordered=self.compiled,
        )
        if self.machine.config.delay_receives and not loops:
            delay_receives(
                cut.values(),
                placement.times,
                lambda x, target: costs.transfer_seconds(
                    tensor_bytes(x), placement.devices[x.op.id], devices.named(target)
                ),
                tensor_bytes,
                ordered=self.compiled,
            )
        return cut


class _Functions:
    """What functions run on where it is not the devices of this process alone."""

    machine: Machine | None = None


def default_machine() -> Machine:
    """What functions run on: all devices of this process, placed softly, unless others are set."""
    return _Functions.machine or _machine_of(local_devices())


def set_default_machine(machine: Machine | None) -> None:
    """Say what functions that are traced from now on run on; None for this process's devices."""
    _Functions.machine = machine


@functools.lru_cache(1)
def _machine_of(devices: DeviceSet) -> Machine:
    return Machine(SessionConfig(allow_soft_placement=True))


def passed_on(step: StepGraph) -> dict[int, int]:
    """By the number of a fetch that is fed, the number of the feed."""
    fed = {id(t): i for i, t in enumerate(step.feeds)}
    return {i: fed[id(t)] for i, t in enumerate(step.fetches) if id(t) in fed}


class _PartContext(StepContext):
    """The machine as the kernels of one part of a step see it."""

    def __init__(
        self, step: StepContext, xp: Any, rendezvous: Rendezvous, keys: dict[str, RendezvousKey]
    ) -> None:
        self.__dict__.update(step.__dict__)
        self.xp = xp
        self.rendezvous = rendezvous
        self._keys = keys

    def key(self, source: str, incarnation: int, target: str, name: str) -> RendezvousKey:
        """The key of a transfer; outside of loops it is made once."""
        if self.frame_iter != (0, 0):
            return RendezvousKey(source, incarnation, target, name, self.frame_iter)
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = RendezvousKey(source, incarnation, target, name)
        return key


class PartPlan:
    """A part on its device, ready to run."""

    def __init__(
        self, part: Part, device: Device, *, compiled: bool, is_alone: bool = False
    ) -> None:
        self.part = part
        self.device = device
        self.fetches = [i for i, _ in part.fetches]
        self._feeds = [i for i, _ in part.feeds]
        self._keys: dict[str, RendezvousKey] = {}
        native = compiled and device.compiler is not None
        self.plan = Plan(
            part.step, compiled=native, device=device, is_part=not is_alone, in_order=compiled
        )
        self._stays = [device.brings_inputs and self._goes_to_clusters(x) for _, x in part.feeds]

    def _goes_to_clusters(self, feed: GraphTensor) -> bool:
        """Whether only clusters take a feed."""
        return all(
            op.definition is cluster_op
            for op in self.plan.operations
            if any(x is feed for x in op.inputs)
        )

    def run(
        self, feeds: Sequence[Any], step: StepContext, rendezvous: Rendezvous, *, reads: bool
    ) -> list[Any]:
        """The part's fetches: arrays of the host, if `reads`; else they stay where they are."""
        device = self.device
        with device.running():
            given = [
                x if stays and isinstance(x, np.ndarray) else _brought(x, device)
                for stays, x in zip(self._stays, (feeds[i] for i in self._feeds), strict=True)
            ]
            context = _PartContext(step, device.xp, rendezvous, self._keys)
            found = self.plan.run(given, context)
            device.settle()  # while updates can still be undone
            return [device.get(v) if reads and device.holds(v) else v for v in found]


def _brought(value: Any, device: Device) -> Any:
    """A fed value as one of the device; handles stay what they are."""
    if not hasattr(value, "dtype"):
        return value
    return device.adopt(value) if device.holds(value) else device.put(fetched(value))


class PartitionedPlan:
    """How to run a step on several devices. Runs as a `Plan` does.

    Args:
        parts: what each device does; their feeds and fetches are numbered as those of the step.
        num_fetches: of the step.
        passed: by the number of a fetch that is fed, the number of the feed.

    Attributes:
        parts: what each device does.
    """

    def __init__(
        self, parts: Sequence[PartPlan], num_fetches: int, passed: Mapping[int, int]
    ) -> None:
        self.parts = list(parts)
        self._num_fetches = num_fetches
        self._passed = passed
        self._sources = {
            i: Source.of(x.op, part.device) for part in self.parts for i, x in part.part.fetches
        }
        self.records = any(part.plan.records for part in self.parts)

    @property
    def operations(self) -> list[Operation]:
        """What a run executes."""
        return [op for part in self.parts for op in part.plan.operations]

    @property
    def gains_by_compiling(self) -> bool:
        """Whether native code can make it faster, on some of its devices."""
        return any(gains(part.plan.operations, part.device) for part in self.parts)

    def run(self, feeds: Sequence[Any], context: StepContext) -> list[Any]:
        """Execute all parts on arrays, in the order of the feeds; gives host arrays.

        Raises:
            LaminarError: a kernel failed: the first one that did. All parts have ended.
        """
        return self._run(feeds, context, reads=True)

    def tensors(
        self, feeds: Sequence[Any], context: StepContext, dtypes: Sequence[DType]
    ) -> list[EagerTensor]:
        """As `run`, but gives tensors: what a GPU made lies there until somebody reads it."""
        found = self._run(feeds, context, reads=False)
        sources = map(self._sources.get, range(len(found)))
        return list(map(tensor_from, sources, found, dtypes))

    def _run(self, feeds: Sequence[Any], context: StepContext, *, reads: bool) -> list[Any]:
        if self.records and context.undo is None:
            with context.undoing() as recording:
                return self._run(feeds, recording, reads=reads)
        meeting = context.rendezvous or Rendezvous(part.device for part in self.parts)
        results: list[Any] = [None] * self._num_fetches
        for i, j in self._passed.items():
            results[i] = fetched(feeds[j]) if reads else feeds[j]
        step = context.step()
        if step.cancellation.register(meeting.abort) is None:
            assert step.cancelled is not None
            raise step.cancelled
        barrier = Barrier(len(self.parts), step.cancellation)

        def run(part: PartPlan) -> None:
            try:
                found = part.run(feeds, step, meeting, reads=reads)
                for i, value in zip(part.fetches, found, strict=True):
                    results[i] = value
            except BaseException as error:  # it is raised in the caller's thread
                barrier.report(error)
            else:
                barrier.report(None)

        for part in self.parts[1:]:
            WORKERS.start(functools.partial(run, part))
        for part in self.parts[:1]:
            run(part)
        barrier.wait()
        return results


class Barrier:
    """Waits for all parts of a step; the first error cancels the others.

    `_left` parts have not reported, `_error` is the first error; guarded by `_changed`.
    """

    def __init__(self, count: int, cancellation: CancellationManager) -> None:
        self._changed = threading.Condition()
        self._left = count
        self._error: BaseException | None = None
        self._cancellation = cancellation

    def report(self, error: BaseException | None) -> None:
        """A part has ended."""
        if error is not None:
            with self._changed:
                self._error = self._error or self._cancellation.error or error
            self._cancellation.cancel(
                error
                if isinstance(error, LaminarError)
                else CancelledError(f"another part of the step failed: {error!r}")
            )
        with self._changed:
            self._left -= 1
            self._changed.notify_all()

    def wait(self) -> None:
        """Return when all have ended; raise the first error."""
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._left)
        except BaseException as error:  # an interrupt: the others end too, then it goes on
            self._cancellation.cancel(CancelledError(f"the step was interrupted: {error!r}"))
            with self._changed:
                self._changed.wait_for(lambda: not self._left)
            raise
        finally:
            self._cancellation.close()
        if self._error is not None:
            raise self._error
