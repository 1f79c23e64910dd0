"""ReduceLROnPlateau: lower the learning rate once a value stops getting better."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, did_you_mean

from .callback import Logs
from .checks import check_number, check_whole
from .display import say
from .learning_rates import logged_rates, rate_of, rated, require_settable
from .monitor import MonitorCallback


class ReduceLROnPlateau(MonitorCallback):
    """Multiplies the learning rate by `factor` once a value has stopped getting better.

    The learning rate is logged as "learning_rate".

    Args:
        monitor: name of the value in the logs.
        factor: at least 0 and less than 1.
        patience: epochs without improvement that are let pass.
        verbose: 1 to say so when the learning rate is lowered.
        mode: "min" where less is better, "max" where more is, "auto" to find out.
        min_delta: by how much a value has to be better than the best to count.
        cooldown: epochs after a reduction that are not counted.
        min_lr: the learning rate stays at least this.

    Attributes:
        best: the best value so far.
        wait: epochs since the last improvement or reduction.
        cooldown_counter: epochs that are still not counted.

    Raises:
        InvalidArgumentError: an argument is unknown or out of range.
        FailedPreconditionError: the optimizer follows a schedule of its own.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile(laminar.optimizers.SGD(0.1), lambda y, z: 0.0 * ops.mean(z))  # always 0
        >>> reduce = laminar.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1)
        >>> history = model.fit(
        ...     np.ones((8, 1)), np.ones((8, 1)), epochs=3, callbacks=[reduce], verbose=0
        ... )
        >>> float(model.optimizer.learning_rate)
        0.025
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 0.0001,
        cooldown: int = 0,
        min_lr: float = 0.0,
        **unknown: Any,
    ) -> None:
        super().__init__(monitor, mode, min_delta=min_delta)
        for name in unknown:
            known = inspect.signature(ReduceLROnPlateau).parameters
            raise InvalidArgumentError(
                f"{self.who}: there is no argument {name!r}",
                remedy=did_you_mean("min_delta" if name == "epsilon" else name, known, 1),
            )
        check_number(self.who, factor=factor, min_lr=min_lr)
        check_whole(self.who, 0, patience=patience, cooldown=cooldown)
        if not 0 <= factor < 1:
            raise InvalidArgumentError(
                f"{self.who}: factor must be at least 0 and less than 1, got {factor}",
                remedy="0.1 divides the learning rate by 10",
            )
        self.factor = factor
        self.min_lr = min_lr
        self.patience = patience
        self.verbose = verbose
        self.cooldown = cooldown
        self._reset()

    def _reset(self) -> None:
        self.best = None
        self.wait = 0
        self.cooldown_counter = 0

    def in_cooldown(self) -> bool:
        """Whether epochs are not counted now."""
        return self.cooldown_counter > 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        require_settable(self.model, self.who)
        self._reset()

    def get_state(self) -> Mapping[str, Any]:
        return {"best": self.best, "wait": self.wait, "cooldown_counter": self.cooldown_counter}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.best = state["best"]
        self.wait = state["wait"]
        self.cooldown_counter = state["cooldown_counter"]

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if logs is not None:
            logs |= logged_rates(self.model)
        value = self.get_monitor_value(logs)
        if value is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.is_improvement(value, self.best):
            self.best = value
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(epoch)

    def _reduce(self, epoch: int) -> None:
        for optimizer in rated(self.model):
            old = rate_of(optimizer)
            if old <= np.float32(self.min_lr):  # the rate is kept in float32
                continue
            new = optimizer.learning_rate = max(old * self.factor, self.min_lr)
            self.wait = 0
            self.cooldown_counter = self.cooldown
            if self.verbose:
                say(f"Epoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
