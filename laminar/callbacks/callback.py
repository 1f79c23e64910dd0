"""Callback: an object that is told of each batch and epoch; CallbackList: all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.tree import flatten

Logs = dict[str, Any]


class Callback:
    """Derive from it, and write the methods that matter; each gets the values so far.

    Attributes:
        model: the model that is trained.
        params: "verbose", "epochs" and "steps" of the call.
    """

    def __init__(self) -> None:
        self._model: Any = None
        self.params: Mapping[str, Any] = {}
        self.validation_data: Any = None

    @property
    def model(self) -> Any:
        """The model that is trained."""
        return self._model

    def set_model(self, model: Any) -> None:
        """Called before anything else."""
        self._model = model

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Called before anything else."""
        self.params = params

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """An older name of `on_train_batch_begin`."""

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """An older name of `on_train_batch_end`."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """An epoch of training begins."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """An epoch of training, and its validation, has ended."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """A step of training begins."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """A step of training has ended."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """A step of evaluation begins."""

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """A step of evaluation has ended."""

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """A step of prediction begins."""

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """A step of prediction has ended; `logs["outputs"]` holds what it gave."""

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Training begins."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Training has ended, also by an error."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """An evaluation begins, also one inside training."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """An evaluation has ended."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """A prediction begins."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """A prediction has ended."""


class CallbackList:
    """Tells all callbacks, in order.

    Args:
        callbacks: one, or a list.
        add_history: whether to keep a history when none of them does.
        add_progbar: whether to show progress when none of them does.
        model: the model that is trained.
        **params: what the callbacks get as `params`.

    Raises:
        InvalidArgumentError: something that is not a callback.
    """

    def __init__(
        self,
        callbacks: Any = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
        from .history import History
        from .progress import ProgbarLogger

        self.callbacks: list[Callback] = [c for c in flatten(callbacks) if c is not None]
        for callback in self.callbacks:
            if not isinstance(callback, Callback):
                hint = f"{callback.__name__}()" if isinstance(callback, type) else "a Callback"
                raise InvalidArgumentError(
                    f"callbacks: expected Callback objects, got {callback!r}",
                    remedy=f"pass {hint}",
                )
        if add_progbar and not self._has(ProgbarLogger):
            self.callbacks.append(ProgbarLogger())
        if add_history and not self._has(History):
            self.callbacks.append(History())
        self.params = params
        for callback in self.callbacks:
            callback.set_model(model)
            callback.set_params(params)
        if model is not None and self._has(History):
            model.history = next(c for c in self.callbacks if isinstance(c, History))

    def _has(self, kind: type[Callback]) -> bool:
        return any(isinstance(c, kind) for c in self.callbacks)

    def append(self, callback: Callback) -> None:
        """Add a callback."""
        self.callbacks.append(callback)

    def __iter__(self) -> Any:
        return iter(self.callbacks)

    def _tell(self, method: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, method)(*args)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Tell that an epoch begins."""
        self._tell("on_epoch_begin", epoch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Tell that an epoch has ended."""
        self._tell("on_epoch_end", epoch, {} if logs is None else logs)

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Tell that a step of training begins."""
        self._tell("on_train_batch_begin", batch, logs or {})

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Tell that a step of training has ended."""
        self._tell("on_train_batch_end", batch, logs or {})

    def on_test_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Tell that a step of evaluation begins."""
        self._tell("on_test_batch_begin", batch, logs or {})

    def on_test_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Tell that a step of evaluation has ended."""
        self._tell("on_test_batch_end", batch, logs or {})

    def on_predict_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Tell that a step of prediction begins."""
        self._tell("on_predict_batch_begin", batch, logs or {})

    def on_predict_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Tell that a step of prediction has ended."""
        self._tell("on_predict_batch_end", batch, logs or {})

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Tell that training begins."""
        self._tell("on_train_begin", logs or {})

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Tell that training has ended."""
        self._tell("on_train_end", logs or {})

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Tell that an evaluation begins."""
        self._tell("on_test_begin", logs or {})

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Tell that an evaluation has ended."""
        self._tell("on_test_end", logs or {})

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Tell that a prediction begins."""
        self._tell("on_predict_begin", logs or {})

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Tell that a prediction has ended."""
        self._tell("on_predict_end", logs or {})
