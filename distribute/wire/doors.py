"""Where links begin: gRPC tells who comes, and where a socket is; who comes there shows a number.

Who wants a link calls a service over gRPC, which lets them in and gives the number of the link and,
from the server's `Door`, the way: the name of a unix socket for a process of the same host, else a
port. The port is any that is free, at the server's own address; where a network lets only the
server's port through, or stands between, no connection is made there, and all goes over gRPC.

    request: "" | "elsewhere" | boot id of the host
    way:     port u16 | name of a unix socket; neither where there is no way

The first message along a socket says by its kind which service it is for, and has the number. It is
answered, so that who came knows that it has found the right server.

State of a `Door`, guarded by `_lock`: its two listeners, None before somebody came for them.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from laminar.engine.errors import LaminarError, UnavailableError

from . import local_pipe
from .credentials import Credentials, split_address
from .keepalive import USUAL, Keepalive
from .links import Message, damage, message, parse_messages
from .local_pipe import LocalPipe
from .network_pipe import SHAKE_SECONDS, NetworkPipe
from .socket_pipe import MOST_BYTES, SocketPipe
from .tls import server_context

_log = logging.getLogger(__name__)

ATTACHED = 64  # answers the first message of a link
ELSEWHERE = b"elsewhere"
NOWHERE = b""  # who wants no socket
_WAY = struct.Struct("<H")
_MOST_WAITING = 64  # connections that nobody has accepted yet
_MOST_READERS = 1024

# Takes a pipe, and the number with which somebody came; returns when the link is over.
Serve = Callable[[SocketPipe, bytes], None]
# Asks a server for a link: of what is told of the host, the number and the way.
Greet = Callable[[bytes], tuple[bytes, bytes]]


class Door:
    """Lets in those who were greeted.

    Args:
        host: at which the server listens.
        credentials: of the server.
        keepalive: how soon it is noticed that one of them is cut off.
    """

    def __init__(
        self, host: str, credentials: Credentials | None = None, keepalive: Keepalive = USUAL
    ) -> None:
        self._host, self._credentials, self._keepalive = host, credentials, keepalive
        self._lock = threading.Lock()
        self._local: _Listener | None = None
        self._network: _Listener | None = None
        self._services: dict[int, Serve] = {}
        self._is_closed = False

    def add(self, kind: int, serve: Serve) -> None:
        """Have those whose first message is of a kind served."""
        self._services[kind] = serve

    def way(self, host: bytes) -> bytes:
        """The way for a process that has told this of its host."""
        if host == NOWHERE:
            return b""
        try:
            with self._lock:
                if self._is_closed:
                    return b""
                own = local_pipe.boot_id().encode()
                if own and host == own:
                    if self._local is None:
                        self._local = _Listener(_unix_socket(), LocalPipe, self._serve)
                    return _WAY.pack(0) + bytes(self._local.name).removeprefix(b"\0")
                if self._network is None and own:  # else this system has not what a link needs
                    found = self._credentials
                    tls = server_context(found) if found is not None and found.has_tls else None
                    self._network = _Listener(
                        _tcp_socket(self._host), self._network_pipe, self._serve, tls
                    )
                return b"" if self._network is None else _WAY.pack(self._network.name[1])
        except (OSError, LaminarError) as cause:
            _log.debug("no socket for links: %s", cause)
            return b""

    def close(self) -> None:
        """Let in nobody any more, and wait until those that are in have ended."""
        with self._lock:
            self._is_closed = True
            listeners = [one for one in (self._local, self._network) if one is not None]
            self._local = self._network = None
        for listener in listeners:
            listener.close()

    def _network_pipe(self, connection: socket.socket) -> SocketPipe:
        if isinstance(connection, ssl.SSLSocket):
            connection.settimeout(SHAKE_SECONDS)
            connection.do_handshake()
        return NetworkPipe(connection, self._keepalive)

    def _serve(self, pipe: SocketPipe) -> None:
        """Have a service answer who came, if it knows the number that they show."""
        kind, number, _ = _one_message(pipe)
        serve = self._services.get(kind)
        if serve is None:
            raise damage("it does not begin with its number")
        serve(pipe, bytes(number))


class _Listener:
    """Has threads serve those who come to a socket.

    Args:
        listening: the socket.
        open_pipe: makes the pipe of a connection, in the thread that serves it.
        serve: does that, until it is over.
        tls: what connections are wrapped in.
    """

    def __init__(
        self,
        listening: socket.socket,
        open_pipe: Callable[[socket.socket], SocketPipe],
        serve: Callable[[SocketPipe], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._socket, self._open_pipe, self._serve = listening, open_pipe, serve
        self._tls = tls
        self.name: Any = listening.getsockname()
        self._readers: dict[threading.Thread, socket.socket] = {}
        self._thread = threading.Thread(target=self._accept, name="laminar-door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Let in nobody any more, and wait until those that are in have ended."""
        _shut(self._socket)
        self._thread.join()
        self._socket.close()
        for reader, connection in list(self._readers.items()):
            _shut(connection)
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
                if self._tls is not None:  # here, so that `close` finds what it is to shut
                    connection = self._tls.wrap_socket(
                        connection, server_side=True, do_handshake_on_connect=False
                    )
            except OSError as cause:
                _log.debug("who came is not served: %s", cause)
                connection.close()
                continue
            reader = threading.Thread(
                target=self._read, args=(connection,), name="laminar-link-reader", daemon=True
            )
            self._readers[reader] = connection
            reader.start()

    def _read(self, connection: socket.socket) -> None:
        try:
            pipe = self._open_pipe(connection)
            try:
                self._serve(pipe)
            finally:
                pipe.end()
        except (LaminarError, OSError) as error:  # a stranger
            _log.debug("who came is not served: %s", error)
        finally:
            connection.close()
            self._readers.pop(threading.current_thread(), None)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Not the method of a socket with TLS, which forgets its keys while others read.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _unix_socket() -> socket.socket:
    """A socket that processes of this host find under a name that nobody guesses."""
    return _listening(socket.AF_UNIX, socket.SOCK_SEQPACKET, f"\0laminar-{secrets.token_hex(16)}")


