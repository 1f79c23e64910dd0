"""History: the values of each epoch."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from laminar.engine.errors import FailedPreconditionError
from laminar.utils.plotting import draw, has_matplotlib, sparklines

from .bars import is_notebook
from .callback import Callback, Logs
from .display import say


class History(Callback):
    """What `fit` returns.

    Attributes:
        epoch: the numbers of the epochs.
        history: by name, the value at the end of each epoch.
        waiting_on_data: for each epoch, the share of the time of its steps, from 0 to 1, in which
            they waited for batches. Of arrays, which are in memory, there is no waiting.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(np.ones((8, 1)), np.ones((8, 1)), epochs=2, verbose=0)
        >>> history.epoch, sorted(history.history)
        ([0, 1], ['loss'])
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}
        self.waiting_on_data: list[float] = []

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.epoch = []
        self.history = {}
        self.waiting_on_data = []

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the curves of all values, a panel for each, training and validation together.

        Args:
            path: a file for the picture, PNG. Without it a notebook shows the picture; elsewhere,
                or without matplotlib, the curves are printed as text.

        Returns:
            In a notebook, the picture; else None.

        Raises:
            FailedPreconditionError: there is no epoch yet.
            UnimplementedError: a file is named, and matplotlib is not installed.
        """
        if not self.epoch:
            raise FailedPreconditionError(
                "history.plot: there is no epoch to draw", remedy="train for an epoch first"
            )
        title = "" if self.model is None else self.model.name
        if path is not None:
            Path(path).write_bytes(draw(self.epoch, self.history, title))
        elif is_notebook() and has_matplotlib():
            picture = draw(self.epoch, self.history, title)
            return sys.modules["IPython.display"].Image(data=picture, format="png")
        else:
            say(sparklines(self.history))
        return None

    def get_state(self) -> Mapping[str, Any]:
        return {
            "epoch": self.epoch,
            "history": self.history,
            "waiting_on_data": self.waiting_on_data,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.epoch = list(state["epoch"])
        self.history = {name: list(values) for name, values in state["history"].items()}
        self.waiting_on_data = list(state.get("waiting_on_data", ()))

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
        self.model.history = self
