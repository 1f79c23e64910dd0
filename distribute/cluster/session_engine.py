"""Sessions on clusters: what runs the steps of `Session("grpc://host:port")`.

The graph goes to the master as it grows, as a GraphDef; a step is one request. The master of this
process is called, any other is asked by RPC.

State of a `GrpcSession`:
    _version: of the master's copy of the graph; _edits: how often the graph had been edited when
        all of it was sent last. Both are guarded by `_lock`.
"""

from __future__ import annotations

import secrets
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from laminar.engine import forks
from laminar.engine.cancellation import CancellationManager, scope_manager
from laminar.engine.devices import DeviceList, MemoryStats
from laminar.engine.errors import (
    InternalError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
    UnimplementedError,
)
from laminar.engine.graph import Graph, GraphTensor, Operation
from laminar.engine.graph.exchange import export_graph
from laminar.engine.runtime import RunMetadata, RunOptions, SessionConfig
from laminar.engine.runtime.cost import Cost
from laminar.engine.runtime.direct import fetched
from laminar.engine.runtime.placement import Placement
from laminar.engine.runtime.recorded_steps import add_step
from laminar.engine.runtime.targets import Element
from laminar.engine.timeline import Recording, now

from ..wire import Channels, check_address
from .keeper import KEEPER
from .messages import (
    WIRE_VERSION,
    messages,
    read_devices,
    read_metadata,
    write_config,
    write_options,
)
from .peers import NO_DEADLINE_SECONDS, LocalPeer, Peer, RemotePeer, Reply
from .servers_here import master_here

_ANSWER_SECONDS = 60.0
_CLOSE_SECONDS = 10.0
_CREATE_SECONDS = 630.0  # a master waits so long for its workers, and a little longer
_SLACK_SECONDS = 10.0  # the master ends a step that takes too long; only if it does not, we do

SCHEME = "grpc"


def _cancelled_call(
    peer: Peer,
    manager: CancellationManager,
    method: str,
    request: Any,
    values: Sequence[Any],
    *,
    timeout_seconds: float,
) -> Reply:
    """Call a method; the call is given up when `manager` is cancelled."""
    ended = threading.Event()
    found: list[tuple[Reply | None, LaminarError | None]] = []

    def done(reply: Reply | None, error: LaminarError | None) -> None:
        found.append((reply, error))
        ended.set()

    cancel = peer.begin(method, request, values, timeout_seconds=timeout_seconds, done=done)
    token = manager.register(lambda error: cancel())
    if token is None:
        cancel()
    try:
        ended.wait()
    finally:
        manager.deregister(token)
    reply, error = found[0]
    if error is not None:
        raise manager.error or error
    assert reply is not None
    return reply


def _address(target: str) -> str:
    return target.removeprefix(f"{SCHEME}://")


def _master(target: str, config: SessionConfig) -> tuple[Peer, Channels | None]:
    """The master of a target, and the channels that lead to it if it is not of this process."""
    address = _address(target)
    service = None if config.rpc_for_inprocess_master else master_here(address)
    if service is not None:
        return LocalPeer(service), None
    check_address(address, config.credentials)
    channels = Channels(config.credentials, has_links=True)
    return RemotePeer(channels, address, "laminar.MasterService"), channels