def _tcp_socket(host: str) -> socket.socket:
    """A socket at the address of the server, on a port that is free."""
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, _, _, place = found[0]
    return _listening(family, kind, place)


def _listening(family: int, kind: int, place: Any) -> socket.socket:
    made = socket.socket(family, kind)
    try:
        made.bind(place)
        made.listen(_MOST_WAITING)
    except OSError:
        made.close()
        raise
    return made


def _one_message(pipe: SocketPipe) -> Message:
    """What the other side says first, which is one message, and does not take it long."""
    poller = select.poll()
    poller.register(pipe.fileno(), select.POLLIN)
    buffer = bytearray(MOST_BYTES)
    end = time.monotonic() + SHAKE_SECONDS
    while (size := pipe.packet(buffer, waits=False)) < 0:
        left = end - time.monotonic()
        if left <= 0:
            raise UnavailableError("nothing came of who opened a connection")
        if not pipe.has_packet:
            poller.poll(1e3 * left)
    found = list(parse_messages(memoryview(buffer)[:size]))
    if len(found) != 1:
        raise damage("it does not begin with its number")
    return found[0]


class Way:
    """How links lead to a server.

    Args:
        address: of the server.
        credentials: of who comes.
        keepalive: how soon it is noticed that the network is cut off.
    """

    def __init__(self, address: str, credentials: Credentials | None, keepalive: Keepalive) -> None:
        self._address, self._credentials, self._keepalive = address, credentials, keepalive

    def find(self, kind: int, greet: Greet) -> tuple[bytes, bytes, SocketPipe | None]:
        """Be greeted, and come: the number, the way, and the pipe if there is one.

        A host that has another network, a container's, is not found by its sockets: who comes is
        greeted once more, as a process of another host.
        """
        number, way = b"", b""
        for host in (local_pipe.boot_id().encode() or NOWHERE, ELSEWHERE):
            number, way = greet(host)
            pipe = self.come(kind, number, way)
            if pipe is not None:
                return number, way, pipe
            if not _is_within_host(way):
                break
        return number, b"", None

    def come(self, kind: int, number: bytes, way: bytes) -> SocketPipe | None:
        """Come with a number: the pipe, None where no connection can be made."""
        try:
            pipe = self._connect(way)
        except (LaminarError, OSError) as cause:  # another container, another user, a wall
            _log.debug("%s is reached over gRPC alone: %s", self._address, cause)
            return None
        if pipe is None:
            return None
        pipe.put(message(kind, number))
        try:
            if _one_message(pipe).kind != ATTACHED:
                raise damage("it does not begin with a welcome")
        except LaminarError as cause:
            _log.debug("%s is reached over gRPC alone: %s", self._address, cause)
            pipe.end()
            return None
        return pipe

    def _connect(self, way: bytes) -> SocketPipe | None:
        if len(way) < _WAY.size:
            return None
        if _is_within_host(way):
            return LocalPipe.connect(way[_WAY.size :])
        (port,) = _WAY.unpack_from(way)
        host, _ = split_address(self._address)
        return NetworkPipe.connect(host, port, self._credentials, self._keepalive)


def _is_within_host(way: bytes) -> bool:
    return len(way) > _WAY.size


def attached(pipe: SocketPipe) -> None:
    """Tell who came that they are let in."""
    pipe.put(message(ATTACHED))
