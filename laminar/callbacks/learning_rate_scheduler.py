"""LearningRateScheduler: a learning rate for each epoch."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError

from .callback import Callback, Logs
from .display import say
from .learning_rates import logged_rates, rate_of, rated, require_settable


class LearningRateScheduler(Callback):
    """Sets the learning rate at the beginning of each epoch, and logs it as "learning_rate".

    Args:
        schedule: (epoch, learning_rate) -> learning_rate, or (epoch) -> learning_rate; epochs
            count from 0.
        verbose: 1 to print each learning rate.

    Raises:
        InvalidArgumentError: `schedule` is not a function, or gives something that is not a number.
        FailedPreconditionError: the optimizer follows a schedule of its own.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile(laminar.optimizers.SGD(0.1), "mse")
        >>> halve = laminar.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
        >>> history = model.fit(
        ...     np.ones((8, 1)), np.ones((8, 1)), epochs=2, callbacks=[halve], verbose=0
        ... )
        >>> [round(float(rate), 4) for rate in history.history["learning_rate"]]
        [0.05, 0.025]
    """

    def __init__(self, schedule: Callable[..., Any], verbose: int = 0) -> None:
        super().__init__()
        if not callable(schedule):
            raise InvalidArgumentError(
                f"LearningRateScheduler: schedule must be a function, got {schedule!r}",
                remedy="lambda epoch, rate: rate * 0.9",
            )
        self.schedule = schedule
        self.verbose = verbose
        self._takes_rate = _takes_two(schedule)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        require_settable(self.model, "LearningRateScheduler")

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        for optimizer in rated(self.model):
            rate = optimizer.learning_rate = self._rate(epoch, rate_of(optimizer))
        if self.verbose:
            say(f"Epoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def _rate(self, epoch: int, now: float) -> float:
        result = self.schedule(epoch, now) if self._takes_rate else self.schedule(epoch)
        array = np.asarray(result)
        if array.size == 1 and array.dtype.kind in "iuf" and math.isfinite(array.reshape(())):
            return float(array.reshape(()))
        raise InvalidArgumentError(
            f"LearningRateScheduler: the schedule gave {result!r} for epoch {epoch}, "
            f"expected a number",
            remedy="return the learning rate in every case; None means that a return is missing",
        )

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        if logs is not None:
            logs |= logged_rates(self.model)


def _takes_two(schedule: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(schedule)
    except ValueError:  # some builtins have none
        return True
    try:
        signature.bind(0, 0.0)
    except TypeError:
        return False
    return True
