"""Ahead: batches made by a thread before the step needs them, where that pays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final, Protocol

from laminar.datasets.background import Background
from laminar.engine.timeline import Recording

from .batches import Batch

# After so many batches it is seen whether making them takes more than this share of the time, and
# more than this time for each: handing a batch from thread to thread costs some ten microseconds.
_LOOK: Final = 4
_SHARE: Final = 0.05
_WORTH_SECONDS: Final = 1e-4


class Source(Protocol):
    """What makes batches."""

    def __next__(self) -> Batch:
        """The next batch."""

    def place(self) -> Any:
        """Where it is, as data; None for a source that is only counted."""

    def close(self) -> None:
        """Free what it holds."""


class _Recorded(Source):
    """Tells a timeline how long each batch takes to be made, by whichever thread."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __next__(self) -> Batch:
        timeline = Recording.active
        if timeline is None:
            return next(self._source)
        with timeline.span("make a batch", "data"):
            return next(self._source)

    def place(self) -> Any:
        return self._source.place()

    def close(self) -> None:
        self._source.close()


class Ahead(Iterator[Batch]):
    """The batches of a source, at first as they are wanted; then by a thread, if they take long.

    Args:
        source: of the batches.
        capacity: how many the thread makes ahead.
        at_once: whether the thread begins with the first batch.
        allowed: how many batches may be taken before `allow` says more; None for any number.
    """

    def __init__(
        self, source: Source, capacity: int, *, at_once: bool = False, allowed: int | None = None
    ) -> None:
        self._source = source if Recording.active is None else _Recorded(source)
        self._capacity = capacity
        self._allowed = allowed
        self._filler: Background | None = None
        self._place: Any = None
        self._count = 0
        self._making = 0.0
        self._since = time.perf_counter()
        if at_once:
            self._start()

    def __next__(self) -> Batch:
        if self._filler is not None:
            batch, self._place = self._filler.get()
            return batch
        begin = time.perf_counter()
        batch = next(self._source)
        now = time.perf_counter()
        self._making += now - begin
        self._count += 1
        if self._allowed is not None:
            self._allowed -= 1
        if self._count == _LOOK:
            if self._making > max(_SHARE * (now - self._since), _LOOK * _WORTH_SECONDS):
                self._start()
            self._count, self._making, self._since = 0, 0.0, now
        return batch

    def _start(self) -> None:
        source = self._source
        self._place = source.place()

        def take() -> tuple[Batch, Any]:
            batch = next(source)
            return batch, source.place()

        self._filler = Background(take, self._capacity, self._allowed)

    def place(self) -> Any:
        """Where the source was after the last batch that was handed out."""
        return self._source.place() if self._filler is None else self._place

    def allow(self, count: int) -> None:
        """Let so many batches more be taken."""
        if self._filler is None:
            self._allowed = count
        else:
            self._filler.allow(count)

    def close(self) -> None:
        """End the thread, and free what the source holds."""
        if self._filler is not None:
            self._filler.close()
        self._source.close()
