"""DatasetIterator: one walk through a data set, which can be saved and taken up again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final, Self

from laminar.engine.closing import Closing
from laminar.engine.errors import InvalidArgumentError

from .elements import as_tensors
from .epochs import State
from .stage import Cursor, Stage

_VERSION: Final = 1


class DatasetIterator(Iterator[Any], Closing):
    """One walk through a data set.

    Its threads and files are freed at the end, by `close`, at the end of a `with` block, and when
    the iterator is dropped, as a `for` loop does that is left early.

    Args:
        stage: what is walked.
        number: of the walk: each shuffles anew.
        as_numpy: whether elements are NumPy arrays instead of tensors.

    Examples:
        >>> iterator = iter(laminar.datasets.Dataset.range(3))
        >>> next(iterator), next(iterator)
        (Tensor(0, shape=(), dtype=int64), Tensor(1, shape=(), dtype=int64))
    """

    def __init__(self, stage: Stage, number: int, *, as_numpy: bool) -> None:
        self._stage = stage
        self._number = number
        self._as_numpy = as_numpy
        self._cursor: Cursor | None = stage.open((number,))
        self._end: State | None = None  # the state after the last element, once that has come

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        cursor = self._cursor
        if cursor is None or self._end is not None:
            raise StopIteration
        try:
            element = next(cursor)
        except StopIteration:
            self._end = cursor.state()
            cursor.close()
            raise
        return element if self._as_numpy else as_tensors(element)

    def state(self) -> State:
        """Where it is, before the next element: numbers, texts, lists and dicts, as JSON has them.

        The state of an iterator over the same pipeline, in this or another process, that is set to
        it with `restore` gives the same elements from there on. The state is small: shuffle buffers
        and the like are filled again by walking a part of the source once more.
        """
        cursor = self._open_cursor("state")
        return {
            "version": _VERSION,
            "pipeline": self._stage.names(),
            "pass": self._number,
            "at": cursor.state() if self._end is None else self._end,
        }

    def restore(self, state: State) -> None:
        """Go where `state` was taken.

        Raises:
            InvalidArgumentError: it is not the state of an iterator, or that of another pipeline.
        """
        cursor = self._open_cursor("restore")
        pipeline = self._stage.names()
        if not isinstance(state, dict) or state.get("version") != _VERSION:
            raise InvalidArgumentError(
                f"restore: expected what state() gave, got {str(state)[:80]!r}"
            )
        if state.get("pipeline") != pipeline:
            raise InvalidArgumentError(
                f"restore: the state is that of another pipeline: {state.get('pipeline')}, "
                f"expected {pipeline}",
                remedy="build the data set as it was when the state was saved",
            )
        self._end = None
        try:
            number = int(state["pass"])
            if number != self._number:
                cursor.close()
                self._number = number
                self._cursor = cursor = self._stage.open((number,))
            cursor.restore(state["at"])
        except (KeyError, TypeError, ValueError, StopIteration) as cause:
            if isinstance(cause, InvalidArgumentError):
                raise
            raise InvalidArgumentError(
                f"restore: the state does not fit the data: {cause!r}",
                remedy="use the data that the state was saved with",
            ) from cause

    def skip(self, count: int) -> int:
        """Go on by `count` elements, or to the end; gives how many they were."""
        return self._open_cursor("skip").skip(count)

    def _open_cursor(self, who: str) -> Cursor:
        if self._cursor is None:
            raise InvalidArgumentError(f"{who}: the iterator is closed")
        return self._cursor

    def close(self) -> None:
        """End threads, close files; no more elements come."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # not made to the end
            self.close()
