"""Lamb: Adam with a step per layer in proportion to the layer's weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .clipping import norm
from .moments import MomentOptimizer
from .scaling import root_quotient


class Lamb(MomentOptimizer):
    """Adam's averages m and v of one variable w, t counts from 1:

        r = m / (1 - beta_1**t) / (sqrt(v / (1 - beta_2**t)) + epsilon)
        w = w - learning_rate * |w| / |r| * r

    The quotient of the norms is 1 where either is 0. Weight decay acts before the step, as in all
    optimizers here, and not inside r.

    Args:
        learning_rate: see `Optimizer`.
        beta_1: decay of m.
        beta_2: decay of v.
        epsilon: added outside of the root.
        options: see `Optimizer`.

    Source: You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
        2020, arXiv:1904.00962, algorithm 2.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Lamb(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.8419, 2.1581], dtype=float32)
    """

    _laminar_elementwise: ClassVar[bool] = False

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(
            variables, ("momentum", "velocity")
        )

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        m, v = self._momentums[i], self._velocities[i]
        t = self._laminar_time(variable.dtype)
        m = self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        v = self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        v_hat = v / (1 - self.beta_2**t)
        r = root_quotient(m / (1 - self.beta_1**t), v_hat, self.epsilon)
        self.assign_sub(variable, learning_rate * _trust_ratio(variable.as_tensor(), r) * r)


def _trust_ratio(w: Tensor, r: Tensor) -> Any:
    """|w| / |r|, or 1 where either is 0."""
    above, below = norm(w), norm(r)
    known = ops.logical_and(above > 0, below > 0)
    return ops.cast(ops.where(known, above / ops.where(known, below, 1.0), 1.0), w.dtype)
