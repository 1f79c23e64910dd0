"""Adagrad: steps scaled by the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import initializers, ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import not_negative
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class Adagrad(Optimizer):
    """s = s + g**2; w = w - learning_rate * g / sqrt(s + epsilon).

    Args:
        learning_rate: see `Optimizer`.
        initial_accumulator_value: what s starts from.
        epsilon: added under the root.
        options: see `Optimizer`.

    Source: Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and
        stochastic optimization", 2011, figure 1 (diagonal matrices).

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Adagrad(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.9047, 2.0988], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        not_negative("Adagrad", initial_accumulator_value=initial_accumulator_value)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        start = initializers.Constant(self.initial_accumulator_value)
        self._accumulators_of_squares = self.add_optimizer_variables(
            variables, "accumulator", start
        )

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        s = self._accumulators_of_squares[self._get_variable_index(variable)]
        s = self.assign(s, s + ops.square(gradient))
        self.assign_sub(variable, learning_rate * gradient / ops.sqrt(s + self.epsilon))

    def _laminar_keeps_rows(self) -> bool:
        return type(self).update_step is Adagrad.update_step

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "initial_accumulator_value": self.initial_accumulator_value,
            "epsilon": self.epsilon,
        }
