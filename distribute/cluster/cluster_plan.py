"""Plans for the devices of several tasks: the master's side of a signature.

A step is placed over the devices of all tasks and cut as one for several devices of a process is
(engine/runtime/partitioned.py); only who runs the parts differs. The parts of each task are
registered there once. A step is then one request to each task, which says no more than the step's
number and the feeds, and in the end one more: that the step is over, and whether it went well.
Tensors go from task to task without the master.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from laminar.engine.errors import InternalError, LaminarError, Origin
from laminar.engine.graph import Operation
from laminar.engine.ops.core.call_frame import arg, retval
from laminar.engine.passes import StepGraph, gains
from laminar.engine.passes.partition import Part
from laminar.engine.runtime import Machine, RunMetadata, RunOptions, SessionConfig, StepContext
from laminar.engine.runtime.partitioned import Barrier, StepDevices, passed_on

from ..wire import with_origin
from .ended_steps import EndedSteps
from .messages import messages, read_metadata, write_options
from .peers import NO_DEADLINE_SECONDS, LocalCall, LocalPeer, Peer, Reply, call_all, first_error
from .registered_graphs import write_part
from .tasks import task_of

# How long tasks have to answer where no step waits, and to tidy up after one that failed.
_ANSWER_SECONDS = 60.0
_CLEANUP_SECONDS = 10.0
_TAKE_BACK_SECONDS = 2.0  # the error waits for that
_CLOCK_CALLS = 5


@dataclass
class SessionTask:
    """A task as a session of a master knows it.

    Attributes:
        name: "/job:worker/task:1".
        peer: its worker.
        incarnation: which life of it the session began with.
    """

    name: str
    peer: Peer
    incarnation: int

    @property
    def is_here(self) -> bool:
        """Whether its worker is in this process."""
        return isinstance(self.peer, LocalPeer)


class ClusterMachine(Machine):
    """The devices of the tasks of a session.

    Args:
        config: how they are used.
        devices: those of all tasks.
        tasks: by name.
        handle: of the session.
    """

    def __init__(
        self, config: SessionConfig, devices: Any, tasks: Mapping[str, SessionTask], handle: str
    ) -> None:
        super().__init__(config, devices=devices)
        self.tasks = tasks
        self.handle = handle
        self.ended = EndedSteps(self._tell_ended)
        # By the name of a task, failed steps of which it could not be told.
        self._unsettled: dict[str, list[int]] = {}

    def take_back(self, tasks: Iterable[SessionTask], steps: Sequence[int]) -> None:
        """Have tasks take back what failed steps stored; who cannot be told is told later."""
        request = self._cleanup(steps, failed=True)
        found = call_all(
            {task.name: task.peer for task in tasks},
            "CleanupGraph",
            lambda _: request,
            timeout_seconds=_TAKE_BACK_SECONDS,
        )
        for name, reply in found.items():
            if isinstance(reply, LaminarError):
                self._unsettled.setdefault(name, []).extend(steps)

    def settle(self, task: SessionTask) -> None:
        """Have a task know of all steps that have failed, before the next one.

        Raises:
            LaminarError: it cannot be told.
        """
        steps = self._unsettled.get(task.name)
        if steps:
            request = self._cleanup(steps, failed=True)
            task.peer.call("CleanupGraph", request, timeout_seconds=_CLEANUP_SECONDS)
            self._unsettled.pop(task.name, None)

    def _cleanup(self, steps: Sequence[int], *, failed: bool = False) -> Any:
        return messages().CleanupGraphRequest(
            step_id=steps, failed=failed, session_handle=self.handle
        )

    def _tell_ended(self, task: str, steps: Sequence[int]) -> None:
        """Tell a task that steps went well."""
        request = self._cleanup(steps)
        self.tasks[task].peer.call("CleanupGraph", request, timeout_seconds=_CLEANUP_SECONDS)

    def plan(self, step: StepGraph, *, compiled: bool = False, optimize: bool = False) -> Any:
        """How to run a step; see `Machine.plan`."""
        for op in step.graph.operations if step.is_own else ():
            if op.definition in (arg, retval):  # the master has the call frame
                op.device = self.devices.client.name
        return super().plan(step, compiled=compiled, optimize=optimize)

    def parts_plan(self, step: StepGraph, cut: Mapping[str, Part], devices: StepDevices) -> Any:
        """How to run a step that was cut, what each device does by its name."""
        return ClusterPlan(self, step, cut, compiled=devices.compiled)


@dataclass
class _Share:
    """What one task does.

    Attributes:
        task: which.
        parts: of its devices.
        feeds: by the number of a feed of the step, its number among the values of a request.
        fetches: the numbers of the fetches that it gives, in the order in which it does.
        graph_handle: "" before it is registered.
    """

    task: SessionTask
    parts: list[Part]
    feeds: dict[int, int] = field(default_factory=dict)
    fetches: list[int] = field(default_factory=list)
    graph_handle: str = ""


class ClusterPlan:
    """How to run a step on the devices of several tasks. Runs as a `Plan` does.

    `_registered` says whether the tasks have their parts; guarded by `_lock`.
    """

    records = False

    def __init__(
        self, machine: ClusterMachine, step: StepGraph, cut: Mapping[str, Part], *, compiled: bool
    ) -> None:
        self.machine = machine
        self._compiled = compiled
        by_task: dict[str, list[Part]] = {}
        for device, part in cut.items():
            by_task.setdefault(task_of(device), []).append(part)
        self.shares = [_Share(machine.tasks[name], parts) for name, parts in by_task.items()]
        # What runs in this process comes last: this thread runs it, after the others have begun.
        self.shares.sort(key=lambda share: share.task.is_here)
        for share in self.shares:
            share.fetches = [i for part in share.parts for i, _ in part.fetches]
        self._passed = passed_on(step)
        self._num_fetches = len(step.fetches)
        self._lock = threading.Lock()
        self._registered = False

    @property
    def operations(self) -> list[Operation]:
        """What a run executes."""
        return [op for share in self.shares for part in share.parts for op in part.graph.operations]

    @property
    def gains_by_compiling(self) -> bool:
        """Whether native code can make it faster, on some of its devices."""
        named = self.machine.devices.named
        parts = [part for share in self.shares for part in share.parts]
        return any(gains(part.step.operations, named(part.location)) for part in parts)

    # Registering

    def register(self) -> None:
        """Have the tasks take their parts, once; who comes meanwhile waits.

        Raises:
            LaminarError: one of them did not; a later call tries again.
        """
        if self._registered:
            return
        with self._lock:
            if self._registered:
                return
            requests = {share.task.name: self._request(share) for share in self.shares}
            peers = {share.task.name: share.task.peer for share in self.shares}
            found = call_all(
                peers, "RegisterGraph", requests.__getitem__, timeout_seconds=_ANSWER_SECONDS
            )
            error = first_error(found)
            for share in self.shares:
                reply = found[share.task.name]
                if isinstance(reply, LaminarError):
                    with_origin(reply, Origin(share.task.name))
                else:
                    share.graph_handle = reply.message.graph_handle
            if error is not None:
                self._deregister()
                raise error
            self._registered = True

    def _request(self, share: _Share) -> Any:
        request = messages().RegisterGraphRequest(
            session_handle=self.machine.handle,
            compiled=self._compiled,
            incarnation=share.task.incarnation,
        )
        share.feeds = {}
        for part in share.parts:
            write_part(request.part.add(), part, share.feeds)
        return request

    def _deregister(self) -> None:
        """Have the tasks forget what some of them took."""
        handles = {s.task.name: s.graph_handle for s in self.shares if s.graph_handle}
        peers = {s.task.name: s.task.peer for s in self.shares if s.graph_handle}
        call_all(
            peers,
            "DeregisterGraph",
            lambda name: messages().DeregisterGraphRequest(
                session_handle=self.machine.handle, graph_handle=handles[name]
            ),
            timeout_seconds=_CLEANUP_SECONDS,
        )
        for share in self.shares:
            share.graph_handle = ""

    # Running

    def run(
        self,
        feeds: Sequence[Any],
        context: StepContext,
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[Any]:
        """Execute the step on arrays, in the order of the feeds; gives host arrays.

        Raises:
            LaminarError: a task failed, or cannot be reached: the first one that did. What the step
                has stored in variables, wherever it was, is taken back.
        """
        self.register()
        for share in self.shares:
            try:
                self.machine.settle(share.task)
            except LaminarError as error:
                raise with_origin(error, Origin(share.task.name)) from None
        results: list[Any] = [None] * self._num_fetches
        for i, j in self._passed.items():
            results[i] = feeds[j]
        step = context.step()
        told = options if options and (options.tells or options.inter_op_pool) else None
        running = _Running(self, secrets.randbits(56) | 1 << 56, step, told)
        failed = True
        try:
            replies = running.wait(feeds)
            failed = False
        finally:
            step.cancellation.close()
            running.clean_up(failed=failed)
        for share, reply in replies:
            for i, value in zip(share.fetches, reply.values, strict=True):
                results[i] = value
            if metadata is not None:
                ahead = self._ahead(share.task) if told and told.trace else 0.0
                read_metadata(reply.message.metadata, metadata, ahead_us=ahead)
        return results

    def _ahead(self, task: SessionTask) -> float:
        """How far the clock of a task is ahead of this one's, in microseconds.

        It is taken to show what it says in the middle of the call, of the shortest of some.
        """
        if task.is_here:
            return 0.0
        found: list[tuple[float, float]] = []
        for _ in range(_CLOCK_CALLS):
            start = time.time_ns()
            reply = task.peer.call(
                "Heartbeat", messages().HeartbeatRequest(), timeout_seconds=_ANSWER_SECONDS
            )
            end = time.time_ns()
            found.append((end - start, reply.message.time_us - (start + end) * 5e-4))
        return min(found)[1]

    def message(self, share: _Share, step_id: int, options: RunOptions | None) -> Any:
        """The request for a task's share of a step."""
        found = messages().RunGraphRequest(
            session_handle=self.machine.handle,
            graph_handle=share.graph_handle,
            step_id=step_id,
            incarnation=share.task.incarnation,
            ended=self.machine.ended.take(share.task.name),
        )
        if options is not None:
            write_options(found.options, options)
        return found


