"""CallbackList: all callbacks of a loop, told in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

from laminar.engine.errors import InvalidArgumentError
from laminar.tree import flatten

from .callback import Callback, LazyLogs, Logs
from .display import Flow
from .history import History
from .progress import ProgbarLogger

# The older names, which `Callback` calls from the newer ones.
_OLDER = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}


class CallbackList:
    """Tells all callbacks, in order. As a context it ends displays and files when an error comes.

    `_hearers` maps a method of batches to that of each callback that does something in it (most
    have nothing to do at each batch, and are not asked), and whether that one reads the logs itself
    if it needs them. It is made anew whenever a loop begins.

    Args:
        callbacks: one, or a list.
        add_history: whether to keep a history when none of them does.
        add_progbar: whether to show progress when none of them does.
        model: the model that is trained.
        **params: what the callbacks get as `params`.

    Raises:
        InvalidArgumentError: something that is not a callback.

    Examples:
        >>> model = laminar.Sequential([layers.Input((1,)), layers.Dense(1)])
        >>> shout = laminar.callbacks.LambdaCallback(on_train_begin=lambda logs: print("begins"))
        >>> laminar.callbacks.CallbackList([shout], model=model).on_train_begin()
        begins
    """

    def __init__(
        self,
        callbacks: CallbacksLike | None = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
        self.callbacks: list[Callback] = [_checked(c) for c in flatten(callbacks) if c is not None]
        if add_progbar and not self._of(ProgbarLogger):
            self.callbacks.append(ProgbarLogger())
        if add_history and not self._of(History):
            self.callbacks.append(History())
        self._hearers: dict[str, list[tuple[Callable[..., None], bool]]] = {}
        self._model = model
        self.set_params(params)
        if model is not None:
            self.set_model(model)

    def _of(self, kind: type[Callback]) -> list[Any]:
        return [c for c in self.callbacks if isinstance(c, kind)]

    def watch(self, flow: Flow, begin: int = 0) -> None:
        """Have the progress of the next epoch or loop show how its batches flow."""
        for progress in self._of(ProgbarLogger):
            progress.watch(flow, begin)

    def append(self, callback: Callback) -> None:
        """Add a callback."""
        self.callbacks.append(_checked(callback))
        self._hearers.clear()
        callback.set_params(self.params)
        if self._model is not None:
            callback.set_model(self._model)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Give all callbacks the facts of the call."""
        self.params = params
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model: Any) -> None:
        """Give all callbacks the model, and the model its history."""
        self._model = model
        for callback in self.callbacks:
            callback.set_model(model)
        for history in self._of(History):
            model.history = history

    def __iter__(self) -> Iterator[Callback]:
        return iter(self.callbacks)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for callback in self.callbacks:
            break_off = getattr(callback, "break_off", None)
            if break_off is not None:
                break_off()

    def _tell(self, method: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, method)(*args)

    def _hearers_of(self, method: str) -> list[tuple[Callable[..., None], bool]]:
        hearers = self._hearers.get(method)
        if hearers is None:
            hearers = self._hearers[method] = [
                (getattr(c, method), c.reads_logs_later)
                for c in self.callbacks
                if _hears(c, method)
            ]
        return hearers

    def _tell_batch(self, method: str, batch: int, logs: LazyLogs) -> None:
        for tell, reads_later in self._hearers_of(method):
            if logs.__class__ is not dict and not reads_later:
                logs = logs() if callable(logs) else logs or {}
            tell(batch, logs)

    def _begin(self, method: str, logs: Logs | None) -> None:
        self._tell(method, logs or {})
        self._hearers.clear()

    def on_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """An older name of `on_train_batch_begin`."""
        self.on_train_batch_begin(batch, logs)

    def on_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """An older name of `on_train_batch_end`."""
        self.on_train_batch_end(batch, logs)

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Tell that an epoch begins."""
        self._tell("on_epoch_begin", epoch, logs or {})

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Tell that an epoch has ended; each callback sees what those before it put into `logs`."""
        for progress in self._of(ProgbarLogger):
            progress.hide_bar()  # what callbacks print begins on a line of its own
        self._tell("on_epoch_end", epoch, {} if logs is None else logs)

    def on_train_batch_begin(self, batch: int, logs: LazyLogs = None) -> None:
        """Tell that a step of training begins."""
        self._tell_batch("on_train_batch_begin", batch, logs)

    @property
    def sees_batches(self) -> bool:
        """Whether a callback wants to see the batch of each step."""
        return bool(self._hearers_of("on_train_batch_data"))

    def on_train_batch_data(self, batch: int, data: Any) -> None:
        """Show the batch of a step of training, before the step."""
        for tell, _ in self._hearers_of("on_train_batch_data"):
            tell(batch, data)

    def on_train_batch_end(self, batch: int, logs: LazyLogs = None) -> None:
        """Tell that a step of training has ended."""
        self._tell_batch("on_train_batch_end", batch, logs)

    def on_test_batch_begin(self, batch: int, logs: LazyLogs = None) -> None:
        """Tell that a step of evaluation begins."""
        self._tell_batch("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: LazyLogs = None) -> None:
        """Tell that a step of evaluation has ended."""
        self._tell_batch("on_test_batch_end", batch, logs)

    def on_predict_batch_begin(self, batch: int, logs: LazyLogs = None) -> None:
        """Tell that a step of prediction begins."""
        self._tell_batch("on_predict_batch_begin", batch, logs)

    def on_predict_batch_end(self, batch: int, logs: LazyLogs = None) -> None:
        """Tell that a step of prediction has ended."""
        self._tell_batch("on_predict_batch_end", batch, logs)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Tell that training begins."""
        self._begin("on_train_begin", logs)

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Tell that training has ended."""
        self._tell("on_train_end", logs or {})

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Tell that an evaluation begins."""
        self._begin("on_test_begin", logs)

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Tell that an evaluation has ended."""
        self._tell("on_test_end", logs or {})

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Tell that a prediction begins."""
        self._begin("on_predict_begin", logs)

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Tell that a prediction has ended."""
        self._tell("on_predict_end", logs or {})


def _checked(callback: Any) -> Callback:
    if isinstance(callback, Callback):
        return callback
    hint = f"{callback.__name__}()" if isinstance(callback, type) else "a Callback"
    raise InvalidArgumentError(
        f"callbacks: expected Callback objects, got {callback!r}", remedy=f"pass {hint}"
    )


def _hears(callback: Callback, method: str) -> bool:
    """Whether the callback, or its class, has written the method."""
    return any(
        name in vars(callback) or getattr(type(callback), name) is not getattr(Callback, name)
        for name in (method, _OLDER.get(method, method))
    )


# Callbacks of a loop: one, several, or a list that is already made.
CallbacksLike: TypeAlias = Callback | Sequence[Callback | None] | CallbackList
