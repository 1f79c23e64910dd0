"""Reading and setting the learning rate of the optimizer, for the callbacks that do."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine.errors import FailedPreconditionError
from laminar.engine.state import Variable


def learning_rate(model: Any) -> float:
    """The learning rate now."""
    return float(np.asarray(model.optimizer.learning_rate))


def require_settable(model: Any, who: str) -> None:
    """FailedPreconditionError unless the learning rate is a number that can be changed."""
    if not isinstance(model.optimizer.learning_rate, Variable):
        raise FailedPreconditionError(
            f"{who}: the learning rate of {model.optimizer.name!r} follows a schedule or a "
            f"function, so it cannot be set",
            remedy=f"make the optimizer with a number as its learning_rate, or leave {who} out",
        )
