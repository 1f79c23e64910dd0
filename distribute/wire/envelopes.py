"""What goes around each request and answer: the version of the wire, and a checksum.

    version u8 | kind u8 | checksum of the content u32 | content

Content of up to 1 MiB is sent `WHOLE`. More goes before it (a request) or after it (an answer) as a
stream of chunks, and the envelope holds the `TICKET` under which it is found, its size and its
checksum; so no message is longer than gRPC's own limit of 4 MiB, and none is copied as a whole.
The checksum is needed: over TCP without TLS, a byte that is flipped on the way arrives flipped.

A plain stub of gRPC sends its message without one. The first byte tells, since no field of a
message has the number 0; and laminar's own calls, whose first byte may have been damaged, have
`MARK` in their metadata.

State of a `Depot`, guarded by `_lock`: `_kept[ticket]` is (whose it is, the content, when it is
dropped); `_kept_bytes` is the sum of their sizes.
"""

from __future__ import annotations

import secrets
import struct
import threading
import time
import zlib
from collections.abc import Iterable, Iterator

from laminar.engine.errors import (
    AbortedError,
    DataLossError,
    FailedPreconditionError,
    ResourceExhaustedError,
)

from .chunks import checked, chunks_of
from .frames import WIRE_VERSION

WHOLE, TICKET = 0, 1
WHOLE_BYTES = 1 << 20  # the most that is sent in one message
TICKET_BYTES = 16
UPLOAD = "laminar.Wire/Upload"
DOWNLOAD = "laminar.Wire/Download"

MARK = "laminar-wire"

_FIELD_1 = 1 << 3  # the least that a message which is not empty begins with
_ENVELOPE = struct.Struct("<BBI")
_SIZE = struct.Struct("<Q")
_KEPT_SECONDS = 120.0  # for which nobody comes for what is kept


def seal(content: bytes, kind: int = WHOLE) -> bytes:
    """The content in its envelope."""
    return _ENVELOPE.pack(WIRE_VERSION, kind, zlib.crc32(content)) + content


def is_plain(data: bytes) -> bool:
    """Whether bytes are a message without an envelope, if they are not damaged."""
    return not data or data[0] >= _FIELD_1


def open_envelope(data: bytes, who: str) -> tuple[int, bytes]:
    """Kind and content.

    Args:
        data: an envelope.
        who: sent it, for errors.

    Raises:
        DataLossError: it is none, or damaged.
        FailedPreconditionError: it is of another version.
    """
    if len(data) < _ENVELOPE.size:
        raise DataLossError(f"{who}: a message of {len(data)} bytes is none of laminar's")
    version, kind, checksum = _ENVELOPE.unpack_from(data)
    if version != WIRE_VERSION:
        raise FailedPreconditionError(
            f"{who} speaks version {version} of the wire format, this task version {WIRE_VERSION}",
            remedy="run the same release of laminar in all tasks and clients",
        )
    content = data[_ENVELOPE.size :]
    if zlib.crc32(content) != checksum or kind not in (WHOLE, TICKET):
        raise DataLossError(
            f"{who}: a message was damaged on its way",
            remedy="see what is between the two; with TLS, damage ends the connection",
        )
    return kind, content


def announce(content: bytes) -> bytes:
    """What a stream of chunks begins with: the size of all."""
    return seal(_SIZE.pack(len(content)))


def announced_bytes(message: bytes, limit_bytes: int, who: str) -> int:
    """The size that `announce` states.

    Raises:
        DataLossError: there is none.
        ResourceExhaustedError: it is more than `limit_bytes`.
    """
    kind, content = open_envelope(message, who)
    if kind != WHOLE or len(content) != _SIZE.size:
        raise DataLossError(f"{who}: a stream of chunks begins without its size")
    (size,) = _SIZE.unpack(content)
    if size > limit_bytes:
        raise ResourceExhaustedError(
            f"{who}: a message of {size} bytes, {limit_bytes} are allowed",
            remedy="send less at once, or raise the server's limits",
        )
    return int(size)


def received(messages: Iterable[bytes], limit_bytes: int, who: str) -> bytes:
    """All of a stream that begins with `announce`; memory grows with what has come.

    Raises:
        DataLossError: it is damaged.
        ResourceExhaustedError: it has more than `limit_bytes`.
    """
    incoming = iter(messages)
    first = next(incoming, b"")
    return b"".join(checked(incoming, announced_bytes(first, limit_bytes, who)))


def sent(content: bytes) -> Iterator[bytes]:
    """The stream that `received` takes."""
    yield announce(content)
    yield from chunks_of(memoryview(content))


class Depot:
    """Long contents between the call that brings them and the one that takes them.

    Args:
        limit_bytes: that all of them together may have.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._kept: dict[bytes, tuple[str, bytes, float]] = {}
        self._kept_bytes = 0

    def keep(self, content: bytes, identity: str) -> bytes:
        """Its ticket, with which `identity` alone can take it, once.

        Raises:
            ResourceExhaustedError: too much is kept.
        """
        now = time.monotonic()
        ticket = secrets.token_bytes(TICKET_BYTES)
        with self._lock:
            for old in [t for t, (_, _, end) in self._kept.items() if end < now]:
                self._drop(old)
            if self._kept_bytes + len(content) > self._limit_bytes:
                raise ResourceExhaustedError(
                    f"{self._kept_bytes} bytes of long messages wait, {len(content)} more are not "
                    f"taken: the limit is {self._limit_bytes}",
                    remedy="make fewer calls at a time, or raise the server's limits",
                )
            self._kept[ticket] = identity, content, now + _KEPT_SECONDS
            self._kept_bytes += len(content)
        return ticket

    def take(self, ticket: bytes, identity: str) -> bytes:
        """What was kept.

        Raises:
            AbortedError: nothing is kept under the ticket for `identity`.
        """
        with self._lock:
            owner, content, _ = self._kept.get(ticket, (None, b"", 0.0))
            if owner != identity:
                raise AbortedError("a long message is not there: it was taken, or waited too long")
            self._drop(ticket)
        return content

    def _drop(self, ticket: bytes) -> None:
        self._kept_bytes -= len(self._kept.pop(ticket)[1])
