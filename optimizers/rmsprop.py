"""RMSprop: steps scaled by a running mean of squared gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import decay_rate, is_used
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class RMSprop(Optimizer):
    """v is a decaying average of g**2:

        v = rho * v + (1 - rho) * g**2
        w = w - learning_rate * g / sqrt(v + epsilon)

    With `centered`, the square of a decaying average of g is taken from v under the root. With
    `momentum`, the step is accumulated: step = momentum * step + learning_rate * g / sqrt(...).

    Args:
        learning_rate: see `Optimizer`.
        rho: decay of the averages.
        momentum: weight of the steps before; 0 keeps none. It may be a scalar tensor of a graph.
        epsilon: added under the root.
        centered: whether to divide by the estimated standard deviation instead.
        options: see `Optimizer`.

    Source: Hinton, "Neural networks for machine learning", lecture 6e, 2012; Graves, "Generating
        sequences with recurrent neural networks", 2013, arXiv:1308.0850, equations 38 to 41.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.RMSprop(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.6838, 2.3162], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.9,
        momentum: float | Tensor = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        decay_rate("RMSprop", rho=rho)
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._velocities = self.add_optimizer_variables(variables, "velocity")
        if is_used(self.momentum):
            self._momentums = self.add_optimizer_variables(variables, "momentum")
        if self.centered:
            self._average_gradients = self.add_optimizer_variables(variables, "average_gradient")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        v = self._velocities[i]
        v = self.assign(v, self.rho * v + (1 - self.rho) * ops.square(gradient))
        if self.centered:
            mean = self._average_gradients[i]
            mean = self.assign(mean, self.rho * mean + (1 - self.rho) * gradient)
            v = v - ops.square(mean)
        step = learning_rate * gradient / ops.sqrt(v + self.epsilon)
        if is_used(self.momentum):
            velocity = self._momentums[i]
            step = self.assign(velocity, self.momentum * velocity + step)
        self.assign_sub(variable, step)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "rho": self.rho,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "centered": self.centered,
        }
