"""The side that has tensors: it answers links with what the steps' rendezvous bring.

A receiver is greeted once and gets the number of a link, under which it may come back, should its
connection be damaged. Each of its requests goes to `receive` once, whatever happens on the way, and
its answer is kept until the receiver has it whole: what is asked again is sent again, what is
replayed is refused.

State, guarded by `_lock`: `_links[id]` are the receivers, `_tickets[ticket]` the entries that
wait to be fetched. Of a link, guarded by its own lock: `entries[number]` are requests that were not
taken yet; numbers up to `last_number` have been seen; `pipe` leads to the receiver, None while it
is away.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any

from laminar.engine.errors import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    InternalError,
    LaminarError,
    Origin,
    ResourceExhaustedError,
)
from laminar.engine.runtime.rendezvous import Arrival, Receiver

from . import links, statuses
from .chunks import chunks_of
from .doors import attached
from .envelopes import TICKET_BYTES, open_envelope, seal
from .frames import DEAD, Payload, frame_of, pack_header, payload_of
from .links import Message, Pipe, Request, StreamPipe, numbered
from .network_pipe import NetworkPipe
from .quiet_grpc import grpc
from .services import Guard, Service
from .shared_memory import SharedBuffers
from .socket_pipe import SocketPipe

_log = logging.getLogger(__name__)

HELLO = "laminar.TensorService/Hello"
LINK = "laminar.TensorService/Link"
RECV = "laminar.TensorService/Recv"
RECV_STREAM = "laminar.TensorService/RecvStream"

INLINE_BYTES = 64 << 10  # the most that is sent along the link
UNARY_BYTES = 1 << 20  # the most that is fetched as one message
PUSHED_BYTES = 4 << 20  # the most that goes along a TCP socket, where others wait behind it
_PIECE_BYTES = 128 << 10  # of what goes along it

_MOST_LINKS = 1024
_MOST_REQUESTS = 1 << 16  # of a link that were not taken yet
_AWAY_SECONDS = 60.0  # after which a receiver that is away is forgotten

Receive = Callable[[int, str, Receiver], None]


class _Entry:
    """A request, and its answer once there is one."""

    __slots__ = ("announcement", "answer", "checksum", "payload", "step_id", "ticket")

    def __init__(self, step_id: int) -> None:
        self.step_id = step_id
        self.answer: bytes | None = None  # the message
        self.announcement: bytes | None = None  # what the message says of a long one
        self.ticket: bytes | None = None
        self.payload: Payload | None = None  # what the ticket is for
        self.checksum = 0  # of the header that announced it


class _Link:
    """A receiver."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.lock = threading.Lock()
        self.entries: dict[int, _Entry] = {}
        self.last_number = 0
        self.pipe: Pipe | None = None
        self.shared: SharedBuffers | None = None  # with a process of this host
        self.away_since = time.monotonic()


