"""Adadelta: steps in the units of the variable, scaled by running means of squares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import decay_rate
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class Adadelta(Optimizer):
    """a and d are decaying averages of g**2 and step**2:

        a = rho * a + (1 - rho) * g**2
        step = sqrt(d + epsilon) / sqrt(a + epsilon) * g
        d = rho * d + (1 - rho) * step**2
        w = w - learning_rate * step

    Args:
        learning_rate: see `Optimizer`; 1 is the method of the paper.
        rho: decay of the averages.
        epsilon: added under the roots; the size of the first steps.
        options: see `Optimizer`.

    Source: Zeiler, "ADADELTA: an adaptive learning rate method", 2012, arXiv:1212.5701,
        algorithm 1.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Adadelta(learning_rate=1.0).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.9986, 2.0014], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        decay_rate("Adadelta", rho=rho)
        self.rho = rho
        self.epsilon = epsilon

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._gradients, self._deltas = self.add_optimizer_variables(
            variables, ("accumulated_grad", "accumulated_delta_var")
        )

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        a, d = self._gradients[i], self._deltas[i]
        a = self.assign(a, self.rho * a + (1 - self.rho) * ops.square(gradient))
        step = ops.sqrt(d + self.epsilon) / ops.sqrt(a + self.epsilon) * gradient
        self.assign(d, self.rho * d + (1 - self.rho) * ops.square(step))
        self.assign_sub(variable, learning_rate * step)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rho": self.rho, "epsilon": self.epsilon}
