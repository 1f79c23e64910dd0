"""Lion: steps of one size, in the direction of the sign of a momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import decay_rate
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class Lion(Optimizer):
    """w = w - learning_rate * sign(beta_1 * m + (1 - beta_1) * g), then
    m = beta_2 * m + (1 - beta_2) * g.

    Args:
        learning_rate: see `Optimizer`; 3 to 10 times smaller than Adam's.
        beta_1: weight of the momentum in the step, in (0, 1].
        beta_2: decay of the momentum.
        options: see `Optimizer`.

    Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023, arXiv:2302.06675,
        algorithm 2.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Lion(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.9, 2.1], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        if not 0 < beta_1 <= 1:
            raise InvalidArgumentError(
                f"Lion: beta_1 must lie in (0, 1], got {beta_1!r}",
                remedy="with 0 the momentum would not be used at all",
            )
        decay_rate("Lion", beta_2=beta_2)
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums = self.add_optimizer_variables(variables, "momentum")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        m = self._momentums[self._get_variable_index(variable)]
        direction = ops.sign(self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign_sub(variable, learning_rate * direction)
        self.assign(m, self.beta_2 * m + (1 - self.beta_2) * gradient)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "beta_1": self.beta_1, "beta_2": self.beta_2}
