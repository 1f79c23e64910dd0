"""Hooks that look at values: log them, stop at NaN, compute some at the end, feed some."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError, LaminarError
from ..graph import get_default_graph
from ..runtime import Session
from .session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from .timers import NeverTriggerTimer, SecondOrStepTimer

_log = logging.getLogger("laminar")


class NanLossDuringTrainingError(LaminarError, RuntimeError):
    """A loss has become NaN.

    Examples:
        >>> issubclass(engine.NanLossDuringTrainingError, RuntimeError)
        True
    """

    def __init__(self, message: str = "the loss is NaN", **options: Any) -> None:
        super().__init__(message, **options)


class LoggingTensorHook(SessionRunHook):
    """Logs values, every so many runs or seconds, or at the end.

    Args:
        tensors: names by which they are logged -> tensors or their names; or a list of those.
        every_n_iter: after so many runs of this process, the first among them.
        every_n_secs: or after so many seconds.
        at_end: whether the values at the end are logged.
        formatter: makes the line out of a dict of values; by default "name = value, ...".

    Raises:
        InvalidArgumentError: not exactly one of `every_n_iter` and `every_n_secs` is given, though
            nothing is logged at the end; or every_n_iter is not positive.

    Examples:
        >>> hook = engine.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=100)
    """

    def __init__(
        self,
        tensors: Mapping[str, Any] | Sequence[Any],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise InvalidArgumentError(
                "LoggingTensorHook: exactly one of every_n_iter and every_n_secs must be given"
            )
        if every_n_iter is not None and every_n_iter <= 0:
            raise InvalidArgumentError(
                f"LoggingTensorHook: every_n_iter must be positive, got {every_n_iter}"
            )
        if isinstance(tensors, Mapping):
            self._tensors = dict(tensors)
        else:
            self._tensors = {x if isinstance(x, str) else x.name: x for x in tensors}
        self._formatter = formatter
        self._at_end = at_end
        self._timer = (
            NeverTriggerTimer() if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        )

    def begin(self) -> None:
        self._timer.reset()
        self._runs = 0
        self._elements = {
            name: get_default_graph().as_graph_element(x) for name, x in self._tensors.items()
        }

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._is_due = self._timer.should_trigger_for_step(self._runs)
        return SessionRunArgs(self._elements) if self._is_due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._is_due:
            self._tell(run_values.results)
        self._runs += 1

    def end(self, session: Session) -> None:
        if self._at_end:
            self._tell(session.run(self._elements))

    def _tell(self, values: dict[str, Any]) -> None:
        seconds, _ = self._timer.update_last_triggered_step(self._runs)
        if self._formatter is not None:
            _log.info(self._formatter(values))
            return
        text = ", ".join(f"{name} = {value}" for name, value in values.items())
        _log.info(text if seconds is None else f"{text} ({seconds:.3f} sec)")


class NanTensorHook(SessionRunHook):
    """Looks at a loss after each run, and stops or fails where it is NaN.

    Args:
        loss_tensor: the loss, or its name.
        fail_on_nan_loss: whether NaN is an error; otherwise training ends.

    Examples:
        >>> with engine.Graph().as_default():
        ...     loss = engine.constant(float("nan"))
        ...     hook = engine.NanTensorHook(loss, fail_on_nan_loss=False)
        ...     with engine.MonitoredSession(hooks=[hook]) as session:
        ...         _ = session.run(loss)
        ...         session.should_stop()
        True
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss = loss_tensor
        self._fails = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not np.isnan(run_values.results).any():
            return
        message = "the loss is NaN: training has diverged"
        if self._fails:
            raise NanLossDuringTrainingError(
                message, remedy="lower the learning rate, or look for what is infinite before"
            )
        _log.warning(message)
        run_context.request_stop()  # the step counter and the log tell where


class FinalOpsHook(SessionRunHook):
    """Runs operations at the end.

    Args:
        final_ops: a tensor, an operation or a structure of them.
        final_ops_feed_dict: values that they are given.

    Attributes:
        final_ops_values: what they gave, None before the end.

    Examples:
        >>> with engine.Graph().as_default():
        ...     x = engine.constant(7.0)
        ...     hook = engine.FinalOpsHook(x + 1)
        ...     with engine.MonitoredSession(hooks=[hook]) as session:
        ...         value = session.run(x)
        >>> hook.final_ops_values
        np.float32(8.0)
    """

    def __init__(
        self, final_ops: Any, final_ops_feed_dict: Mapping[Any, Any] | None = None
    ) -> None:
        self._final_ops = final_ops
        self._feed_dict = final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: Session) -> None:
        if self._final_ops is not None:
            self.final_ops_values = session.run(self._final_ops, self._feed_dict)


class FeedFnHook(SessionRunHook):
    """Feeds each run with what a function gives.

    Args:
        feed_fn: gives a dict of tensors and values.

    Examples:
        >>> with engine.Graph().as_default():
        ...     x = engine.placeholder("float32", [])
        ...     y = 2 * x
        ...     with engine.MonitoredSession(
        ...         hooks=[engine.FeedFnHook(lambda: {x: 3.0})]
        ...     ) as session:
        ...         value = session.run(y)
        >>> value
        np.float32(6.0)
    """

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(None, self.feed_fn())
