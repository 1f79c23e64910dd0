"""Several data sets as one: zip, concatenate, flat_map and interleave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.tree import flatten, map_structure, pack_sequence_as

from .elements import packer
from .epochs import INFINITE, UNKNOWN, Epoch, State
from .indexing import ZippedRows
from .orders import InOrder
from .picking import apply
from .prefetching import Prefetching
from .replay import Trail
from .sources import first_spec, in_memory, size_of_sum
from .stage import Cursor, Stage, call_user


def zipped(stages: Any) -> Stage:
    """Elements side by side, in the structure of `stages`, until the first source ends."""
    parts = flatten(stages)
    found = [stage.indexed() for stage in parts]
    rows = [f.rows for f in found if f is not None and _is_plain(f.order, f.rows.size)]
    if len(rows) == len(parts):
        return in_memory("Dataset.zip", ZippedRows(pack_sequence_as(stages, rows)), *parts)
    return Zipped(stages)


def _is_plain(order: Any, size: int) -> bool:
    return isinstance(order, InOrder) and order.start == 0 and order.size == size


class Zipped(Stage):
    """Elements of any sources side by side."""

    def __init__(self, stages: Any) -> None:
        super().__init__("Dataset.zip", *flatten(stages))
        self._structure = map_structure(lambda _: 0, stages)

    def cardinality(self) -> int:
        sizes = [source.cardinality() for source in self.sources]
        finite = [size for size in sizes if size != INFINITE]
        return UNKNOWN if UNKNOWN in sizes else min(finite, default=INFINITE)

    def spec(self) -> Any:
        return packer(self._structure)([source.spec() for source in self.sources])

    def open(self, walk: Epoch) -> Cursor:
        cursors = [source.open(walk) for source in self.sources]
        return _Zipping(cursors, packer(self._structure))


class _Zipping(Cursor):
    def __init__(self, cursors: list[Cursor], pack: Callable[[list[Any]], Any]) -> None:
        self._cursors = cursors
        self._pack = pack

    def __next__(self) -> Any:
        parts = []
        for cursor in self._cursors:
            parts.append(next(cursor))
        return self._pack(parts)

    def state(self) -> State:
        return {"sources": [cursor.state() for cursor in self._cursors]}

    def restore(self, state: State) -> None:
        for cursor, place in zip(self._cursors, state["sources"], strict=True):
            cursor.restore(place)

    def close(self) -> None:
        for cursor in self._cursors:
            cursor.close()


class Concatenated(Stage):
    """Sources one after the other."""

    def __init__(self, *stages: Stage) -> None:
        super().__init__("Dataset.concatenate", *stages)

    def cardinality(self) -> int:
        return size_of_sum([source.cardinality() for source in self.sources])

    def open(self, walk: Epoch) -> Cursor:
        return _Concatenating(self.sources, walk)


class _Concatenating(Cursor):
    def __init__(self, sources: tuple[Stage, ...], walk: Epoch) -> None:
        self._sources = sources
        self._walk = walk
        self._at = 0
        self._cursor: Cursor | None = None

    def _open(self) -> Cursor:
        if self._cursor is None:
            self._cursor = self._sources[self._at].open(self._walk)
        return self._cursor

    def __next__(self) -> Any:
        while self._at < len(self._sources):
            for element in self._open():
                return element
            self.close()
            self._at += 1
        raise StopIteration

    def state(self) -> State:
        return {"at": self._at, "source": None if self._cursor is None else self._cursor.state()}

    def restore(self, state: State) -> None:
        self.close()
        self._at = int(state["at"])
        if state["source"] is not None:
            self._open().restore(state["source"])

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


class Interleaved(Stage):
    """The elements of the data sets that a function makes of each element.

    Args:
        source: of the elements.
        fn: gives a data set for an element.
        cycle: how many of them are walked in turn.
        block: how many elements are taken of each in its turn.
        is_parallel: whether each has a thread of its own.
        label: for errors.
    """

    def __init__(
        self,
        source: Stage,
        fn: Callable[..., Any],
        cycle: int = 1,
        block: int = 1,
        is_parallel: bool = False,
        label: str = "Dataset.flat_map",
    ) -> None:
        super().__init__(label, source)
        self._fn = fn
        self.cycle = cycle
        self.block = block
        self._is_parallel = is_parallel

    def cardinality(self) -> int:
        return 0 if self.sources[0].cardinality() == 0 else UNKNOWN

    def spec(self) -> Any:
        return first_spec(self)

    def inner(self, element: Any, walk: Epoch) -> Cursor:
        """A walk through the data set of an element."""
        made = call_user(self, apply, self._fn, element)
        stage = getattr(made, "stage", None)
        if not isinstance(stage, Stage):
            error = InvalidArgumentError(
                f"{self.label}: the function must return a Dataset, got {type(made).__name__}",
                remedy="wrap it: Dataset.from_tensor_slices(...)",
                location=self.made,
            )
            raise error
        cursor = stage.open(walk)
        return Prefetching(cursor, 2 * self.block) if self._is_parallel else cursor

    def open(self, walk: Epoch) -> Cursor:
        return _Interleaving(self.sources[0].open(walk), self, walk)


class _Interleaving(Cursor):
    """`_slots` hold (number of the outer element, walk through its data set) or None.

    `_slot` has its turn, and has given `_given` elements in it.
    """

    def __init__(self, source: Cursor, stage: Interleaved, walk: Epoch) -> None:
        self._stage = stage
        self._walk = walk
        self._slots: list[tuple[int, Cursor] | None] = [None] * stage.cycle
        self._trail = Trail(source, self._numbers)
        self._slot = 0
        self._given = 0
        self._has_ended = False

    def _numbers(self) -> list[int]:
        return [slot[0] for slot in self._slots if slot is not None]

    def _inner(self, number: int, element: Any) -> tuple[int, Cursor]:
        return number, self._stage.inner(element, (*self._walk, number))

    def __next__(self) -> Any:
        while not self._has_ended or any(self._slots):
            slot = self._slots[self._slot]
            if slot is None and not self._has_ended:
                try:
                    slot = self._slots[self._slot] = self._inner(*self._trail.pull())
                except StopIteration:
                    self._has_ended = True
            if slot is not None:
                try:
                    element = next(slot[1])
                except StopIteration:
                    slot[1].close()
                    self._slots[self._slot] = None
                else:
                    self._given += 1
                    if self._given == self._stage.block:
                        self._turn()
                    return element
            self._turn()
        raise StopIteration

    def _turn(self) -> None:
        self._slot = (self._slot + 1) % len(self._slots)
        self._given = 0

    def state(self) -> State:
        return {
            "trail": self._trail.state(),
            "slots": [None if s is None else [s[0], s[1].state()] for s in self._slots],
            "slot": self._slot,
            "given": self._given,
            "has_ended": self._has_ended,
        }

    def restore(self, state: State) -> None:
        self._close_slots()
        slots = state["slots"]
        found = self._trail.restore(state["trail"], {s[0] for s in slots if s is not None})
        for place, slot in enumerate(slots):
            if slot is not None:
                number, inner = slot
                self._slots[place] = fresh = self._inner(number, found[number])
                fresh[1].restore(inner)
        self._slot, self._given = int(state["slot"]), int(state["given"])
        self._has_ended = bool(state["has_ended"])

    def _close_slots(self) -> None:
        for slot in self._slots:
            if slot is not None:
                slot[1].close()
        self._slots = [None] * self._stage.cycle

    def close(self) -> None:
        self._close_slots()
        self._trail.source.close()
