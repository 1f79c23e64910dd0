"""shuffle: elements in random order, through a buffer."""

from __future__ import annotations

from typing import Any

from .epochs import INFINITE, Epoch, State
from .orders import Indexed, Shuffled
from .replay import Trail
from .sampling import CHUNK, draws, order_of_rest
from .sources import IndexedStage
from .stage import Cursor, Stage


def shuffled(source: Stage, buffer: int, seed: int, reshuffle: bool) -> Stage:
    """The elements of `source` in random order, another one in each pass with `reshuffle`."""
    found = source.indexed()
    if found is not None and found.order.size != INFINITE:
        order = Shuffled(found.order, buffer, seed, reshuffle)
        return IndexedStage("Dataset.shuffle", Indexed(found.rows, order), source)
    return Mixed(source, buffer, seed, reshuffle)


class Mixed(Stage):
    """Any source through a buffer of elements; the order is that of `sampling.buffered_order`."""

    def __init__(self, source: Stage, buffer: int, seed: int, reshuffle: bool) -> None:
        super().__init__("Dataset.shuffle", source)
        self._buffer = buffer
        self._seed = seed
        self._reshuffle = reshuffle

    def open(self, walk: Epoch) -> Cursor:
        own = walk if self._reshuffle else ()
        return _Mixing(self.sources[0].open(walk), self._buffer, self._seed, own)


class _Mixing(Cursor):
    """Hands out elements of a buffer.

    `_held` is the buffer: (number, element) by place. When the source has ended, it holds what is
    left, the next one last. `_drawn` counts the elements handed out before that.
    """

    def __init__(self, source: Cursor, capacity: int, seed: int, walk: Epoch) -> None:
        self._trail = Trail(source, lambda: [n for n, _ in self._held], max(64, capacity))
        self._held: list[tuple[int, Any]] = []
        self._capacity = capacity
        self._seed = seed
        self._walk = walk
        self._drawn = 0
        self._chunk = -1
        self._draws: list[float] = []
        self._has_ended = False

    def __next__(self) -> Any:
        held = self._held
        while not self._has_ended:
            try:
                fresh = self._trail.pull()
            except StopIteration:
                self._end()
                break
            if len(held) < self._capacity:
                held.append(fresh)
                continue
            place = self._place()
            drawn, held[place] = held[place], fresh
            return drawn[1]
        if not self._held:
            raise StopIteration
        return self._held.pop()[1]

    def _place(self) -> int:
        chunk, at = divmod(self._drawn, CHUNK)
        if chunk != self._chunk:
            self._chunk = chunk
            self._draws = draws(self._seed, self._walk, chunk).tolist()
        self._drawn += 1
        return int(self._draws[at] * self._capacity)

    def _end(self) -> None:
        self._has_ended = True
        order = order_of_rest(len(self._held), self._seed, self._walk)
        self._held = [self._held[place] for place in order[::-1]]

    def state(self) -> State:
        return {
            "trail": self._trail.state(),
            "held": [number for number, _ in self._held],
            "drawn": self._drawn,
            "has_ended": self._has_ended,
        }

    def restore(self, state: State) -> None:
        numbers = state["held"]
        self._held = []
        found = self._trail.restore(state["trail"], set(numbers))
        self._held = [(number, found[number]) for number in numbers]
        self._drawn = int(state["drawn"])
        self._has_ended = bool(state["has_ended"])

    def close(self) -> None:
        self._held.clear()
        self._trail.source.close()
