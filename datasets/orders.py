"""Orders of rows: in a row, shuffled, repeated, in part.

A finite order is an array of indices for each pass; the place in it is one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .epochs import INFINITE, Epoch, State
from .indexing import Block, Rows, joined, length
from .sampling import buffered_order


class OrderCursor:
    """A walk along an order. Abstract."""

    def block(self, count: int) -> Block:
        """The next indices, at most `count`; fewer only at the end."""
        raise NotImplementedError

    def state(self) -> State:
        """Where it is."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """Go where `state` was taken."""
        raise NotImplementedError


class Order:
    """An order of rows. Abstract: finite ones write `indices`."""

    def __init__(self, size: int) -> None:
        self.size = size

    def indices(self, walk: Epoch) -> Block:
        """All of them, for a finite order."""
        raise NotImplementedError

    def open(self, walk: Epoch) -> OrderCursor:
        """A walk from the beginning."""
        return _Finite(self.indices(walk))


class _Finite(OrderCursor):
    def __init__(self, indices: Block) -> None:
        self._indices = indices
        self._size = length(indices)
        self._at = 0

    def block(self, count: int) -> Block:
        start, stop = self._at, min(self._at + count, self._size)
        self._at = stop
        if isinstance(self._indices, slice):
            first = self._indices.start
            return slice(first + start, first + stop)
        return self._indices[start:stop]

    def state(self) -> State:
        return {"at": self._at}

    def restore(self, state: State) -> None:
        self._at = min(int(state["at"]), self._size)


class InOrder(Order):
    """The rows from `start` to `stop`, as they lie."""

    def __init__(self, start: int, stop: int) -> None:
        super().__init__(stop - start)
        self.start = start

    def indices(self, walk: Epoch) -> Block:
        return slice(self.start, self.start + self.size)


class Shuffled(Order):
    """Another order at random, as a buffer of so many elements gives it."""

    def __init__(self, source: Order, buffer: int, seed: int, reshuffle: bool) -> None:
        super().__init__(source.size)
        self._source = source
        self._buffer = buffer
        self._seed = seed
        self._reshuffle = reshuffle

    def indices(self, walk: Epoch) -> Block:
        found = self._source.indices(walk)
        if isinstance(found, slice):
            found = np.arange(found.start, found.stop)
        own = walk if self._reshuffle else ()
        return found[buffered_order(self.size, self._buffer, self._seed, own)]


class Part(Order):
    """The elements of another order from `start` to `stop`, in steps."""

    def __init__(self, source: Order, start: int, stop: int, step: int = 1) -> None:
        super().__init__(len(range(*slice(start, stop, step).indices(source.size))))
        self._source = source
        self._slice = slice(start, stop, step)

    def indices(self, walk: Epoch) -> Block:
        found = self._source.indices(walk)
        if not isinstance(found, slice):
            return found[self._slice]
        rows = range(found.start, found.stop)[self._slice]
        if rows.step == 1:
            return slice(rows.start, max(rows.start, rows.stop))
        return np.arange(rows.start, rows.stop, rows.step)


class Repeated(Order):
    """Another order again and again; without a `count` for ever."""

    def __init__(self, source: Order, count: int | None) -> None:
        super().__init__(INFINITE if count is None else source.size * count)
        self._source = source
        self._count = count

    def indices(self, walk: Epoch) -> Block:
        passes = range(self._count or 0)
        return joined([self._source.indices((*walk, number)) for number in passes])

    def open(self, walk: Epoch) -> OrderCursor:
        return _Repeating(self._source, self._count, walk)


class _Repeating(OrderCursor):
    def __init__(self, source: Order, count: int | None, walk: Epoch) -> None:
        self._source = source
        self._count = count
        self._walk = walk
        self._pass = 0
        self._inner: OrderCursor | None = None

    def _open(self) -> OrderCursor:
        if self._inner is None:
            self._inner = self._source.open((*self._walk, self._pass))
        return self._inner

    def block(self, count: int) -> Block:
        found: list[Any] = []
        while count and self._pass != self._count and self._source.size:
            block = self._open().block(count)
            size = length(block)
            if not size:
                self._pass += 1
                self._inner = None
            else:
                found.append(block)
                count -= size
        return joined(found)

    def state(self) -> State:
        inner = None if self._inner is None else self._inner.state()
        return {"pass": self._pass, "inner": inner}

    def restore(self, state: State) -> None:
        self._pass = int(state["pass"])
        self._inner = None
        if state["inner"] is not None:
            self._open().restore(state["inner"])


@dataclass(frozen=True)
class Indexed:
    """Examples in memory, and the order in which they come."""

    rows: Rows
    order: Order
