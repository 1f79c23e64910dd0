"""The pipe of a link between hosts: packets over a TCP socket, within TLS where gRPC has it.

    packet: size of the messages u32 | their checksum u32 | messages

A network that is cut off says nothing, so the system looks after the connection: it is broken where
what was sent, or a probe of an idle one, is not acknowledged in time (`keepalive.py`). That the
other process lives, too, is asked along the link itself.

State of a `NetworkPipe`, guarded by `_reading`: `_came[_begin:_end]` has come and was not taken.
With TLS, `_lock` guards all that the socket does, which must not read and write at a time.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Generator
from socket import create_connection

from laminar.engine.errors import UnavailableError

from .credentials import Credentials
from .keepalive import Keepalive
from .links import Message, damage, parse_messages
from .socket_pipe import MOST_BYTES, Buffer, SocketPipe
from .tls import client_context, name_in
from .together import Together, release

_HEAD = struct.Struct("<II")
_CAME_BYTES = 512 << 10  # taken from the socket at a time: some packets
_CONNECT_SECONDS = 5.0  # until a network that lets no connection through is believed
SHAKE_SECONDS = 10.0  # in which both sides have shown who they are
_PROBES = 3
_MOST_PARTS = 64  # that are sent at a time


class NetworkPipe(SocketPipe):
    """One side of a connection.

    Args:
        connection: a TCP socket, or one with TLS whose sides know each other.
        keepalive: how soon it is noticed that the network is cut off.
    """

    def __init__(self, connection: socket.socket, keepalive: Keepalive) -> None:
        super().__init__(connection)
        _watch(connection, keepalive)
        self._tls = connection if isinstance(connection, ssl.SSLSocket) else None
        connection.settimeout(0.0 if self._tls else None)
        self.identity = None if self._tls is None else name_in(self._tls)
        self.peer = "tcp:{}:{}".format(*connection.getpeername()[:2])
        self._reading = threading.Lock()
        self._came = memoryview(bytearray(_CAME_BYTES))
        self._begin = self._end = 0

    @classmethod
    def connect(
        cls, host: str, port: int, credentials: Credentials | None, keepalive: Keepalive
    ) -> NetworkPipe:
        """The pipe to who listens there.

        Raises:
            OSError: nobody does, or TLS finds that it is not who it should be.
        """
        connection = create_connection((host, port), _CONNECT_SECONDS)
        try:
            if credentials is not None and credentials.has_tls:
                connection.settimeout(SHAKE_SECONDS)
                connection = client_context(credentials).wrap_socket(
                    connection, server_hostname=host
                )
            return cls(connection, keepalive)
        except BaseException:
            connection.close()
            raise

    @property
    def has_packet(self) -> bool:
        """Whether something has come already; see `SocketPipe`."""
        if self._whole() >= 0:
            return True
        if self._tls is None:
            return False
        with self._lock:
            return self._tls.pending() > 0

    def has_ended(self) -> bool:
        """Whether the other side has closed its end, though nobody reads."""
        if self.is_gone or self._tls is not None:
            return self.is_gone or self._is_readable()
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _is_readable(self) -> bool:
        poller = select.poll()
        poller.register(self._socket, select.POLLRDHUP)
        return bool(poller.poll(0))

    def packet(self, buffer: bytearray, *, waits: bool = True) -> int:
        """Take a packet; see `SocketPipe.packet`."""
        with self._reading:
            found = self._next(waits)
            if isinstance(found, int):
                return found
            memoryview(buffer)[: len(found)] = found
            return len(found)

    def messages(self) -> Generator[Message]:
        """What comes, where it has come to: one thread reads; see `SocketPipe.messages`."""
        try:
            while not isinstance(found := self._next(waits=True), int):
                with Together():  # what is answered to a packet goes together
                    yield from parse_messages(found)
        finally:
            self.end()

    def _next(self, waits: bool) -> memoryview | int:
        """The next packet, which holds until the next call; else what `packet` gives."""
        while (size := self._whole()) < 0:
            count = self._receive(waits)
            if count <= 0:
                return count
            self._end += count
        _, checksum = _HEAD.unpack_from(self._came, self._begin)
        begin = self._begin + _HEAD.size
        found = self._came[begin : begin + size]
        self._begin = begin + size
        if zlib.crc32(found) != checksum:
            raise damage("the checksum is another")
        return found

    def _whole(self) -> int:
        """The size of the next packet, if all of it has come; else -1."""
        left = self._end - self._begin
        if left < _HEAD.size:
            return -1
        size: int = _HEAD.unpack_from(self._came, self._begin)[0]
        if not 0 < size <= MOST_BYTES:
            raise damage(f"a packet of {size} bytes")
        return size if left >= _HEAD.size + size else -1

    def _receive(self, waits: bool) -> int:
        """Take what has come from the socket; gives as `packet` does."""
        left = self._end - self._begin
        if not left:
            self._begin = self._end = 0
        elif self._begin + _HEAD.size + MOST_BYTES > len(self._came):
            self._came[:left] = bytes(self._came[self._begin : self._end])
            self._begin, self._end = 0, left
        room = self._came[self._end :]
        if self._tls is not None:
            return self._decrypt(self._tls, room, waits)
        try:
            return self._socket.recv_into(room, 0, 0 if waits else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return -1
        except OSError:
            return 0

    def _decrypt(self, tls: ssl.SSLSocket, room: memoryview, waits: bool) -> int:
        while True:
            try:
                with self._lock:
                    return tls.recv_into(room)
            except ssl.SSLWantReadError:
                if not waits:
                    return -1
            except OSError:
                return 0
            poller = select.poll()
            poller.register(tls, select.POLLIN)
            poller.poll()

    def put_with(self, messages: bytes, data: memoryview) -> None:
        """Send a message whose end is `data`, which stays as it is and is not copied."""
        release(self)  # what was said before goes first
        size = len(messages) + len(data)
        checksum = zlib.crc32(data, zlib.crc32(messages))
        self._put([_HEAD.pack(size, checksum) + messages, data])

    def _packed(self, messages: bytes) -> bytes:
        return _HEAD.pack(len(messages), zlib.crc32(messages)) + messages

    def _try_send(self, parts: list[Buffer], fd: int | None) -> list[Buffer]:
        assert fd is None, "files go between processes of one host"
        try:
            if self._tls is not None:
                return self._encrypt(self._tls, parts)
            flags = socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT
            count = self._socket.sendmsg(parts, (), flags)
        except BlockingIOError:
            return parts
        except OSError:
            self.is_gone = True
            return []
        return _without(parts, count)

    def _encrypt(self, tls: ssl.SSLSocket, parts: list[Buffer]) -> list[Buffer]:
        left = list(parts)
        while left:
            try:
                left = _without(left, tls.send(left[0]))
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                break
        return left

    def _next_waiting(self) -> tuple[list[Buffer], int | None]:
        count = min(len(self._waiting), _MOST_PARTS)
        return [self._waiting.popleft()[0] for _ in range(count)], None


def _without(parts: list[Buffer], count: int) -> list[Buffer]:
    """What is left when so many bytes are gone."""
    for i, part in enumerate(parts):
        if count < len(part):
            return [memoryview(part)[count:] if count else part, *parts[i + 1 :]]
        count -= len(part)
    return []


def _watch(connection: socket.socket, keepalive: Keepalive) -> None:
    """Have the system break a connection that is cut off."""
    whole = keepalive.time_seconds + keepalive.timeout_seconds
    tcp = socket.IPPROTO_TCP
    try:
        connection.setsockopt(tcp, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(tcp, socket.TCP_KEEPIDLE, max(1, round(keepalive.time_seconds)))
        probe = max(1, round(keepalive.timeout_seconds / _PROBES))
        connection.setsockopt(tcp, socket.TCP_KEEPINTVL, probe)
        connection.setsockopt(tcp, socket.TCP_KEEPCNT, _PROBES)
        connection.setsockopt(tcp, socket.TCP_USER_TIMEOUT, round(1000 * whole))
    except OSError as cause:
        raise UnavailableError(f"a connection cannot be watched: {cause}") from cause
