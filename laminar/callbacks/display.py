"""What is shown of a loop: a bar while it runs, and one line when it is done.

The bar is for terminals and notebooks and goes when the loop is done. The line stays, and is all
that a log file gets. `bars.py` draws the bar.
"""

from __future__ import annotations

import logging
import math
import shutil
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import numpy as np

from laminar import config

from .bars import bar_class, is_live, literal, new_bar

Values = Mapping[str, Any]

INTERVAL_SECONDS = 0.1
_log = logging.getLogger("laminar")


class Flow(Protocol):
    """Where the batches of a loop come from, as far as a display is concerned."""

    @property
    def batch_size(self) -> int | None:
        """Examples in a batch, None when that is not known."""

    @property
    def waited_seconds(self) -> float:
        """How long the loop has waited for batches."""


class _Screen:
    """When a bar was last drawn, by any display of the process: loops may be shorter than that."""

    drawn = -math.inf


class Display:
    """What is shown of one loop.

    Args:
        label: stands first, as "Epoch 1/3".
        total: number of steps, None when it is not known.
        has_bar: whether a bar may be shown while the loop runs.
        unit: what a step is called.
        width: of the bar, in characters.
        interval: seconds between two drawings.
        flow: where the batches come from: for the examples in a second, and the time that the
            loop waits for data.
        averaged: names of the values that are means over the steps; the mean over the steps since
            the last drawing is shown beside them.
        begin: steps done before.

    Attributes:
        done: steps done so far.
    """

    def __init__(
        self,
        label: str,
        total: int | None,
        *,
        has_bar: bool,
        unit: str = "step",
        width: int = 20,
        interval: float = INTERVAL_SECONDS,
        flow: Flow | None = None,
        averaged: Collection[str] = (),
        begin: int = 0,
    ) -> None:
        self.done = self._begin = begin
        self._flow = flow
        self._waited_before = 0.0 if flow is None else flow.waited_seconds
        self._averaged = averaged
        self._drawn: tuple[int, Values] = (0, {})  # steps and values of the last drawing
        self._label = label
        self._total = total
        self._unit = unit
        self._width = width
        self._interval = interval
        self._bar: Any = None
        self._values: Values | Callable[[], Values] = {}
        self._start = time.perf_counter()
        # When the first steps that were told ended, how many they were, and when the last ended:
        # the first step, which may compile, is left out of the time of a step.
        self._first: tuple[float, int] | None = None
        self._last = self._start
        self._waited = 0.0  # for batches, when the last steps that were told ended
        self._due = _Screen.drawn + interval if has_bar and is_live() else math.inf
        self._draw_if_due(self._start, "")

    def advance(self, done: int, values: Values | Callable[[], Values] | None = None) -> None:
        """`done` steps are done, with these values, or those that a function reads.

        Nothing is read and formatted unless it is drawn.
        """
        now = self._last = time.perf_counter()
        self.done = done
        if values is not None:
            self._values = values
        if self._first is None:
            self._first = (now, done)
        if self._flow is not None:
            self._waited = self._flow.waited_seconds - self._waited_before
        if now >= self._due:
            self._draw_if_due(now, "")

    def note(self, text: str) -> None:
        """Show what goes on after the last step, in the place of the time that is left."""
        self._draw_if_due(time.perf_counter(), literal(text))

    def _draw_if_due(self, now: float, note: str) -> None:
        if now < self._due:
            return
        if self._bar is None:
            self._bar = new_bar(self._total, now - self._start)
        self._bar.draw(self.done, self._forms(note))
        _Screen.drawn = now
        # Counted from the end of the drawing: a slow terminal is not drawn to all the time.
        self._due = time.perf_counter() + self._interval

    def _forms(self, note: str) -> list[str]:
        """What the bar fills in, the longest form first: the first one that fits is shown.

        Examples in a second go first, then the time that is left, what is known of waiting, the
        means over the last steps, and the bar; the values stay. A form with a bar, be it one blank,
        is cut to the line.
        """
        label = f"{literal(self._label)} " if self._label else ""
        means = self._read()
        values = literal(format_values(means))
        current = self._current(means)
        long = literal(format_values(means, current)) if current else values
        self._drawn = (self.done, means)
        speed, waiting = self._speed(), self._waiting(least=5) if self.done > self._begin else ""
        if self._total is None:
            count = f"{label}{{n_fmt}} {self._unit}s{{bar:1}}"
            time = note or "{elapsed}"
        else:
            count = f"{label}{{n_fmt}}/{{total_fmt}} |{{bar:{self._width}}}|"
            time = f" {note}" if note else " {remaining} left" if self.done else " "
        bare = f"{label}{{n_fmt}}{'' if self._total is None else '/{total_fmt}'}{{bar:1b}}"
        return [
            count + time + speed + waiting + long,
            count + time + waiting + long,
            count + (f" {note}" if note and self._total else note) + waiting + long,
            count + waiting + long,
            count + long,
            count + values,
            bare + values.lstrip(),
        ]

    def _read(self) -> Values:
        if callable(self._values):
            self._values = self._values()
        return self._values

    def _current(self, means: Values) -> Values:
        """The means over the steps since the last drawing, from those over all steps."""
        before, old = self._drawn
        steps = self.done - before
        if not before or steps <= 0:
            return {}
        return {
            name: (means[name] * self.done - old[name] * before) / steps
            for name in self._averaged
            if isinstance(means.get(name), float) and isinstance(old.get(name), float)
        }

    def _speed(self) -> str:
        """The examples in a second."""
        if self._flow is None or self.done <= self._begin:
            return ""
        size, seconds = self._flow.batch_size, self._step_seconds()
        return f" - {_rounded(size / seconds)} examples/s" if size and seconds else ""

    def _waiting(self, least: int) -> str:
        """The part of the time of the steps that was spent waiting for data."""
        elapsed = self._last - self._start
        if self._flow is None or not elapsed:
            return ""
        part = min(round(100 * self._waited / elapsed), 100)
        return f" - waiting on data {part} %" if part >= least else ""

    def hide_bar(self) -> None:
        """Take the bar away; it is not shown again."""
        self._due = math.inf
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def finish(self, values: Mapping[str, Any] | None = None, note: str = "") -> None:
        """End the loop: print its line, with the last values or these."""
        self.hide_bar()
        say(_folded(self.line(self._read() if values is None else values) + note))

    def line(self, values: Mapping[str, Any]) -> str:
        """The loop on one line: label, steps, time, time of a step, values."""
        done = str(self.done)
        steps = f"{done.rjust(len(str(self._total)))}/{self._total}" if self._total else done
        elapsed = format_seconds(time.perf_counter() - self._start)
        parts = [steps if self._total else f"{steps} {self._unit}s", elapsed]
        if self.done > self._begin:
            parts.append(f"{format_seconds(self._step_seconds())}/{self._unit}")
        text = " - ".join(([self._label] if self._label else []) + parts)
        return text + self._waiting(least=20) + format_values(values)

    def _step_seconds(self) -> float:
        if self._first is not None and self.done > self._first[1]:
            return (self._last - self._first[0]) / (self.done - self._first[1])
        return (self._last - self._start) / (self.done - self._begin)


