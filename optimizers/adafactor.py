"""Adafactor: second moments of a matrix kept as one row and one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.typing import TensorLike

from .checks import positive
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import Options


class Adafactor(Optimizer):
    """r and c are decaying averages over the rows and columns of g**2 + epsilon_1, t from 1:

        beta = 1 - t**beta_2_decay
        r = beta * r + (1 - beta) * mean over the last axis of (g**2 + epsilon_1)
        c = beta * c + (1 - beta) * mean over the axis before of (g**2 + epsilon_1)
        v = r * c / mean(r)
        u = g / sqrt(v);  u = u / max(1, rms(u) / clip_threshold)
        w = w - max(epsilon_2, rms(w)) * rho * u

    A vector or scalar keeps v itself. rho is the learning rate, at most 1 / sqrt(t). rms(x) is the
    root of the mean of x**2.

    Args:
        learning_rate: see `Optimizer`.
        beta_2_decay: a negative exponent.
        epsilon_1: keeps the squares above 0.
        epsilon_2: least size taken for a variable.
        clip_threshold: greatest rms of a step.
        relative_step: taken for Keras's sake, where the rate falls with time without it too.
        options: see `Optimizer`.

    Source: Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
        2018, arXiv:1804.04235, algorithms 4 and 5.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Adafactor(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.8419, 2.1581], dtype=float32)
    """

    _laminar_elementwise: ClassVar[bool] = False

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(learning_rate, **options)
        positive("Adafactor", clip_threshold=clip_threshold)
        self.beta_2_decay = beta_2_decay
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold
        self.relative_step = relative_step

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._rows: list[Variable] = []
        self._columns: list[Variable] = []
        self._velocities: list[Variable] = []
        for w in variables:
            # Saved files hold the three for every variable: of a vector, two that are not used.
            factored = len(w.shape) >= 2
            dtype = w.dtype if factored else "int32"
            row, column = (w.shape[:-1], w.shape[:-2] + w.shape[-1:]) if factored else ((), ())
            name = w.name.partition(":")[0]  # a variable of compat.v1 has the name of a tensor
            self._rows.append(self.add_variable(row, dtype=dtype, name=name))
            self._columns.append(self.add_variable(column, dtype=dtype, name=name))
            self._velocities.append(self.add_variable_from_reference(w, "velocity"))

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        t = self._laminar_time(variable.dtype)
        beta = 1 - t**self.beta_2_decay
        v = self._second_moment(ops.square(gradient) + self.epsilon_1, variable, beta)
        u = gradient / ops.sqrt(v)
        u = u / ops.maximum(1.0, _rms(u) / self.clip_threshold)
        rho = ops.minimum(learning_rate, 1 / ops.sqrt(t))
        self.assign_sub(variable, ops.maximum(self.epsilon_2, _rms(variable)) * rho * u)

    def _second_moment(self, squares: Tensor, variable: Variable, beta: Tensor) -> Any:
        i = self._get_variable_index(variable)
        if len(variable.shape) < 2:
            v = self._velocities[i]
            return self.assign(v, beta * v + (1 - beta) * squares)
        row, column = self._rows[i], self._columns[i]
        r = self.assign(row, beta * row + (1 - beta) * ops.mean(squares, axis=-1))
        c = self.assign(column, beta * column + (1 - beta) * ops.mean(squares, axis=-2))
        r = r / ops.mean(r, axis=-1, keepdims=True)
        return ops.expand_dims(r, -1) * ops.expand_dims(c, -2)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "beta_2_decay": self.beta_2_decay,
            "epsilon_1": self.epsilon_1,
            "epsilon_2": self.epsilon_2,
            "clip_threshold": self.clip_threshold,
            "relative_step": self.relative_step,
        }


def _rms(x: TensorLike) -> Any:
    return ops.sqrt(ops.mean(ops.square(x)))
