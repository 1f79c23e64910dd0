"""LambdaCallback: a callback made of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import InvalidArgumentError, did_you_mean

from .callback import Callback

_METHODS = [name for name in vars(Callback) if name.startswith("on_")]


class LambdaCallback(Callback):
    """Calls functions in the place of its methods.

    Args:
        on_epoch_begin: (epoch, logs) -> None.
        on_epoch_end: (epoch, logs) -> None.
        on_train_begin: (logs) -> None.
        on_train_end: (logs) -> None.
        on_train_batch_begin: (batch, logs) -> None.
        on_train_batch_end: (batch, logs) -> None.
        **kwargs: the same for any other method of `Callback`.

    Raises:
        InvalidArgumentError: an unknown name, or something that is not a function.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> shout = laminar.callbacks.LambdaCallback(
        ...     on_epoch_begin=lambda epoch, logs: print(epoch)
        ... )
        >>> history = model.fit(
        ...     np.ones((8, 1)), np.ones((8, 1)), epochs=2, callbacks=[shout], verbose=0
        ... )
        0
        1
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        on_train_batch_begin: Callable[..., Any] | None = None,
        on_train_batch_end: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        given = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            "on_train_batch_begin": on_train_batch_begin,
            "on_train_batch_end": on_train_batch_end,
            **kwargs,
        }
        for name, fn in given.items():
            if name not in _METHODS:
                raise InvalidArgumentError(
                    f"LambdaCallback: a callback has no method {name!r}",
                    remedy=did_you_mean(name, _METHODS, 1) or "see the methods of Callback",
                )
            if fn is not None and not callable(fn):
                raise InvalidArgumentError(
                    f"LambdaCallback: {name} must be a function, got {fn!r}",
                    remedy=f"{name}=lambda ...: ...",
                )
            if fn is not None:
                setattr(self, name, fn)
