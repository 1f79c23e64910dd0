"""Barriers: elements whose components come one by one, under a key, and go when they are whole."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from ..errors import CancelledError, InvalidArgumentError, OutOfRangeError, ShapeError
from .attempts import Attempts
from .batches import Array, Shape, show_shape
from .waiting import Done, Ticket

FIRST_INDEX = -(2**63)  # of what was inserted first


class _Partial:
    """An element that is not whole yet."""

    __slots__ = ("components", "index")

    def __init__(self, index: int, count: int) -> None:
        self.index = index
        self.components: list[Array | None] = [None] * count


# A whole element: when its key came, the key, and the components.
Whole = tuple[int, bytes, list[Array]]


class Barrier(Attempts):
    """Elements of several components, each inserted by itself.

    State: `_partial[key]`, the elements that are not whole; `_whole`, a heap of those that are, the
    oldest key first; `_next`, the index of the next call that brings new keys. When it is closed no
    new keys are accepted; after a close that cancels, nothing is.

    Args:
        name: for errors.
        shapes: of the components, None where nothing is known.
    """

    def __init__(self, name: str, shapes: Sequence[Shape | None]) -> None:
        super().__init__()
        self.name = name
        self.declared: Any = None  # what graphs say of it
        self._shapes = tuple(shapes)
        self._partial: dict[bytes, _Partial] = {}
        self._whole: list[Whole] = []
        self._next = FIRST_INDEX
        self._closed = self._cancelled = False

    @property
    def ready_size(self) -> int:
        """How many elements are whole."""
        found: int = self.look(lambda: len(self._whole))
        return found

    @property
    def incomplete_size(self) -> int:
        """How many elements are not."""
        found: int = self.look(lambda: len(self._partial))
        return found

    def insert_many(self, component: int, keys: Sequence[bytes], values: Sequence[Array]) -> None:
        """Give elements one of their components.

        Raises:
            CancelledError: it is closed, and a key is new; or it was closed for all.
            InvalidArgumentError: an element has the component already.
            ShapeError: a value does not fit.
        """
        self.change(lambda: self._insert(component, keys, values))

    def _insert(self, component: int, keys: Sequence[bytes], values: Sequence[Array]) -> None:
        new = {k for k in keys if k not in self._partial}
        if self._cancelled or (self._closed and new):
            raise CancelledError(
                f"barrier {self.name!r} is closed: "
                + (f"the key {min(new)!r} cannot be added" if new else "nothing can be inserted")
            )
        if len(set(keys)) < len(keys):
            raise InvalidArgumentError(f"barrier {self.name!r}: a key is there twice in {keys}")
        shape = self._shapes[component]
        for key, value in zip(keys, values, strict=True):
            known = self._partial.get(key)
            if known is not None and known.components[component] is not None:
                raise InvalidArgumentError(
                    f"barrier {self.name!r}: the element {key!r} has component {component} already"
                )
            if shape is not None and not _fits(shape, value.shape):
                raise ShapeError(
                    f"barrier {self.name!r}: component {component} must have shape "
                    f"{show_shape(shape)}, got {show_shape(value.shape)}"
                )
        for key, value in zip(keys, values, strict=True):
            if key not in self._partial:
                self._partial[key] = _Partial(self._next, len(self._shapes))
            found = self._partial[key]
            found.components[component] = value
            whole = [c for c in found.components if c is not None]
            if len(whole) == len(found.components):
                del self._partial[key]
                heapq.heappush(self._whole, (found.index, key, whole))
        if new:
            self._next += 1

    def take_many(self, count: int, allow_small_batch: bool, done: Done) -> Ticket | None:
        """Take `count` whole elements, the oldest first; waits until they are there.

        `done` gets a list of them; or OutOfRangeError, when it is closed and so many cannot come.
        With `allow_small_batch`, a closed barrier gives what is whole, as soon as that is anything.
        """
        if count < 1:
            raise InvalidArgumentError(f"barrier {self.name!r}: cannot take {count} elements")

        def attempt() -> tuple[list[Whole]] | None:
            there = len(self._whole)
            small = allow_small_batch and self._closed and there > 0
            if there >= count or small:
                return ([heapq.heappop(self._whole) for _ in range(min(count, there))],)
            coming = len(self._partial)
            if self._closed and there + coming < (1 if allow_small_batch else count):
                raise OutOfRangeError(
                    f"barrier {self.name!r} is closed and has too few elements "
                    f"(asked for {count}, {there} are whole, {coming} are not)"
                )
            return None

        return self.begin(attempt, done)

    def close(self, cancel_pending_enqueues: bool = False) -> None:
        """Accept no new keys; what is not whole can be made so, unless it is cancelled."""

        def action() -> None:
            self._closed = True
            if cancel_pending_enqueues:
                self._cancelled = True
                self._partial.clear()

        self.change(action)

    def __repr__(self) -> str:
        return f"barrier {self.name!r}"


def _fits(shape: Shape, found: tuple[int, ...]) -> bool:
    return len(shape) == len(found) and all(
        n is None or n == m for n, m in zip(shape, found, strict=True)
    )
