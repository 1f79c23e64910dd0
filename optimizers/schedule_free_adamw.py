"""ScheduleFreeAdamW: AdamW with an average in the place of a learning-rate schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import is_used
from .learning_rates import LearningRate
from .moments import MomentOptimizer
from .options import Options


class ScheduleFreeAdamW(MomentOptimizer):
    """Steps go from z, gradients are taken at y, between z and the average x of all z:

        v = beta_2 * v + (1 - beta_2) * g**2
        z' = z - rate * g / (sqrt(v / (1 - beta_2**t)) + epsilon)
        x' = (1 - 1/t) * x + z' / t
        y' = (1 - beta_1) * z' + beta_1 * x'

    The variables of the model are y; z is kept beside them ("momentum"), x follows from both.
    t counts from 1, and rate = learning_rate * min(1, t / warmup_steps).

    Args:
        learning_rate: see `Optimizer`.
        beta_1: how far y is from z towards x; above 0.
        beta_2: decay of v.
        epsilon: added outside of the root.
        warmup_steps: in how many steps the learning rate rises, from the first on.
        options: see `Optimizer`.

    Raises:
        InvalidArgumentError: beta_1 is 0, or warmup_steps is below 0.

    Source: Defazio et al., "The road less scheduled", 2024, arXiv:2405.15682, algorithm 1 (with
        equal weights of all steps).

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> optimizer = laminar.optimizers.ScheduleFreeAdamW(learning_rate=0.1)
        >>> optimizer.apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.9, 2.1], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        if not is_used(beta_1):
            raise InvalidArgumentError(
                f"{type(self).__name__}: beta_1 must be above 0: the average is found by it",
                remedy="use AdamW for steps without an average",
            )
        if isinstance(warmup_steps, bool) or not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise InvalidArgumentError(
                f"{type(self).__name__}: warmup_steps must be a whole number of at least 0, "
                f"got {warmup_steps!r}"
            )
        self.warmup_steps = warmup_steps

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums: list[Variable | None] = []
        self._velocities: list[Variable | None] = []
        for v in variables:
            if v.overwrite_with_gradient:
                self._momentums.append(None)
                self._velocities.append(None)
                continue
            # Read where slots get their values: outside of a function that is traced.
            self._momentums.append(
                self.add_variable_from_reference(
                    v, "momentum", lambda shape, dtype, v=v: v.read_value()
                )
            )
            self._velocities.append(self.add_variable_from_reference(v, "velocity"))

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        momentum, velocity = self._momentums[i], self._velocities[i]
        assert momentum is not None, "as of all variables that steps change"
        assert velocity is not None, "likewise"
        t = self._laminar_time(variable.dtype)
        if self.warmup_steps:
            warm = ops.cast(ops.minimum(t / self.warmup_steps, 1.0), variable.dtype)
            learning_rate = learning_rate * warm
        part = ops.cast(1 / t, variable.dtype)
        unbiased = ops.cast(1 - self.beta_2**t, variable.dtype)
        y, z = variable.read_value(), momentum.read_value()
        x = (y - (1 - self.beta_1) * z) / self.beta_1
        v = self.assign(velocity, self.beta_2 * velocity + (1 - self.beta_2) * ops.square(gradient))
        z = self.assign(
            momentum, z - learning_rate * gradient / (ops.sqrt(v / unbiased) + self.epsilon)
        )
        x = (1 - part) * x + part * z
        self.assign(variable, (1 - self.beta_1) * z + self.beta_1 * x)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "warmup_steps": self.warmup_steps}
