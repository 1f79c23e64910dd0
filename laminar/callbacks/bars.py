"""The bar of a loop that runs, on a terminal or in a notebook.

On a terminal it is the last line, written over and over. A notebook keeps all that is printed, so
there it is an output of its own, one for a cell, whose text is replaced (a widget would leave its
first state in the saved notebook). This module owns tqdm, which is loaded when a bar is first
drawn: other bars of the program, drawn with it, stay where they are.
"""

from __future__ import annotations

import functools
import io
import sys
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from laminar import config


class Drawn(Protocol):
    """A bar that is shown."""

    def draw(self, done: int, forms: Sequence[str]) -> None:
        """Show that `done` steps are done, in the first of the forms that fits on the line."""

    def close(self) -> None:
        """Take it away."""


def new_bar(total: int | None, since: float) -> Drawn:
    """A bar that counts to `total`, begun `since` seconds ago; nothing is drawn yet."""
    made: Drawn = (_notebook_bar_class() if is_notebook() else bar_class()).begin(total, since)
    return made


def is_live() -> bool:
    """Whether a line can be written over: in a terminal, or in a notebook."""
    return config.is_interactive_logging_enabled() and (sys.stdout.isatty() or is_notebook())


def is_notebook() -> bool:
    """Whether what is printed goes to a notebook."""
    return type(sys.stdout).__module__.startswith("ipykernel")


def literal(text: str) -> str:
    """Text in a form that is filled in."""
    return text.replace("{", "{{").replace("}", "}}")


@functools.cache
def bar_class() -> Any:
    """The class of bars on terminals."""
    from tqdm import tqdm  # type: ignore[import-untyped]  # it ships no types

    class Bar(tqdm):  # type: ignore[misc]  # it ships no types
        """A bar without the thread and the lock between processes that others share.

        `_shown` is the text that stands on the line, drawn when that had `_columns`.
        """

        monitor_interval = 0
        _shown = ""
        _columns: int | None = None

        @classmethod
        def begin(cls, total: int | None, since: float, **options: Any) -> Any:
            bar = cls(
                total=total,
                leave=False,
                disable=False,
                dynamic_ncols=True,
                mininterval=0,
                miniters=1,
                delay=1e-9,  # otherwise it is drawn before it is told what
                **{"file": sys.stdout, **options},
            )
            bar.delay = 0
            bar.start_t -= since
            return bar

        def draw(self, done: int, forms: Sequence[str]) -> None:
            columns = self.format_dict["ncols"]
            self._clear_resized(columns)
            self.n, self.last_print_n = done, done
            self.bar_format = self._first_that_fits(forms, columns)
            self._shown = str(self)
            self.refresh()

        def _first_that_fits(self, forms: Sequence[str], columns: int | None) -> str:
            given = self.format_dict | {"ncols": None}
            for form in forms:
                if len(self.format_meter(**given | {"bar_format": form})) <= (columns or 100):
                    return form
            return forms[-1]

        def _clear_resized(self, columns: int | None) -> None:
            """When the terminal has another width, the line may stand on several: clear them."""
            if self._shown and columns and columns != self._columns:
                rows = (len(self._shown) - 1) // columns
                self.fp.write((f"\x1b[{rows}A" if rows else "") + "\r\x1b[J")
                self.sp = self.status_printer(self.fp)  # which blanks out as much as it has drawn
            self._columns = columns

        def close(self) -> None:
            if not self.disable:
                self._clear_resized(self.format_dict["ncols"])
            super().close()

    Bar.set_lock(threading.RLock())
    return Bar


@functools.cache
def _notebook_bar_class() -> Any:
    class NotebookBar(bar_class()):  # type: ignore[misc]  # made when it is needed
        """A bar in the output of a cell."""

        @classmethod
        def begin(cls, total: int | None, since: float) -> Any:
            # A notebook cannot go up a line, as a bar below another one needs.
            return super().begin(total, since, file=io.StringIO(), ascii=False, position=0)

        def display(self, msg: str | None = None, pos: int | None = None) -> bool:
            _CellOutput.show(str(self) if msg is None else msg)
            return True

    return NotebookBar


class _CellOutput:
    """The output of a cell in which bars are shown: the one made last, and its cell."""

    cell: Any = None
    handle: Any = None

    @classmethod
    def show(cls, text: str) -> None:
        """Replace what it shows."""
        from IPython.core.getipython import get_ipython  # type: ignore[import-not-found]  # optional
        from IPython.display import display  # type: ignore[import-not-found]  # optional

        shell = get_ipython()
        cell = None if shell is None else shell.execution_count
        bundle = {"text/plain": text}
        if cls.handle is None or cls.cell != cell:
            if text:
                cls.cell, cls.handle = cell, display(bundle, raw=True, display_id=True)
        else:
            cls.handle.update(bundle, raw=True)
