"""Adamax: Adam with the infinity norm in place of the second moment."""

from __future__ import annotations

from collections.abc import Sequence

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .moments import MomentOptimizer


class Adamax(MomentOptimizer):
    """m is a decaying average of g, u a decaying maximum of abs(g), t counts from 1:

        m = beta_1 * m + (1 - beta_1) * g
        u = max(beta_2 * u, abs(g))
        w = w - learning_rate / (1 - beta_1**t) * m / (u + epsilon)

    Args:
        learning_rate: see `Optimizer`.
        beta_1: decay of m.
        beta_2: decay of u.
        epsilon: keeps the quotient finite while all gradients are 0.
        options: see `Optimizer`.

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, arXiv:1412.6980,
        algorithm 2.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Adamax(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.9, 2.1], dtype=float32)
    """

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums, self._norms = self.add_optimizer_variables(variables, ("momentum", "norm"))

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        m, u = self._momentums[i], self._norms[i]
        t = self._laminar_time(variable.dtype)
        m = self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        u = self.assign(u, ops.maximum(self.beta_2 * u, ops.abs(gradient)))
        self.assign_sub(variable, learning_rate / (1 - self.beta_1**t) * m / (u + self.epsilon))
