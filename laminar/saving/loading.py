"""Setting the variables of a model from a file: all of them or none, or as many as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from laminar.engine.errors import DataLossError, LaminarError
from laminar.engine.source import warn

from .report import LOADED, MISFIT, LoadReport

# What making objects from a config that nobody vouches for may raise.
LOADING_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Loading:
    """The loading of a model's variables.

    Used as a context: an error inside leaves all variables as they were, and so does, at the end,
    something that does not fit, unless it may be skipped.

    Args:
        model: what is loaded into.
        file: the name of the file.
        skip_mismatch: leave parts that do not fit as they are, with a warning for each.
        partial: leave them as they are, and say so in the report alone.
    """

    def __init__(
        self, model: Any, file: str, *, skip_mismatch: bool = False, partial: bool = False
    ) -> None:
        self.model = model
        self.file = file
        self.partial = partial
        self.skip_mismatch = skip_mismatch
        self.report = LoadReport(file)
        self._failures: list[LaminarError] = []

    def __enter__(self) -> Loading:
        optimizer = getattr(self.model, "optimizer", None)
        variables = [*self.model.variables, *(optimizer.variables if optimizer is not None else ())]
        self._before = [(v, v.read_value()) for v in variables]
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None and (not self._failures or self.partial or self.skip_mismatch):
            return
        for v, value in self._before:
            v.assign(value)
        if error is None:
            raise self._all_failures()

    def load(self, what: str, act: Callable[[], object]) -> bool:
        """Do `act`, which sets the part `what`; whether it fitted."""
        try:
            with blaming(f"{self.file}: {what!r}", LOADING_ERRORS):
                act()
        except LaminarError as error:
            self.misfit(what, error)
            return False
        self.report.add(what, LOADED)
        return True

    def misfit(self, what: str, error: LaminarError) -> None:
        """Take note of a part that does not fit."""
        if self.skip_mismatch and not self.partial:
            warn(f"skipped: {error.message}")
        self._failures.append(error)
        self.report.add(what, MISFIT, error.message.removeprefix(f"{self.file}: {what!r}: "))

    def _all_failures(self) -> LaminarError:
        first, *rest = self._failures
        more = f" ({len(rest)} more parts do not fit)" if rest else ""
        return type(first)(first.message + more, remedy=first.remedy)


@contextmanager
def blaming(owner: str, kinds: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    """Begin the errors of the block with `owner`, and make laminar's of the other `kinds`."""
    try:
        yield
    except LaminarError as error:
        if error.message.startswith(owner):
            raise
        raise type(error)(f"{owner}: {error.message}", remedy=error.remedy) from error
    except kinds as error:
        raise DataLossError(f"{owner}: {type(error).__name__}: {error}") from error
