"""Progbar: progress of a loop of one's own."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from laminar.callbacks.bars import is_live
from laminar.callbacks.display import Display, say
from laminar.engine.errors import InvalidArgumentError


class Progbar:
    """Shows how far a loop is: a bar while it runs, a line when it is done.

    Where the output is neither a terminal nor a notebook, as in a file, there are lines alone.

    Args:
        target: number of steps, None if it is not known.
        width: of the bar, in characters.
        verbose: 0 silent, 1 bar (in a file: lines) and line, 2 the line.
        interval: seconds between two drawings, and between two lines in a file.
        stateful_metrics: names of values that are shown as they are; all others are averaged.
        stateless_metrics: names of values that are averaged; all others are shown as they are.
        unit_name: what a step is called.

    Raises:
        InvalidArgumentError: both lists of names are given.

    Examples:
        >>> bar = laminar.utils.Progbar(3, verbose=0)
        >>> bar.add(3, [("loss", 0.5)])
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        if stateful_metrics is not None and stateless_metrics is not None:
            raise InvalidArgumentError(
                "Progbar: stateful_metrics and stateless_metrics exclude each other",
                remedy="give one of them: it says what the other names are",
            )
        self.target = target
        self.width = width
        self.verbose = verbose
        self.interval = interval
        self.unit_name = unit_name
        self._as_is = None if stateful_metrics is None else set(stateful_metrics)
        self._averaged = None if stateless_metrics is None else set(stateless_metrics)
        self._values = _Averages()
        self._said = -math.inf  # when the last line was printed
        self._display = (
            Display(
                "",
                target,
                has_bar=verbose == 1,
                unit=unit_name,
                width=width,
                interval=interval,
            )
            if verbose
            else None
        )

    def update(
        self,
        current: int,
        values: Iterable[tuple[str, Any]] | None = None,
        finalize: bool | None = None,
    ) -> None:
        """Tell that `current` steps are done.

        Args:
            current: steps done so far.
            values: (name, value of the steps since the last update); of several numbers the mean.
            finalize: whether the loop is done; by default when `current` reaches the target.
        """
        display = self._display
        if display is None:
            return
        steps = max(current - display.done, 1)
        for name, value in values or ():
            number = np.mean(value) if isinstance(value, list | tuple | np.ndarray) else value
            self._values.add(name, number, steps if self._is_averaged(name) else None)
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        display.advance(current, self._values)
        if finalize:
            display.finish()
            self._display = None
        elif self.verbose == 1 and not is_live():
            now = time.perf_counter()
            if now - self._said >= self.interval:
                say(display.line(self._values))
                self._said = now

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Tell that `n` more steps are done."""
        done = 0 if self._display is None else self._display.done
        self.update(done + n, values)

    def _is_averaged(self, name: str) -> bool:
        if self._averaged is not None:
            return name in self._averaged
        return self._as_is is None or name not in self._as_is


class _Averages(Mapping[str, Any]):
    """What is shown, computed when it is read: `_sums[name]` is (sum of value * steps, steps)."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[Any, int]] = {}

    def add(self, name: str, value: Any, steps: int | None) -> None:
        """Put a value to the average, with its steps as weight; None puts it in its place."""
        total, count = (0, 0) if steps is None else self._sums.get(name, (0, 0))
        weight = steps or 1
        self._sums[name] = (total + value * weight, count + weight)

    def __getitem__(self, name: str) -> Any:
        total, count = self._sums[name]
        return total / count

    def __iter__(self) -> Iterator[str]:
        return iter(self._sums)

    def __len__(self) -> int:
        return len(self._sums)
