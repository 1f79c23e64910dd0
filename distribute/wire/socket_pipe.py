"""The pipe of a link over a socket: packets of messages, beside gRPC.

A packet goes out in the thread that has something to say, and comes in with no other thread
between. A call over a stream of gRPC passes four threads of Python, two on each side: measured on
one machine, a question and its answer take 150 us over such a stream, 16 us over a TCP socket, 22
with TLS, 9 over a unix socket. So gRPC says who calls, and where to (`doors.py`), and what is small
and frequent goes along a socket: a unix one within a host (`local_pipe.py`), else TCP
(`network_pipe.py`).

State of a `SocketPipe`, guarded by `_lock`: `_waiting` are packets for which the socket had no
room; while there are some, all others go behind them, and `_writer` is the thread that sends them;
`is_gone` says that the other side was found to have gone when something was sent.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator
from typing import TypeAlias

from .links import Message, parse_messages
from .together import Together, is_held, release

MOST_BYTES = 192 << 10  # of a packet that comes

Buffer: TypeAlias = bytes | memoryview


class SocketPipe(ABC):
    """One side of a connection.

    Attributes:
        identity: who is at the other side, where a certificate has told; None where nothing has.
        is_within_host: whether that is a process of this host, to which files can be sent.
        peer: the other side, for messages.
    """

    identity: str | None = None
    is_within_host = False
    peer = ""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Buffer, int | None]] = deque()
        self._writer: threading.Thread | None = None
        self.is_gone = False

    def send(self, messages: bytes, fd: int | None = None) -> None:
        """Send messages, and an open file with them; never waits.

        What cannot be sent because the other side has gone is dropped: its reader hears of that.
        """
        if fd is not None:
            release(self)
        elif is_held(self, messages):
            return
        self.put(messages, fd)

    def put(self, messages: bytes, fd: int | None = None) -> None:
        """Send now what `send` may hold back for a while (`together.py`)."""
        self._put([self._packed(messages)], fd)

    def _put(self, parts: list[Buffer], fd: int | None = None) -> None:
        """Send what makes up packets, or have a thread do so when there is room."""
        with self._lock:
            rest = parts if self._waiting else self._try_send(parts, fd)
            if not rest:
                return
            self._waiting.extend((part, fd) for part in rest)
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._write, name="laminar-link-writer", daemon=True
                )
                self._writer.start()

    def close(self) -> None:
        """End both directions; who reads comes to an end."""
        with contextlib.suppress(OSError):
            # Not the method of a socket with TLS, which forgets its keys while others read.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def end(self) -> None:
        """Give up the socket; who reads does it by itself."""
        self.close()
        with self._lock:
            writer = self._writer
            self._waiting.clear()
        if writer is not None:
            writer.join()
        with self._lock:  # no file is sent any more: its owner may close it
            self._socket.close()

    def fileno(self) -> int:
        """The number of the socket, to wait for what comes."""
        return self._socket.fileno()

    @property
    def has_packet(self) -> bool:
        """Whether something has come already for which the socket need not be waited for."""
        return False

    def has_ended(self) -> bool:
        """Whether the other side is known to have gone, where nobody reads."""
        return self.is_gone

    @abstractmethod
    def packet(self, buffer: bytearray, *, waits: bool = True) -> int:
        """Take a packet.

        Args:
            buffer: of `MOST_BYTES`, for it.
            waits: whether to wait for one.

        Returns:
            its size, 0 when the other side has gone, -1 where there is none yet.

        Raises:
            DataLossError: what comes is no packet.
        """

    def messages(self) -> Generator[Message]:
        """What comes, until the other side has gone; a body holds until the next one is taken.

        Raises:
            DataLossError: it is no message.
        """
        buffer = bytearray(MOST_BYTES)
        view = memoryview(buffer)
        try:
            while size := self.packet(buffer):
                with Together():  # what is answered to a packet goes together
                    yield from parse_messages(view[:size])
        finally:
            self.end()

    def _packed(self, messages: bytes) -> bytes:
        """The packet of messages."""
        return messages

    @abstractmethod
    def _try_send(self, parts: list[Buffer], fd: int | None) -> list[Buffer]:
        """Send what there is room for, at once; gives what is left."""

    @abstractmethod
    def _next_waiting(self) -> tuple[list[Buffer], int | None]:
        """Take off what waits, and can be sent at once."""

    def _write(self) -> None:
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT)
        while True:
            poller.poll()
            with self._lock:
                while self._waiting:
                    parts, fd = self._next_waiting()
                    rest = self._try_send(parts, fd)
                    if rest:
                        self._waiting.extendleft((part, fd) for part in reversed(rest))
                        break
                else:
                    self._writer = None
                    return
