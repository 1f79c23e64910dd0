"""DirectSession: the engine of sessions that run in this process.

State of a `DirectSession`:
    _signatures[key]: the plans of a set of fetches and feeds, made at its first run (and again when
        an operation has been changed, or the graph has captured more), feeds in the order in
        which they were built;
    _latest: the signature that was made last;
    _resources: the containers that hold the values of variables.
All are guarded by `_lock`; a plan, once made, is run by any number of threads at the same time.

Compiling costs 2 to 3 ms an operation (less than 1 where the cache on disk has the code), and saves
a third to two thirds of each run: some hundred runs of a training step earn that back. Training
does that many, and no count tells before; so a signature is compiled when it has run a few times,
and what runs less often than that never waits. Where that run has a time limit, which compiling
could exceed, a thread compiles meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import forks
from ..cancellation import CancellationManager
from ..devices import DeviceList, MemoryStats, list_devices
from ..errors import CancelledError, InvalidArgumentError
from ..graph import EagerTensor, Graph, GraphTensor, Operation, Tensor, resource, string
from ..passes import StepGraph, other_reads
from .config import SessionConfig
from .cost import Cost
from .learned_placement import LearnedPlacements, LearningPlan, digest_of
from .options import RunMetadata, RunOptions
from .partial import DirectPartialStep
from .partitioned import Machine, PartitionedPlan, Proposal
from .placement import Placement, all_on
from .plan import Plan
from .pool import InterOpThreads, inter_op_threads
from .resources import SHARED, SessionResources
from .step import StepContext
from .targets import Element
from .watching import run_watched

# The run of a signature that is compiled, with jit_compile="auto".
_COMPILED_RUN = 10


class _Signature:
    """A set of fetches and feeds that has been run.

    Attributes:
        plan: what runs.
        runs_left: before it is compiled; 0 when that is done, or never will be.
    """

    __slots__ = (
        "_elements",
        "_feeds",
        "_machine",
        "_plain",
        "_proposal",
        "plan",
        "runs_left",
    )

    def __init__(
        self,
        machine: Machine,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        learned: LearnedPlacements | None,
    ) -> None:
        self._machine = machine
        self._elements, self._feeds = elements, feeds
        self._proposal: Proposal | None = None
        self._plain: Plan | PartitionedPlan | None = None
        self.plan: Plan | PartitionedPlan | LearningPlan
        if learned is None or not self._learns(learned):
            self._begin()

    def _begin(self) -> None:
        wish = self._machine.config.jit_compile
        self.plan = plan = self._made(compiled=wish is True)
        self._plain = None if wish is True else plan
        self.runs_left = _COMPILED_RUN - 1 if wish == "auto" else 0

    def _learns(self, learned: LearnedPlacements) -> bool:
        """Whether the first runs are to find out where the operations are best."""
        machine = self._machine
        digest = digest_of(self.step().operations, machine)
        known = learned.get(digest)
        if known is not None:
            self._proposal = lambda problem: known
            return False

        def make(proposal: Proposal | None) -> Plan | PartitionedPlan:
            return machine.proposed_plan(self.step(), proposal, compiled=False, optimize=False)

        def done(proposal: Proposal) -> None:
            self._proposal = proposal
            self._begin()

        self.plan, self.runs_left = LearningPlan(machine, digest, make, learned, done), 0
        return self.plan.has_choice

    def compile(self) -> None:
        """Run native code from now on, where there is some."""
        self.runs_left = 0
        if self.plain.gains_by_compiling:
            self.plan = self._made(compiled=True)

    @property
    def plain(self) -> Plan | PartitionedPlan:
        """A plan of the operations one by one."""
        if self._plain is None:
            self._plain = self._made(compiled=False)
        return self._plain

    def step(self) -> StepGraph:
        """What it computes."""
        tensors = [e for e in self._elements if isinstance(e, GraphTensor)]
        targets = [e for e in self._elements if isinstance(e, Operation)]
        return StepGraph(tensors, self._feeds, targets, fed_too=other_reads(self._feeds))

    def _made(self, *, compiled: bool) -> Plan | PartitionedPlan:
        machine, proposal = self._machine, self._proposal
        if proposal is None:
            return machine.plan(self.step(), compiled=compiled, optimize=compiled)
        return machine.proposed_plan(self.step(), proposal, compiled=compiled, optimize=compiled)


class DirectSession:
    """Runs steps in this process; see `SessionEngine`.

    Args:
        target: "".
        graph: what is run; it is shared, not copied.
        config: the devices and their use.
        machine: what makes the plans; by default one of this process's devices.
    """

    def __init__(
        self, target: str, graph: Graph, config: SessionConfig, machine: Machine | None = None
    ) -> None:
        self._graph = graph
        self._resources = SessionResources()
        self._context = StepContext(self._resources.get, CancellationManager())
        self._pools = [(inter_op_threads(n),) for n in config.inter_op_threads]
        if self._pools:
            self._context.inter_op = self._pools[0]
        self._machine = machine or Machine(config)
        is_learned = config.placement == "learned"
        self._learned = LearnedPlacements(config.placement_file) if is_learned else None
        self._signatures: dict[Any, _Signature] = {}
        self._latest: _Signature | None = None
        self._lock = forks.lock()
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
        found = iter(self.compute(elements, feeds, values, options, metadata))
        return [fetched(e, next(found)) if isinstance(e, GraphTensor) else None for e in elements]

    def compute(
        self,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        values: Sequence[Any],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> Sequence[Any]:
        """One step: what its plan gives for the tensors among `elements`."""
        if len(feeds) > 1:  # in whatever order they are given, they are the same signature
            order = sorted(range(len(feeds)), key=lambda i: (feeds[i].op.id, feeds[i].value_index))
            feeds, values = [feeds[i] for i in order], [values[i] for i in order]
        captures = self._graph.captures
        key = (tuple(map(id, elements)), tuple(map(id, feeds)), len(captures), self._graph.edits)
        timeout = self._timeout if options is None else options.timeout_in_ms or self._timeout
        signature = self._signatures.get(key)
        if signature is None or signature.runs_left:
            signature = self._prepared(key, elements, feeds, can_wait=not timeout)
        outer = self._captured()
        if options is None and not timeout:
            return signature.plan.run([*values, *outer], self._context)
        told = options or RunOptions()
        return self._run_watched(signature, [*values, *outer], told, metadata, timeout)

    def _prepared(
        self,
        key: Any,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        *,
        can_wait: bool,
    ) -> _Signature:
        """The signature of that key: made at the first run, and compiled later.

        A run that cannot wait for the compiler goes on as before while another thread compiles.
        """
        with self._lock:
            found = self._signatures.get(key)
            if found is None:
                self._machine.place_graph(self._graph)
                inner = [tensor for _, tensor in self._graph.captures.values()]
                given = [*feeds, *inner]
                found = _Signature(self._machine, elements, given, self._learned)
                self._signatures[key] = self._latest = found
            elif found.runs_left == 1 and can_wait:
                found.compile()
            elif found.runs_left == 1:
                found.runs_left = 0
                threading.Thread(target=found.compile, name="laminar-session-compiler").start()
            elif found.runs_left:
                found.runs_left -= 1
        return found

    def _captured(self) -> list[Any]:
        pairs = self._graph.captures.values()
        return [t.value for t, _ in pairs if isinstance(t, EagerTensor)]

    def _run_watched(
        self,
        signature: _Signature,
        values: Sequence[Any],
        options: RunOptions,
        metadata: RunMetadata | None,
        timeout: float,
    ) -> list[Any]:
        step = self._context.step()
        if options.inter_op_pool:
            step.inter_op = self._pool(options.inter_op_pool)
        plan = signature.plan
        if options.tells or isinstance(plan, LearningPlan):
            plan = signature.plain
        return run_watched(plan, values, step, self._machine, options, metadata, timeout)

    def _pool(self, number: int) -> InterOpThreads:
        if not 0 <= number < len(self._pools):
            raise InvalidArgumentError(
                f"inter_op_pool: there is no pool {number}, the session has {len(self._pools)}",
                remedy="give their sizes in SessionConfig(inter_op_threads=[...])",
            )
        return self._pools[number]

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
        """Where the operations of the last new signature are; None before the first run."""
        latest = self._latest
        if self._machine.placement is None and latest is not None:
            return all_on(self._machine.devices.client, latest.step().operations)
        return self._machine.placement

    def list_devices(self) -> DeviceList:
        """The devices there are."""
        return list_devices(self._machine.config.device_count)

    def memory_stats(self) -> dict[str, MemoryStats]:
        """By the name of each device whose memory is counted, what it holds; its peak ends."""
        counted = [d for d in self._machine.devices if not d.is_plain]
        found = {d.name: d.memory_stats() for d in counted}
        for device in counted:
            device.reset_peak()
        return found

    def cost(self, op: Operation, device: str) -> Cost:
        """What an operation costs on a device."""
        return self._machine.costs.cost(op, self._machine.devices.named(device))

    def close(self) -> None:
        """Cancel what runs, free what is kept."""
        self._context.cancellation.cancel(CancelledError("the session was closed"))
        self._resources.clear()
        with self._lock:
            self._signatures.clear()
            self._latest = None
        for (threads,) in self._pools:
            if threads is not None:
                threads.shutdown(wait=False)


def fetched(tensor: Tensor, value: Any) -> Any:
    """A fetched value as the user gets it: an array that no later step changes, or a scalar."""
    if tensor.dtype == resource:
        return value
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return value.item() if tensor.dtype == string else value[()]
        return value.copy()  # a variable may hold the array itself
    return value
