"""Adam: steps scaled by running estimates of the gradient's first two moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .learning_rates import LearningRate
from .moments import MomentOptimizer
from .options import Options
from .scaling import root_quotient


class Adam(MomentOptimizer):
    """m and v are decaying averages of g and g**2, t counts from 1:

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        w = w - learning_rate * sqrt(1 - beta_2**t) / (1 - beta_1**t) * m / (sqrt(v) + epsilon)

    With `amsgrad` the greatest v so far takes the place of v in the last line.

    Args:
        learning_rate: see `Optimizer`.
        beta_1: decay of m.
        beta_2: decay of v.
        epsilon: added outside of the root (the paper's "epsilon hat").
        amsgrad: whether steps may never grow again (Reddi, Kale and Kumar, "On the convergence of
            Adam and beyond", 2018, arXiv:1904.09237, algorithm 2).
        options: see `Optimizer`.

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, arXiv:1412.6980,
        algorithm 1 in the order of section 2.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Adam(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.9, 2.1], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        self.amsgrad = amsgrad

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ("momentum", "velocity")
        )
        if self.amsgrad:
            self._velocity_hats = self.add_optimizer_variables(variables, "velocity_hat")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        m, v = self._momentums[i], self._velocities[i]
        t = self._laminar_time(variable.dtype)
        rate = learning_rate * ops.sqrt(1 - self.beta_2**t) / (1 - self.beta_1**t)
        m = self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        v = self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        if self.amsgrad:
            greatest = self._velocity_hats[i]
            v = self.assign(greatest, ops.maximum(greatest, v))
        self.assign_sub(variable, root_quotient(rate * m, v, self.epsilon))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "amsgrad": self.amsgrad}
