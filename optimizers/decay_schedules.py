"""Learning rates that decay by a formula of the step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.typing import TensorLike

from .checks import positive
from .schedule import LearningRateSchedule, as_float


class ExponentialDecay(LearningRateSchedule):
    """rate(step) = initial_learning_rate * decay_rate ** (step / decay_steps).

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: after so many steps the rate is multiplied by `decay_rate` once.
        decay_rate: the factor.
        staircase: whether step / decay_steps is rounded down.
        name: kept in the config.

    Examples:
        >>> from laminar.optimizers import schedules
        >>> rate = schedules.ExponentialDecay(0.1, decay_steps=100, decay_rate=0.5)
        >>> [round(float(rate(step)), 4) for step in (0, 100, 200)]
        [0.1, 0.05, 0.025]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        decay_rate: float,
        staircase: bool = False,
        name: str = "ExponentialDecay",
    ) -> None:
        positive(name, decay_steps=decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        periods = as_float(step) / self.decay_steps
        if self.staircase:
            periods = ops.floor(periods)
        return self.initial_learning_rate * self.decay_rate**periods

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_learning_rate": self.initial_learning_rate,
            "decay_steps": self.decay_steps,
            "decay_rate": self.decay_rate,
            "staircase": self.staircase,
            "name": self.name,
        }


class PiecewiseConstantDecay(LearningRateSchedule):
    """rate(step) = values[i], with i the number of boundaries that are below the step.

    Args:
        boundaries: steps, rising; `values[0]` holds up to and including the first.
        values: one more than the boundaries.
        name: kept in the config.

    Examples:
        >>> from laminar.optimizers import schedules
        >>> rate = schedules.PiecewiseConstantDecay([100, 200], [0.1, 0.01, 0.001])
        >>> [round(float(rate(step)), 4) for step in (0, 150, 300)]
        [0.1, 0.01, 0.001]
    """

    def __init__(
        self,
        boundaries: Sequence[float],
        values: Sequence[float],
        name: str = "PiecewiseConstant",
    ) -> None:
        if len(boundaries) + 1 != len(values):
            raise InvalidArgumentError(
                f"{name}: {len(boundaries)} boundaries need {len(boundaries) + 1} values, "
                f"got {len(values)}"
            )
        if any(b <= a for a, b in zip(boundaries, boundaries[1:], strict=False)):
            raise InvalidArgumentError(f"{name}: the boundaries must rise, got {boundaries}")
        self.boundaries = boundaries
        self.values = values
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        step = as_float(step)
        rate = as_float(self.values[0])
        for boundary, value in zip(self.boundaries, self.values[1:], strict=True):
            rate = ops.where(step > boundary, value, rate)
        return rate

    def get_config(self) -> dict[str, Any]:
        return {"boundaries": self.boundaries, "values": self.values, "name": self.name}


class PolynomialDecay(LearningRateSchedule):
    """rate(step) = (initial - end) * (1 - min(step, decay_steps) / decay_steps) ** power + end.

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: when the end is reached.
        end_learning_rate: the rate from then on.
        power: of the polynomial; 1 is a straight line.
        cycle: instead of staying at the end, start again, with `decay_steps` doubled, tripled, ...
            whenever the end is reached.
        name: kept in the config.

    Examples:
        >>> from laminar.optimizers import schedules
        >>> rate = schedules.PolynomialDecay(0.1, decay_steps=100, end_learning_rate=0.0)
        >>> [round(float(rate(step)), 4) for step in (0, 50, 100)]
        [0.1, 0.05, 0.0]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None:
        positive(name, decay_steps=decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.end_learning_rate = end_learning_rate
        self.power = power
        self.cycle = cycle
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        step = as_float(step)
        if self.cycle:
            cycles = ops.maximum(ops.ceil(step / self.decay_steps), 1)
            done = step / (self.decay_steps * cycles)
        else:
            done = ops.minimum(step, self.decay_steps) / self.decay_steps
        span = self.initial_learning_rate - self.end_learning_rate
        return span * (1 - done) ** self.power + self.end_learning_rate

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_learning_rate": self.initial_learning_rate,
            "decay_steps": self.decay_steps,
            "end_learning_rate": self.end_learning_rate,
            "power": self.power,
            "cycle": self.cycle,
            "name": self.name,
        }


class InverseTimeDecay(LearningRateSchedule):
    """rate(step) = initial_learning_rate / (1 + decay_rate * step / decay_steps).

    Args:
        initial_learning_rate: the rate at step 0.
        decay_steps: how many steps count as one.
        decay_rate: how fast it falls.
        staircase: whether step / decay_steps is rounded down.
        name: kept in the config.

    Examples:
        >>> rate = laminar.optimizers.schedules.InverseTimeDecay(0.1, decay_steps=1, decay_rate=0.5)
        >>> [round(float(rate(step)), 4) for step in (0, 1, 2)]
        [0.1, 0.0667, 0.05]
    """

    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: float,
        decay_rate: float,
        staircase: bool = False,
        name: str = "InverseTimeDecay",
    ) -> None:
        positive(name, decay_steps=decay_steps)
        self.initial_learning_rate = initial_learning_rate
        self.decay_steps = decay_steps
        self.decay_rate = decay_rate
        self.staircase = staircase
        self.name = name

    def __call__(self, step: TensorLike) -> Any:
        periods = as_float(step) / self.decay_steps
        if self.staircase:
            periods = ops.floor(periods)
        return self.initial_learning_rate / (1 + self.decay_rate * periods)

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_learning_rate": self.initial_learning_rate,
            "decay_steps": self.decay_steps,
            "decay_rate": self.decay_rate,
            "staircase": self.staircase,
            "name": self.name,
        }
