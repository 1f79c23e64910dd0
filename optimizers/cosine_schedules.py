"""Learning rates that follow half a cosine."""

from __future__ import annotations

import math
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.typing import TensorLike

from .checks import not_negative, positive
from .schedule import LearningRateSchedule, as_float


def _half_cosine(done: Tensor) -> Any:
    """From 1 at done = 0 along a cosine to 0 at done = 1."""
    return 0.5 * (1 + ops.cos(math.pi * done))


class CosineDecay(LearningRateSchedule):
    """rate(step) = start * ((1 - alpha) * (1 + cos(pi * done)) / 2 + alpha), with warm-up.

    Without `warmup_target`, start = initial_learning_rate and done = step / decay_steps. With it,
    the rate first rises in a line from `initial_learning_rate` to the target in `warmup_steps`;
    then start = warmup_target and done = (step - warmup_steps) / decay_steps. After the last step
    the rate stays.

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: the length of the decay, warm-up not counted.
        alpha: the last rate as a fraction of the start.
        name: kept in the config.
        warmup_target: the rate at the end of the warm-up; None for no warm-up.
        warmup_steps: the length of the warm-up.

    Source: Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017,
        arXiv:1608.03983, equation 5; Goyal et al., "Accurate, large minibatch SGD", 2017,
        arXiv:1706.02677, section 2.2 (gradual warm-up).

    Examples:
        >>> rate = laminar.optimizers.schedules.CosineDecay(0.1, decay_steps=100)
        >>> [round(float(rate(step)), 4) for step in (0, 50, 100)]
        [0.1, 0.05, 0.0]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        alpha: float = 0.0,
        name: str = "CosineDecay",
        warmup_target: float | None = None,
        warmup_steps: float = 0,
    ) -> None:
        positive(name, decay_steps=decay_steps)
        not_negative(name, warmup_steps=warmup_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.alpha = alpha
        self.name = name
        self.warmup_target = warmup_target
        self.warmup_steps = warmup_steps

    def __call__(self, step: TensorLike) -> Any:
        step = as_float(step)
        if self.warmup_target is None:
            return self._decayed(self.initial_learning_rate, step)
        decayed = self._decayed(self.warmup_target, step - self.warmup_steps)
        if not self.warmup_steps:
            return decayed
        rise = (self.warmup_target - self.initial_learning_rate) * (step / self.warmup_steps)
        return ops.where(step < self.warmup_steps, self.initial_learning_rate + rise, decayed)

    def _decayed(self, start: float, step: Tensor) -> Any:
        done = ops.minimum(step, self.decay_steps) / self.decay_steps
        return start * ((1 - self.alpha) * _half_cosine(done) + self.alpha)

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_learning_rate": self.initial_learning_rate,
            "decay_steps": self.decay_steps,
            "alpha": self.alpha,
            "name": self.name,
            "warmup_target": self.warmup_target,
            "warmup_steps": self.warmup_steps,
        }


class CosineDecayRestarts(LearningRateSchedule):
    """Cosine decay that starts again: period i lasts first_decay_steps * t_mul ** i steps.

    rate(step) = initial_learning_rate * ((1 - alpha) * m_mul ** i * (1 + cos(pi * done)) / 2
    + alpha), with `done` the fraction of period i that is over.

    Args:
        initial_learning_rate: the rate at step 0.
        first_decay_steps: the length of the first period.
        t_mul: how much longer each period is than the one before.
        m_mul: how much lower each period starts than the one before.
        alpha: the least rate as a fraction of the first.
        name: kept in the config.

    Source: Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017,
        arXiv:1608.03983, section 3.

    Examples:
        >>> rate = laminar.optimizers.schedules.CosineDecayRestarts(0.1, first_decay_steps=100)
        >>> [round(float(rate(step)), 4) for step in (0, 50, 100, 300)]
        [0.1, 0.05, 0.1, 0.1]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        first_decay_steps: float,
        t_mul: float = 2.0,
        m_mul: float = 1.0,
        alpha: float = 0.0,
        name: str = "SGDRDecay",
    ) -> None:
        positive(name, first_decay_steps=first_decay_steps, t_mul=t_mul)
        self.initial_learning_rate = initial_learning_rate
        self.first_decay_steps = first_decay_steps
        self.t_mul = t_mul
        self.m_mul = m_mul
        self.alpha = alpha
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        periods, done = self._position(as_float(step) / self.first_decay_steps)
        height = self.m_mul**periods * _half_cosine(done)
        return self.initial_learning_rate * ((1 - self.alpha) * height + self.alpha)

    def _position(self, elapsed: Tensor) -> tuple[Any, Any]:
        """How many periods are over, and the fraction of the present one that is.

        After n periods the time elapsed is 1 + t_mul + ... + t_mul ** (n - 1)
        = (1 - t_mul ** n) / (1 - t_mul), in units of the first period.
        """
        if self.t_mul == 1:
            periods = ops.floor(elapsed)
            return periods, elapsed - periods
        grown = 1 - elapsed * (1 - self.t_mul)
        periods = ops.floor(ops.log(grown) / math.log(self.t_mul))
        length = self.t_mul**periods
        return periods, (elapsed - (1 - length) / (1 - self.t_mul)) / length

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_learning_rate": self.initial_learning_rate,
            "first_decay_steps": self.first_decay_steps,
            "t_mul": self.t_mul,
            "m_mul": self.m_mul,
            "alpha": self.alpha,
            "name": self.name,
        }


