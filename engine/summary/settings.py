"""Whether summaries are written in eager code and functions, and of which step they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..graph import building, eager_scope
from ..resources import summary_writing


def record_if(condition: Any) -> AbstractContextManager[None]:
    """A block in which summaries are written where a condition holds.

    Args:
        condition: a bool; or a function, a tensor or a variable, which is asked each time that a
            summary could be written: `record_if(lambda: int(step.numpy()) % 10 == 0)`. In a
            function, a block around a summary may say a tensor of it: `record_if(step % 10 == 0)`.

    Examples:
        >>> with engine.summary.record_if(False):
        ...     engine.summary.should_record()
        False
    """
    return summary_writing.condition.block(asking(condition, bool), in_trace(condition))


def should_record() -> bool:
    """Whether a summary would be written now.

    Examples:
        >>> engine.summary.should_record()  # there is no writer
        False
    """
    return summary_writing.current_sink() is not None


def set_step(step: Any) -> None:
    """Say which step summaries are of that do not say it: a number, or a function, tensor or
    variable, which is asked each time; None for nothing.

    Examples:
        >>> engine.summary.set_step(5)
        >>> engine.summary.get_step()
        5
        >>> engine.summary.set_step(None)
    """
    summary_writing.step.set(None if step is None else asking(step, int))


def get_step() -> int | None:
    """Which step summaries are of that do not say it.

    Examples:
        >>> engine.summary.set_step(5)
        >>> engine.summary.get_step()
        5
        >>> engine.summary.set_step(None)
    """
    ask = summary_writing.step.get()
    return None if ask is None else ask()


def in_trace(said: Any) -> tuple[Any] | None:
    """What a block says, if it is entered while a function is traced; (said,)."""
    graph = building()
    return (said,) if graph is not None and graph.captures_values else None


def asking(value: Any, kind: Callable[[Any], Any]) -> Callable[[], Any]:
    """A function that gives the value as it is when it is called."""

    def ask() -> Any:
        with eager_scope():
            found = value() if callable(value) else value
            return kind(np.asarray(found).item())

    return ask
