"""TerminateOnNaN: end training when the loss is no longer a number."""

from __future__ import annotations

import numpy as np

from laminar.engine.errors import FailedPreconditionError

from .callback import Callback, Logs
from .display import say


class TerminateOnNaN(Callback):
    """Ends training when the loss of a batch is NaN or infinite.

    Args:
        raise_error: whether to raise an error instead of ending quietly.

    Raises:
        FailedPreconditionError: with `raise_error`, the loss is NaN or infinite.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", lambda y, z: ops.mean(z) * float("nan"))
        >>> stop = laminar.callbacks.TerminateOnNaN()
        >>> history = model.fit(
        ...     np.ones((8, 1)), np.ones((8, 1)), epochs=5, callbacks=[stop], verbose=0
        ... )
        Batch 0: Invalid loss, terminating training
        >>> len(history.epoch)
        1
    """

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is None or np.isfinite(loss).all():
            return
        if self.raise_error:
            raise FailedPreconditionError(
                f"TerminateOnNaN: the loss is {loss} at batch {batch}",
                remedy="lower the learning rate, clip the gradients (clipnorm=1.0), or look for "
                "a division or logarithm of 0",
            )
        say(f"Batch {batch}: Invalid loss, terminating training")
        self.model.stop_training = True
