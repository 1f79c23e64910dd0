"""A server of calls: bytes in, bytes out, on one port.

It knows who calls, moves what is long in chunks, and sends errors as what they are. What the bytes
mean is its handlers' concern.
"""

from __future__ import annotations

import errno
import logging
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from laminar.engine.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    ResourceExhaustedError,
)

from .call_link import INLINE_BYTES
from .call_link_service import CallLinkService
from .credentials import Credentials, check_address, split_address
from .doors import Door
from .envelopes import (
    DOWNLOAD,
    MARK,
    TICKET,
    UPLOAD,
    WHOLE,
    WHOLE_BYTES,
    Depot,
    is_plain,
    open_envelope,
    received,
    seal,
    sent,
)
from .keepalive import MESSAGE_BYTES, USUAL, Keepalive, server_options
from .quiet_grpc import grpc
from .rates import RateLimit
from .services import Answer, Call, Gate, Guard, Handler, Service

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What a server takes on.

    Attributes:
        message_bytes: in one message of gRPC.
        request_bytes: in one request or answer, however many messages it takes.
        waiting_bytes: in all long requests and answers that nobody has taken yet.
        threads: calls at a time, each of which has a thread for as long as it runs, and streams
            as long as they are open. More are refused: one that waited for a thread could be what
            those that have one wait for.
    """

    message_bytes: int = MESSAGE_BYTES
    request_bytes: int = 2 << 30
    waiting_bytes: int = 4 << 30
    threads: int = 256

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (isinstance(value, int) and value > 0):
                raise InvalidArgumentError(f"Limits: {name} must be positive, got {value!r}")


_USUAL_LIMITS = Limits()


class _Unary:
    """One method."""

    def __init__(
        self,
        method: str,
        handler: Handler,
        guard: Guard,
        depot: Depot,
        limits: Limits,
        rate: RateLimit | None,
    ) -> None:
        self._method, self._handler, self._guard = method, handler, guard
        self._depot, self._limits, self._rate = depot, limits, rate

    def __call__(self, request: bytes, context: Any) -> bytes | None:
        with self._guard.errors_sent(context, self._method):
            identity = self._guard.identify(context)
            if is_plain(request) and MARK not in dict(context.invocation_metadata()):
                return self._plain_answer(request, context, identity)
            return self.answer(request, context, identity, WHOLE_BYTES)
        return None

    def _plain_answer(self, request: bytes, context: Any, identity: str) -> bytes:
        """The answer to a plain stub, which knows of no envelopes."""
        if self._rate is not None:
            self._rate.check(identity)
        answer = self._handler(request, Call(context, identity, self._method))
        if len(answer) > self._limits.message_bytes:
            raise ResourceExhaustedError(
                f"{self._method}: an answer of {len(answer)} bytes is too long for one message",
                remedy="fetch less at once, or call by laminar's sessions",
            )
        return answer

    def answer(self, request: bytes, context: Any, identity: str, most_bytes: int) -> bytes:
        """The envelope of the answer; what is longer than `most_bytes` is kept for who comes."""
        if self._rate is not None:
            self._rate.check(identity)
        kind, content = open_envelope(request, f"a client of {self._method}")
        if kind == TICKET:
            content = self._depot.take(content, identity)
        answer = self._handler(content, Call(context, identity, self._method))
        if len(answer) <= most_bytes:
            return seal(answer, WHOLE)
        if len(answer) > self._limits.request_bytes:
            raise InvalidArgumentError(
                f"{self._method}: an answer of {len(answer)} bytes is more than is sent at once"
            )
        return seal(self._depot.keep(answer, identity), TICKET)


class _Bulk(Service):
    """Takes long requests before, and gives long answers after, the calls that they belong to."""

    def __init__(self, depot: Depot, limits: Limits) -> None:
        self._depot, self._limits = depot, limits

    def streams(self, guard: Guard) -> Mapping[str, Any]:
        def upload(messages: Iterator[bytes], context: Any) -> bytes | None:
            with guard.errors_sent(context, UPLOAD):
                identity = guard.identify(context)
                content = received(messages, self._limits.request_bytes, "a client")
                return seal(self._depot.keep(content, identity), TICKET)
            return None

        def download(request: bytes, context: Any) -> Iterator[bytes]:
            with guard.errors_sent(context, DOWNLOAD):
                identity = guard.identify(context)
                _, ticket = open_envelope(request, "a client")
                yield from sent(self._depot.take(ticket, identity))

        return {
            UPLOAD: grpc.stream_unary_rpc_method_handler(upload),
            DOWNLOAD: grpc.unary_stream_rpc_method_handler(download),
        }

    def close(self) -> None:
        pass


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # gRPC has no types for it
    def __init__(self, handlers: Mapping[str, Any]) -> None:
        self._handlers = {f"/{name}": handler for name, handler in handlers.items()}

    def service(self, handler_call_details: Any) -> Any:
        return self._handlers.get(handler_call_details.method)


class WireServer:
    """What `make_server` made: it has its port from the beginning, and answers once started.

    Attributes:
        address: "host:port", with the port that was found where 0 was asked for.
    """

    def __init__(
        self,
        server: Any,
        threads: ThreadPoolExecutor,
        services: tuple[Service, ...],
        door: Door,
        address: str,
    ) -> None:
        self._server, self._threads, self._services = server, threads, services
        self._door = door
        self.address = address
        self._lock = threading.Lock()  # of the next two
        self._has_started = False
        self._is_stopped = False
        self._ended = threading.Event()

    def start(self) -> None:
        """Begin to answer; does nothing the second time.

        Raises:
            FailedPreconditionError: it was stopped.
        """
        with self._lock:
            if self._is_stopped:
                raise FailedPreconditionError(
                    f"the server at {self.address} was stopped", remedy="make another one"
                )
            if not self._has_started:
                self._server.start()
                self._has_started = True

    def stop(self, grace_seconds: float = 0.0) -> None:
        """Answer no more, give up the port, end all threads.

        Args:
            grace_seconds: for calls that run; then they are cancelled.
        """
        with self._lock:
            is_first, self._is_stopped = not self._is_stopped, True
        if not is_first:
            self._ended.wait()
            return
        if not self._has_started:  # gRPC gives up the ports of servers that have started alone
            self._server.start()
        ended = self._server.stop(grace_seconds or None)
        for service in self._services:
            service.close()
        self._door.close()
        ended.wait()
        self._threads.shutdown()
        self._ended.set()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until it has been stopped; False when the time ran out before."""
        return self._ended.wait(timeout_seconds)


