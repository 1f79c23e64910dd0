"""Stages of a pipeline, and the cursors that walk through them.

A `Stage` is a recipe and never changes. Walking is the matter of a `Cursor`, which a stage opens
for one pass; the stages before it open theirs. Where randomness is needed it is a function of a
seed and of the pass, so the state of a cursor is a few numbers: where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import Location, user_location

from .epochs import Epoch, State
from .orders import Indexed


class Cursor(Iterator[Any]):
    """One pass through a stage. Abstract: `__next__`, `state` and `restore` are to be written."""

    def state(self) -> State:
        """Where it is, before the next element."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """Go where `state` was taken, in this or another process."""
        raise NotImplementedError

    def skip(self, count: int) -> int:
        """Go on by `count` elements, or to the end; gives how many they were."""
        for done in range(count):
            try:
                next(self)
            except StopIteration:
                return done
        return count

    def close(self) -> None:
        """Free files and end threads; a second call does nothing."""


class Passing(Cursor):
    """A cursor over one other, whose place is its own. Abstract: `__next__` is to be written."""

    def __init__(self, source: Cursor) -> None:
        self.source = source

    def state(self) -> State:
        return {"source": self.source.state()}

    def restore(self, state: State) -> None:
        self.source.restore(state["source"])

    def close(self) -> None:
        self.source.close()


class Stage:
    """A step of a pipeline. Abstract.

    Args:
        label: what made it, for errors, as "Dataset.map".
        sources: the stages before it.

    Attributes:
        made: the user's line that made it.
    """

    def __init__(self, label: str, *sources: Stage) -> None:
        self.label = label
        self.sources = sources
        self.made: Location | None = user_location()

    def open(self, walk: Epoch) -> Cursor:
        """A cursor at the beginning."""
        raise NotImplementedError

    def cardinality(self) -> int:
        """The number of elements, INFINITE or UNKNOWN; that of the source unless it is written."""
        return self.sources[0].cardinality()

    def spec(self) -> Any:
        """The structure of an element, of TensorSpec; that of the source unless it is written."""
        return self.sources[0].spec()

    def indexed(self) -> Indexed | None:
        """The elements as rows of arrays and an order of them, where they can be had so."""
        return None

    def names(self) -> list[str]:
        """The stages, last first, for telling whose state a state is."""
        return [self.label, *(name for source in self.sources for name in source.names())]

    def blame(self, error: BaseException) -> None:
        """Note on an error of the user's code which stage ran it."""
        error.add_note(
            f"  in {self.label} made at {self.made}" if self.made else f"  in {self.label}"
        )


def call_user(stage: Stage, fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(*args)`; what it raises says which stage called it."""
    try:
        return fn(*args)
    except StopIteration as error:
        failure = RuntimeError(f"{stage.label}: the function raised StopIteration")
        stage.blame(failure)
        raise failure from error
    except BaseException as error:
        stage.blame(error)
        raise


def checked_count(what: str, value: Any, least: int = 1) -> int:
    """`value` as a whole number of at least `least`; InvalidArgumentError when it is not."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidArgumentError(
            f"{what} must be a whole number of at least {least}, got {value!r}"
        )
    return int(value)
