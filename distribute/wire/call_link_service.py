"""Answers the calls that others make over a socket (`call_link.py`).

Who was greeted over gRPC, and has shown there who it is, gets the number of a link and the way to
the socket (`doors.py`). The threads of a connection all wait for the next call, and the one that
gets it answers it, so that no other thread is between. One at least waits at any time; a second one
spares the moment in which it would be made.

State of a `_Connection`, guarded by `_changed`: `_threads` serve it, `_idle` of them wait;
`_calls[number]` are the calls that run. Of the service, guarded by `_lock`: `_links[id]` is who may
come, and `_running` the number of calls that run.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from laminar.engine.errors import (
    AbortedError,
    CancelledError,
    InternalError,
    LaminarError,
    Origin,
    ResourceExhaustedError,
    UnimplementedError,
)
from laminar.engine.runtime.workers import WORKERS

from . import links, statuses
from .call_link import ANSWER, CALL, CALLS, CANCEL, ERROR, HELLO, parse_call
from .doors import attached
from .envelopes import TICKET_BYTES, open_envelope, seal
from .links import PING, PONG, message, number_of, numbered, parse_messages
from .quiet_grpc import grpc
from .services import Answer, Guard, Service
from .socket_pipe import MOST_BYTES, SocketPipe

_log = logging.getLogger(__name__)

_MOST_IDLE = 2  # threads of a connection that wait
_MOST_LINKS = 1024  # that nobody has come for
_COME_SECONDS = 60.0  # in which who was greeted comes


class _Context:
    """A call, as gRPC would show it."""

    def __init__(self, seconds: float, peer: str) -> None:
        self._peer = peer
        self._end = time.monotonic() + seconds if seconds else math.inf
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] | None = []

    def peer(self) -> str:
        """Who calls."""
        return self._peer

    def time_remaining(self) -> float | None:
        """Seconds until the caller's deadline."""
        return None if self._end == math.inf else self._end - time.monotonic()

    def is_active(self) -> bool:
        """Whether the caller still waits."""
        return self._callbacks is not None

    def add_callback(self, callback: Callable[[], object]) -> bool:
        """Have `callback` run at the end; False where that has been."""
        with self._lock:
            if self._callbacks is None:
                return False
            self._callbacks.append(callback)
            return True

    def end(self) -> None:
        """The call has ended, or was given up."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks or [], None
        for callback in callbacks:
            callback()


class CallLinkService(Service):
    """Lets others call methods over sockets.

    Args:
        methods: what answers, by name.
        most_calls: at a time.
        task: of the server, for errors.
    """

    def __init__(self, methods: Mapping[str, Answer], most_calls: int, task: str) -> None:
        self._methods, self._most_calls, self._task = methods, most_calls, task
        self._lock = threading.Lock()
        self._links: dict[bytes, tuple[str, float]] = {}
        self._running = 0
        self._is_closed = False

    def streams(self, guard: Guard) -> Mapping[str, Any]:
        door = guard.door
        door.add(CALLS, self._serve)

        def hello(request: bytes, context: Any) -> bytes | None:
            with guard.errors_sent(context, HELLO):
                identity = guard.identify(context)
                _, host = open_envelope(request, "a client")
                return seal(self._greet(identity, door.way(host)))
            return None

        return {HELLO: grpc.unary_unary_rpc_method_handler(hello)}

    def close(self) -> None:
        with self._lock:
            self._is_closed = True

    def _greet(self, identity: str, way: bytes) -> bytes:
        """The number of a link and the way to it; nothing where there is no way."""
        if not way:
            return b""
        now = time.monotonic()
        with self._lock:
            if self._is_closed:
                raise CancelledError("the task is being stopped")
            for old in [link for link, (_, end) in self._links.items() if end < now]:
                del self._links[old]
            if len(self._links) >= _MOST_LINKS:
                raise ResourceExhaustedError(f"{_MOST_LINKS} processes were greeted, and none came")
            link = secrets.token_bytes(TICKET_BYTES)
            self._links[link] = identity, now + _COME_SECONDS
            return link + way

    def _serve(self, pipe: SocketPipe, link: bytes) -> None:
        with self._lock:
            identity, _ = self._links.pop(link, (None, 0.0))  # it is good for one connection
        if identity is None or pipe.identity not in (None, identity):
            raise AbortedError("the link is not known: the task was restarted, or has forgotten it")
        attached(pipe)
        _Connection(self, pipe, identity).serve_all()

    def answer(self, method: str, request: bytes, context: _Context, identity: str) -> bytes:
        """The envelope of an answer.

        Raises:
            LaminarError: what the method raised.
        """
        with self._lock:
            if self._running >= self._most_calls:
                raise self._told(ResourceExhaustedError(f"{self._most_calls} calls run at a time"))
            self._running += 1
        try:
            run = self._methods.get(method)
            if run is None:
                raise UnimplementedError(f"there is no method {method!r}")
            return run(request, context, identity)
        except LaminarError as error:
            raise self._told(error) from None
        except Exception as cause:
            _log.exception("%s failed", method)
            told = InternalError(f"{method}: {type(cause).__name__}: {cause}")
            raise self._told(told) from cause
        finally:
            with self._lock:
                self._running -= 1

    def _told(self, error: LaminarError) -> LaminarError:
        return statuses.with_origin(error, Origin(self._task)) if self._task else error


class _Connection:
    """One process that calls."""

    def __init__(self, service: CallLinkService, pipe: SocketPipe, identity: str) -> None:
        self._service, self._pipe, self._identity = service, pipe, identity
        self._changed = threading.Condition()
        self._threads = self._idle = 1
        self._calls: dict[int, _Context] = {}
        self._is_over = False

    def serve_all(self) -> None:
        """Answer until the other side has gone; no thread of the connection is left then."""
        try:
            self._serve(is_first=True)
        finally:
            with self._changed:
                self._changed.wait_for(lambda: not self._threads)

    def _serve(self, *, is_first: bool = False) -> None:
        buffer = bytearray(MOST_BYTES)
        view = memoryview(buffer)
        try:
            while size := self._pipe.packet(buffer):
                if self._take(view[:size], is_first):
                    return
            self._end()
        except LaminarError as error:
            _log.debug("a connection is served no more: %s", error)
            self._pipe.send(numbered(ERROR, 0, statuses.to_bytes(error)))
            self._end()
        finally:
            with self._changed:
                self._threads -= 1
                self._changed.notify_all()

    def _end(self) -> None:
        """The other side has gone, and with it what runs for it."""
        self._pipe.close()  # all threads come to an end
        with self._changed:
            self._is_over = True
            calls = list(self._calls.values())
        for context in calls:
            context.end()

    def _take(self, packet: memoryview, is_first: bool) -> bool:
        """Do what a packet says; whether there are threads enough without this one."""
        calls: list[memoryview] = []
        for kind, body, _ in parse_messages(packet):
            if kind == CALL:
                calls.append(body)
            elif kind == CANCEL:
                number, _ = number_of(body)
                with self._changed:
                    context = self._calls.get(number)
                if context is not None:
                    context.end()
            elif kind == PING:
                self._pipe.send(message(PONG))
            else:
                raise links.damage(f"a message of the kind {kind}")
        if not calls:
            return False
        parsed = [parse_call(body) for body in calls]
        for call in parsed[1:]:  # they came together because the socket was full
            WORKERS.start(partial(self._answer, *call))
        with self._changed:
            self._idle -= 1
            spares = self._idle > 0
            if not spares:
                self._idle += 1
                self._threads += 1
        if not spares:
            WORKERS.start(self._serve)
        self._answer(*parsed[0])
        with self._changed:
            if self._idle >= _MOST_IDLE and not is_first:
                return True
            self._idle += 1
            return False

    def _answer(self, number: int, seconds: float, method: str, request: bytes) -> None:
        context = _Context(seconds, self._pipe.peer)
        with self._changed:
            self._calls[number] = context
            is_over = self._is_over
        if is_over:
            context.end()
        try:
            answer = self._service.answer(method, request, context, self._identity)
            told = numbered(ANSWER, number, answer)
        except LaminarError as error:
            told = numbered(ERROR, number, statuses.to_bytes(error))
        finally:
            with self._changed:
                self._calls.pop(number, None)
            context.end()
        self._pipe.send(told)
