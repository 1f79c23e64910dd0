"""lr_find: which learning rate to begin with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laminar.callbacks.checks import check_whole
from laminar.callbacks.display import say
from laminar.callbacks.learning_rates import require_settable
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.utils.plotting import draw_curve, sparkline

from ..typing import DataLike, TensorStructure
from .data import Batch, make_data, ran_out
from .logs import read_logs
from .step import close_step
from .training_state import Snapshot, random_state, set_random_state
from .training_steps import TrainingSteps

_SMOOTHING = 0.9
_WINDOW = 5  # steps to either side, for a slope


@dataclass(frozen=True)
class LearningRates:
    """What `lr_find` found.

    Attributes:
        rates: the learning rates that were tried, rising.
        losses: the loss at each, smoothed.
        suggestion: the rate at which the loss falls fastest.
        lowest: the rate of the lowest loss: at this one training is about to fail.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> x = np.ones((64, 1), "float32")
        >>> found = laminar.lr_find(model, x, 3 * x, batch_size=8, steps=20)
        >>> len(found.rates) == len(found.losses)
        True
    """

    rates: list[float]
    losses: list[float]
    suggestion: float
    lowest: float

    def plot(self, path: str | os.PathLike[str] | None = None) -> None:
        """Draw the loss over the rate: into a file, PNG, or without a path as text."""
        if path is None:
            say(f"loss  {sparkline(self.losses)}  {self}")
        else:
            picture = draw_curve(self.rates, self.losses, "learning rate", "loss", self.suggestion)
            Path(path).write_bytes(picture)

    def __str__(self) -> str:
        return (
            f"learning rates {self.rates[0]:.3g} to {self.rates[-1]:.3g}: the loss falls fastest "
            f"at {self.suggestion:.3g} and is lowest at {self.lowest:.3g}"
        )


def lr_find(
    model: Any,
    x: DataLike,
    y: TensorStructure | None = None,
    *,
    batch_size: int | None = None,
    sample_weight: TensorStructure | None = None,
    start: float = 1e-7,
    end: float = 10.0,
    steps: int = 100,
    stop_factor: float = 4.0,
) -> LearningRates:
    """Train for a few steps with a learning rate that rises, and see where the loss falls.

    The rate goes from `start` to `end`, each step by the same factor, and the losses of the batches
    are smoothed. Everything is set back afterwards.

        found = laminar.lr_find(model, x, y)
        model.optimizer.learning_rate = found.suggestion

    Args:
        model: compiled, with a learning rate that is a number.
        x: arrays, or an iterable of batches; it begins anew as often as steps need it.
        y: targets, for arrays; `batch_size` and `sample_weight` alike.
        start: the first rate.
        end: the last rate.
        steps: how many are taken at most.
        stop_factor: the search ends when the loss is so many times the lowest one.

    Raises:
        FailedPreconditionError: the model is not compiled, its rate follows a schedule, or the loss
            is not finite from the beginning on.
        InvalidArgumentError: no model, or an argument out of range.

    Source: Smith, "Cyclical learning rates for training neural networks", 2017, arXiv:1506.01186,
        section 3.3.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> x = np.ones((64, 1), "float32")
        >>> found = laminar.lr_find(model, x, 3 * x, batch_size=8, steps=20)
        >>> found.suggestion > 0
        True
    """
    if not isinstance(model, TrainingSteps):
        raise InvalidArgumentError(
            f"lr_find: expected a model, got {type(model).__name__}",
            remedy="lr_find(model, x, y)",
        )
    model._laminar_require_compiled("lr_find")
    require_settable(model, "lr_find")
    check_whole("lr_find", 3, steps=steps)
    if not 0 < start < end:
        raise InvalidArgumentError(
            f"lr_find: expected 0 < start < end, got start={start!r}, end={end!r}",
            remedy="start=1e-7, end=10.0",
        )
    data = make_data(x, y, sample_weight, batch_size=batch_size, shuffle=True, who="lr_find")
    batches = _endless(data)
    first = next(batches)
    model._laminar_prepare(first, training=True)
    step = model.make_train_function()
    step.trace(first)
    before, numbers = Snapshot(model), random_state()
    rates: list[float] = []
    losses: list[float] = []
    mean, best = 0.0, np.inf
    try:
        batch = first
        for i in range(steps):
            rate = start * (end / start) ** (i / (steps - 1))
            model.optimizer.learning_rate = rate
            model.reset_metrics()
            loss = float(read_logs(step(batch))["loss"])
            mean = _SMOOTHING * mean + (1 - _SMOOTHING) * loss
            smooth = mean / (1 - _SMOOTHING ** (i + 1))
            if not np.isfinite(smooth) or (i > 2 and smooth > stop_factor * best):
                break
            best = min(best, smooth)
            rates.append(rate)
            losses.append(smooth)
            batch = next(batches)
    finally:
        data.close()
        close_step(step)
        before.restore()
        set_random_state(numbers)
    if len(rates) < 3:
        raise FailedPreconditionError(
            f"lr_find: the loss is not finite after {len(rates)} steps from {start:g} on",
            remedy='look for the reason with fit(check="nan"), or begin with a lower start',
        )
    return LearningRates(rates, losses, _steepest(rates, losses), rates[int(np.argmin(losses))])


def _endless(data: Any) -> Iterator[Batch]:
    """The batches of the data, again and again."""
    while True:
        count = 0
        for batch in data:
            count += 1
            yield batch
        if not count or data.ends_for_good:
            raise ran_out("lr_find", count, count + 1)


def _steepest(rates: list[float], losses: list[float]) -> float:
    """The rate at which the loss falls fastest over log(rate), before it is at its lowest.

    A slope is that of a line through the steps around; the first steps, in which the mean of few
    losses jumps, are left out.
    """
    logs = np.log(rates)
    last = int(np.argmin(losses))
    first = min(len(rates) // 10, last)
    slopes = []
    for i in range(first, last + 1):
        near = slice(max(i - _WINDOW, first), i + _WINDOW + 1)
        x = logs[near] - logs[near].mean()
        slopes.append(float(x @ np.asarray(losses[near]) / max(x @ x, 1e-12)))
    return rates[first + int(np.argmin(slopes))]
