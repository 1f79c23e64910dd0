"""EarlyStopping: end training once a value stops getting better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .callback import Logs
from .checks import check_number, check_whole
from .display import say
from .monitor import MonitorCallback

_STATE = ("best", "best_epoch", "best_weights", "stopped_epoch", "wait")


class EarlyStopping(MonitorCallback):
    """Ends training once a value has stopped getting better.

    Args:
        monitor: name of the value in the logs.
        min_delta: by how much a value has to be better than the best to count.
        patience: epochs without improvement that are let pass.
        verbose: 1 to say so when training is ended.
        mode: "min" where less is better, "max" where more is, "auto" to find out.
        baseline: only a value better than this one, too, gives new patience.
        restore_best_weights: whether to set the weights of the best epoch at the end.
        start_from_epoch: epochs that are not looked at.

    Attributes:
        best: the best value so far; `best_epoch` is its epoch, from 0.
        best_weights: the weights of that epoch, when they are to be restored.
        stopped_epoch: the epoch after which training was ended, 0 if it was not.
        wait: epochs since the last improvement.

    Source: Prechelt, "Early stopping - but when?", 1998, doi:10.1007/3-540-49430-8_3.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile(laminar.optimizers.SGD(0.0), "mse")  # which learns nothing
        >>> stop = laminar.callbacks.EarlyStopping("loss", patience=2)
        >>> history = model.fit(
        ...     np.ones((8, 1)), np.ones((8, 1)), epochs=9, callbacks=[stop], verbose=0
        ... )
        >>> len(history.epoch)
        3
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta=min_delta)
        check_whole(self.who, 0, patience=patience, start_from_epoch=start_from_epoch)
        if baseline is not None:
            check_number(self.who, baseline=baseline)
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.restore_best_weights = restore_best_weights
        self.start_from_epoch = start_from_epoch
        self._reset()

    def _reset(self) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.best = None
        self.best_epoch = 0
        self.best_weights: list[Any] | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        self._reset()

    def get_state(self) -> Mapping[str, Any]:
        return {name: getattr(self, name) for name in _STATE}

    def set_state(self, state: Mapping[str, Any]) -> None:
        for name in _STATE:
            setattr(self, name, state[name])

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        value = self.get_monitor_value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self.is_improvement(value, self.best):
            self._keep(value, epoch)
            if self.baseline is None or self.is_improvement(value, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def _keep(self, value: float, epoch: int) -> None:
        self.best = value
        self.best_epoch = epoch
        if self.restore_best_weights:
            self.best_weights = [np.array(w) for w in self.model.get_weights()]

    def on_train_end(self, logs: Logs | None = None) -> None:
        if self.stopped_epoch and self.verbose:
            say(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                say(
                    "Restoring model weights from the end of the best epoch: "
                    f"{self.best_epoch + 1}."
                )
            self.model.set_weights(self.best_weights)
