"""Muon: momentum steps of matrices, made orthogonal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from .checks import decay_rate, not_negative
from .clipping import norm
from .learning_rates import LearningRate
from .optimizer import Optimizer
from .options import CommonOptions
from .scaling import root_quotient

_EPSILON = 1e-7  # keeps the zero matrix finite; epsilon itself belongs to Adam's steps


class Muon(Optimizer):
    """For a matrix w of n rows and k columns, with momentum m:

        m = momentum * m + g
        u = orthogonal(g + momentum * m)        (of m itself without `nesterov`)
        w = w - learning_rate * rms_rate * sqrt(max(n, k)) * u

    where orthogonal(x) is x with its singular values moved near 1. Other variables, embeddings and
    those that `exclude_layers` names take Adam's step; so should the layer before the output.

    Args:
        learning_rate: see `Optimizer`.
        adam_beta_1: `beta_1` of Adam.
        adam_beta_2: `beta_2` of Adam.
        adam_weight_decay: weight decay of the variables that take Adam's step.
        epsilon: of Adam.
        weight_decay: of the variables that take Muon's step.
        exclude_layers: patterns; a variable in whose path one is found takes Adam's step.
        exclude_embeddings: whether variables with "embedding" in their path do.
        muon_a: first coefficient of the iteration, see `_orthogonal`.
        muon_b: second one.
        muon_c: third one.
        adam_lr_ratio: learning rate of Adam's steps over that of Muon's.
        momentum: weight of the gradients before.
        ns_steps: iterations that make a step orthogonal.
        nesterov: whether to look ahead by one gradient.
        rms_rate: root mean square of the elements of a step; None leaves the factor out.
        options: see `Optimizer`.

    Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024;
        Liu et al., "Muon is scalable for LLM training", 2025, arXiv:2502.16982, equation 4.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> laminar.optimizers.Muon(learning_rate=0.1).apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.8996, 2.0992], dtype=float32)
    """

    _laminar_elementwise: ClassVar[bool] = False

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        exclude_layers: Sequence[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.775,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **options: Unpack[CommonOptions],
    ) -> None:
        super().__init__(learning_rate, weight_decay=weight_decay, **options)
        decay_rate("Muon", adam_beta_1=adam_beta_1, adam_beta_2=adam_beta_2, momentum=momentum)
        not_negative("Muon", ns_steps=ns_steps)
        self.adam_beta_1 = adam_beta_1
        self.adam_beta_2 = adam_beta_2
        self.adam_weight_decay = adam_weight_decay
        self.epsilon = epsilon
        self.exclude_layers = list(exclude_layers or ())
        self.exclude_embeddings = exclude_embeddings
        self.muon_a = muon_a
        self.muon_b = muon_b
        self.muon_c = muon_c
        self.adam_lr_ratio = adam_lr_ratio
        self.momentum = momentum
        self.ns_steps = ns_steps
        self.nesterov = nesterov
        self.rms_rate = rms_rate

    def _takes_adam(self, variable: Variable) -> bool:
        if len(variable.shape) != 2:
            return True
        if self.exclude_embeddings and "embedding" in variable.path.lower():
            return True
        return any(re.search(pattern, variable.path) for pattern in self.exclude_layers)

    def build(self, variables: Sequence[Variable]) -> None:
        if self.built:
            return
        super().build(variables)
        self._momentums: dict[int, Variable] = {}
        self._velocities: dict[int, Variable] = {}
        for i, w in enumerate(variables):
            self._momentums[i] = self.add_variable_from_reference(w, "momentum")
            if self._takes_adam(w):
                self._velocities[i] = self.add_variable_from_reference(w, "velocity")

    def _laminar_weight_decay_of(self, variable: Variable) -> float | None:
        if self._takes_adam(variable) and self._laminar_decays(variable):
            return self.adam_weight_decay
        return super()._laminar_weight_decay_of(variable)

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        if self._takes_adam(variable):
            self._adam_step(gradient, variable, learning_rate * self.adam_lr_ratio)
        else:
            self._muon_step(gradient, variable, learning_rate)

    def _muon_step(self, gradient: Tensor, variable: Variable, rate: Tensor) -> None:
        momentum = self._momentums[self._get_variable_index(variable)]
        m = self.assign(momentum, self.momentum * momentum + gradient)
        u = gradient + self.momentum * m if self.nesterov else m
        rows, columns = (int(size or 0) for size in variable.shape)
        u = self._orthogonal(u.T).T if rows > columns else self._orthogonal(u)
        self.assign_sub(variable, rate * self.lr_adjust(u))

    def lr_adjust(self, x: Any) -> Any:
        """A step of shape (n, k) times rms_rate * sqrt(max(n, k)); as it is without `rms_rate`."""
        if self.rms_rate is None:
            return x
        return x * (self.rms_rate * math.sqrt(max(x.shape)))

    def _orthogonal(self, x: Tensor) -> Any:
        """Repeat x = a x + (b S + c S**2) x with S = x x^T; x has no more rows than columns.

        The polynomial a s + b s**3 + c s**5 moves every singular value s of (0, 1] near 1.
        """
        x = x / (ops.cast(norm(x), x.dtype) + _EPSILON)
        for _ in range(self.ns_steps):
            s = x @ x.T
            x = self.muon_a * x + (self.muon_b * s + self.muon_c * (s @ s)) @ x
        return x

    def _adam_step(self, gradient: Tensor, variable: Variable, rate: Tensor) -> None:
        i = self._get_variable_index(variable)
        momentum, velocity = self._momentums[i], self._velocities[i]
        t = self._laminar_time(variable.dtype)
        rate = rate * ops.sqrt(1 - self.adam_beta_2**t) / (1 - self.adam_beta_1**t)
        b_1, b_2 = self.adam_beta_1, self.adam_beta_2
        m = self.assign(momentum, b_1 * momentum + (1 - b_1) * gradient)
        v = self.assign(velocity, b_2 * velocity + (1 - b_2) * ops.square(gradient))
        self.assign_sub(variable, root_quotient(rate * m, v, self.epsilon))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "adam_beta_1": self.adam_beta_1,
            "adam_beta_2": self.adam_beta_2,
            "epsilon": self.epsilon,
            "exclude_layers": self.exclude_layers,
            "muon_a": self.muon_a,
            "muon_b": self.muon_b,
            "muon_c": self.muon_c,
            "adam_lr_ratio": self.adam_lr_ratio,
            "momentum": self.momentum,
            "ns_steps": self.ns_steps,
            "nesterov": self.nesterov,
            "exclude_embeddings": self.exclude_embeddings,
            "adam_weight_decay": self.adam_weight_decay,
            "rms_rate": self.rms_rate,
        }
