"""Masters and workers as others see them: by calls in one process, by RPC in another.

A service is a table of methods, each a function of a message, the values of its tensors, and the
call. Whoever calls one does not see whether it is in the same process; there, values are handed
over as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from laminar.engine.errors import AbortedError, CancelledError, InternalError, LaminarError
from laminar.engine.runtime.call_frame import CallFrame
from laminar.engine.runtime.workers import WORKERS

from ..wire import Channels
from .messages import pack, unpack

# A call that nobody limits: a step may wait for another one as long as it likes.
NO_DEADLINE_SECONDS = 7 * 86400.0


class Reply(NamedTuple):
    """A message, and the values of its tensors."""

    message: Any
    values: Sequence[Any] = ()


class Call(Protocol):
    """A call as the one who answers sees it."""

    @property
    def identity(self) -> str:
        """Who calls."""

    def on_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` run when the call has ended, in whatever way."""


# By the name of a method, what answers.
Service: TypeAlias = Mapping[str, Callable[[Any, Sequence[Any], Call], Reply]]
Done: TypeAlias = Callable[[Reply | None, LaminarError | None], None]
Cancel: TypeAlias = Callable[[], None]


class LocalCall:
    """A call within a process.

    Args:
        frame: the slots of the step that it is for, where that is fed bit by bit.
    """

    identity = "local"

    def __init__(self, frame: CallFrame | None = None) -> None:
        self.frame = frame
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] | None = []

    def on_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` run when the call has ended, or now if it has."""
        with self._lock:
            if self._callbacks is not None:
                self._callbacks.append(callback)
                return
        callback()

    def end(self) -> None:
        """The call has ended, or is given up."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks or [], None
        for callback in callbacks:
            callback()


class Peer(Protocol):
    """A service, wherever it is."""

    def call(
        self, method: str, message: Any, values: Sequence[Any] = (), *, timeout_seconds: float
    ) -> Reply:
        """Call a method and wait for its reply; LaminarError when it fails."""

    def begin(
        self,
        method: str,
        message: Any,
        values: Sequence[Any] = (),
        *,
        timeout_seconds: float,
        done: Done,
    ) -> Cancel:
        """Call a method; `done` is called once, with its reply or error. Gives what cancels it."""


class LocalPeer:
    """A service of this process."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def call(
        self, method: str, message: Any, values: Sequence[Any] = (), *, timeout_seconds: float
    ) -> Reply:
        """Call a method in this thread."""
        return self.run(method, message, values, LocalCall())

    def run(self, method: str, message: Any, values: Sequence[Any], call: LocalCall) -> Reply:
        """Call a method in this thread; who has `call` can give it up."""
        try:
            return self._service[method](message, values, call)
        finally:
            call.end()

    def begin(
        self,
        method: str,
        message: Any,
        values: Sequence[Any] = (),
        *,
        timeout_seconds: float,
        done: Done,
    ) -> Cancel:
        """Call a method in another thread."""
        call = LocalCall()

        def run() -> None:
            try:
                reply = self.run(method, message, values, call)
            except LaminarError as error:
                done(None, error)
            except Exception as error:  # it is told to the one who waits
                done(None, InternalError(f"{method}: {error!r}"))
            else:
                done(reply, None)

        WORKERS.start(run)
        return call.end


class RemotePeer:
    """A service of another process, or of this one by RPC.

    Args:
        channels: of this process.
        address: of the server.
        service: the name, "laminar.WorkerService".
    """

    def __init__(self, channels: Channels, address: str, service: str) -> None:
        self._channels = channels
        self._address = address
        self._service = service

    def call(
        self, method: str, message: Any, values: Sequence[Any] = (), *, timeout_seconds: float
    ) -> Reply:
        """Call a method and wait for its reply."""
        data = pack(message, values)
        try:
            data = self._channels.unary(
                self._address, f"{self._service}/{method}", data, timeout_seconds
            )
        except CancelledError as error:
            raise _given_up(error) from error
        return Reply(*unpack(_response(method), data))

    def begin(
        self,
        method: str,
        message: Any,
        values: Sequence[Any] = (),
        *,
        timeout_seconds: float,
        done: Done,
    ) -> Cancel:
        """Call a method; its reply comes in a thread of the channels."""

        cancelled = threading.Event()

        def arrived(data: bytes | None, error: LaminarError | None) -> None:
            if data is None:
                if isinstance(error, CancelledError) and not cancelled.is_set():
                    error = _given_up(error)
                done(None, error)
                return
            try:
                reply = Reply(*unpack(_response(method), data))
            except LaminarError as damage:
                done(None, damage)
            else:
                done(reply, None)

        pending = self._channels.begin(
            self._address,
            f"{self._service}/{method}",
            pack(message, values),
            timeout_seconds,
            arrived,
        )

        def cancel() -> None:
            cancelled.set()
            pending.cancel()

        return cancel


def _given_up(error: CancelledError) -> LaminarError:
    """A call that the other side has given up, though nobody has cancelled it: it stops."""
    if error.origin is not None or error.operation is not None:
        return error  # what it called was cancelled
    return AbortedError(error.message, remedy="call again: the server was stopped meanwhile")


# Methods whose response is no more than that they have ended.
_EMPTY = frozenset(
    {
        "CloseSession",
        "Reset",
        "KeepSession",
        "CreateWorkerSession",
        "DeleteWorkerSession",
        "DeregisterGraph",
        "CleanupGraph",
        "CleanupAll",
    }
)


def _response(method: str) -> str:
    return "Empty" if method in _EMPTY else f"{method}Response"


def handlers(name: str, service: Service) -> dict[str, Callable[[bytes, Any], bytes]]:
    """What a server answers for a service, by the whole names of its methods."""

    def handler(key: str) -> Callable[[bytes, Any], bytes]:
        run, kind = service[key], f"{key}Request"

        def answer(data: bytes, call: Any) -> bytes:
            return pack(*run(*unpack(kind, data), call))

        return answer

    return {f"{name}/{key}": handler(key) for key in service}


def call_all(
    peers: Mapping[str, Peer],
    method: str,
    message: Callable[[str], Any],
    *,
    timeout_seconds: float,
) -> dict[str, Reply | LaminarError]:
    """Call a method of several services at the same time, and wait for all.

    Args:
        peers: by name.
        method: of each.
        message: gives what is sent, from the name.
        timeout_seconds: for each.

    Returns:
        By name, the reply or the error.
    """
    found: dict[str, Reply | LaminarError] = {}
    changed = threading.Condition()

    def told(name: str) -> Done:
        def done(reply: Reply | None, error: LaminarError | None) -> None:
            with changed:
                found[name] = reply or error or InternalError(f"{method}: nothing came")
                changed.notify_all()

        return done

    cancels = [
        peer.begin(method, message(name), timeout_seconds=timeout_seconds, done=told(name))
        for name, peer in peers.items()
    ]
    try:
        with changed:
            changed.wait_for(lambda: len(found) == len(peers))
    except BaseException:  # an interrupt: nobody waits any more
        for cancel in cancels:
            cancel()
        raise
    return found


def first_error(found: Mapping[str, Reply | LaminarError]) -> LaminarError | None:
    """An error among what came back, None where all is well."""
    return next((r for r in found.values() if isinstance(r, LaminarError)), None)
