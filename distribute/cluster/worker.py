"""A worker: runs the share that its task has of steps, for any number of masters.

State of a `Worker`:
    _sessions[handle]: the sessions that masters have made here; guarded by `_lock`;
    _graphs: how many graphs have been registered, for their handles; guarded by `_lock`;
    resources: what outlives steps and sessions: variables, queues, readers, by container;
    steps: the steps under way.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, sections 3.1 and 3.3.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from laminar.engine.cancellation import CancellationManager
from laminar.engine.devices import DeviceSet
from laminar.engine.errors import (
    AbortedError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
    Origin,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from laminar.engine.runtime import (
    DeviceStats,
    Machine,
    PartitionedPlan,
    RunMetadata,
    StepContext,
    run_watched,
)
from laminar.engine.runtime.pool import inter_op_threads
from laminar.engine.runtime.rendezvous import Arrival, Receiver, RendezvousKey
from laminar.engine.runtime.resources import ResourceManager

from ..wire import Channels, TensorClient, TensorService, with_origin
from .call_log import CallLog
from .messages import (
    WIRE_VERSION,
    messages,
    read_config,
    read_options,
    write_device,
    write_metadata,
)
from .peers import NO_DEADLINE_SECONDS, Call, LocalCall, Reply, Service
from .registered_graphs import RegisteredGraph, read_parts
from .remote_rendezvous import RemoteRendezvous
from .roots import Roots
from .silent_sessions import SilentSessions, lease_ran_out
from .steps import Steps, WorkerStep
from .tasks import known_task_of
from .trace_log import TraceLog

_log = logging.getLogger("laminar.distribute")

_MOST_SESSIONS = 10_000
_MOST_GRAPHS = 10_000  # of a session


class _Session:
    """What a worker has of a master's session.

    Attributes:
        identity: who made it, and may use it alone.
        machine: the devices of the task, as the session's config has them used.
        context: of its steps.
        tasks: the tasks of the session by name: (address, incarnation).
        graphs: what was registered, by handle.
        heard: when its master was last heard of, in seconds of the monotonic clock.
        lease_seconds: how long it lives without that.
    """

    def __init__(self, worker: Worker, message: Any, identity: str) -> None:
        config = read_config(message.config)
        self.identity = identity
        self.machine = Machine(config, devices=worker.devices)
        self.context = StepContext(worker.resources.get, CancellationManager())
        self.context.files = worker.roots.check
        self.pools = [(inter_op_threads(n),) for n in config.inter_op_threads]
        if self.pools:
            self.context.inter_op = self.pools[0]
        self.tasks = {t.name: (t.address, t.incarnation) for t in message.task}
        self.graphs: dict[str, RegisteredGraph] = {}
        self.lease_seconds = message.lease_seconds
        self.heard = time.monotonic()

    def close(self, error: LaminarError) -> None:
        """Cancel what runs, free what is kept."""
        self.context.cancellation.cancel(error)
        self.graphs.clear()
        for (threads,) in self.pools:
            if threads is not None:
                threads.shutdown(wait=False)


class Worker:
    """The worker of a task.

    Args:
        task: its name.
        devices: of the task.
        channels: by which it reaches others.
        roots: the files that graphs may touch.
    """

    def __init__(self, task: str, devices: DeviceSet, channels: Channels, roots: Roots) -> None:
        self.task = task
        self.devices = devices
        self.roots = roots
        self.incarnation = secrets.randbits(63) + 1
        self.resources = ResourceManager()
        self._client = TensorClient(channels)
        self.tensors = TensorService(self._give, incarnation=self.incarnation, task=task)
        self.steps = Steps(
            functools.partial(RemoteRendezvous, devices, task), self.tensors.end_step
        )
        self.calls = CallLog()
        self.traces = TraceLog()
        self._silent = SilentSessions("master")
        self._lock = threading.Lock()
        self._sessions: dict[str, _Session] = {}
        self._graphs = 0

    @property
    def service(self) -> Service:
        """Its methods by name."""
        return {
            name: self.calls.recorded(name, method)
            for name, method in {
                "GetStatus": self._get_status,
                "CreateWorkerSession": self._create_session,
                "DeleteWorkerSession": self._delete_session,
                "RegisterGraph": self._register_graph,
                "DeregisterGraph": self._deregister_graph,
                "RunGraph": self._run_graph,
                "CleanupGraph": self._cleanup_graph,
                "CleanupAll": self._cleanup_all,
                "Heartbeat": self._heartbeat,
                "Logging": self.calls.logging,
                "Tracing": self.traces.tracing,
            }.items()
        }

    # Sessions

    def _get_status(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        found = messages().GetStatusResponse(
            incarnation=self.incarnation, wire_version=WIRE_VERSION, task=self.task
        )
        for device in self.devices:
            write_device(found.device.add(), device)
        return Reply(found)

    def _create_session(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        check_version(message.wire_version, self.task)
        self._check_incarnation(message.incarnation)
        if not message.session_handle:
            raise InvalidArgumentError("a session has a handle")
        session = _Session(self, message, call.identity)
        with self._lock:
            if len(self._sessions) >= _MOST_SESSIONS:
                raise ResourceExhaustedError(f"{self.task} has {_MOST_SESSIONS} sessions at a time")
            if message.session_handle in self._sessions:
                raise AbortedError("the worker has the session already")
            self._sessions[message.session_handle] = session
        return _nothing()

    def _delete_session(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        self._session(message.session_handle, call.identity)
        self._drop(message.session_handle, CancelledError("the session was closed"))
        return _nothing()

    def _drop(self, handle: str, error: LaminarError) -> None:
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is not None:
            session.close(error)
            self.steps.end_session(handle, error)

    def _session(self, handle: str, identity: str) -> _Session:
        session = self._sessions.get(handle)
        if session is None:
            raise self._silent.error(handle) or AbortedError(
                f"{self.task} does not know the session: it was restarted, or the session closed",
                remedy="make another session, and restore its variables",
            )
        if session.identity != identity:
            raise PermissionDeniedError("the session belongs to another client")
        session.heard = time.monotonic()
        return session

    def _check_incarnation(self, incarnation: int) -> None:
        if incarnation and incarnation != self.incarnation:
            raise AbortedError(
                f"{self.task} was restarted since the session began",
                remedy="make another session, and restore its variables",
            )

    def _heartbeat(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        found = messages().HeartbeatResponse(
            incarnation=self.incarnation, time_us=time.time_ns() * 1e-3
        )
        for handle in message.session_handle:
            session = self._sessions.get(handle)
            if session is None or session.identity != call.identity:
                found.unknown.append(handle)
            else:
                session.heard = time.monotonic()
        return Reply(found)

    def sweep(self) -> None:
        """End the sessions whose masters have not been heard of for their lease."""
        now = time.monotonic()
        with self._lock:
            old = {h: s for h, s in self._sessions.items() if now - s.heard > s.lease_seconds}
        for handle, session in old.items():
            _log.warning("%s: a session's master is silent, the session ends", self.task)
            self._silent.add(handle, session.lease_seconds)
            self._drop(handle, lease_ran_out("master", session.lease_seconds))
        self.steps.drop_unbegun(60.0)

    def close(self, error: LaminarError) -> None:
        """End all sessions."""
        for handle in list(self._sessions):
            self._drop(handle, error)
        self.tensors.close()
        self._client.close()

    # Graphs

    def _register_graph(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        self._check_incarnation(message.incarnation)
        session = self._session(message.session_handle, call.identity)
        if len(session.graphs) >= _MOST_GRAPHS:
            raise ResourceExhaustedError(f"a session has {_MOST_GRAPHS} graphs at a time")
        graph = read_parts(message.part, self.devices, self.task, compiled=message.compiled)
        with self._lock:
            self._graphs += 1
            handle = f"{self._graphs:016x}"
            session.graphs[handle] = graph
        return Reply(messages().RegisterGraphResponse(graph_handle=handle))

    def _deregister_graph(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        session = self._session(message.session_handle, call.identity)
        if session.graphs.pop(message.graph_handle, None) is None:
            raise self._unknown_graph(message.graph_handle)
        return _nothing()

    def _unknown_graph(self, handle: str) -> AbortedError:
        return AbortedError(
            f"{self.task} has no graph {handle!r}: it was deregistered, or the worker restarted"
        )

    @property
    def graphs(self) -> Mapping[str, Sequence[str]]:
        """The handles of the graphs of each session."""
        return {handle: list(s.graphs) for handle, s in self._sessions.items()}

    # Steps

    def _run_graph(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        self._check_incarnation(message.incarnation)
        session = self._session(message.session_handle, call.identity)
        graph = session.graphs.get(message.graph_handle)
        if graph is None:
            raise self._unknown_graph(message.graph_handle)
        graph.check(values)
        for ended in message.ended:
            self.steps.end(ended)
        step_id = message.step_id
        context = session.context.step()
        try:
            step = self.steps.begin(step_id, message.session_handle, context.cancellation)
            meeting = context.rendezvous = step.rendezvous
            context.undo = step.undo
            context.frame = call.frame if isinstance(call, LocalCall) else None
            meeting.pull = functools.partial(self._pull, session, step_id, step)
            is_traced = message.options.trace or self.traces.is_on
            step.transfers = [] if is_traced else None
            meeting.give_up = functools.partial(self._client.cancel_step, step_id)
            going = [True]
            gone = CancelledError(f"step {step_id:x} was cancelled by its master")
            call.on_end(lambda: going and context.cancellation.cancel(gone))
            metadata = RunMetadata()
            try:
                meeting.ask(graph.receives)
                found = self._run(
                    session, graph.plan, values, context, message, metadata, is_traced=is_traced
                )
                if context.cancelled is not None:  # it came too late: nobody waits for it any more
                    raise context.cancelled
            except BaseException as error:
                told = error if isinstance(error, LaminarError) else CancelledError(repr(error))
                with_origin(told, Origin(self.task, step_id=step_id))
                meeting.abort(told)
                step.undo.undo()
                raise
            finally:
                going.clear()
        finally:
            context.cancellation.close()
        reply = messages().RunGraphResponse()
        if step.transfers:
            metadata.step_stats.append(DeviceStats(f"{self.task}/transfers", step.transfers))
        if is_traced:
            self.traces.take(step_id, metadata)
        if message.HasField("options"):
            write_metadata(reply.metadata, metadata)
        return Reply(reply, found)

    def _run(
        self,
        session: _Session,
        plan: PartitionedPlan,
        values: Sequence[Any],
        context: StepContext,
        message: Any,
        metadata: RunMetadata,
        *,
        is_traced: bool,
    ) -> list[Any]:
        if not (message.HasField("options") or is_traced):
            return plan.run(values, context)
        options = dataclasses.replace(read_options(message.options), trace=is_traced)
        if options.inter_op_pool:
            context.inter_op = session.pools[options.inter_op_pool]
        timeout = options.timeout_in_ms
        return run_watched(plan, values, context, session.machine, options, metadata, timeout)

    def _pull(
        self,
        session: _Session,
        step_id: int,
        step: WorkerStep,
        task: str,
        tensors: Sequence[tuple[RendezvousKey, Receiver]],
    ) -> None:
        """Ask another task for what it sends."""
        found = session.tasks.get(task)
        if found is None:
            for key, done in tensors:
                done(Arrival(error=NotFoundError(f"the session has no task {task}: {key}")))
            return
        address, incarnation = found
        asked = [
            (str(key), done if step.transfers is None else step.traced(key, done))
            for key, done in tensors
        ]
        self._client.receive_all(address, step_id, asked, incarnation, NO_DEADLINE_SECONDS)

    def _give(self, step_id: int, text: str, done: Receiver) -> None:
        """Answer another task that asks for what is sent here."""
        try:
            key = RendezvousKey.parse(text)
            if known_task_of(key.send_device) != self.task:
                raise InvalidArgumentError(f"{text} is not sent by {self.task}")
            step = self.steps.get(step_id)
        except LaminarError as error:
            done(Arrival(error=error))
        else:
            step.rendezvous.give(key, done)

    def _cleanup_graph(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        self._session(message.session_handle, call.identity)
        for step_id in message.step_id:
            error = None
            if message.failed:
                error = CancelledError(f"step {step_id:x} failed in another task")
            self.steps.end(step_id, error)
        return _nothing()

    def _cleanup_all(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        self.resources.reset(None if message.all else list(message.container))
        return _nothing()


def _nothing() -> Reply:
    return Reply(messages().Empty())


def check_version(version: int, task: str) -> None:
    """FailedPreconditionError where the other side speaks another version of the messages."""
    if version != WIRE_VERSION:
        raise FailedPreconditionError(
            f"{task} speaks version {WIRE_VERSION} of the cluster's messages, asked in {version}",
            remedy="run one release of laminar everywhere",
        )
