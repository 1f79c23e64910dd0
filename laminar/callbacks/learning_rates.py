"""Reading and setting the learning rate of the optimizer, for the callbacks that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine.errors import FailedPreconditionError
from laminar.engine.state import Variable
from laminar.optimizers import LossScaleOptimizer, MultiOptimizer


def rated(model: Any) -> list[Any]:
    """The optimizers of a model that have a learning rate: one, or those of a MultiOptimizer."""
    optimizer = model.optimizer
    if isinstance(optimizer, LossScaleOptimizer):
        optimizer = optimizer.inner_optimizer
    return optimizer.optimizers if isinstance(optimizer, MultiOptimizer) else [optimizer]


def rate_of(optimizer: Any) -> float:
    """The learning rate now."""
    return float(np.asarray(optimizer.learning_rate))


def logged_rates(model: Any) -> dict[str, float]:
    """The learning rates as they are logged: of several optimizers, each with its name."""
    optimizers = rated(model)
    if len(optimizers) == 1:
        return {"learning_rate": rate_of(optimizers[0])}
    return {f"learning_rate_{optimizer.name}": rate_of(optimizer) for optimizer in optimizers}


def require_settable(model: Any, who: str) -> None:
    """FailedPreconditionError unless the learning rate is a number that can be changed."""
    for optimizer in rated(model):
        if not isinstance(optimizer.learning_rate, Variable):
            raise FailedPreconditionError(
                f"{who}: the learning rate of {optimizer.name!r} follows a schedule or a "
                f"function, so it cannot be set",
                remedy=f"make the optimizer with a number as its learning_rate, or leave {who} out",
            )
