"""A link: what a receiver and a sender of tensors say to each other, over one open connection.

Receiver: RECV asks for a tensor of a step by its key; TAKEN says that one has come whole; CANCEL
and CANCEL_STEP that one, or all of a step, are wanted no more. Sender: TENSOR brings a short one;
READY says where a long one can be fetched, COMING the same of one that comes at once, in DATA;
SHARED in which memory of this host it lies (RELEASED, a number of that memory, that it is used no
more); FAILED brings an error. Each names the number of
the request, which grows along a link and is never used again; 0 in FAILED says that what came was
damaged, and ends the connection. ATTACH, the first message, names the link. PING asks for a PONG, a
sign of life.

    message: length u32 | kind u8 | body
    batch:   checksum of the messages u32 | messages

Along a socket go packets of messages (`socket_pipe.py`). Without one, a link is a stream of gRPC,
of which a batch is one message: all that has come together while the one before was sent, so that
many short tensors share its cost. A `Pipe` carries messages both ways.
"""

from __future__ import annotations

import queue
import struct
import zlib
from collections.abc import Generator, Iterable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

from . import chunks
from .together import Together, is_held

RECV, TAKEN, CANCEL, CANCEL_STEP, ATTACH, RELEASED, PING = range(1, 8)
TENSOR, READY, FAILED, SHARED, PONG, COMING, DATA = range(16, 23)

_BATCH_BYTES = 128 << 10  # at which a batch is full
_MOST_BYTES = 1 << 20  # of a message: a short tensor, its key, its shape
_CHECKSUM = struct.Struct("<I")
_MESSAGE = struct.Struct("<IB")
_NUMBER = struct.Struct("<Q")
_NUMBERED = struct.Struct("<IBQ")  # a message and its number
_RECV = struct.Struct("<QQQB")


class Message(NamedTuple):
    """One message; a body is a view of the batch that it came in, `fd` a file that came with it."""

    kind: int
    body: memoryview
    fd: int | None = None


class Pipe(Protocol):
    """Carries messages to the other side."""

    def send(self, messages: bytes, fd: int | None = None) -> None:
        """Send messages that `message` made, and an open file if it can carry one; never waits.

        Where the thread sends several together (`together.py`), they go at the end of that.
        """

    def put(self, messages: bytes) -> None:
        """As `send`, now."""

    def close(self) -> None:
        """Send no more."""


def message(kind: int, *parts: bytes) -> bytes:
    """One message as bytes."""
    return b"".join((_MESSAGE.pack(sum(map(len, parts)), kind), *parts))


def numbered(kind: int, number: int, *parts: bytes) -> bytes:
    """A message that begins with a number: of a request or a step."""
    size = _NUMBER.size + sum(map(len, parts))
    return b"".join((_NUMBERED.pack(size, kind, number), *parts))


def head_of(kind: int, number: int, num_bytes: int) -> bytes:
    """What a message begins with of which so many bytes come behind its number."""
    return _NUMBERED.pack(_NUMBER.size + num_bytes, kind, number)


def number_of(body: memoryview) -> tuple[int, memoryview]:
    """The number that a message begins with, and the rest."""
    if len(body) < _NUMBER.size:
        raise damage("a message without its number")
    return _NUMBER.unpack_from(body)[0], body[_NUMBER.size :]


class Request(NamedTuple):
    """What is asked for.

    Attributes:
        number: of the request along its link.
        step_id: of the step.
        incarnation: of the task that is asked, as the receiver knows it; 0 for any.
        is_retry: whether it was asked before, over a connection that has broken.
        key: of the tensor in the step's rendezvous.
    """

    number: int
    step_id: int
    incarnation: int
    is_retry: bool
    key: str

    def to_bytes(self) -> bytes:
        """The message RECV."""
        number, step_id, incarnation, is_retry, key = self
        fixed = _RECV.pack(number, step_id, incarnation, is_retry)
        return message(RECV, fixed, key.encode())

    @classmethod
    def parse(cls, body: memoryview) -> Request:
        """The request of a message RECV.

        Raises:
            DataLossError: there is none.
        """
        if len(body) < _RECV.size:
            raise damage("a request that is cut off")
        number, step_id, incarnation, is_retry = _RECV.unpack_from(body)
        try:
            key = str(body[_RECV.size :], "utf-8")
        except UnicodeDecodeError:
            raise damage("a key that is not text") from None
        return cls(number, step_id, incarnation, bool(is_retry), key)


damage = partial(chunks.damage, "a link between two tasks is damaged")


def batch_of(messages: bytes) -> bytes:
    """A batch of messages."""
    return _CHECKSUM.pack(zlib.crc32(messages)) + messages


def messages_of(batch: bytes) -> Iterator[Message]:
    """The messages of a batch.

    Raises:
        DataLossError: it is none, or damaged.
    """
    view = memoryview(batch)
    at = _CHECKSUM.size
    if len(view) < at or zlib.crc32(view[at:]) != _CHECKSUM.unpack_from(view)[0]:
        raise damage("the checksum is another")
    yield from parse_messages(view[at:])


def parse_messages(view: memoryview) -> Iterator[Message]:
    """The messages of these bytes; see `messages_of`."""
    at = 0
    while at < len(view):
        if len(view) < at + _MESSAGE.size:
            raise damage("a message that is cut off")
        length, kind = _MESSAGE.unpack_from(view, at)
        at += _MESSAGE.size
        if length > min(_MOST_BYTES, len(view) - at):
            raise damage(f"a message of {length} bytes, {len(view) - at} are left")
        yield Message(kind, view[at : at + length])
        at += length


def messages_in(batches: Iterable[bytes]) -> Generator[Message]:
    """The messages of a stream of batches; see `messages_of`."""
    for batch in batches:
        with Together():  # what is answered to it goes together
            yield from messages_of(batch)


def messages_behind(first: Iterator[Message], batches: Iterable[bytes]) -> Generator[Message]:
    """What is left of a first batch, which another thread has begun, and the batches after it."""
    with Together():
        yield from first
    yield from messages_in(batches)


class StreamPipe:
    """The pipe over a stream of gRPC: `batches` is what one side of the stream sends."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def send(self, messages: bytes, fd: int | None = None) -> None:
        assert fd is None, "files go between processes of one host"
        if not is_held(self, messages):
            self.put(messages)

    def put(self, messages: bytes) -> None:
        """Send now what `send` may hold back for a while (`together.py`)."""
        self._waiting.put(messages)

    def close(self) -> None:
        self._waiting.put(None)

    def batches(self) -> Iterator[bytes]:
        """What is to be sent, as it comes, until the pipe is closed."""
        while (messages := self._waiting.get()) is not None:
            parts, size, is_last = [messages], len(messages), False
            while size < _BATCH_BYTES:
                try:
                    more = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    is_last = True
                    break
                parts.append(more)
                size += len(more)
            yield batch_of(b"".join(parts))
            if is_last:
                return
