"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import fraction, is_used
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class SGD(Optimizer):
    """w = w - learning_rate * g; with momentum, w = w + v for v = momentum * v - learning_rate * g.

    With `nesterov` the step is momentum * v - learning_rate * g with the new v.

    Args:
        learning_rate: see `Optimizer`.
        momentum: in [0, 1]; 0 keeps no velocity. It may be a scalar tensor of a graph.
        nesterov: whether to step from where the velocity leads.
        options: see `Optimizer`.

    Source: Polyak, "Some methods of speeding up the convergence of iteration methods", 1964;
        Sutskever et al., "On the importance of initialization and momentum in deep learning",
        2013, equations 1 to 4.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.SGD(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.9, 2.2], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        momentum: float | Tensor = 0.0,
        nesterov: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        fraction("SGD", momentum=momentum)
        self.momentum = momentum
        self.nesterov = nesterov

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        if is_used(self.momentum):
            self._momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        step = -learning_rate * gradient
        if is_used(self.momentum):
            v = self._momentums[self._get_variable_index(variable)]
            v = self.assign(v, self.momentum * v + step)
            step = self.momentum * v + step if self.nesterov else v
        self.assign_add(variable, step)

    def _laminar_keeps_rows(self) -> bool:
        return type(self).update_step is SGD.update_step and not is_used(self.momentum)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "momentum": self.momentum, "nesterov": self.nesterov}