class GrpcSession:
    """Runs steps on a cluster; see `SessionEngine`.

    Args:
        target: "grpc://host:port" of any server of the cluster, which is the session's master.
        graph: what is run.
        config: how the session runs it.

    Raises:
        UnavailableError: nobody answers there, or a task of the cluster does not answer.
        PermissionDeniedError: the server does not take this client.
    """

    def __init__(self, target: str, graph: Graph, config: SessionConfig) -> None:
        self._target = target
        self._graph = graph
        self._master, self._channels = _master(target, config)
        self._lock = forks.lock()
        self._edits = graph.edits
        request = messages().CreateSessionRequest(wire_version=WIRE_VERSION)
        if config != SessionConfig():
            write_config(request.config, config)
        timeout = config.operation_timeout_in_ms / 1000
        seconds = timeout + _SLACK_SECONDS if timeout else _CREATE_SECONDS
        try:
            reply = self._master.call("CreateSession", request, timeout_seconds=seconds).message
        except BaseException:
            self._close_channels()
            raise
        self._handle: str = reply.session_handle
        self._version: int = reply.graph_version
        self._timeout = reply.operation_timeout_in_ms
        if self._channels is not None:
            KEEPER.add(self, reply.lease_seconds)

    # The graph

    def extend(self, operations: Sequence[Operation]) -> None:
        """Send operations that are new."""
        with self._lock:
            self._send(operations, replaces=False)

    def _send(self, operations: Sequence[Operation] | None, *, replaces: bool) -> None:
        edits = self._graph.edits
        request = messages().ExtendSessionRequest(
            session_handle=self._handle,
            graph=export_graph(self._graph, operations).message,
            current_graph_version=self._version,
            replaces=replaces,
        )
        reply = self._call("ExtendSession", request, timeout_seconds=_ANSWER_SECONDS)
        self._version = reply.message.new_graph_version
        self._edits = edits

    def _refresh(self) -> None:
        """Send the whole graph where operations that were sent have been changed."""
        if self._graph.edits != self._edits:
            with self._lock:
                if self._graph.edits != self._edits:
                    self._send(None, replaces=True)

    # Steps

    def run(
        self,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        values: Sequence[Any],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[Any]:
        """One step: the values of `elements`, None for an operation."""
        self._check_captures()
        self._refresh()
        timeline, begin = Recording.active, now()
        if timeline is not None and metadata is None:
            options, metadata = replace(options or RunOptions(), trace=True), RunMetadata()
        request = self._request(elements, feeds)
        timeout = self._timeout
        if options is not None:
            write_options(request.options, options)
            timeout = options.timeout_in_ms or timeout
        seconds = timeout / 1000 + _SLACK_SECONDS if timeout else NO_DEADLINE_SECONDS
        reply = self._call("RunStep", request, values, timeout_seconds=seconds)
        if metadata is not None:
            read_metadata(reply.message.metadata, metadata)
            if timeline is not None:
                add_step(timeline, metadata.step_stats, {}, (begin, now()))
        return self._results(elements, reply)

    def _request(self, elements: Sequence[Element], feeds: Sequence[GraphTensor]) -> Any:
        return messages().RunStepRequest(
            session_handle=self._handle,
            feed=[t.name for t in feeds],
            fetch=[e.name for e in elements],
            request_id=secrets.randbits(63) + 1,
        )

    def _results(self, elements: Sequence[Element], reply: Reply) -> list[Any]:
        wanted = [e for e in elements if isinstance(e, GraphTensor)]
        if list(reply.message.fetch) != [t.name for t in wanted]:
            raise InternalError(
                f"the master gave {list(reply.message.fetch)}, asked for {[t.name for t in wanted]}"
            )
        values = iter(reply.values)
        return [fetched(e, next(values)) if isinstance(e, GraphTensor) else None for e in elements]

    def _check_captures(self) -> None:
        for outer, _ in self._graph.captures.values():
            raise InvalidArgumentError(
                f"the graph uses {outer!r} of this process, which does not travel",
                remedy="make variables in the graph: with graph.as_default(): Variable(...)",
            )

    def partial(self, elements: Sequence[Element], feeds: Sequence[GraphTensor]) -> GrpcPartialStep:
        """Begin a step that is fed and fetched bit by bit."""
        self._check_captures()
        self._refresh()
        request = messages().PartialRunSetupRequest(
            session_handle=self._handle,
            feed=[t.name for t in feeds],
            fetch=[e.name for e in elements],
        )
        reply = self._call("PartialRunSetup", request, timeout_seconds=_ANSWER_SECONDS)
        return GrpcPartialStep(self, reply.message.partial_run_handle)

    def run_partial(
        self,
        handle: str,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        values: Sequence[Any],
    ) -> list[Any]:
        """Go on with a step that is fed bit by bit."""
        request = self._request(elements, feeds)
        request.partial_run_handle = handle
        reply = self._call("RunStep", request, values, timeout_seconds=NO_DEADLINE_SECONDS)
        return self._results(elements, reply)

    def drop_partial(self, handle: str) -> None:
        """Give a step that is fed bit by bit up."""
        request = messages().RunStepRequest(
            session_handle=self._handle,
            partial_run_handle=handle,
            drop=True,
            request_id=secrets.randbits(63) + 1,
        )
        self._master.begin(
            "RunStep", request, timeout_seconds=_CLOSE_SECONDS, done=lambda reply, error: None
        )

    def _call(
        self, method: str, request: Any, values: Sequence[Any] = (), *, timeout_seconds: float
    ) -> Reply:
        manager = scope_manager()
        try:
            if manager is None:
                return self._master.call(method, request, values, timeout_seconds=timeout_seconds)
            return _cancelled_call(
                self._master, manager, method, request, values, timeout_seconds=timeout_seconds
            )
        except LaminarError as error:
            raise self._located(error) from error.__cause__

    def _located(self, error: LaminarError) -> LaminarError:
        """An error with the user's line that made the operation that it is about."""
        name = error.operation or ""
        try:
            op = self._graph.get_operation_by_name(name)
        except (NotFoundError, InvalidArgumentError):
            return error
        error.location, error.layer = op.location, op.layer
        return error

    # The cluster

    @property
    def placement(self) -> Placement | None:
        """None: the master knows."""
        return None

    def memory_stats(self) -> dict[str, MemoryStats]:
        """Nothing: each task knows its own."""
        return {}

    def cost(self, op: Operation, device: str) -> Cost:
        """Only the master knows.

        Raises:
            UnimplementedError: always.
        """
        raise UnimplementedError(
            f"Session.cost: the cost of {op.name!r} on {device} is known to the master alone",
            remedy="ask a session of this process, Session()",
        )

    def list_devices(self) -> DeviceList:
        """The devices of all tasks of the session."""
        request = messages().ListDevicesRequest(session_handle=self._handle)
        return read_devices(
            self._call("ListDevices", request, timeout_seconds=_ANSWER_SECONDS).message
        )

    def keep(self) -> None:
        """Tell the master that the session's client lives."""
        request = messages().KeepSessionRequest(session_handle=self._handle)
        self._master.begin(
            "KeepSession", request, timeout_seconds=_CLOSE_SECONDS, done=lambda reply, error: None
        )

    def close(self) -> None:
        """Cancel what runs, free what is kept for the session; variables stay with the workers."""
        KEEPER.remove(self)
        request = messages().CloseSessionRequest(session_handle=self._handle)
        try:
            self._master.call("CloseSession", request, timeout_seconds=_CLOSE_SECONDS)
        except LaminarError:
            pass  # who has gone has no session any more; one that lives ends it with its lease
        finally:
            self._close_channels()

    def _close_channels(self) -> None:
        if self._channels is not None:
            self._channels.close()


def reset(target: str, containers: Sequence[str] | None) -> None:
    """Empty containers of all tasks of a cluster."""
    master, channels = _master(target, SessionConfig())
    try:
        request = messages().ResetRequest(container=containers or (), all=containers is None)
        master.call("Reset", request, timeout_seconds=_ANSWER_SECONDS)
    finally:
        if channels is not None:
            channels.close()


class GrpcPartialStep:
    """One step; see `PartialStep`."""

    def __init__(self, session: GrpcSession, handle: str) -> None:
        self._session = session
        self._handle = handle
        weakref.finalize(self, session.drop_partial, handle).atexit = False

    def run(
        self, elements: Sequence[Element], feeds: Sequence[GraphTensor], values: Sequence[Any]
    ) -> list[Any]:
        """Give it some feeds, wait for some fetches; None for an operation."""
        return self._session.run_partial(self._handle, elements, feeds, values)
