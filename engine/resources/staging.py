"""Staging areas: elements put down by one step and taken by another, in order or by key."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidArgumentError, ResourceExhaustedError
from .attempts import Attempts
from .batches import Array, Element
from .waiting import Done, Ticket


def _bytes_of(arrays: Sequence[Array]) -> int:
    return sum(int(a.nbytes) for a in arrays)


class _Room(Attempts):
    """What both kinds share: room for so many elements, of so many bytes.

    State: `_held_bytes`, the bytes of all components that are there.

    Args:
        name: for errors.
        capacity: how many elements fit, 0 for any number.
        memory_limit: how many bytes, 0 for any number.
    """

    def __init__(self, name: str, capacity: int = 0, memory_limit: int = 0) -> None:
        super().__init__()
        self.name = name
        self.declared: Any = None  # what graphs say of it
        self._capacity, self._limit = capacity, memory_limit
        self._held_bytes = 0

    def _check_size(self, arrays: Sequence[Array]) -> None:
        """ResourceExhaustedError for what never fits."""
        size = _bytes_of(arrays)
        if self._limit and size > self._limit:
            raise ResourceExhaustedError(
                f"{self!r}: an element of {size} bytes never fits into its {self._limit} bytes"
            )

    def _has_bytes_for(self, arrays: Sequence[Array]) -> bool:
        return not self._limit or self._held_bytes + _bytes_of(arrays) <= self._limit


class StagingArea(_Room):
    """Elements come out in the order in which they went in: `_elements` are those inside."""

    def __init__(self, name: str, capacity: int = 0, memory_limit: int = 0) -> None:
        super().__init__(name, capacity, memory_limit)
        self._elements: deque[Element] = deque()

    @property
    def size(self) -> int:
        """How many elements are there."""
        found: int = self.look(lambda: len(self._elements))
        return found

    def put(self, element: Element, done: Done) -> Ticket | None:
        """Put an element down; waits until there is room."""
        self._check_size(element)

        def attempt() -> tuple[None] | None:
            full = self._capacity and len(self._elements) >= self._capacity
            if full or not self._has_bytes_for(element):
                return None
            self._elements.append(element)
            self._held_bytes += _bytes_of(element)
            return (None,)

        return self.begin(attempt, done)

    def get(self, done: Done) -> Ticket | None:
        """Take the element that came first; waits until there is one."""

        def attempt() -> tuple[Element] | None:
            if not self._elements:
                return None
            element = self._elements.popleft()
            self._held_bytes -= _bytes_of(element)
            return (element,)

        return self.begin(attempt, done)

    def peek(self, index: int, done: Done) -> Ticket | None:
        """The element at a place, which stays; waits until there are so many."""
        if index < 0:
            raise InvalidArgumentError(f"{self!r}: an index is not negative, got {index}")

        def attempt() -> tuple[Element] | None:
            return (self._elements[index],) if index < len(self._elements) else None

        return self.begin(attempt, done)

    def clear(self) -> None:
        """Drop all elements."""

        def action() -> None:
            self._elements.clear()
            self._held_bytes = 0

        self.change(action)

    def __repr__(self) -> str:
        return f"staging area {self.name!r}"


class MapStagingArea(_Room):
    """Elements under keys, whose components may come and go by themselves.

    State: `_partial[key]` and `_whole[key]`, the components that are there, by number; a key is in
    one of the two. An element is whole when all have come, also when some of them have gone.

    Args:
        name: for errors.
        count: the number of components.
        ordered: whether the least key is taken first, where none is asked for; else the oldest.
        capacity, memory_limit: see above.
    """

    def __init__(
        self, name: str, count: int, ordered: bool, capacity: int = 0, memory_limit: int = 0
    ) -> None:
        super().__init__(name, capacity, memory_limit)
        self._count = count
        self._ordered = ordered
        self._partial: dict[int, dict[int, Array]] = {}
        self._whole: dict[int, dict[int, Array]] = {}

    @property
    def size(self) -> int:
        """How many elements are whole."""
        found: int = self.look(lambda: len(self._whole))
        return found

    @property
    def incomplete_size(self) -> int:
        """How many elements are not."""
        found: int = self.look(lambda: len(self._partial))
        return found

    def put(
        self, key: int, numbers: Sequence[int], components: Sequence[Array], done: Done
    ) -> Ticket | None:
        """Put some components of an element down; waits until there is room.

        `done` may get InvalidArgumentError: the element has one of them already.
        """
        self._check_size(components)

        def attempt() -> tuple[None] | None:
            known = self._partial.get(key, {})
            twice = key in self._whole or any(n in known for n in numbers)
            if twice:
                raise InvalidArgumentError(
                    f"{self!r}: the element {key} has one of the components {list(numbers)} already"
                )
            new = key not in self._partial
            held = len(self._whole) + len(self._partial)
            if (new and self._capacity and held >= self._capacity) or not self._has_bytes_for(
                components
            ):
                return None
            found = self._partial.setdefault(key, {})
            found.update(zip(numbers, components, strict=True))
            self._held_bytes += _bytes_of(components)
            if len(found) == self._count:
                self._whole[key] = self._partial.pop(key)
            return (None,)

        return self.begin(attempt, done)

    def get(self, key: int | None, numbers: Sequence[int], done: Done) -> Ticket | None:
        """Take some components of an element; waits until it is whole.

        Args:
            key: of the element; None for any.
            numbers: of the components; when none is left, the element is gone.
            done: gets (key, components), or InvalidArgumentError: one of them has been taken.
        """

        def attempt() -> tuple[Any] | None:
            chosen = key
            if chosen is None and self._whole:
                chosen = min(self._whole) if self._ordered else next(iter(self._whole))
            if chosen is None or chosen not in self._whole:
                return None
            held = self._components(chosen, numbers)
            whole = self._whole[chosen]
            for n in numbers:
                del whole[n]
            if not whole:
                del self._whole[chosen]
            self._held_bytes -= _bytes_of(held)
            return ((chosen, held),)

        return self.begin(attempt, done)

    def peek(self, key: int, numbers: Sequence[int], done: Done) -> Ticket | None:
        """As `get`, and the components stay."""

        def attempt() -> tuple[Any] | None:
            return ((key, self._components(key, numbers)),) if key in self._whole else None

        return self.begin(attempt, done)

    def _components(self, key: int, numbers: Sequence[int]) -> Element:
        whole = self._whole[key]
        gone = [n for n in numbers if n not in whole]
        if gone:
            raise InvalidArgumentError(
                f"{self!r}: the components {gone} of the element {key} have been taken already"
            )
        return tuple(whole[n] for n in numbers)

    def clear(self) -> None:
        """Drop all elements."""

        def action() -> None:
            self._partial.clear()
            self._whole.clear()
            self._held_bytes = 0

        self.change(action)

    def __repr__(self) -> str:
        return f"map staging area {self.name!r}"
