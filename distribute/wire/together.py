"""What a thread says to others in one go: messages that are joined before they are sent.

Each message that is sent wakes who reads it, and lets other threads of this process take the
interpreter, from which the sender then waits to get it back: several small ones cost little more
than one if they go together.

State: `_Thread.block` is the block that a thread has begun, None outside of blocks. Another thread
may end it, as where that closes a generator; it is over then. `Together._held[pipe]` are its
messages, in order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Protocol

_JOINED_BYTES = 64 << 10  # that messages are joined up to


class Sink(Protocol):
    """What messages are sent by."""

    def put(self, messages: bytes) -> None:
        """Send them now; never waits."""


class _Thread(threading.local):
    def __init__(self) -> None:
        self.block: Together | None = None


_thread = _Thread()


def is_held(sink: Sink, messages: bytes) -> bool:
    """Whether messages wait for the end of the block that this thread is in."""
    block = _thread.block
    if block is None or block.is_over:
        return False
    block._held.setdefault(sink, []).append(messages)
    return True


def release(sink: Sink) -> None:
    """Send now what waits for the end of the block, since something is to go behind it."""
    block = _thread.block
    if block is not None:
        for piece in joined(block._held.pop(sink, ())):
            sink.put(piece)


def joined(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Messages one after the other, in pieces that a pipe takes at once."""
    parts: list[bytes] = []
    size = 0
    for one in messages:
        if parts and size + len(one) > _JOINED_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
        parts.append(one)
        size += len(one)
    if parts:
        yield b"".join(parts)


class Together:
    """A block at whose end the messages go out that this thread sends in it.

    The thread waits for no answer in it. A block in another one belongs to that.
    """

    __slots__ = ("_held", "is_over")

    def __enter__(self) -> None:
        self._held: dict[Sink, list[bytes]] = {}
        self.is_over = False
        if _thread.block is None or _thread.block.is_over:
            _thread.block = self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_over = True
        if _thread.block is self:
            _thread.block = None
        for sink, messages in self._held.items():
            for piece in joined(messages):
                sink.put(piece)
