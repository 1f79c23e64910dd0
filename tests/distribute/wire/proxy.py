"""A network that misbehaves: a TCP proxy that flips bytes, stops, or cuts connections."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

# What becomes of the bytes that come from one side; the count of those before them, and the side.
Change = Callable[[bytes, int, bool], bytes]


def unchanged(data: bytes, before: int, is_answer: bool) -> bytes:
    return data


class FlipOnce:
    """Flips a bit of the first bytes that are `marker`, wherever they come."""

    def __init__(self, marker: bytes) -> None:
        self.marker = marker
        self.num_flipped = 0
        self._lock = threading.Lock()

    def __call__(self, data: bytes, before: int, is_answer: bool) -> bytes:
        at = data.find(self.marker)
        with self._lock:
            if at < 0 or self.num_flipped:
                return data
            self.num_flipped += 1
        flipped = bytearray(data)
        flipped[at + len(self.marker) // 2] ^= 4
        return bytes(flipped)


class FlipAt:
    """Flips a bit of one byte that comes from one side."""

    def __init__(self, place: int, bit: int, is_answer: bool) -> None:
        self.place, self.bit, self.is_answer = place, bit, is_answer

    def __call__(self, data: bytes, before: int, is_answer: bool) -> bytes:
        at = self.place - before
        if is_answer is not self.is_answer or not 0 <= at < len(data):
            return data
        flipped = bytearray(data)
        flipped[at] ^= 1 << self.bit
        return bytes(flipped)


class Proxy:
    """Stands before a server.

    Attributes:
        address: where clients find it.
        num_connections: that were made.
        is_cut: while it is set nothing goes through, and nobody is told.
    """

    def __init__(self, address: str, change: Change = unchanged) -> None:
        host, _, port = address.rpartition(":")
        self._target = host, int(port)
        self._change = change
        self.num_connections = 0
        self.is_cut = threading.Event()
        self._is_open = True
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def drop_connections(self) -> None:
        """Break what is connected."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._is_open = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()
        for thread in list(self._threads):
            thread.join()
        for one in self._sockets:
            one.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name="proxy")
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while self._is_open:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:  # nobody is there now
                near.close()
                continue
            self.num_connections += 1
            self._sockets += [near, far]
            self._start(self._copy, near, far, False)
            self._start(self._copy, far, near, True)

    def _copy(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        before = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                changed = self._change(data, before, is_answer)
                before += len(data)
                if not self.is_cut.is_set():
                    target.sendall(changed)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
