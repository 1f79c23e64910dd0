"""prefetch: a thread fills a queue ahead of the consumer."""

from __future__ import annotations

from typing import Any

from .background import Background
from .epochs import Epoch, State
from .stage import Cursor, Stage


class Prefetched(Stage):
    """The elements of a source, made by a thread ahead of need.

    Args:
        source: of the elements.
        capacity: how many of them wait at most.
    """

    def __init__(self, source: Stage, capacity: int) -> None:
        super().__init__("Dataset.prefetch", source)
        self._capacity = capacity

    def open(self, walk: Epoch) -> Cursor:
        return Prefetching(self.sources[0].open(walk), self._capacity)


class Prefetching(Cursor):
    """Each element waits together with the state of the source after it.

    `_state` is that of the source after the last element that was handed out.
    """

    def __init__(self, source: Cursor, capacity: int) -> None:
        self._source = source
        self._capacity = capacity
        self._state = source.state()
        self._filler: Background | None = None

    def __next__(self) -> Any:
        if self._filler is None:
            self._filler = Background(_taking(self._source), self._capacity)
        element, self._state = self._filler.get()
        return element

    def state(self) -> State:
        return self._state

    def restore(self, state: State) -> None:
        self._stop()
        self._source.restore(state)
        self._state = state

    def _stop(self) -> None:
        if self._filler is not None:
            self._filler.close()
            self._filler = None

    def close(self) -> None:
        self._stop()
        self._source.close()


def _taking(source: Cursor) -> Any:
    def take() -> tuple[Any, State]:
        element = next(source)
        return element, source.state()

    return take
