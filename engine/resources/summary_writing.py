"""Where summaries go that are written while code runs, of which step they are, and whether.

Each of the three is what the innermost block of the thread says. A thread that is in no such block,
as one that runs operations for another thread, takes what was said last anywhere in the process.
A block that is entered while a function is traced holds for the summaries that are traced in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from ..io.summaries import Summary

T = TypeVar("T")


class Sink(Protocol):
    """What takes summaries."""

    def add_summary(self, summary: Summary, global_step: int | None = None) -> None:
        """Take the summary of a step."""


class _Setting(Generic[T]):
    """A setting of blocks.

    `_blocks` are the blocks of a thread, and beside each one what was said in a trace, if it was
    entered in one; `_everywhere` those of all, in the order in which they were entered, guarded by
    `_lock`; `_base` holds outside of blocks.
    """

    def __init__(self, base: T) -> None:
        self._base = base
        self._blocks = threading.local()
        self._everywhere: list[tuple[object, T]] = []
        self._lock = threading.Lock()

    def set(self, value: T) -> None:
        """What holds outside of blocks, from now on."""
        self._base = value

    def get(self) -> T:
        """What holds for this thread."""
        own: list[tuple[T, tuple[Any] | None]] | None = getattr(self._blocks, "values", None)
        if own:
            return own[-1][0]
        with self._lock:
            return self._everywhere[-1][1] if self._everywhere else self._base

    def traced(self) -> tuple[Any] | None:
        """What the innermost block says, if that was entered in a trace; (value,)."""
        own: list[tuple[T, tuple[Any] | None]] | None = getattr(self._blocks, "values", None)
        return own[-1][1] if own else None

    @contextmanager
    def block(self, value: T, traced: tuple[Any] | None = None) -> Iterator[None]:
        """A block in which a value holds.

        Args:
            value: what is asked when a summary is written.
            traced: in a trace, what was said, which may be a symbol; (said,).
        """
        if not hasattr(self._blocks, "values"):
            self._blocks.values = []
        entry = (object(), value)
        self._blocks.values.append((value, traced))
        with self._lock:
            self._everywhere.append(entry)
        try:
            yield
        finally:
            self._blocks.values.pop()
            with self._lock:
                self._everywhere.remove(entry)


def _always() -> bool:
    return True


sink: _Setting[Sink | None] = _Setting(None)
condition: _Setting[Callable[[], bool]] = _Setting(_always)
step: _Setting[Callable[[], int] | None] = _Setting(None)


def current_sink(known: Sink | None = None, *, allowed: bool = False) -> Sink | None:
    """Where summaries go now; None where they are not to be written.

    Args:
        known: where they go, whatever blocks say.
        allowed: whether they are written, whatever blocks say.
    """
    found = known if known is not None else sink.get()
    return found if found is not None and (allowed or condition.get()()) else None
