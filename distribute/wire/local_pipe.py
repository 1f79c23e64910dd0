"""The pipe of a link between two processes of one host: packets over a unix socket.

A packet is some messages, and may bring an open file with it. It goes out in the thread that has
something to say, and comes in with no other thread between, in a tenth of the time that a stream of
gRPC takes. The socket has a random name that nothing but this host sees (Linux's abstract names, so
there is no file to be left behind), both sides look whether the other runs as the same user, and
the first message must be the number of a link, which only who was greeted over gRPC knows.

State of a `LocalPipe`, guarded by `_lock`: `_waiting` are packets for which the socket had no room;
while there are some, all others go behind them, and `_writer` is the thread that sends them;
`is_gone` says that the other side was found to have gone when something was sent.
"""

from __future__ import annotations

import array
import contextlib
import os
import secrets
import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Generator

from laminar.engine.errors import PermissionDeniedError, UnavailableError

from .links import Message, parse_messages
from .together import Together, is_held, release

_BUFFER_BYTES = 1 << 20  # asked for; what a packet may have at most is a part of it
_PACKET_BYTES = 128 << 10  # that packets are joined up to
MOST_BYTES = 192 << 10  # of a packet that comes
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_INT = array.array("i").itemsize
_FILES_BYTES = socket.CMSG_SPACE(_INT) if hasattr(socket, "CMSG_SPACE") else 0  # not on Windows
_MOST_WAITING = 64  # connections that nobody has accepted yet
_MOST_READERS = 1024


def boot_id() -> str:
    """What tells this host, until it is started again, from all others; empty if nothing does."""
    if not (hasattr(os, "memfd_create") and hasattr(socket, "SO_PEERCRED")):
        return ""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""


def _check_user(connection: socket.socket) -> None:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(raw)
    if user != os.geteuid():
        raise PermissionDeniedError("a process of another user is at the other end of a socket")


class LocalPipe:
    """One side of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        _check_user(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        self._socket = connection
        self._lock = threading.Lock()
        self._waiting: deque[tuple[bytes, int | None]] = deque()
        self._writer: threading.Thread | None = None
        self.is_gone = False

    @classmethod
    def connect(cls, name: bytes) -> LocalPipe:
        """The pipe to who listens under an abstract name.

        Raises:
            OSError: nobody does.
            PermissionDeniedError: another user does.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(b"\0" + name)
            return cls(connection)
        except BaseException:
            connection.close()
            raise

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
        with self._lock:
            if not self._waiting and self._try_send(messages, fd):
                return
            self._waiting.append((messages, fd))
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._write, name="laminar-link-writer", daemon=True
                )
                self._writer.start()

    def close(self) -> None:
        """End both directions; who reads comes to an end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

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

    def packet(self, buffer: bytearray) -> int:
        """Wait for a packet: its size, 0 when the other side has gone. Files in it are closed."""
        try:
            size, files, _, _ = self._socket.recvmsg_into([buffer], _FILES_BYTES)
        except OSError:
            return 0
        for file in _files_of(files):
            os.close(file)
        return size

    def messages(self) -> Generator[Message]:
        """What comes, until the other side has gone; a body holds until the next one is taken.

        Raises:
            DataLossError: it is no message.
        """
        buffer = bytearray(MOST_BYTES)
        view = memoryview(buffer)
        try:
            while True:
                try:
                    size, files, _, _ = self._socket.recvmsg_into([buffer], _FILES_BYTES)
                except OSError:
                    return
                if not size:  # nobody sends packets of nothing: it is the end
                    return
                came = _files_of(files)
                fd = came[0] if came else None
                try:
                    with Together():  # what is answered to a packet goes together
                        for kind, body, _ in parse_messages(view[:size]):
                            yield Message(kind, body, fd)
                finally:
                    for one in came:
                        os.close(one)
        finally:
            self.end()

    def _try_send(self, messages: bytes, fd: int | None) -> bool:
        """False if there is no room."""
        rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _packed(fd))]
        try:
            self._socket.sendmsg([messages], rights, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            self.is_gone = True
        return True

    def _write(self) -> None:
        poller = select.poll()
        poller.register(self._socket, select.POLLOUT)
        while True:
            poller.poll()
            with self._lock:
                while self._waiting:
                    messages, fd = self._waiting.popleft()
                    if fd is None:
                        messages = self._joined(messages)
                    if not self._try_send(messages, fd):
                        self._waiting.appendleft((messages, fd))
                        break
                else:
                    self._writer = None
                    return

    def _joined(self, messages: bytes) -> bytes:
        """The messages with those that wait behind them, as many as a packet holds."""
        parts, size = [messages], len(messages)
        while self._waiting:
            more, fd = self._waiting[0]
            if fd is not None or size + len(more) > _PACKET_BYTES:
                break
            self._waiting.popleft()
            parts.append(more)
            size += len(more)
        return b"".join(parts)


def _packed(fd: int) -> bytes:
    return array.array("i", [fd]).tobytes()


def _files_of(files: list[tuple[int, int, bytes]]) -> list[int]:
    """The open files that came: one, or what else there is room for."""
    found = array.array("i")
    for level, kind, data in files:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) // _INT * _INT])
    return found.tolist()


class LocalListener:
    """Waits for processes of this host.

    Args:
        serve: gets the pipe of each in a thread of its own; it ends when that returns.

    Attributes:
        name: the abstract name under which it is found.
    """

    def __init__(self, serve: Callable[[LocalPipe], None]) -> None:
        self.name = b"laminar-" + secrets.token_hex(16).encode()
        self._serve = serve
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._socket.bind(b"\0" + self.name)
            self._socket.listen(_MOST_WAITING)
        except OSError as cause:
            self._socket.close()
            raise UnavailableError(f"no socket for processes of this host: {cause}") from cause
        self._readers: dict[threading.Thread, LocalPipe] = {}
        self._thread = threading.Thread(target=self._accept, name="laminar-local", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let in nobody any more, and wait until those that are in have ended."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        for reader, pipe in list(self._readers.items()):
            pipe.close()
            reader.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # it was closed
                return
            try:
                if len(self._readers) >= _MOST_READERS:
                    raise OSError("too many connections")
                pipe = LocalPipe(connection)
            except (PermissionDeniedError, OSError):
                connection.close()
                continue
            reader = threading.Thread(
                target=self._read, args=(pipe,), name="laminar-link-reader", daemon=True
            )
            self._readers[reader] = pipe
            reader.start()

    def _read(self, pipe: LocalPipe) -> None:
        try:
            self._serve(pipe)
        finally:
            self._readers.pop(threading.current_thread(), None)