class OneCycle(LearningRateSchedule):
    """Up from a low rate to the highest, then down to almost nothing, along half cosines.

    With n = warmup_fraction * total_steps - 1 steps of warming up, and p the part that is over of
    the phase that runs, from 0 to 1:

        first: rate = low + (max_learning_rate - low) * (1 - cos(pi * p)) / 2
        then: rate = last + (max_learning_rate - last) * (1 + cos(pi * p)) / 2

    where low = max_learning_rate / start_divisor and last = low / end_divisor.

    Args:
        max_learning_rate: the highest rate; `laminar.lr_find` helps to find it.
        total_steps: the steps of the whole training, epochs * ceil(examples / batch_size).
        warmup_fraction: the part of the steps that go up.
        start_divisor: by how much the first rate is below the highest.
        end_divisor: by how much the last rate is below the first.
        name: kept in the config.

    Raises:
        InvalidArgumentError: an argument out of range.

    Source: Smith and Topin, "Super-convergence", 2018, arXiv:1708.07120; with cosines in the place
        of lines.

    Examples:
        >>> rate = laminar.optimizers.schedules.OneCycle(0.1, total_steps=100)
        >>> [round(float(rate(step)), 4) for step in (0, 30, 100)]
        [0.004, 0.0999, 0.0]
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        warmup_fraction: float = 0.3,
        start_divisor: float = 25.0,
        end_divisor: float = 1e4,
        name: str = "OneCycle",
    ) -> None:
        positive(
            name,
            max_learning_rate=max_learning_rate,
            total_steps=total_steps,
            start_divisor=start_divisor,
            end_divisor=end_divisor,
        )
        if not 0 < warmup_fraction < 1:
            raise InvalidArgumentError(
                f"{name}: warmup_fraction must be between 0 and 1, got {warmup_fraction!r}"
            )
        self.max_learning_rate = max_learning_rate
        self.total_steps = total_steps
        self.warmup_fraction = warmup_fraction
        self.start_divisor = start_divisor
        self.end_divisor = end_divisor
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        low = self.max_learning_rate / self.start_divisor
        peak = self.warmup_fraction * self.total_steps - 1
        last = self.total_steps - 1
        done = as_float(step)
        rising = ops.clip(done / peak, 0, 1) if peak > 0 else ops.ones_like(done)
        falling = ops.clip((done - peak) / (last - peak), 0, 1) if last > peak else rising * 0
        up = low + (self.max_learning_rate - low) * (1 - _half_cosine(rising))
        end = low / self.end_divisor
        down = end + (self.max_learning_rate - end) * _half_cosine(falling)
        return ops.where(done <= peak, up, down)

    def get_config(self) -> dict[str, Any]:
        return {
            "max_learning_rate": self.max_learning_rate,
            "total_steps": self.total_steps,
            "warmup_fraction": self.warmup_fraction,
            "start_divisor": self.start_divisor,
            "end_divisor": self.end_divisor,
            "name": self.name,
        }
