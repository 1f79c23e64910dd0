"""The base of the schedules of learning rates.

A schedule is a function of the step, made of operations: inside a traced training step it is part
of the graph, with the optimizer's step count as its input. It computes in `config.floatx()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar import config, ops
from laminar.engine.graph import Tensor
from laminar.recorded import Recorded
from laminar.typing import TensorLike


class LearningRateSchedule(Recorded):
    """Base of the schedules: override `__call__(step)` and `get_config()`.

    Examples:
        >>> class Halving(laminar.optimizers.schedules.LearningRateSchedule):
        ...     def __call__(self, step):
        ...         return 0.1 * 0.5 ** ops.cast(step, "float32")
        >>> optimizer = laminar.optimizers.SGD(Halving())
        >>> w = laminar.Variable(1.0)
        >>> for _ in range(3):
        ...     optimizer.apply([ops.array(1.0)], [w])
        >>> w.numpy()  # 1 - 0.1 - 0.05 - 0.025
        array(0.825, dtype=float32)
    """

    def __call__(self, step: Any) -> Any:
        """The learning rate of a step.

        Args:
            step: how many steps have been taken: a number or a scalar tensor.
        """
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make a schedule like this one, as data."""
        raise NotImplementedError

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> LearningRateSchedule:
        """The schedule that `get_config` described."""
        return cls(**config)


def as_float(step: TensorLike) -> Tensor:
    """A step as a number of the type that rates have."""
    return ops.cast(step, config.floatx())