class TensorService(Service):
    """Gives tensors of steps to the tasks that ask for them.

    Args:
        receive: `receive(step_id, key, done)` has `done` called with what arrives, now or later.
        incarnation: of this task; requests for another one are refused.
        task: such as "/job:worker/task:1", for errors.

    Attributes:
        sent_bytes: how many bytes of tensors other tasks have been given.
    """

    def __init__(self, receive: Receive, *, incarnation: int = 0, task: str = "") -> None:
        self._receive, self._incarnation, self._task = receive, incarnation, task
        self._lock = threading.Lock()
        self._links: dict[bytes, _Link] = {}
        self._tickets: dict[bytes, tuple[_Link, _Entry]] = {}
        self._is_closed = False
        self.sent_bytes = 0

    def end_step(self, step_id: int) -> None:
        """Forget what was sent of a step; who still waits for some of it gets an AbortedError."""
        for link in self._every_link():
            with link.lock:
                ended = [(n, e) for n, e in link.entries.items() if e.step_id == step_id]
                waiting = [number for number, entry in ended if entry.answer is None]
                pipe = link.pipe
                for number, entry in ended:
                    self._drop(link, number, entry)
            if pipe is not None:
                for number in waiting:
                    error = AbortedError(f"step {step_id} has ended")
                    pipe.send(self._failed(number, step_id, error))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            links, self._links = list(self._links.values()), {}
            self._tickets.clear()
        for link in links:
            with link.lock:
                pipe, link.pipe = link.pipe, None
                link.entries.clear()
            if pipe is not None:
                pipe.close()

    def streams(self, guard: Guard) -> Mapping[str, Any]:
        door = guard.door
        door.add(links.ATTACH, self._serve_socket)

        def hello(request: bytes, context: Any) -> bytes | None:
            with guard.errors_sent(context, HELLO):
                identity = guard.identify(context)
                _, host = open_envelope(request, "a client")
                return seal(self._greet(identity) + door.way(host))
            return None

        def link(batches: Iterator[bytes], context: Any) -> Iterator[bytes]:
            with guard.errors_sent(context, LINK):
                pipe = StreamPipe()
                # The thread that reads the rest also holds together what answers it.
                left = links.messages_of(next(batches, b""))
                first = next(left, None)
                if first is None or first.kind != links.ATTACH:
                    raise links.damage("it does not begin with its number")
                messages = links.messages_behind(left, batches)
                found = self._attached(bytes(first.body), guard.identify(context))
                self._come(found, pipe)
                context.add_callback(pipe.close)
                reader = threading.Thread(
                    target=self._read,
                    args=(found, pipe, messages),
                    name="laminar-link-reader",
                    daemon=True,
                )
                reader.start()
                try:
                    yield from pipe.batches()
                finally:
                    self._detach(found, pipe)

        def recv(request: bytes, context: Any) -> bytes | None:
            with guard.errors_sent(context, RECV):
                entry = self._fetched(request, guard.identify(context))
                assert entry.payload is not None
                data = entry.payload.data
                checksum = zlib.crc32(data, entry.checksum)
                return b"".join((data, checksum.to_bytes(4, "little")))
            return None

        def recv_stream(request: bytes, context: Any) -> Iterator[bytes]:
            with guard.errors_sent(context, RECV_STREAM):
                entry = self._fetched(request, guard.identify(context))
                assert entry.payload is not None
                yield from chunks_of(memoryview(entry.payload.data), entry.checksum)

        return {
            HELLO: grpc.unary_unary_rpc_method_handler(hello),
            LINK: grpc.stream_stream_rpc_method_handler(link),
            RECV: grpc.unary_unary_rpc_method_handler(recv),
            RECV_STREAM: grpc.unary_stream_rpc_method_handler(recv_stream),
        }

    def _every_link(self) -> list[_Link]:
        with self._lock:
            return list(self._links.values())

    def _greet(self, identity: str) -> bytes:
        """The number of a new link."""
        now = time.monotonic()
        found = secrets.token_bytes(TICKET_BYTES)
        with self._lock:
            self._check_open()
            for old, link in list(self._links.items()):
                if link.pipe is None and link.away_since + _AWAY_SECONDS < now:
                    del self._links[old]
                    for entry in link.entries.values():
                        self._tickets.pop(entry.ticket or b"", None)
            if len(self._links) >= _MOST_LINKS:
                raise ResourceExhaustedError(f"{_MOST_LINKS} links are open, no more are taken")
            self._links[found] = _Link(identity)
        return found

    def _serve_socket(self, pipe: SocketPipe, number: bytes) -> None:
        """Serve who comes over a socket, and was greeted before, until they have gone."""
        link = self._attached(number, pipe.identity)
        if not pipe.is_within_host:
            attached(pipe)
            self._come(link, pipe)
            try:
                self._read(link, pipe, pipe.messages())
            finally:
                self._detach(link, pipe)
            return
        shared = SharedBuffers()
        try:
            with link.lock:
                if link.shared is not None:
                    raise AlreadyExistsError("a link within a host is come to once")
                link.shared = shared
            attached(pipe)
            self._come(link, pipe)
            self._read(link, pipe, pipe.messages())
        finally:
            shared.close()
            if link.shared is shared:
                self._detach(link, pipe)
                self._forget(link)

    def _forget(self, link: _Link) -> None:
        """Drop what waits for a receiver that does not come back."""
        with self._lock:
            self._links = {number: one for number, one in self._links.items() if one is not link}
        with link.lock:
            for number, entry in list(link.entries.items()):
                self._drop(link, number, entry)

    def _check_open(self) -> None:
        if self._is_closed:
            raise CancelledError("the task is being stopped")

    def _attached(self, number: bytes, identity: str | None) -> _Link:
        """The link of a number, of `identity` if that is known."""
        with self._lock:
            self._check_open()
            link = self._links.get(number)
        if link is None or identity not in (None, link.identity):
            raise AbortedError("the link is not known: the task was restarted, or has forgotten it")
        return link

    def _come(self, link: _Link, pipe: Pipe) -> None:
        """From now on the receiver is there."""
        with link.lock:
            before, link.pipe = link.pipe, pipe
        if before is not None:
            before.close()

    def _detach(self, link: _Link, pipe: Pipe) -> None:
        with link.lock:
            if link.pipe is pipe:
                link.pipe, link.away_since = None, time.monotonic()

    def _read(
        self,
        link: _Link,
        pipe: Pipe,
        messages: Generator[Message],
    ) -> None:
        """Do what the messages of a receiver say, until there are no more."""
        try:
            for kind, body, _ in messages:
                if kind == links.RECV:
                    self._ask(link, pipe, Request.parse(body))
                elif kind == links.RELEASED and link.shared is not None:
                    link.shared.take_back(links.number_of(body)[0])
                elif kind in (links.TAKEN, links.CANCEL):
                    number, _ = links.number_of(body)
                    with link.lock:
                        if (entry := link.entries.get(number)) is not None:
                            self._drop(link, number, entry)
                elif kind == links.PING:
                    pipe.send(links.message(links.PONG))
                elif kind == links.CANCEL_STEP:
                    step_id, _ = links.number_of(body)
                    with link.lock:
                        for number, entry in list(link.entries.items()):
                            if entry.step_id == step_id:
                                self._drop(link, number, entry)
                else:
                    raise links.damage(f"a message of the kind {kind}")
        except LaminarError as error:
            _log.debug("a receiver is served no more: %s", error)
            pipe.put(numbered(links.FAILED, 0, statuses.to_bytes(error)))
        except grpc.RpcError:  # the receiver has gone
            pass
        finally:
            messages.close()
            pipe.close()

    def _drop(self, link: _Link, number: int, entry: _Entry) -> None:
        del link.entries[number]
        if entry.ticket is not None:
            with self._lock:
                self._tickets.pop(entry.ticket, None)

    def _ask(self, link: _Link, pipe: Pipe, request: Request) -> None:
        number, step_id = request.number, request.step_id
        error: LaminarError | None = None
        with link.lock:
            known = link.entries.get(number)
            if known is not None and request.is_retry:
                if known.answer is not None:
                    pipe.send(known.answer)
                return
            if number <= link.last_number:
                error = AlreadyExistsError(f"request {number} of this link was made before")
            elif request.incarnation not in (0, self._incarnation):
                error = AbortedError(
                    f"{request.key}: the task was restarted since the step was made for it",
                    remedy="run the step again",
                )
            elif len(link.entries) >= _MOST_REQUESTS:
                error = ResourceExhaustedError(f"{_MOST_REQUESTS} tensors are asked for at once")
            else:
                entry = link.entries[number] = _Entry(step_id)
            link.last_number = max(number, link.last_number)
        if error is not None:
            pipe.send(self._failed(number, step_id, error))
            return
        arrived = partial(self._arrived, link, number, entry)
        try:
            self._receive(step_id, request.key, arrived)
        except Exception as failure:
            arrived(Arrival(error=_known(failure, request.key)))

    def _arrived(self, link: _Link, number: int, entry: _Entry, arrival: Arrival) -> None:
        """Send what a step's rendezvous has brought."""
        place: int | None = None
        error = arrival.error
        if error is None:
            try:
                answer, place = self._answer(link, number, entry, arrival)
            except Exception as failure:
                error = _known(failure, "a tensor that is sent")
        if error is not None:
            answer = self._failed(number, entry.step_id, error)
        with link.lock:
            shared = link.shared if place is not None else None
            if link.entries.get(number) is not entry:  # nobody wants it any more
                if shared is not None and place is not None:
                    shared.take_back(place)
                return
            if entry.ticket is not None:
                with self._lock:
                    self._tickets[entry.ticket] = link, entry
            entry.answer = answer
            if link.pipe is not None:
                fd = None
                if shared is not None and place is not None:
                    fd = shared.new_file(place)
                if not self._push(link.pipe, number, entry):
                    link.pipe.send(answer, fd)

    def _push(self, pipe: Pipe, number: int, entry: _Entry) -> bool:
        """Send a tensor that could be fetched, where it takes no longer than to ask for it.

        If it is damaged on its way, it is fetched.
        """
        payload = entry.payload
        if payload is None or not isinstance(pipe, NetworkPipe):
            return False
        data = memoryview(payload.data)
        if len(data) > PUSHED_BYTES:
            return False
        assert entry.announcement is not None
        pipe.send(numbered(links.COMING, number, entry.announcement))
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            pipe.put_with(links.head_of(links.DATA, number, len(piece)), piece)
        return True

    def _answer(
        self, link: _Link, number: int, entry: _Entry, arrival: Arrival
    ) -> tuple[bytes, int | None]:
        """The message that brings a tensor, or says where it is; the number of shared memory."""
        payload = DEAD if arrival.is_dead else payload_of(arrival.value)
        with self._lock:
            self.sent_bytes += len(payload.data)
        if len(payload.data) <= INLINE_BYTES:
            frame = frame_of(payload, step_id=entry.step_id, incarnation=self._incarnation)
            return numbered(links.TENSOR, number, frame), None
        header = pack_header(
            payload, step_id=entry.step_id, incarnation=self._incarnation, is_separate=True
        )
        place = None if link.shared is None else link.shared.place(payload.data)
        if place is not None:
            return numbered(links.SHARED, number, place.to_bytes(8, "little"), header), place
        entry.payload = payload
        entry.checksum = zlib.crc32(header)
        entry.ticket = secrets.token_bytes(TICKET_BYTES)
        entry.announcement = entry.ticket + header
        return numbered(links.READY, number, entry.announcement), None

    def _failed(self, number: int, step_id: int, error: LaminarError) -> bytes:
        statuses.with_origin(error, Origin(self._task, step_id=step_id))
        return numbered(links.FAILED, number, statuses.to_bytes(error))

    def _fetched(self, request: bytes, identity: str) -> _Entry:
        """What a ticket is for."""
        _, ticket = open_envelope(request, "a client")
        with self._lock:
            link, entry = self._tickets.get(ticket, (None, None))
        if link is None or entry is None or link.identity != identity:
            raise AbortedError("the tensor is not there: the step has ended, or it was taken")
        return entry


def _known(failure: Exception, what: str) -> LaminarError:
    if isinstance(failure, LaminarError):
        return failure
    _log.error("%s failed", what, exc_info=failure)
    return InternalError(f"{what}: {type(failure).__name__}: {failure}")
