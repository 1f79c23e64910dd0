"""AdamW: Adam with weight decay apart from the gradient."""

from __future__ import annotations

from typing import Unpack

from laminar.engine.errors import InvalidArgumentError

from .adam import Adam
from .learning_rates import LearningRate
from .options import CommonOptions


class AdamW(Adam):
    """Each step first takes learning_rate * weight_decay * w from w, then does Adam's step.

    Args:
        learning_rate: see `Optimizer`.
        weight_decay: a number.
        beta_1: see `Adam`.
        beta_2: see `Adam`.
        epsilon: see `Adam`.
        amsgrad: see `Adam`.
        options: see `Optimizer`.

    Raises:
        InvalidArgumentError: `weight_decay` is None.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, arXiv:1711.05101,
        algorithm 2.

    Examples:
        >>> w = laminar.Variable([1.0, 2.0])
        >>> optimizer = laminar.optimizers.AdamW(learning_rate=0.1, weight_decay=0.01)
        >>> optimizer.apply([ops.array([1.0, -2.0])], [w])
        >>> w.numpy()
        array([0.899, 2.098], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Unpack[CommonOptions],
    ) -> None:
        if weight_decay is None:
            raise InvalidArgumentError(
                "AdamW: weight_decay must be a number, got None", remedy="use Adam without decay"
            )
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **options
        )