def make_server(
    handlers: Mapping[str, Handler],
    address: str,
    credentials: Credentials | None = None,
    *,
    limits: Limits = _USUAL_LIMITS,
    rates: Mapping[str, RateLimit] | None = None,
    services: tuple[Service, ...] = (),
    task: str = "",
    keepalive: Keepalive = USUAL,
    allow_insecure_network: bool = False,
) -> WireServer:
    """A server, not started, that has its port.

    Args:
        handlers: by "package.Service/Method", what answers; a `LaminarError` that one raises is
            raised by the client.
        address: "host:port"; port 0 for any that is free.
        credentials: None for loopback alone.
        limits: what it takes on.
        rates: by their names, the methods that nobody may call as often as they like.
        services: methods that are streams.
        task: such as "/job:worker/task:1"; errors that it sends have it as their origin.
        keepalive: how soon a client that is cut off is noticed.
        allow_insecure_network: whether it may be reached by others without credentials.

    Raises:
        PermissionDeniedError: others can reach the address, and the credentials are not enough.
        AlreadyExistsError: another program listens there.
        InvalidArgumentError: there is no such address here, or the certificate is none.
    """
    host, _ = check_address(address, credentials, allow_insecure_network)
    if allow_insecure_network and (credentials is None or not credentials.serves_networks):
        _log.warning(
            "%s serves whoever reaches %s, without credentials", task or "this task", address
        )
    door = Door(host, credentials, keepalive)
    guard = Guard(Gate(credentials), task, door)
    depot = Depot(limits.waiting_bytes)
    unary = {
        name: _Unary(name, handler, guard, depot, limits, (rates or {}).get(name))
        for name, handler in handlers.items()
    }
    along_links: dict[str, Answer] = {
        name: partial(one.answer, most_bytes=INLINE_BYTES) for name, one in unary.items()
    }
    calls = CallLinkService(along_links, limits.threads, task)
    every = (_Bulk(depot, limits), calls, *services)
    methods: dict[str, Any] = {
        name: grpc.unary_unary_rpc_method_handler(one) for name, one in unary.items()
    }
    for service in every:
        methods.update(service.streams(guard))
    threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="laminar-wire")
    server = grpc.server(
        threads,
        handlers=(_Methods(methods),),
        options=server_options(keepalive, limits.message_bytes),
        maximum_concurrent_rpcs=limits.threads,
    )
    try:
        port = _bind(server, address, credentials)
    except LaminarError:
        server.stop(None).wait()
        threads.shutdown()
        raise
    shown = f"[{host}]" if ":" in host else host
    return WireServer(server, threads, every, door, f"{shown}:{port}")


def _bind(server: Any, address: str, credentials: Credentials | None) -> int:
    try:
        if credentials is None or not credentials.has_tls:
            port = server.add_insecure_port(address)
        else:
            if credentials.cert is None:
                raise InvalidArgumentError(
                    "a server that encrypts has a certificate of its own, with its key",
                    remedy="give cert and key besides ca",
                )
            secure = grpc.ssl_server_credentials(
                [(credentials.key, credentials.cert)], credentials.ca, credentials.ca is not None
            )
            port = server.add_secure_port(address, secure)
    except (RuntimeError, ValueError) as cause:
        port, reason = 0, str(cause)
    else:
        reason = "it is taken, or not an address of this machine"
    if port:
        return int(port)
    if "in use" in reason or port_is_taken(address):
        raise AlreadyExistsError(
            f"{address}: another program listens there already",
            remedy="take another port, or 0 for any that is free",
        )
    raise InvalidArgumentError(f"a server cannot listen at {address}: {reason[:300]}")


def port_is_taken(address: str) -> bool:
    """Whether a program listens at an address of this machine."""
    host, port = split_address(address)
    try:
        with socket.create_server((host, port)):
            return False
    except OSError as error:
        return error.errno == errno.EADDRINUSE
