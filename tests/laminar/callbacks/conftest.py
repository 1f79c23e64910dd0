"""A terminal to look at, and a model that is none."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from laminar import optimizers
from laminar.callbacks import Callback, CallbackList, bars, display


class Screen(io.StringIO):
    """A terminal: `lines` is what one sees, `text` all that was written."""

    encoding = "utf-8"

    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def text(self) -> str:
        return self.getvalue()

    @property
    def lines(self) -> list[str]:
        rows = [""]
        row = column = 0
        text = self.text.replace("\x1b[A", "\v")
        for char in text:
            if char == "\r":
                column = 0
            elif char == "\n":
                row, column = row + 1, 0
                rows += [""] * (row + 1 - len(rows))
            elif char == "\v":
                row -= 1
            else:
                line = rows[row].ljust(column)
                rows[row] = line[:column] + char + line[column + 1 :]
                column += 1
        shown = [line.rstrip() for line in rows]
        while shown and not shown[-1]:
            shown.pop()
        return shown


def as_output(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Let laminar write to it: pytest puts its own sys.stdout in place when a test begins."""
    for module in (bars, display):
        monkeypatch.setattr(module, "sys", SimpleNamespace(stdout=screen, modules=sys.modules))
    return screen


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    return as_output(Screen(), monkeypatch)


@pytest.fixture
def log_file(monkeypatch: pytest.MonkeyPatch) -> Screen:
    return as_output(Screen(is_terminal=False), monkeypatch)


class FakeModel:
    """What callbacks see of a model; its only weight is the number of the epoch."""

    def __init__(self, metrics: Any = ()) -> None:
        self.stop_training = False
        self.metrics = metrics
        self.optimizer = optimizers.SGD(0.1)
        self.history: Any = None
        self.weight = -1.0
        self.saved: list[str] = []

    def get_weights(self) -> list[float]:
        return [self.weight]

    def set_weights(self, weights: list[Any]) -> None:
        self.weight = float(weights[0])

    def save(self, path: str, overwrite: bool) -> None:
        self.saved.append(path)

    def save_weights(self, path: str, overwrite: bool) -> None:
        self.saved.append(path)


Run = Callable[..., FakeModel]


@pytest.fixture
def run() -> Run:
    """Drive callbacks through epochs whose logs are given."""

    def drive(callbacks: Any, epochs: list[dict[str, Any]], batches: int = 0) -> FakeModel:
        given = callbacks if isinstance(callbacks, list) else [callbacks]
        model = next((c.model for c in given if c.model is not None), None) or FakeModel()
        listeners = CallbackList(callbacks, model=model, verbose=0, epochs=len(epochs))
        listeners.on_train_begin()
        for epoch, logs in enumerate(epochs):
            listeners.on_epoch_begin(epoch)
            for batch in range(batches):
                listeners.on_train_batch_begin(batch)
                listeners.on_train_batch_end(batch, dict(logs))
            model.weight = float(epoch)
            listeners.on_epoch_end(epoch, logs)
            if model.stop_training:
                break
        listeners.on_train_end()
        return model

    return drive


class Recorder(Callback):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[Any, ...]] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.told.append(("train_begin",))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.told.append(("epoch_begin", epoch))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.told.append(("train_batch_begin", batch))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.told.append(("train_batch_end", batch))

    def on_test_begin(self, logs: Any = None) -> None:
        self.told.append(("test_begin",))

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.told.append(("test_batch_end", batch))

    def on_test_end(self, logs: Any = None) -> None:
        self.told.append(("test_end",))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.told.append(("epoch_end", epoch, sorted(logs)))

    def on_train_end(self, logs: Any = None) -> None:
        self.told.append(("train_end",))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
