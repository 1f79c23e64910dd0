"""Calls over a socket of two tasks, in a fifth of the time that gRPC takes.

Who calls sends CALL with a number that is never used again, the seconds that are left (0: any
number), the method and the request in its envelope (`envelopes.py`); it gives the call up with
CANCEL. Who answers sends ANSWER, with an envelope, or ERROR (`statuses.py`); ERROR with
the number 0 says that what came was damaged, and ends the link. PING asks for a PONG, so that a
process that hangs is told from one that computes.

There is no thread between a caller and the socket: who waits for an answer reads, and tells the
others what came for them; when it has its own, the next one reads. A thread of its own reads where
nobody waits.

State of `CallLink`, guarded by `_lock`: `_waiting[number]` are the calls without an answer;
`_is_read` says whether somebody reads; `_wakes` is when that thread wakes at the latest, and
`_wake` makes it do so before; `_heard` is when something came last, `_pinged` when that was asked
for, 0 where it was not; `_is_broken` says that there can be no more calls.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import queue
import select
import struct
import threading
import time
import weakref
from collections.abc import Callable

from laminar.engine.errors import CancelledError, LaminarError
from laminar.engine.runtime.workers import WORKERS

from . import links, statuses
from .keepalive import PATIENCE, Keepalive
from .links import PING, PONG, message, number_of, numbered, parse_messages
from .socket_pipe import MOST_BYTES, SocketPipe

_log = logging.getLogger(__name__)

CALL, CANCEL, CALLS = range(32, 35)  # a link for calls begins with CALLS
ANSWER, ERROR = range(48, 50)
HELLO = "laminar.Wire/Hello"
INLINE_BYTES = 64 << 10  # of an envelope that goes along a link

Done = Callable[[bytes | None, LaminarError | None], object]

_HEAD = struct.Struct("<QdH")  # of a call: its number, seconds, the length of its method


def call_message(number: int, seconds: float, method: str, envelope: bytes) -> bytes:
    """The message CALL."""
    name = method.encode()
    return message(CALL, _HEAD.pack(number, seconds, len(name)), name, envelope)


def parse_call(body: memoryview) -> tuple[int, float, str, bytes]:
    """What `call_message` was given.

    Raises:
        DataLossError: it is no call.
    """
    if len(body) < _HEAD.size:
        raise links.damage("a call that is cut off")
    number, seconds, length = _HEAD.unpack_from(body)
    end = _HEAD.size + length
    try:
        method = str(body[_HEAD.size : end], "utf-8")
    except UnicodeDecodeError:
        raise links.damage("a method that is not text") from None
    if len(body) < end or not seconds >= 0:
        raise links.damage("a call that is cut off")
    return number, seconds, method, bytes(body[end:])


class LinkGoneError(Exception):
    """The other side has gone before a call was sent."""


class _Call:
    """A call without an answer; its thread waits at `inbox`, where one does."""

    __slots__ = ("answer", "done", "end", "error", "inbox", "is_over", "who")

    def __init__(self, who: str, end: float, done: Done | None) -> None:
        self.who, self.end, self.done = who, end, done
        self.inbox: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.answer: bytes | None = None
        self.error: LaminarError | None = None
        self.is_over = False


class CallLink:
    """Calls one process.

    Args:
        pipe: leads there; the link owns it.
        keepalive: how soon it is noticed that the process hangs.
    """

    def __init__(self, pipe: SocketPipe, keepalive: Keepalive) -> None:
        self._pipe = pipe
        self._keepalive = keepalive
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, _Call] = {}
        self._is_read = False
        self._wakes = math.inf
        self._heard = self._pinged = 0.0
        self._is_broken = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller = select.poll()
        self._poller.register(pipe.fileno(), select.POLLIN)
        self._poller.register(self._wake, select.POLLIN)
        self._buffer = bytearray(MOST_BYTES)
        # Also where nobody closes the link, but its owner is forgotten.
        self._ends = weakref.finalize(self, _end, pipe, self._wake)
        self._ends.atexit = False

    @property
    def is_broken(self) -> bool:
        """Whether there can be no more calls."""
        return self._is_broken

    def call(self, method: str, envelope: bytes, seconds: float, who: str) -> bytes:
        """Call a method and wait for the envelope of its answer.

        Args:
            method: "package.Service/Method".
            envelope: of the request.
            seconds: for all of it.
            who: is called, for errors.

        Raises:
            LinkGoneError: the process has gone, and has not got the call.
            LaminarError: what it raised; or nothing came.
        """
        number, call = self._begin(method, envelope, seconds, who, None)
        try:
            while not call.is_over:
                if self._takes_reading():
                    self._read(call)
                else:
                    call.inbox.get()
        except BaseException:  # an interrupt
            self.cancel(number)
            raise
        finally:
            self._hand_over()
        if call.error is not None:
            raise call.error
        assert call.answer is not None
        return call.answer

    def begin(self, method: str, envelope: bytes, seconds: float, who: str, done: Done) -> int:
        """Call a method; `done` gets the envelope of its answer, or an error. Gives its number.

        `done` runs in a thread that others wait for, so it must be short. The arguments and errors
        are those of `call`.
        """
        number, _ = self._begin(method, envelope, seconds, who, done)
        self._hand_over()
        return number

    def cancel(self, number: int) -> None:
        """Give a call up: it ends with a CancelledError, unless it is over."""
        with self._lock:
            call = self._waiting.get(number)
        if call is not None:
            # In this order: who hears of it may answer at once.
            self._finish(number, None, CancelledError(f"{call.who}: the call was cancelled"))
            self._pipe.send(numbered(CANCEL, number))

    def close(self) -> None:
        """Calls that wait are cancelled, and there can be no more."""
        self._shut("CANCELLED", "the call was cancelled")

    # Calls

    def _begin(
        self, method: str, envelope: bytes, seconds: float, who: str, done: Done | None
    ) -> tuple[int, _Call]:
        now = time.monotonic()
        call = _Call(who, now + seconds, done)
        with self._lock:
            if self._is_broken:
                raise LinkGoneError
            has_ended = False
            if not self._waiting:
                self._heard, self._pinged = now, 0.0
                has_ended = not self._is_read and self._pipe.has_ended()
            number = next(self._numbers)
            self._waiting[number] = call
            is_early = self._is_read and call.end < self._wakes
        if not has_ended:
            self._pipe.send(call_message(number, seconds, method, envelope))
        if has_ended or self._pipe.is_gone:
            with self._lock:
                is_first = self._waiting.pop(number, None) is not None
            self._shut("UNAVAILABLE", "the connection broke")
            if is_first:
                raise LinkGoneError
        if is_early:
            self._wake_reader()
        return number, call

    def _wake_reader(self) -> None:
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def _finish(self, number: int, answer: bytes | None, error: LaminarError | None) -> None:
        """A call has its answer; nothing happens where it is over."""
        with self._lock:
            call = self._waiting.pop(number, None)
        if call is None:
            return
        call.answer, call.error = answer, error
        call.is_over = True
        if call.done is None:
            call.inbox.put(None)
            return
        try:
            call.done(answer, error)
        except Exception:  # it is theirs, and does not stop others
            _log.exception("%s: what takes the answer failed", call.who)

    def _break(self, status: str, why: str) -> None:
        """All that waits fails, and there can be no more calls."""
        with self._lock:
            self._is_broken = True
            waiting = list(self._waiting.items())
        for number, call in waiting:
            self._finish(number, None, statuses.of_status(status, why, call.who))

    def _shut(self, status: str, why: str) -> None:
        """Break, by whoever does not read."""
        self._break(status, why)
        self._pipe.close()  # who reads comes to an end, and closes the socket
        if self._takes_reading():
            self._end()

    # Reading

    def _takes_reading(self) -> bool:
        """Whether the thread that asks is to read from now on."""
        with self._lock:
            is_read, self._is_read = self._is_read, True
            return not is_read

    def _hand_over(self) -> None:
        """Have somebody read, while there are calls that wait and nobody does."""
        with self._lock:
            if self._is_read or not self._waiting:
                return
            waits = next((c for c in self._waiting.values() if c.done is None), None)
            if waits is None:
                self._is_read = True
        if waits is not None:
            waits.inbox.put(None)
        else:
            WORKERS.start(self._read_for_others)

    def _read_for_others(self) -> None:
        self._read(None)
        self._hand_over()

    def _read(self, call: _Call | None) -> None:
        """Tell what comes, until this call is over; None: until nobody waits for an answer."""
        is_telling = False
        try:
            while call is None or not call.is_over:
                pause = self._expire()
                if pause is None:
                    return
                # What has come with the packet before is not told by the socket.
                has_come = self._pipe.has_packet
                if not has_come:
                    for fd, _ in self._poller.poll(pause):
                        if fd == self._wake:
                            os.eventfd_read(fd)
                        else:
                            has_come = True
                is_telling = True
                if has_come and not self._take():
                    return
                is_telling = False
        except BaseException as cause:
            if is_telling:  # it may be that an answer was lost
                self._break("ABORTED", f"the thread that reads was ended by {cause!r}")
                self._pipe.close()
            raise
        finally:
            with self._lock:
                self._is_read = self._is_broken
            if self._is_read:
                self._end()

    def _take(self) -> bool:
        """Tell what one packet brings; whether there is more to come."""
        try:
            size = self._pipe.packet(self._buffer, waits=False)
            if not size:
                self._break("UNAVAILABLE", "it has closed its end")
                return False
            if size < 0:  # a part of one
                return True
            self._heard, self._pinged = time.monotonic(), 0.0
            for kind, body, _ in parse_messages(memoryview(self._buffer)[:size]):
                if kind == PONG:
                    continue
                number, rest = number_of(body)
                if kind == ANSWER:
                    self._finish(number, bytes(rest), None)
                elif kind == ERROR and not number:
                    raise statuses.from_bytes(bytes(rest))
                elif kind == ERROR:
                    self._finish(number, None, statuses.from_bytes(bytes(rest)))
                else:
                    raise links.damage(f"a message of the kind {kind}")
        except LaminarError as damage:
            self._break("DATA_LOSS", damage.message)
            self._pipe.close()
            return False
        return True

    def _expire(self) -> float | None:
        """Fail what has waited too long; the milliseconds until there is the next, None at the end.

        A process of which nothing was heard for a while is asked whether it is there.
        """
        now = time.monotonic()
        alive = self._keepalive
        with self._lock:
            late = [n for n, c in self._waiting.items() if c.end <= now]
            if not late:
                if self._is_broken or not self._waiting:
                    return None
                if self._pinged:
                    next_one = self._pinged + PATIENCE * alive.timeout_seconds
                    hangs, asks = next_one <= now, False
                else:
                    next_one = self._heard + alive.time_seconds
                    hangs, asks = False, next_one <= now
                    if asks:
                        self._pinged = now
                        next_one = now + PATIENCE * alive.timeout_seconds
                self._wakes = min(next_one, min(c.end for c in self._waiting.values()))
                pause = max(self._wakes - now, 0.0) * 1e3 + 1
        for number in late:
            call = self._waiting.get(number)
            if call is not None:
                self._pipe.send(numbered(CANCEL, number))
                details = "nothing came in time"
                error = statuses.of_status("DEADLINE_EXCEEDED", details, call.who)
                self._finish(number, None, error)
        if late:
            return self._expire()
        if hangs:
            waited = PATIENCE * alive.timeout_seconds
            self._break("UNAVAILABLE", f"no sign of life came in {waited:g} s")
            self._pipe.close()
            return None
        if asks:
            self._pipe.send(message(PING))
        return pause

    def _end(self) -> None:
        """Close what is open; the one thread that reads, or would, does it."""
        with self._lock:
            self._wake = -1
        self._ends()


def _end(pipe: SocketPipe, wake: int) -> None:
    pipe.end()
    os.close(wake)
