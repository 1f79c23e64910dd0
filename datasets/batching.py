"""Batches: batch, unbatch, rebatch, window."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from laminar.tree import flatten, map_structure

from .elements import rows_of, spec_of, stack, with_batch, without_batch
from .epochs import INFINITE, UNKNOWN, Epoch, State
from .indexing import length
from .orders import Indexed
from .replay import Trail
from .sources import Listed
from .stage import Cursor, Passing, Stage


def batch_count(size: int, batch_size: int, drop_remainder: bool) -> int:
    """How many batches there are of so many elements."""
    if size < 0:
        return size
    return size // batch_size if drop_remainder else -(-size // batch_size)


class Batched(Stage):
    """So many elements at a time, stacked along a new first axis."""

    def __init__(self, source: Stage, batch_size: int, drop_remainder: bool) -> None:
        super().__init__("Dataset.batch", source)
        self.batch_size = batch_size
        self.drop_remainder = drop_remainder

    def cardinality(self) -> int:
        return batch_count(self.sources[0].cardinality(), self.batch_size, self.drop_remainder)

    def spec(self) -> Any:
        return with_batch(self.sources[0].spec(), self.batch_size if self.drop_remainder else None)

    def open(self, walk: Epoch) -> Cursor:
        found = self.sources[0].indexed()
        if found is not None:
            return _Selecting(found, walk, self)
        return _Batching(self.sources[0].open(walk), self)


class _Selecting(Cursor):
    """Batches of rows: each is one selection by indices."""

    def __init__(self, found: Indexed, walk: Epoch, stage: Batched) -> None:
        self._read = found.rows.reader()
        self._order = found.order.open(walk)
        self._size = stage.batch_size
        self._least = stage.batch_size if stage.drop_remainder else 1

    def __next__(self) -> Any:
        block = self._order.block(self._size)
        if length(block) < self._least:
            raise StopIteration
        return self._read(block)

    def skip(self, count: int) -> int:
        for done in range(count):
            if length(self._order.block(self._size)) < self._least:
                return done
        return count

    def state(self) -> State:
        return {"order": self._order.state()}

    def restore(self, state: State) -> None:
        self._order.restore(state["order"])


class _Batching(Passing):
    """Batches of the elements of any source."""

    def __init__(self, source: Cursor, stage: Batched) -> None:
        super().__init__(source)
        self._stage = stage
        self._least = stage.batch_size if stage.drop_remainder else 1

    def __next__(self) -> Any:
        elements = list(islice(self.source, self._stage.batch_size))
        if len(elements) < self._least:
            raise StopIteration
        return located(self._stage, stack, elements, self._stage.label)


def located(stage: Stage, fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(*args)`; its errors name the line that made the stage."""
    try:
        return fn(*args)
    except ValueError as error:
        stage.blame(error)
        raise


class Unbatched(Stage):
    """The rows of batches."""

    def __init__(self, source: Stage) -> None:
        super().__init__("Dataset.unbatch", source)

    def cardinality(self) -> int:
        size = self.sources[0].cardinality()
        return size if size in (0, INFINITE) else UNKNOWN

    def spec(self) -> Any:
        return without_batch(self.sources[0].spec())

    def open(self, walk: Epoch) -> Cursor:
        return _Unbatching(self.sources[0].open(walk), self)


class _Unbatching(Passing):
    """`_before` is the state of the source before the batch in hand."""

    def __init__(self, source: Cursor, stage: Stage) -> None:
        super().__init__(source)
        self._stage = stage
        self._before = source.state()
        self._rows: list[Any] = []
        self._at = 0

    def __next__(self) -> Any:
        while self._at >= len(self._rows):
            self._before, self._at, self._rows = self.source.state(), 0, []
            self._rows = located(self._stage, rows_of, next(self.source), self._stage.label)
        self._at += 1
        return self._rows[self._at - 1]

    def state(self) -> State:
        return {"source": self._before, "at": self._at}

    def restore(self, state: State) -> None:
        self._before, self._at, self._rows = state["source"], int(state["at"]), []
        self.source.restore(self._before)
        if self._at:
            self._rows = rows_of(next(self.source), self._stage.label)


class Rebatched(Stage):
    """Batches of another size from batches of any."""

    def __init__(self, source: Stage, batch_size: int, drop_remainder: bool) -> None:
        super().__init__("Dataset.rebatch", source)
        self.batch_size = batch_size
        self.drop_remainder = drop_remainder

    def cardinality(self) -> int:
        size = self.sources[0].cardinality()
        return size if size in (0, INFINITE) else UNKNOWN

    def spec(self) -> Any:
        rows = without_batch(self.sources[0].spec())
        return with_batch(rows, self.batch_size if self.drop_remainder else None)

    def open(self, walk: Epoch) -> Cursor:
        return _Rebatching(self.sources[0].open(walk), self)


