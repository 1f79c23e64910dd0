"""The pipe of a link between two processes of one host: packets over a unix socket.

A packet may bring an open file with it. The socket has a random name that nothing but this host
sees (Linux's abstract names, so there is no file to be left behind), both sides look whether the
other runs as the same user, and the first message must be the number of a link, which only who was
greeted over gRPC knows.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
from collections.abc import Generator

from laminar.engine.errors import PermissionDeniedError

from .links import Message, parse_messages
from .socket_pipe import MOST_BYTES, Buffer, SocketPipe
from .together import Together

_BUFFER_BYTES = 1 << 20  # asked for; what a packet may have at most is a part of it
_PACKET_BYTES = 128 << 10  # that packets are joined up to
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_INT = array.array("i").itemsize
_FILES_BYTES = socket.CMSG_SPACE(_INT) if hasattr(socket, "CMSG_SPACE") else 0  # not on Windows


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


class LocalPipe(SocketPipe):
    """One side of a connection."""

    is_within_host = True
    peer = "unix:"

    def __init__(self, connection: socket.socket) -> None:
        _check_user(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
        super().__init__(connection)

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

    def packet(self, buffer: bytearray, *, waits: bool = True) -> int:
        """Take a packet; see `SocketPipe.packet`. Files in it are closed."""
        flags = 0 if waits else socket.MSG_DONTWAIT
        try:
            size, files, _, _ = self._socket.recvmsg_into([buffer], _FILES_BYTES, flags)
        except BlockingIOError:
            return -1
        except OSError:
            return 0
        for file in _files_of(files):
            os.close(file)
        return size

    def messages(self) -> Generator[Message]:
        """What comes, with its files; see `SocketPipe.messages`."""
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

    def _try_send(self, parts: list[Buffer], fd: int | None) -> list[Buffer]:
        rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _file_number(fd))]
        try:
            self._socket.sendmsg(parts, rights, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return parts
        except OSError:
            self.is_gone = True
        return []

    def _next_waiting(self) -> tuple[list[Buffer], int | None]:
        """A packet, or as many of those without files as one has room for."""
        packet, fd = self._waiting.popleft()
        parts, size = [packet], len(packet)
        while fd is None and self._waiting:
            more, file = self._waiting[0]
            if file is not None or size + len(more) > _PACKET_BYTES:
                break
            self._waiting.popleft()
            parts.append(more)
            size += len(more)
        return [b"".join(parts)], fd


def _file_number(fd: int) -> bytes:
    return array.array("i", [fd]).tobytes()


def _files_of(files: list[tuple[int, int, bytes]]) -> list[int]:
    """The open files that came: one, or what else there is room for."""
    found = array.array("i")
    for level, kind, data in files:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) // _INT * _INT])
    return found.tolist()
