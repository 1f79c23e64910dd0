"""History: the values of each epoch."""

from __future__ import annotations

from typing import Any

from .callback import Callback, Logs


class History(Callback):
    """What `fit` returns.

    Attributes:
        epoch: the numbers of the epochs.
        history: by name, the value at the end of each epoch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self.epoch = []
        self.history = {}

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
        self.model.history = self