def say(text: str) -> None:
    """Print a line, above any bar; to the log if `disable_interactive_logging()` was called."""
    if not config.is_interactive_logging_enabled():
        _log.info(text)
        return
    if "tqdm" in sys.modules:
        bar_class().write(text, file=sys.stdout)
    else:
        print(text, file=sys.stdout)
    sys.stdout.flush()  # a log file shows each epoch when it is done


def _folded(line: str) -> str:
    """A line too long for the terminal as several, broken between values; a file keeps the one."""
    if not (config.is_interactive_logging_enabled() and sys.stdout.isatty()):
        return line
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for part in line.split(" - "):
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" - {part}"
        else:
            lines.append(f"    {part}" if lines else part)
    return "\n".join(lines)


def format_values(values: Values, current: Values | None = None) -> str:
    """The values as " - loss: 0.1234 (now 0.1201) - accuracy: 0.9876"."""
    now = {name: f" (now {_short(value)})" for name, value in (current or {}).items()}
    return "".join(
        f" - {name}: {_short(value)}{now.get(name, '')}" for name, value in values.items()
    )


def _rounded(number: float) -> str:
    """Three digits of a number: 1_230_000 is "1,230,000"."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        return " ".join(np.array2string(array, precision=4, threshold=4).split())
    number = float(array.reshape(()))
    return f"{number:.4f}" if number == 0 or 1e-3 <= abs(number) < 1e5 else f"{number:.4e}"


def format_seconds(seconds: float) -> str:
    """A time as "85us", "12ms", "3.4s", "2:05" or "1:02:05"."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f}us"
    if seconds < 1:
        return f"{seconds * 1e3:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_bytes(size: float) -> str:
    """A number of bytes as "712.00 B", "1.40 KB" and so on."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            break
        size /= 1024
    return f"{size:.2f} {unit}"
