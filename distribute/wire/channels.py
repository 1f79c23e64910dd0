"""Calls of other tasks: one connection for each address, a deadline on every call.

State of `Channels`, guarded by `_lock`: `_open[address]` is the connection, with what calls each of
its methods. `_movers` are threads that move long requests and answers for calls that nobody waits
for; they are made when there is the first.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from laminar.engine.closing import Closing
from laminar.engine.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
)
from laminar.engine.runtime.workers import WORKERS

from . import statuses
from .call_link import CALLS, HELLO, INLINE_BYTES, CallLink, LinkGoneError
from .credentials import Credentials, check_address
from .doors import Way
from .envelopes import (
    DOWNLOAD,
    MARK,
    TICKET,
    TICKET_BYTES,
    UPLOAD,
    WHOLE_BYTES,
    open_envelope,
    received,
    seal,
    sent,
)
from .keepalive import USUAL, Keepalive, channel_options
from .quiet_grpc import grpc

_log = logging.getLogger(__name__)

Done = Callable[[bytes | None, LaminarError | None], object]

_MOVERS = 4
_LIMIT_BYTES = 2 << 30  # of an answer
_HELLO_SECONDS = 10.0


class Pending:
    """A call that was begun."""

    def __init__(self) -> None:
        self._cancel: Callable[[], object] | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Give it up: its `done` gets a CancelledError, unless the answer has come."""
        self._is_cancelled = True
        if self._cancel is not None:
            self._cancel()

    def _follow(self, cancel: Callable[[], object]) -> None:
        self._cancel = cancel
        if self._is_cancelled:
            cancel()