class _Rebatching(Cursor):
    """Cuts batches anew.

    `_parts` are batches not yet handed out whole, by number; `_used` counts the rows of the first
    one that were handed out.
    """

    def __init__(self, source: Cursor, stage: Rebatched) -> None:
        self._stage = stage
        self._least = stage.batch_size if stage.drop_remainder else 1
        self._parts: dict[int, Any] = {}
        self._trail = Trail(source, lambda: self._parts, every=1)
        self._used = 0

    def __next__(self) -> Any:
        size = self._stage.batch_size
        ready = sum(_row_count(part) for part in self._parts.values()) - self._used
        while ready < size:
            try:
                number, batch = self._trail.pull()
            except StopIteration:
                break
            self._parts[number] = batch
            ready += _row_count(batch)
        if ready < self._least:
            raise StopIteration
        return self._cut(min(size, ready))

    def _cut(self, count: int) -> Any:
        """The next `count` rows."""
        pieces = []
        while count:
            number, batch = next(iter(self._parts.items()))
            end = min(self._used + count, _row_count(batch))
            rows = slice(self._used, end)
            pieces.append(map_structure(lambda a, r=rows: None if a is None else a[r], batch))
            count -= end - self._used
            self._used = end
            if end == _row_count(batch):
                del self._parts[number]
                self._used = 0
        if len(pieces) == 1:
            return pieces[0]
        return map_structure(lambda *a: None if a[0] is None else np.concatenate(a), *pieces)

    def state(self) -> State:
        return {"trail": self._trail.state(), "parts": list(self._parts), "used": self._used}

    def restore(self, state: State) -> None:
        self._parts = {}
        self._parts.update(self._trail.restore(state["trail"], set(state["parts"])))
        self._used = int(state["used"])

    def close(self) -> None:
        self._trail.source.close()


def _row_count(batch: Any) -> int:
    return next(len(leaf) for leaf in flatten(batch) if leaf is not None)


class Windowed(Stage):
    """Windows over the elements: each part of an element becomes a data set of its own.

    Args:
        source: of the elements.
        size: elements in a window.
        shift: elements between the beginnings of two windows.
        stride: elements between two of a window.
        drop_remainder: whether windows that the end cuts short are left out.
        wrap: makes a data set of a stage.
    """

    def __init__(
        self,
        source: Stage,
        size: int,
        shift: int,
        stride: int,
        drop_remainder: bool,
        wrap: Callable[[Stage], Any],
    ) -> None:
        super().__init__("Dataset.window", source)
        self.size = size
        self.shift = shift
        self.stride = stride
        self.drop_remainder = drop_remainder
        self._wrap = wrap

    def cardinality(self) -> int:
        size = self.sources[0].cardinality()
        if size < 0:
            return size
        reach = (self.size - 1) * self.stride if self.drop_remainder else 0
        return max(0, -(-(size - reach) // self.shift))

    def pack(self, elements: list[Any]) -> Any:
        """The elements of a window, each part as a data set."""
        columns = zip(*map(flatten, elements), strict=True)
        parts = [self._wrap(Held(self, list(column))) for column in columns]
        leaves = iter(parts)
        return map_structure(lambda _: next(leaves), elements[0])

    def spec(self) -> Any:
        leaf_stages = [Held(self, [], spec) for spec in flatten(self.sources[0].spec())]
        leaves = iter([self._wrap(stage) for stage in leaf_stages])
        return map_structure(lambda _: next(leaves), self.sources[0].spec())

    def open(self, walk: Epoch) -> Cursor:
        return _Sliding(self.sources[0].open(walk), self)


class Held(Stage):
    """Elements in a list."""

    def __init__(self, source: Stage, elements: list[Any], spec: Any = None) -> None:
        super().__init__("Dataset.window", source)
        self._elements = elements
        self._spec = spec

    def cardinality(self) -> int:
        return len(self._elements)

    def spec(self) -> Any:
        return self._spec if self._spec is not None else spec_of(self._elements[0])

    def open(self, walk: Epoch) -> Cursor:
        return Listed(self._elements)


class _Sliding(Cursor):
    """`_held` are the elements from the beginning of the next window on, by number."""

    def __init__(self, source: Cursor, stage: Windowed) -> None:
        self._stage = stage
        self._held: dict[int, Any] = {}
        self._trail = Trail(source, lambda: self._held)
        self._begin = 0

    def __next__(self) -> Any:
        stage = self._stage
        end = self._begin + (stage.size - 1) * stage.stride + 1
        while self._trail.count < end:
            try:
                number, element = self._trail.pull()
            except StopIteration:
                break
            if number >= self._begin:
                self._held[number] = element
        wanted = range(self._begin, end, stage.stride)
        found = [self._held[n] for n in wanted if n in self._held]
        if not found or (stage.drop_remainder and len(found) < stage.size):
            raise StopIteration
        self._begin += stage.shift
        for number in [n for n in self._held if n < self._begin]:
            del self._held[number]
        return stage.pack(found)

    def state(self) -> State:
        return {"trail": self._trail.state(), "held": list(self._held), "begin": self._begin}

    def restore(self, state: State) -> None:
        self._held = {}
        self._held.update(self._trail.restore(state["trail"], set(state["held"])))
        self._begin = int(state["begin"])

    def close(self) -> None:
        self._trail.source.close()
