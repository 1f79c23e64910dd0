"""Which elements come, and how often: filter, take, skip, shard, repeat, enumerate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.graph import TensorSpec

from .epochs import INFINITE, UNKNOWN, Epoch, State
from .orders import Indexed, Part, Repeated
from .sources import IndexedStage
from .stage import Cursor, Passing, Stage, call_user


def apply(fn: Callable[..., Any], element: Any) -> Any:
    """`fn` of an element; a tuple is several arguments."""
    return fn(*element) if isinstance(element, tuple) else fn(element)


class Filtered(Stage):
    """The elements for which a function says True."""

    def __init__(self, source: Stage, fn: Callable[..., Any]) -> None:
        super().__init__("Dataset.filter", source)
        self._fn = fn

    def cardinality(self) -> int:
        return INFINITE if self.sources[0].cardinality() == INFINITE else UNKNOWN

    def open(self, walk: Epoch) -> Cursor:
        return _Filtering(self.sources[0].open(walk), self, self._fn)


class _Filtering(Passing):
    def __init__(self, source: Cursor, stage: Stage, fn: Callable[..., Any]) -> None:
        super().__init__(source)
        self._stage = stage
        self._fn = fn

    def __next__(self) -> Any:
        for element in self.source:
            if call_user(self._stage, apply, self._fn, element):
                return element
        raise StopIteration


def part(label: str, source: Stage, start: int, stop: int | None, step: int = 1) -> Stage:
    """The elements from `start` to `stop` in steps."""
    found = source.indexed()
    if found is not None and found.order.size != INFINITE:
        size = found.order.size
        end = size if stop is None else min(stop, size)
        order = Part(found.order, min(start, size), end, step)
        return IndexedStage(label, Indexed(found.rows, order), source)
    return Sliced(label, source, start, stop, step)


class Sliced(Stage):
    """The elements from `start` to `stop` in steps, of any source."""

    def __init__(self, label: str, source: Stage, start: int, stop: int | None, step: int) -> None:
        super().__init__(label, source)
        self.bounds = (start, stop, step)

    def cardinality(self) -> int:
        size = self.sources[0].cardinality()
        start, stop, step = self.bounds
        if size >= 0:
            return len(range(*slice(start, stop, step).indices(size)))
        if size == INFINITE:
            return INFINITE if stop is None else len(range(start, stop, step))
        return UNKNOWN

    def open(self, walk: Epoch) -> Cursor:
        return _Slicing(self.sources[0].open(walk), *self.bounds)


class _Slicing(Passing):
    """`_at` is the number of elements taken from the source, `_due` that of the next one wanted."""

    def __init__(self, source: Cursor, start: int, stop: int | None, step: int) -> None:
        super().__init__(source)
        self._stop = stop
        self._step = step
        self._at = 0
        self._due = start

    def __next__(self) -> Any:
        if self._stop is not None and self._due >= self._stop:
            raise StopIteration
        self._at += self.source.skip(self._due - self._at)
        if self._at < self._due:
            raise StopIteration
        element = next(self.source)
        self._at += 1
        self._due += self._step
        return element

    def state(self) -> State:
        return {"source": self.source.state(), "at": self._at, "due": self._due}

    def restore(self, state: State) -> None:
        self.source.restore(state["source"])
        self._at, self._due = int(state["at"]), int(state["due"])


def repeated(source: Stage, count: int | None) -> Stage:
    """`source` again and again; without a `count` for ever."""
    label = "Dataset.repeat"
    found = source.indexed()
    if found is not None and found.order.size != INFINITE:
        return IndexedStage(label, Indexed(found.rows, Repeated(found.order, count)), source)
    return Cycled(source, count)


class Cycled(Stage):
    """Any source again and again."""

    def __init__(self, source: Stage, count: int | None) -> None:
        super().__init__("Dataset.repeat", source)
        self._count = count

    def cardinality(self) -> int:
        size = self.sources[0].cardinality()
        if self._count is None:
            return size if size == 0 else INFINITE
        return size if size < 0 and self._count else size * self._count

    def open(self, walk: Epoch) -> Cursor:
        return _Cycling(self.sources[0], self._count, walk)


class _Cycling(Cursor):
    def __init__(self, source: Stage, count: int | None, walk: Epoch) -> None:
        self._source = source
        self._count = count
        self._walk = walk
        self._pass = 0
        self._cursor: Cursor | None = None
        self._is_empty = True  # the pass that runs has given nothing yet

    def _open(self) -> Cursor:
        if self._cursor is None:
            self._cursor = self._source.open((*self._walk, self._pass))
        return self._cursor

    def __next__(self) -> Any:
        while self._pass != self._count:
            try:
                element = next(self._open())
            except StopIteration:
                self.close()
                if self._is_empty:  # it will never give anything
                    raise
                self._pass += 1
                self._is_empty = True
            else:
                self._is_empty = False
                return element
        raise StopIteration

    def state(self) -> State:
        inner = None if self._cursor is None else self._cursor.state()
        return {"pass": self._pass, "is_empty": self._is_empty, "source": inner}

    def restore(self, state: State) -> None:
        self.close()
        self._pass, self._is_empty = int(state["pass"]), bool(state["is_empty"])
        if state["source"] is not None:
            self._open().restore(state["source"])

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


class Enumerated(Stage):
    """Each element with its number."""

    def __init__(self, source: Stage, start: int) -> None:
        super().__init__("Dataset.enumerate", source)
        self._start = start

    def spec(self) -> Any:
        return TensorSpec((), "int64"), self.sources[0].spec()

    def open(self, walk: Epoch) -> Cursor:
        return _Enumerating(self.sources[0].open(walk), self._start)


class _Enumerating(Passing):
    def __init__(self, source: Cursor, start: int) -> None:
        super().__init__(source)
        self._number = start

    def __next__(self) -> Any:
        element = next(self.source)
        self._number += 1
        return np.int64(self._number - 1), element

    def state(self) -> State:
        return {"source": self.source.state(), "number": self._number}

    def restore(self, state: State) -> None:
        self.source.restore(state["source"])
        self._number = int(state["number"])
