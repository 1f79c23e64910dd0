"""FTRL-Proximal: follow the regularized leader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import initializers, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import not_negative
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class Ftrl(Optimizer):
    """Keeps n, the sum of squared gradients, and z; with p = -learning_rate_power:

        n_new = n + g**2
        z = z + (g + 2 * l2_shrinkage * w) - (n_new**p - n**p) / learning_rate * w
        w = (clip(z, -l1, l1) - z) / ((n_new**p + beta) / learning_rate + 2 * l2)

    Args:
        learning_rate: see `Optimizer`; alpha of the paper.
        learning_rate_power: not above 0; 0 gives a fixed learning rate.
        initial_accumulator_value: what n starts from.
        l1_regularization_strength: l1; makes small weights exactly 0.
        l2_regularization_strength: l2, a penalty that also holds for weights without gradient.
        l2_shrinkage_regularization_strength: l2 as part of the gradient.
        beta: of the paper; lowers the first steps.
        options: see `Optimizer`.

    Source: McMahan et al., "Ad click prediction: a view from the trenches", 2013, algorithm 1.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Ftrl(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.6031, 1.7864], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        not_negative(
            "Ftrl",
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
            l2_shrinkage_regularization_strength=l2_shrinkage_regularization_strength,
        )
        if learning_rate_power > 0:
            raise InvalidArgumentError(
                f"Ftrl: learning_rate_power must not be above 0, got {learning_rate_power!r}"
            )
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        start = initializers.Constant(self.initial_accumulator_value)
        self._squares, self._linears = self.add_optimizer_variables(
            variables, ("accumulator", "linear"), (start, "zeros")
        )

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        n, z = self._squares[i].value, self._linears[i]
        l1, l2 = self.l1_regularization_strength, self.l2_regularization_strength
        shrunk = gradient + 2 * self.l2_shrinkage_regularization_strength * variable
        p = -self.learning_rate_power
        n_new = self.assign(self._squares[i], n + ops.square(gradient))
        z = self.assign(z, z + shrunk - (n_new**p - n**p) / learning_rate * variable)
        curvature = (n_new**p + self.beta) / learning_rate + 2 * l2
        # Where no gradient has come yet, or only such as have squares of 0, both may be 0.
        self.assign(variable, ops.divide_no_nan(ops.clip(z, -l1, l1) - z, curvature))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "learning_rate_power": self.learning_rate_power,
            "initial_accumulator_value": self.initial_accumulator_value,
            "l1_regularization_strength": self.l1_regularization_strength,
            "l2_regularization_strength": self.l2_regularization_strength,
            "l2_shrinkage_regularization_strength": self.l2_shrinkage_regularization_strength,
            "beta": self.beta,
        }
