"""Callback: an object that is told of each batch and epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

Logs = dict[str, Any]
# What a loop tells of a batch: the values, or a function that reads them from the device.
LazyLogs = Logs | Callable[[], Logs] | None


class Callback:
    """Derive from it, and write the methods that matter; each gets the values so far.

    Attributes:
        model: the model that is trained.
        params: "verbose", "epochs" and "steps" of the call.
        reads_logs_later: whether the methods of batches take the function that reads the logs in
            the place of the logs, as one does that needs few of them.
        is_for_first: whether, of several processes that train together, the first alone has it: it
            shows progress, or writes files.
        saves_model: whether it saves the model, which takes all processes where each of them has
            pieces of the weights; then all have it, and the first one writes.

    Examples:
        >>> class Ends(laminar.callbacks.Callback):
        ...     def on_epoch_end(self, epoch, logs=None):
        ...         print(epoch, sorted(logs))
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> history = model.fit(
        ...     np.ones((8, 1)), np.ones((8, 1)), epochs=2, callbacks=[Ends()], verbose=0
        ... )
        0 ['loss']
        1 ['loss']
    """

    reads_logs_later: ClassVar[bool] = False
    is_for_first: ClassVar[bool] = False
    saves_model: ClassVar[bool] = False

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

    def get_state(self) -> Mapping[str, Any]:
        """What `set_state` needs so that training can go on in another process.

        Returns:
            By name: None, bool, numbers, strings, NumPy arrays, and lists and dicts of these.
        """
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on where `get_state` was called; comes after `on_train_begin`."""

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

    def on_train_batch_data(self, batch: int, data: Any) -> None:
        """A step of training begins on this batch, as `train_step` gets it.

        The arrays may be reused for later batches: copy what is to be kept.
        """

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
        """Training has ended, but not by an error."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """An evaluation begins, also one inside training."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """An evaluation has ended."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """A prediction begins."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """A prediction has ended."""
