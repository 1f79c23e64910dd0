"""A source some of whose recent elements are still held, as a shuffle buffer holds them.

The state of such a stage is not the elements, which may be large, but their numbers: after a
restart the source is walked again from a mark before the oldest of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

from .epochs import State
from .stage import Cursor


class Trail:
    """Numbers the elements of a source, and marks its way.

    `_marks` holds (number, state of the source before the element of that number), oldest first.

    Args:
        source: what is walked along.
        held: the numbers of the elements that are still held.
        every: elements between two marks.

    Attributes:
        count: elements taken so far.
    """

    def __init__(self, source: Cursor, held: Callable[[], Iterable[int]], every: int = 64) -> None:
        self.source = source
        self.count = 0
        self._held = held
        self._every = every
        self._marks: deque[tuple[int, State]] = deque()

    def pull(self) -> tuple[int, Any]:
        """The next element and its number."""
        if not self._marks or self.count - self._marks[-1][0] >= self._every:
            self._forget()
            self._marks.append((self.count, self.source.state()))
        element = next(self.source)
        self.count += 1
        return self.count - 1, element

    def _forget(self) -> None:
        """Drop the marks that lie before what is needed for the oldest element held."""
        oldest = min(self._held(), default=self.count)
        while len(self._marks) > 1 and self._marks[1][0] <= oldest:
            self._marks.popleft()
        if self._marks and oldest >= self.count:
            self._marks.clear()

    def state(self) -> State:
        """Where the source is, with all that is needed to have the elements held again."""
        self._forget()
        number, source = self._marks[0] if self._marks else (self.count, self.source.state())
        return {"mark": number, "source": source, "count": self.count}

    def restore(self, state: State, wanted: Collection[int]) -> dict[int, Any]:
        """Go where `state` was taken; gives the elements of the `wanted` numbers."""
        self.source.restore(state["source"])
        self.count = int(state["mark"])
        self._marks.clear()
        self._marks.append((self.count, state["source"]))
        found = {}
        while self.count < int(state["count"]):
            element = next(self.source)
            if self.count in wanted:
                found[self.count] = element
            self.count += 1
        return found
