"""Nadam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .moments import MomentOptimizer
from .scaling import root_quotient

# Dozat, section 2.2: the momentum grows from beta_1 / 2 to beta_1 as 1 - 0.96 ** (t * 0.004) / 2.
_GROWTH = 0.96


class Nadam(MomentOptimizer):
    """Adam's averages m and v, with momentum u_t = beta_1 * (1 - 0.96**t / 2), t from 1:

        m_hat = u_(t+1) * m / (1 - u_1 * ... * u_(t+1)) + (1 - u_t) * g / (1 - u_1 * ... * u_t)
        v_hat = v / (1 - beta_2**t)
        w = w - learning_rate * m_hat / (sqrt(v_hat) + epsilon)

    Args:
        learning_rate: see `Optimizer`.
        beta_1: decay of m, and the limit of u.
        beta_2: decay of v.
        epsilon: added outside of the root.
        options: see `Optimizer`.

    Source: Dozat, "Incorporating Nesterov momentum into Adam", 2016, algorithm 2.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Nadam(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.8937, 2.1063], dtype=float32)
    """

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ("momentum", "velocity")
        )
        dtype = variables[0].dtype if variables else None
        self._product = self.add_variable((), "ones", dtype, name="u_product")

    def _laminar_update_steps(
        self, grads: Sequence[Tensor], variables: Sequence[Variable], learning_rate: Tensor
    ) -> None:
        dtype = self._product.dtype
        self.assign(self._product, self._product * self._momentum(1, dtype))
        super()._laminar_update_steps(grads, variables, learning_rate)

    def _momentum(self, ahead: int, dtype: str) -> Any:
        """u at `ahead` steps after those taken."""
        t = self._laminar_time(dtype, ahead)
        return self.beta_1 * (1 - 0.5 * _GROWTH**t)

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        m, v = self._momentums[i], self._velocities[i]
        dtype = variable.dtype
        t = self._laminar_time(dtype)
        u, u_next = self._momentum(1, dtype), self._momentum(2, dtype)
        product = ops.cast(self._product, dtype)
        m = self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        v = self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        m_hat = u_next * m / (1 - product * u_next) + (1 - u) * gradient / (1 - product)
        v_hat = v / (1 - self.beta_2**t)
        self.assign_sub(variable, root_quotient(learning_rate * m_hat, v_hat, self.epsilon))
