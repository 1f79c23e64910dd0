"""One task that has tensors, as who wants some sees it.

A short tensor comes along the link itself. A long one is announced there, and fetched: its size is
checked before there is memory for it, and that memory is used again (`buffers.py`). From a process
of this host it comes in memory that both share (`shared_memory.py`); its array is read-only.

The link lives in one thread, which greets, opens the stream and reads it until it breaks. If damage
broke it, what was asked for is asked once more over a new connection; if the other side has gone,
all that waits fails.

State of a `Peer`, guarded by `_lock`: `_waiting[number]` are the requests without an answer;
`_pipe` leads to the task, None while there is no connection; `_unsent` are the messages for then;
`_taken` says what has come, to be told with the next request; `_thread` reads, None between lives.
`_heard` is when something came last, `_pinged` when that was asked for, 0 where it was not, and
`_is_silent` says that nothing came. `_files[number]` is memory that the sender shares; `_released`
are numbers of such memory that is used no more, to which any thread adds at any moment, without a
lock.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import threading
import time
import zlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from laminar.engine.errors import (
    CancelledError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    LaminarError,
    Origin,
    UnavailableError,
)
from laminar.engine.runtime.rendezvous import Arrival

from . import links, statuses
from .buffers import Lease
from .channels import Channels, rpc_errors
from .chunks import fill
from .doors import NOWHERE
from .envelopes import TICKET_BYTES, seal
from .frames import Header, array_of, decode
from .keepalive import PATIENCE
from .links import Message, Pipe, StreamPipe, numbered
from .shared_memory import SharedFile
from .socket_pipe import SocketPipe
from .tensor_service import HELLO, LINK, PUSHED_BYTES, RECV, RECV_STREAM, UNARY_BYTES
from .together import joined
from .wanted import Surroundings, Transfer, Wanted, announced_header, deliver, request_of

_log = logging.getLogger(__name__)

_HELLO_SECONDS = 10.0  # for the greeting
_MOST_FILES = 1024  # that a sender may share
_MOST_TAKEN = 64  # that are told at the latest


class _Announced(NamedTuple):
    """A long tensor that can be fetched; the checksum is that of its header."""

    ticket: bytes
    header: Header
    checksum: int


@dataclass(slots=True)
class _Coming:
    """A long tensor that comes along the link, and how much of its memory is filled."""

    wanted: Wanted
    header: Header
    memory: Any
    filled: int = 0


class Peer:
    """A task that has tensors."""

    def __init__(self, around: Surroundings, address: str) -> None:
        self._around, self._address = around, address
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Wanted] = {}
        self._pipe: Pipe | None = None
        self._unsent: list[bytes] = []
        self._taken: list[bytes] = []
        self._coming: dict[int, _Coming] = {}  # this and the next: of the link's thread alone
        self._files: dict[int, SharedFile] = {}
        self._released: deque[int] = deque()
        self._thread: threading.Thread | None = None
        self._heard = self._pinged = 0.0
        self._is_silent = False
        self._is_closed = False

    def ask(self, wanted: Sequence[Wanted]) -> None:
        """Ask for tensors, in one message."""
        with self._lock:
            if not self._is_closed:
                if not self._waiting:
                    self._heard, self._pinged = wanted[0].start, 0.0
                requests = self._news()
                for one in wanted:
                    number = next(self._numbers)
                    self._waiting[number] = one
                    requests.append(request_of(number, one))
                for piece in joined(requests):
                    self._say(piece)
                if self._thread is None:
                    name = f"laminar-link {self._address}"
                    self._thread = threading.Thread(target=self._live, name=name, daemon=True)
                    self._thread.start()
                return
        for one in wanted:
            deliver(one, Arrival(error=CancelledError(f"{one.key}: this task is being stopped")))

    def cancel_step(self, step_id: int, error: LaminarError) -> None:
        """Fail what waits for a step."""
        with self._lock:
            found = [(n, w) for n, w in self._waiting.items() if w.step_id == step_id]
            for number, _ in found:
                del self._waiting[number]
            if self._pipe is not None:  # else the sender has not heard of the step
                self._pipe.put(numbered(links.CANCEL_STEP, step_id))
        for _, wanted in found:
            deliver(wanted, Arrival(error=error))

    def expire(self, now: float) -> float:
        """Fail what has waited too long; gives when the next one has."""
        with self._lock:
            found = [(n, w) for n, w in self._waiting.items() if w.end <= now]
            for number, _ in found:
                del self._waiting[number]
                self._say(numbered(links.CANCEL, number))
            after = min((w.end for w in self._waiting.values()), default=math.inf)
            after = min(after, self._look(now))
        for _, wanted in found:
            waited = f"nothing came in {wanted.end - wanted.start:.3g} s"
            self._fail(wanted, DeadlineExceededError(waited))
        return after

    def _look(self, now: float) -> float:
        """Ask a task of which nothing was heard whether it is there; gives when to look again.

        A connection whose other side hangs is closed, so that its thread fails what waits.
        """
        if self._pipe is None or not self._waiting:
            return math.inf
        alive = self._around.channels.keepalive
        if not self._pinged:
            if now < self._heard + alive.time_seconds:
                return self._heard + alive.time_seconds
            self._pinged = now
            self._pipe.put(links.message(links.PING))
        end = self._pinged + PATIENCE * alive.timeout_seconds
        if now < end:
            return end
        self._is_silent = True
        self._pipe.close()
        return math.inf

    def close(self) -> None:
        """Fail what waits; the thread ends when its connection is closed."""
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = list(self._waiting.values()), {}
            pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()
        for wanted in waiting:
            self._fail(wanted, CancelledError("this task is being stopped"))

    def join(self) -> None:
        """Wait for the thread."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _say(self, messages: bytes) -> None:
        if self._pipe is not None:
            self._pipe.put(messages)  # the numbers of requests grow on their way, too
        else:
            self._unsent.append(messages)

    def _fail(self, wanted: Wanted, error: LaminarError) -> None:
        channels = self._around.channels
        name = channels.name(self._address)
        own = type(error)(f"{name}: {wanted.key}: {error.message}", remedy=error.remedy)
        own.origin = error.origin
        statuses.with_origin(own, Origin(channels.task(self._address), step_id=wanted.step_id))
        deliver(wanted, Arrival(error=own))

    # The life of the link: all below runs in its thread, or in one that fetches.

    def _live(self) -> None:
        welcome: tuple[bytes, bytes] | None = None  # the link's number, and the way to it
        while True:
            try:
                if welcome is None:
                    number, way, found = self._first_way()
                    welcome = number, way
                else:
                    found = self._around.channels.way(self._address).come(links.ATTACH, *welcome)
                with contextlib.closing(self._open(welcome[0], found)) as messages:
                    self._read(messages)
                error: LaminarError = UnavailableError(self._why())
            except LaminarError as failure:
                error = failure
            except Exception as cause:
                _log.exception("the link to %s failed", self._address)
                error = UnavailableError(f"the link failed: {cause}")
            lost: list[Wanted] = []
            with self._lock:
                pipe, self._pipe = self._pipe, None
                self._is_silent = False
                self._unsent.clear()
                # Numbers of memory mean nothing to the next connection; who still holds some gives
                # it back to the deque of this one.
                self._released = deque()
                for asked, wanted in list(self._waiting.items()):
                    if isinstance(error, DataLossError) and not wanted.is_retried:
                        wanted.is_retried = True
                        self._unsent.append(request_of(asked, wanted))
                    else:
                        lost.append(self._waiting.pop(asked))
                is_over = not self._waiting
                if is_over:
                    self._thread = None
                    self._taken.clear()
            if pipe is not None:
                pipe.close()
            for file in self._files.values():
                file.close()
            self._files.clear()
            self._coming.clear()
            for wanted in lost:
                self._fail(wanted, error)
            self._around.channels.forget(self._address)  # it is broken, damaged, or not needed
            if is_over:
                return

    def _why(self) -> str:
        """Why there comes no more."""
        if not self._is_silent:
            return "the task has closed the link"
        waited = PATIENCE * self._around.channels.keepalive.timeout_seconds
        return f"no sign of life came in {waited:g} s"

    def _first_way(self) -> tuple[bytes, bytes, SocketPipe | None]:
        """A new link: its number, the way to it, and the socket if there is one."""
        if self._around.has_sockets:
            return self._around.channels.way(self._address).find(links.ATTACH, self._greet)
        return *self._greet(NOWHERE), None

    def _greet(self, host: bytes) -> tuple[bytes, bytes]:
        answer = self._around.channels.unary(self._address, HELLO, host, _HELLO_SECONDS)
        if len(answer) < TICKET_BYTES:
            raise links.damage(f"a welcome of {len(answer)} bytes")
        return answer[:TICKET_BYTES], answer[TICKET_BYTES:]

    def _open(self, link_id: bytes, found: SocketPipe | None) -> Generator[Message]:
        """Send what waits for the connection, which is a stream of gRPC where there is no socket.

        Gives what comes.
        """
        pipe: Pipe
        if found is not None:
            pipe, messages, end = found, found.messages(), found.end
        else:
            pipe = stream = StreamPipe()
            channels = self._around.channels
            call = channels.call(self._address, "stream_stream", LINK, stream.batches(), None)
            messages, end = self._streamed(call), call.cancel
            pipe.send(links.message(links.ATTACH, link_id))
        with self._lock:
            if not self._is_closed:
                for unsent in self._unsent:
                    pipe.send(unsent)
                self._unsent.clear()
                self._pipe = pipe
                return messages
        pipe.close()
        end()
        raise CancelledError("this task is being stopped")

    def _streamed(self, call: Any) -> Generator[Message]:
        try:
            with rpc_errors(self._around.channels.name(self._address)):
                yield from links.messages_in(call)
        finally:
            call.cancel()

    def _read(self, messages: Iterator[Message]) -> None:
        for kind, body, fd in messages:
            self._heard, self._pinged = time.monotonic(), 0.0
            if kind == links.PONG:
                continue
            number, rest = links.number_of(body)
            if kind == links.TENSOR:
                self._take_short(number, rest)
            elif kind == links.READY:
                self._take_long(number, rest)
            elif kind == links.COMING:
                self._begin_long(number, rest)
            elif kind == links.DATA:
                self._take_piece(number, rest)
            elif kind == links.SHARED:
                self._take_shared(number, rest, fd)
            elif kind == links.FAILED:
                error = statuses.from_bytes(bytes(rest))
                if not number:
                    raise error
                wanted = self._end(number)
                if wanted is not None:
                    deliver(wanted, Arrival(error=error))
            else:
                raise links.damage(f"a message of the kind {kind}")

    def _end(self, number: int, is_long: bool = False) -> Wanted | None:
        """What has waited under a number; None if it waits no more."""
        with self._lock:
            wanted = self._waiting.pop(number, None)
            if wanted is not None:
                self._taken.append(numbered(links.TAKEN, number))
                # The sender keeps what is not known to be taken: news of much goes at once.
                if is_long or len(self._taken) >= _MOST_TAKEN:
                    self._say(b"".join(self._news()))
        return wanted

    def _news(self) -> list[bytes]:
        """What the sender is to know with the next message."""
        news, self._taken = self._taken, []
        while self._released:
            news.append(numbered(links.RELEASED, self._released.popleft()))
        return news

    def _take_short(self, number: int, data: memoryview) -> None:
        with self._lock:
            wanted = self._waiting.get(number)
        if wanted is None:
            return
        try:
            frame = decode(data, len(data), wanted.spec)
        except LaminarError as error:
            self._refuse(number, wanted, error)
            return
        if self._end(number) is not None:
            self._arrived(wanted, frame.value, frame.is_dead, len(data), "link")

    def _take_long(self, number: int, data: memoryview) -> None:
        found = self._announced(number, data)
        if found is not None:
            wanted, announced = found
            self._around.fetch(partial(self._fetch, number, wanted, announced))

    def _announced(self, number: int, data: memoryview) -> tuple[Wanted, _Announced] | None:
        """Who waits for a tensor, and what is told of it; None if that is not what is wanted."""
        with self._lock:
            wanted = self._waiting.get(number)
        if wanted is None:
            return None
        ticket, rest = bytes(data[:TICKET_BYTES]), bytes(data[TICKET_BYTES:])
        try:
            header = announced_header(rest, wanted)
        except LaminarError as error:
            self._refuse(number, wanted, error)
            return None
        return wanted, _Announced(ticket, header, zlib.crc32(rest))

    def _begin_long(self, number: int, data: memoryview) -> None:
        """Have memory for a tensor of which all comes along the link."""
        found = self._announced(number, data)
        if found is None:
            return
        wanted, announced = found
        size = announced.header.num_bytes
        try:
            if not 0 < size <= PUSHED_BYTES:
                raise links.damage(f"{size} bytes are to come along it")
            memory = self._around.pool.take(size, wanted.key)
        except LaminarError as error:
            self._refuse(number, wanted, error, True)
            return
        self._coming[number] = _Coming(wanted, announced.header, memory)

    def _take_piece(self, number: int, data: memoryview) -> None:
        coming = self._coming.get(number)
        if coming is None:  # it was refused, or is wanted no more
            return
        end = coming.filled + len(data)
        if end > len(coming.memory):
            raise links.damage("more comes than was announced")
        memoryview(coming.memory)[coming.filled : end] = data
        coming.filled = end
        if end < len(coming.memory):
            return
        del self._coming[number]
        wanted = coming.wanted
        try:
            value = array_of(coming.header, coming.memory)
        except LaminarError as error:
            self._refuse(number, wanted, error, True)
            return
        self._finish(number, wanted, value, end, "link")

    def _take_shared(self, number: int, data: memoryview, fd: int | None) -> None:
        """Compute on the memory in which the sender has put a tensor."""
        place, rest = links.number_of(data)
        file = self._file(place, fd)
        budget, released = self._around.pool.budget, self._released
        with self._lock:
            wanted = self._waiting.get(number)
        if wanted is None:
            released.append(place)
            return
        try:
            header = announced_header(rest, wanted)
            size = header.num_bytes
            budget.reserve(size, wanted.key)
        except LaminarError as error:
            released.append(place)
            self._refuse(number, wanted, error, True)
            return

        def give_back(_: Any) -> None:
            budget.release(size)
            released.append(place)

        try:
            lease = Lease(file.memory(size), size, give_back)
        except LaminarError as error:
            give_back(None)
            self._refuse(number, wanted, error, True)
            return
        try:
            value = array_of(header, np.asarray(lease))
        except LaminarError as error:
            self._refuse(number, wanted, error, True)
            return
        self._finish(number, wanted, value, size, "memory")

    def _file(self, place: int, fd: int | None) -> SharedFile:
        """The memory of that number, which comes once."""
        if fd is not None and place not in self._files:
            if len(self._files) >= _MOST_FILES:
                raise links.damage(f"more than {_MOST_FILES} pieces of memory")
            self._files[place] = SharedFile(fd)
        found = self._files.get(place)
        if found is None:
            raise links.damage("a tensor in memory that is not known")
        return found

    def _fetch(self, number: int, wanted: Wanted, announced: _Announced) -> None:
        """Bring a tensor that was announced; if it is damaged, once more on a new connection."""
        if number not in self._waiting:  # cancelled, or announced twice
            return
        who, header = self._around.channels.name(self._address), announced.header
        way = "unary" if header.num_bytes <= UNARY_BYTES else "stream"
        try:
            memory = self._around.pool.take(header.num_bytes, f"{who}: {wanted.key}")
            try:
                self._fill(self._around.channels, memory, announced, wanted)
            except (DataLossError, CancelledError, FailedPreconditionError):
                # Damage, or the connection was given up because of damage on the link.
                if number not in self._waiting:
                    return
                with self._around.channels.twin() as others:
                    self._fill(others, memory, announced, wanted)
            value = array_of(header, memory)
        except LaminarError as error:
            self._refuse(number, wanted, error, True)
            return
        self._finish(number, wanted, value, header.num_bytes, way)

    def _fill(self, channels: Channels, memory: Any, announced: _Announced, wanted: Wanted) -> None:
        left = wanted.end - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError("the time ran out before it was fetched")
        view, request = memoryview(memory), seal(announced.ticket)
        num_bytes = announced.header.num_bytes
        with rpc_errors(channels.name(self._address)):
            if num_bytes <= UNARY_BYTES:
                answer = channels.call(self._address, "unary_unary", RECV, request, left)
                fill(view, (answer[:-4], answer[-4:]), announced.checksum)
                return
            call = channels.call(self._address, "unary_stream", RECV_STREAM, request, left)
            try:
                fill(view, call, announced.checksum)
            finally:
                call.cancel()

    def _refuse(
        self, number: int, wanted: Wanted, error: LaminarError, is_long: bool = False
    ) -> None:
        """Fail what still waits under a number."""
        if self._end(number, is_long) is not None:
            self._fail(wanted, error)

    def _finish(self, number: int, wanted: Wanted, value: Any, size: int, way: str) -> None:
        """Give a long tensor to who still waits under a number."""
        if self._end(number, True) is not None:
            self._arrived(wanted, value, False, size, way)

    def _arrived(self, wanted: Wanted, value: Any, is_dead: bool, size: int, way: str) -> None:
        watch = self._around.on_transfer
        if watch is not None:
            now = time.monotonic()
            watch(Transfer(self._address, wanted.step_id, wanted.key, size, way, wanted.start, now))
        deliver(wanted, Arrival(value, is_dead))