class _Running:
    """One step on its tasks.

    `_calls` give up what has begun; a step that is cancelled gives up all of them.
    """

    def __init__(
        self, plan: ClusterPlan, step_id: int, step: StepContext, options: RunOptions | None
    ) -> None:
        self._plan = plan
        self._step_id = step_id
        self._step = step
        self._options = options
        self._barrier = Barrier(len(plan.shares), step.cancellation)
        self._replies: list[tuple[_Share, Reply]] = []
        self._calls: list[Any] = []

    def wait(self, feeds: Sequence[Any]) -> list[tuple[_Share, Reply]]:
        """Run it; what the tasks reply, or the first error."""
        cancellation = self._step.cancellation
        if cancellation.register(lambda _: self._give_up()) is None:
            assert cancellation.error is not None
            raise cancellation.error
        for share in self._plan.shares:
            self._begin(share, [feeds[i] for i in share.feeds])
            if cancellation.error is not None:
                self._give_up()
        self._barrier.wait()
        return self._replies

    def _give_up(self) -> None:
        for cancel in list(self._calls):
            cancel()

    def _begin(self, share: _Share, values: Sequence[Any]) -> None:
        def done(reply: Reply | None, error: LaminarError | None) -> None:
            if reply is not None and len(reply.values) != len(share.fetches):
                error = InternalError(
                    f"{share.task.name} gave {len(reply.values)} values for {len(share.fetches)}"
                )
            if error is not None:
                with_origin(error, Origin(share.task.name, step_id=self._step_id))
                self._barrier.report(error)
            else:
                assert reply is not None
                self._replies.append((share, reply))
                self._barrier.report(None)

        message = self._plan.message(share, self._step_id, self._options)
        peer = share.task.peer
        if not isinstance(peer, LocalPeer):
            self._calls.append(
                peer.begin(
                    "RunGraph", message, values, timeout_seconds=NO_DEADLINE_SECONDS, done=done
                )
            )
            return
        call = LocalCall(self._step.frame)
        self._calls.append(call.end)
        try:
            reply = peer.run("RunGraph", message, values, call)
        except LaminarError as error:
            done(None, error)
        except BaseException as error:
            self._barrier.report(error)
        else:
            done(reply, None)

    def clean_up(self, *, failed: bool) -> None:
        """Have the tasks told that the step is over; where it failed, wait until they know it."""
        machine = self._plan.machine
        if not failed:
            for share in self._plan.shares:
                machine.ended.add(share.task.name, self._step_id)
            return
        machine.take_back([share.task for share in self._plan.shares], [self._step_id])
