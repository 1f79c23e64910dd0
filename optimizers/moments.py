"""What optimizers share that keep decaying averages of gradients and of their size."""

from __future__ import annotations

from typing import Any, Unpack

from .checks import decay_rate
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class MomentOptimizer(Optimizer):
    """An optimizer with the decays of two averages.

    Args:
        learning_rate: see `Optimizer`.
        beta_1: decay of the average of gradients, in [0, 1).
        beta_2: decay of the average of their size, in [0, 1).
        epsilon: keeps the quotient of the two finite.
        options: see `Optimizer`.
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        decay_rate(type(self).__name__, beta_1=beta_1, beta_2=beta_2)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
        }
