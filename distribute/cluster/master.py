"""A master: keeps the sessions of clients, and has the workers of a cluster run their steps.

State of a `Master`:
    _sessions: by handle, the sessions of clients, each bound to who made it;
    _requests: the numbers of the steps that clients have asked for last, so that none runs twice.
Both are guarded by `_lock`.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from laminar.engine.cancellation import CancellationManager, cancelled_with
from laminar.engine.devices import DeviceSet, RemoteDevice
from laminar.engine.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    InvalidArgumentError,
    LaminarError,
    Origin,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
)
from laminar.engine.runtime import RunMetadata, SessionConfig

from ..wire import Channels, with_origin
from .call_log import CallLog
from .cluster_plan import ClusterMachine, SessionTask
from .discovery import Discovery
from .master_session import MasterSession
from .messages import (
    WIRE_VERSION,
    messages,
    read_config,
    read_device,
    read_options,
    write_config,
    write_device,
    write_metadata,
)
from .peers import Call, LocalPeer, Peer, RemotePeer, Reply, Service, call_all, first_error
from .registered_graphs import check_value
from .silent_sessions import SilentSessions, lease_ran_out
from .tasks import filtered
from .worker import Worker, check_version

_log = logging.getLogger("laminar.distribute")

_WAIT_SECONDS = 600.0  # for the tasks of a cluster to be started, where no config says
_ANSWER_SECONDS = 60.0
_REMEMBERED = 10_000  # requests
_MOST_SESSIONS = 1000


class Master:
    """The master of a task.

    Args:
        worker: of the same task.
        addresses: of all tasks by name; that of its own may come to be known later.
        channels: by which it reaches them.
        config: of sessions that bring none.
        lease_seconds: how long a session lives of whose client nothing is heard, and a worker's of
            whose master nothing is heard.
    """

    def __init__(
        self,
        worker: Worker,
        addresses: Mapping[str, str],
        channels: Channels,
        config: SessionConfig,
        lease_seconds: float,
    ) -> None:
        self._worker = worker
        self._addresses = addresses
        # What it says of devices was about this task's.
        self._config = dataclasses.replace(config, device_count=None, memory_limit_bytes=None)
        self._lease = lease_seconds
        self._peers: dict[str, Peer] = {
            name: RemotePeer(channels, address, "laminar.WorkerService")
            for name, address in addresses.items()
        }
        self._peers[worker.task] = LocalPeer(worker.service)
        self._lock = threading.Lock()
        self._sessions: dict[str, MasterSession] = {}
        self._requests: OrderedDict[int, None] = OrderedDict()
        self._silent = SilentSessions("client")
        self.calls = CallLog()

    @property
    def service(self) -> Service:
        """Its methods by name."""
        return {
            name: self.calls.recorded(name, method)
            for name, method in {
                "CreateSession": self._create_session,
                "ExtendSession": self._extend_session,
                "PartialRunSetup": self._partial_run_setup,
                "RunStep": self._run_step,
                "CloseSession": self._close_session,
                "ListDevices": self._list_devices,
                "Reset": self._reset,
                "KeepSession": self._keep_session,
            }.items()
        }

    # Sessions

    def _create_session(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        check_version(message.wire_version, self._worker.task)
        has_config = message.HasField("config")
        config = read_config(message.config) if has_config else self._config
        handle, session = self.open_session(config, call)
        if message.graph.node:
            try:
                session.extend_with(message.graph, 0, replaces=False)
            except LaminarError:
                self.drop(handle)
                raise
        return Reply(
            messages().CreateSessionResponse(
                session_handle=handle,
                graph_version=session.version,
                lease_seconds=self._lease,
                operation_timeout_in_ms=config.operation_timeout_in_ms,
            )
        )

    def open_session(self, config: SessionConfig, call: Call) -> tuple[str, MasterSession]:
        """A session on the tasks that its config says, and its handle."""
        if len(self._sessions) >= _MOST_SESSIONS:
            raise ResourceExhaustedError(f"the master has {_MOST_SESSIONS} sessions at a time")
        tasks = self._discover(config, call)
        handle = _new_handle()
        devices = DeviceSet([d for task in tasks.values() for d in task[1]])
        machine = ClusterMachine(
            config, devices, {name: task for name, (task, _) in tasks.items()}, handle
        )
        self._make_worker_sessions(machine)
        session = MasterSession(machine, call.identity)
        with self._lock:
            self._sessions[handle] = session
        return handle, session

    def _discover(
        self, config: SessionConfig, call: Call
    ) -> dict[str, tuple[SessionTask, list[RemoteDevice]]]:
        """The tasks of a session and their devices, the master's own first."""
        own = self._worker.task
        names = filtered(list(self._addresses), config.device_filters, own)
        discovery = Discovery({name: self._peers[name] for name in names})
        call.on_end(discovery.cancel)
        seconds = config.operation_timeout_in_ms / 1000 or _WAIT_SECONDS
        found = discovery.wait(seconds)
        tasks = {}
        for name in names:
            attributes = [read_device(d) for d in found[name].device]
            task = SessionTask(name, self._peers[name], found[name].incarnation)
            tasks[name] = (
                task,
                [
                    RemoteDevice(a, is_client=name == own and a.name.endswith("cpu:0"))
                    for a in attributes
                ],
            )
        return tasks

    def _make_worker_sessions(self, machine: ClusterMachine) -> None:
        """Have each task of a session make its part of it."""
        config = messages().Config()
        write_config(config, machine.config)

        def request(name: str) -> Any:
            found = messages().CreateWorkerSessionRequest(
                session_handle=machine.handle,
                lease_seconds=self._lease,
                wire_version=WIRE_VERSION,
                incarnation=machine.tasks[name].incarnation,
                config=config,
            )
            for other, task in machine.tasks.items():
                found.task.add(
                    name=other, address=self._addresses[other], incarnation=task.incarnation
                )
            return found

        peers = {name: task.peer for name, task in machine.tasks.items()}
        found = call_all(peers, "CreateWorkerSession", request, timeout_seconds=_ANSWER_SECONDS)
        error = first_error(found)
        if error is not None:
            name = next(n for n, reply in found.items() if reply is error)
            raise with_origin(error, Origin(name))

    def _session(self, handle: str, call: Call) -> MasterSession:
        session = self._sessions.get(handle)
        if session is None:
            raise self._silent.error(handle) or AbortedError(
                f"{self._worker.task} does not know the session: the master was restarted, "
                f"or the session closed",
                remedy="make another session",
            )
        if session.identity != call.identity:
            raise PermissionDeniedError("the session belongs to another client")
        session.heard = time.monotonic()
        return session

    def drop(self, handle: str) -> None:
        """Close a session, and forget it."""
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is not None:
            session.close()

    def _extend_session(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        session = self._session(message.session_handle, call)
        version = session.extend_with(
            message.graph, message.current_graph_version, replaces=message.replaces
        )
        return Reply(messages().ExtendSessionResponse(new_graph_version=version))

    def _keep_session(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        self._session(message.session_handle, call)
        return _nothing()

    def _close_session(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        self._session(message.session_handle, call)
        self.drop(message.session_handle)
        return _nothing()

    # Steps

    def _run_step(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        session = self._session(message.session_handle, call)
        self._check_new(message.request_id)
        if len(values) != len(message.feed):
            raise InvalidArgumentError(f"{len(message.feed)} feeds have {len(values)} values")
        elements = session.elements(message.fetch)
        feeds = session.feeds(message.feed)
        for tensor, value in zip(feeds, values, strict=True):
            check_value(tensor, value)
        reply = messages().RunStepResponse()
        handle = message.partial_run_handle
        if handle and message.drop:
            session.partial_steps.pop(handle, None)
            return Reply(reply)
        tensors = [i for i, name in enumerate(message.fetch) if ":" in name]
        found: Sequence[Any]
        if handle:
            parts = self._partial_step(session, handle).run(elements, feeds, values)
            found = [parts[i] for i in tensors]
        else:
            has_options = message.HasField("options")
            options = read_options(message.options) if has_options else None
            metadata = RunMetadata() if has_options else None
            given_up = CancellationManager()
            gone = CancelledError("the client gave the step up")
            call.on_end(lambda: given_up.cancel(gone))
            with cancelled_with(given_up):
                found = session.compute(elements, feeds, values, options, metadata)
            if metadata is not None:
                write_metadata(reply.metadata, metadata)
        reply.fetch.extend(message.fetch[i] for i in tensors)
        return Reply(reply, list(found))

    def _check_new(self, request_id: int) -> None:
        """AlreadyExistsError for a request that has come before."""
        if not request_id:
            raise InvalidArgumentError("a step is asked for with a request_id, which is not 0")
        with self._lock:
            if request_id in self._requests:
                raise AlreadyExistsError(f"the step {request_id:x} was asked for before")
            self._requests[request_id] = None
            while len(self._requests) > _REMEMBERED:
                self._requests.popitem(last=False)

    def _partial_run_setup(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        session = self._session(message.session_handle, call)
        step = session.partial_values(session.elements(message.fetch), session.feeds(message.feed))
        handle = _new_handle()
        session.partial_steps[handle] = step
        return Reply(messages().PartialRunSetupResponse(partial_run_handle=handle))

    def _partial_step(self, session: MasterSession, handle: str) -> Any:
        step = session.partial_steps.get(handle)
        if step is None:
            raise InvalidArgumentError("there is no such partial run, or it has ended")
        return step

    # The cluster

    def _list_devices(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        if message.session_handle:
            devices = list(self._session(message.session_handle, call).devices)
        else:
            devices = [d for _, found in self._discover(self._config, call).values() for d in found]
        reply = messages().ListDevicesResponse()
        for device in devices:
            write_device(reply.device.add(), device)
        return Reply(reply)

    def _reset(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        names = filtered(list(self._addresses), list(message.device_filter), self._worker.task)
        found = call_all(
            {name: self._peers[name] for name in names},
            "CleanupAll",
            lambda _: messages().CleanupAllRequest(container=message.container, all=message.all),
            timeout_seconds=_ANSWER_SECONDS,
        )
        error = first_error(found)
        if error is not None:
            raise error
        return _nothing()

    # Watching

    def sweep(self) -> None:
        """Close the sessions whose clients are silent; tell workers that the others live."""
        now = time.monotonic()
        with self._lock:
            sessions = dict(self._sessions)
        for handle, session in list(sessions.items()):
            if now - session.heard > self._lease and not session.is_local:
                _log.warning("%s: a session's client is silent, it is closed", self._worker.task)
                self._silent.add(handle, self._lease)
                self.drop(handle)
                del sessions[handle]
        by_task: dict[str, list[str]] = {}
        for handle, session in sessions.items():
            for name in session.tasks:
                by_task.setdefault(name, []).append(handle)
        found = call_all(
            {name: self._peers[name] for name in by_task},
            "Heartbeat",
            lambda name: messages().HeartbeatRequest(session_handle=by_task[name]),
            timeout_seconds=self._lease / 2,
        )
        for name, reply in found.items():
            for handle in by_task[name]:
                self._judge(sessions[handle], handle, name, reply)

    def _judge(
        self, session: MasterSession, handle: str, name: str, reply: Reply | LaminarError
    ) -> None:
        """What an answer, or that there is none, means for a session."""
        task = session.tasks[name]
        if isinstance(reply, LaminarError):
            text = f"{name} does not answer: {reply.message}"
            session.interrupt(with_origin(UnavailableError(text), Origin(name)))
        elif reply.message.incarnation != task.incarnation:
            text = f"{name} was restarted since the session began"
            remedy = "make another session, and restore its variables"
            session.lose(with_origin(AbortedError(text, remedy=remedy), Origin(name)))
        elif handle in reply.message.unknown:
            session.lose(with_origin(lease_ran_out("master", self._lease), Origin(name)))

    def close(self, error: LaminarError) -> None:
        """Close all sessions; what runs ends with `error`."""
        for handle, session in list(self._sessions.items()):
            session.lose(error)
            self.drop(handle)


def _new_handle() -> str:
    """A name that nobody guesses: 128 random bits."""
    return secrets.token_hex(16)


def _nothing() -> Reply:
    return Reply(messages().Empty())