class _Connection:
    """A channel and what calls its methods; `link` is for calls that are short."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.methods: dict[tuple[str, str], Any] = {}
        self.link: CallLink | None = None
        self.has_asked = False  # for a link

    def method(self, form: str, name: str) -> Any:
        found = self.methods.get((form, name))
        if found is None:
            found = self.methods[form, name] = getattr(self.channel, form)(f"/{name}")
        return found


class Channels(Closing):
    """Connections to other tasks, made when they are first needed.

    Args:
        credentials: of this task; None for tasks of this machine only.
        names: by its address, the name of a task ("/job:worker/task:1"), for messages.
        keepalive: how soon a connection that is cut off is noticed.
        allow_insecure_network: whether tasks elsewhere are spoken to without credentials.
        limit_bytes: the most that an answer may have.
        has_links: whether those who have answered a call are called over sockets from then on
            (`call_link.py`).
    """

    def __init__(
        self,
        credentials: Credentials | None = None,
        *,
        names: Mapping[str, str] | None = None,
        keepalive: Keepalive = USUAL,
        allow_insecure_network: bool = False,
        limit_bytes: int = _LIMIT_BYTES,
        has_links: bool = False,
    ) -> None:
        self._credentials = credentials
        self._names = dict(names or {})
        self._allow_insecure_network = allow_insecure_network
        self._limit_bytes = limit_bytes
        self._has_links = has_links
        self.keepalive = keepalive
        token = None if credentials is None else credentials.token
        shown = () if token is None else (("authorization", f"Bearer {token}"),)
        self._metadata = ((MARK, "1"), *shown)
        self._lock = threading.Lock()
        self._open: dict[str, _Connection] = {}
        self._movers: ThreadPoolExecutor | None = None
        self._is_closed = False

    def task(self, address: str) -> str:
        """The name of the task at an address; the address itself if it has none."""
        return self._names.get(address, address)

    def name(self, address: str) -> str:
        """A task as messages show it, with its address."""
        found = self._names.get(address)
        return address if found is None else f"{found} ({address})"

    def unary(
        self,
        address: str,
        method: str,
        request: bytes,
        timeout_seconds: float,
        *,
        wait_for_ready: bool = False,
    ) -> bytes:
        """Call a method and wait for its answer.

        Args:
            address: "host:port".
            method: "package.Service/Method".
            request: its bytes, any number.
            timeout_seconds: for all of it.
            wait_for_ready: whether to wait for a task that is not there yet.

        Raises:
            DeadlineExceededError: no answer came in time.
            UnavailableError: there is nobody, or the connection broke.
            LaminarError: what the task raised.
        """
        end = _deadline(timeout_seconds)
        who = f"{self.name(address)}: {method}"
        content = self._begin(address, request, end, who, wait_for_ready)
        link = self._link(address, content)
        if link is not None:
            with contextlib.suppress(LinkGoneError):
                answer = link.call(method, content, _left(end, who), who)
                return self._complete(address, answer, end, who)
        call = self._method(address, "unary_unary", method)
        with rpc_errors(who):
            answer = call(
                content,
                timeout=_left(end, who),
                metadata=self._metadata,
                wait_for_ready=wait_for_ready,
            )
        self._seek_link(address)
        return self._complete(address, answer, end, who)

    def begin(
        self,
        address: str,
        method: str,
        request: bytes,
        timeout_seconds: float,
        done: Done,
        *,
        wait_for_ready: bool = False,
    ) -> Pending:
        """Call a method; `done(answer, None)` or `done(None, error)` runs later, once.

        It runs in a thread of gRPC's, so it must be short. The arguments are those of `unary`.
        """
        end = _deadline(timeout_seconds)
        who = f"{self.name(address)}: {method}"
        pending = Pending()

        def complete(answer: bytes) -> None:
            try:
                found = self._complete(address, answer, end, who)
            except LaminarError as error:
                done(None, error)
            else:
                done(found, None)

        def ended(call: Any) -> None:
            try:
                answer = call.result()
            except grpc.FutureCancelledError:
                done(None, CancelledError(f"{who}: the call was cancelled"))
            except grpc.RpcError as failure:
                done(None, statuses.of_call(failure, who))
            else:
                self._seek_link(address)
                came(answer, None)

        def came(answer: bytes | None, error: LaminarError | None) -> None:
            if answer is None:
                done(None, error)
            elif answer[1:2] == bytes([TICKET]):  # its download blocks, which the threads that
                self._move(lambda: complete(answer))  # tell of answers must not
            else:
                complete(answer)

        def call() -> None:
            try:
                content = self._begin(address, request, end, who, wait_for_ready)
                link = self._link(address, content)
                if link is not None:
                    with contextlib.suppress(LinkGoneError):
                        number = link.begin(method, content, _left(end, who), who, came)
                        pending._follow(lambda: link.cancel(number))
                        return
                started = self._method(address, "unary_unary", method).future(
                    content,
                    timeout=_left(end, who),
                    metadata=self._metadata,
                    wait_for_ready=wait_for_ready,
                )
            except LaminarError as error:
                done(None, error)
                return
            except ValueError:
                done(None, _closed(who))
                return
            pending._follow(started.cancel)
            started.add_done_callback(ended)

        if len(request) > WHOLE_BYTES:
            self._move(call)
        else:
            call()
        return pending

    def call(
        self,
        address: str,
        form: str,
        method: str,
        request: bytes | Iterator[bytes],
        timeout_seconds: float | None,
    ) -> Any:
        """Call a method as gRPC does, without envelopes: its answer, or the call of a stream.

        Args:
            address: "host:port".
            form: "unary_unary", "unary_stream", "stream_unary" or "stream_stream".
            method: "package.Service/Method".
            request: one message, or an iterator of them.
            timeout_seconds: None for a stream that stays open; keepalive watches it.
        """
        call = self._method(address, form, method)
        with rpc_errors(f"{self.name(address)}: {method}"):
            return call(request, timeout=timeout_seconds, metadata=self._metadata)

    def twin(self) -> Channels:
        """Others of the same kind, with connections of their own."""
        return Channels(
            self._credentials,
            names=self._names,
            keepalive=self.keepalive,
            allow_insecure_network=self._allow_insecure_network,
            limit_bytes=self._limit_bytes,
        )

    def forget(self, address: str) -> None:
        """Close the connection; the next call makes a new one."""
        with self._lock:
            connection = self._open.pop(address, None)
        if connection is not None:
            _close(connection)

    def close(self) -> None:
        """Close all connections; calls that run are cancelled, and none can be made any more."""
        with self._lock:
            connections, self._open = list(self._open.values()), {}
            movers, self._movers = self._movers, None
            self._is_closed = True
        for connection in connections:
            _close(connection)
        if movers is not None:
            movers.shutdown()

    def _method(self, address: str, form: str, method: str) -> Any:
        with self._lock:
            if self._is_closed:
                raise _closed(f"{self.name(address)}: {method}")
            connection = self._open.get(address)
            if connection is None:
                connection = self._open[address] = _Connection(self._connect(address))
            return connection.method(form, method)

    def _link(self, address: str, envelope: bytes) -> CallLink | None:
        """The link for a call that is short enough; None without one."""
        if not self._has_links or len(envelope) > INLINE_BYTES:
            return None
        with self._lock:
            connection = self._open.get(address)
            if connection is None or connection.link is None:
                return None
            if not connection.link.is_broken:
                return connection.link
            connection.link, connection.has_asked = None, False  # who comes next is found again
            return None

    def _seek_link(self, address: str) -> None:
        """Have later calls of a task that has answered go over a socket."""
        if not self._has_links:
            return
        with self._lock:
            connection = self._open.get(address)
            if connection is None or connection.has_asked:
                return
            connection.has_asked = True

        def greet(host: bytes) -> tuple[bytes, bytes]:
            hello = self._method(address, "unary_unary", HELLO)
            with rpc_errors(address):
                answer = hello(seal(host), timeout=_HELLO_SECONDS, metadata=self._metadata)
            _, welcome = open_envelope(answer, address)
            return welcome[:TICKET_BYTES], welcome[TICKET_BYTES:]

        def seek() -> None:
            try:
                _, _, pipe = self.way(address).find(CALLS, greet)
            except LaminarError as cause:
                _log.debug("%s is called over gRPC alone: %s", address, cause)
                return
            if pipe is None:
                return
            link = CallLink(pipe, self.keepalive)
            with self._lock:
                if self._open.get(address) is connection:
                    connection.link = link
                    return
            link.close()

        WORKERS.start(seek)

    def way(self, address: str) -> Way:
        """How links lead to a task."""
        return Way(address, self._credentials, self.keepalive)

    def _connect(self, address: str) -> Any:
        _, port = check_address(address, self._credentials, self._allow_insecure_network)
        if not port:  # nobody is there, however long one waits
            raise InvalidArgumentError(
                f"{self.name(address)}: port 0 is for servers, which take a free one",
                remedy="give the address in the server's target",
            )
        options = channel_options(self.keepalive)
        own = self._credentials
        if own is None or not own.has_tls:
            return grpc.insecure_channel(address, options)
        secure = grpc.ssl_channel_credentials(own.ca, own.key, own.cert)
        return grpc.secure_channel(address, secure, options)

    def _begin(
        self, address: str, request: bytes, end: float, who: str, wait_for_ready: bool
    ) -> bytes:
        """The envelope of a request; what is long goes before it."""
        if len(request) <= WHOLE_BYTES:
            return seal(request)
        upload = self._method(address, "stream_unary", UPLOAD)
        with rpc_errors(who):
            answer = upload(
                sent(request),
                timeout=_left(end, who),
                metadata=self._metadata,
                wait_for_ready=wait_for_ready,
            )
        return seal(open_envelope(answer, who)[1], TICKET)

    def _complete(self, address: str, answer: bytes, end: float, who: str) -> bytes:
        """What an envelope holds, or stands for."""
        kind, content = open_envelope(answer, who)
        if kind != TICKET:
            return content
        download = self._method(address, "unary_stream", DOWNLOAD)
        with rpc_errors(who):
            call = download(seal(content), timeout=_left(end, who), metadata=self._metadata)
            try:
                return received(call, self._limit_bytes, who)
            finally:
                call.cancel()

    def _move(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._movers is None and not self._is_closed:
                self._movers = ThreadPoolExecutor(_MOVERS, thread_name_prefix="laminar-movers")
            if self._movers is not None:
                self._movers.submit(work)
                return
        work()  # which finds that all is closed, and says so


def _close(connection: _Connection) -> None:
    if connection.link is not None:
        connection.link.close()
    connection.channel.close()


class rpc_errors:  # noqa: N801  # reads as a block
    """A block that calls gRPC: what it raises becomes an error of laminar's."""

    __slots__ = ("_who",)

    def __init__(self, who: str) -> None:
        self._who = who

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, failure: Any, traceback: Any) -> None:
        if isinstance(failure, grpc.RpcError):
            # The failure of a stream is its call, to which gRPC's frames refer: a circle that
            # would keep what is in the frames here, memory for tensors among it.
            failure.__traceback__ = None
            raise statuses.of_call(failure, self._who) from None
        if kind is ValueError:  # what gRPC raises for a channel that another thread has closed
            raise _closed(self._who) from None


def _closed(who: str) -> FailedPreconditionError:
    return FailedPreconditionError(f"{who}: the connections of this task were closed")


def _deadline(timeout_seconds: float) -> float:
    if not timeout_seconds > 0:
        raise InvalidArgumentError(f"a call needs a positive timeout, got {timeout_seconds!r} s")
    return time.monotonic() + timeout_seconds


def _left(end: float, who: str) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise DeadlineExceededError(f"{who}: the time ran out before the call was made")
    return left
