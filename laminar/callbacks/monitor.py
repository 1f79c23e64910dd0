"""MonitorCallback: what callbacks have in common that follow one of the logged values."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from laminar import losses, metrics
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import warn
from laminar.layers.open_property import open_property

from .callback import Callback, Logs
from .checks import check_number

_GREATER_IS_BETTER = (
    metrics.AUC,
    metrics.Accuracy,
    metrics.BinaryAccuracy,
    metrics.CategoricalAccuracy,
    metrics.ConcordanceCorrelation,
    metrics.CosineSimilarity,
    metrics.FBetaScore,
    metrics.IoU,
    metrics.MeanIoU,
    metrics.PearsonCorrelation,
    metrics.Precision,
    metrics.PrecisionAtRecall,
    metrics.R2Score,
    metrics.Recall,
    metrics.RecallAtPrecision,
    metrics.SensitivityAtSpecificity,
    metrics.SparseCategoricalAccuracy,
    metrics.SparseTopKCategoricalAccuracy,
    metrics.SpecificityAtSensitivity,
    metrics.TopKCategoricalAccuracy,
)
_LESS_IS_BETTER = (
    metrics.BinaryCrossentropy,
    metrics.CategoricalCrossentropy,
    metrics.CategoricalHinge,
    metrics.Hinge,
    metrics.KLDivergence,
    metrics.LogCoshError,
    metrics.MeanAbsoluteError,
    metrics.MeanAbsolutePercentageError,
    metrics.MeanSquaredError,
    metrics.MeanSquaredLogarithmicError,
    metrics.Poisson,
    metrics.RootMeanSquaredError,
    metrics.SparseCategoricalCrossentropy,
    metrics.SquaredHinge,
)
_MODES = {"min": "min", "max": "max", "auto": None}


class MonitorCallback(Callback):
    """Follows a logged value. Abstract: `EarlyStopping`, `ModelCheckpoint` and others derive.

    Args:
        monitor: name of the value in the logs, such as "val_loss".
        mode: whether less ("min") or more ("max") is better; "auto" finds out from the metric.
        baseline: the best value before the first.
        min_delta: by how much a value has to be better than the best to count.

    Attributes:
        best: the best value so far, None before the first.

    Raises:
        InvalidArgumentError: an argument of another kind.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        mode: str = "auto",
        baseline: float | None = None,
        min_delta: float = 0,
    ) -> None:
        super().__init__()
        if not isinstance(monitor, str):
            raise InvalidArgumentError(
                f"{self.who}: monitor must be the name of a logged value, got {monitor!r}",
                remedy='monitor="val_loss", or the name of a metric',
            )
        if mode not in _MODES:
            raise InvalidArgumentError(
                f"{self.who}: mode must be 'auto', 'min' or 'max', got {mode!r}",
                remedy="'min' where less is better, as for a loss; 'max' where more is",
            )
        check_number(self.who, min_delta=min_delta)
        if baseline is not None:
            check_number(self.who, baseline=baseline)
        self.monitor = monitor
        self.mode = mode
        self.best: float | None = baseline
        self.min_delta = abs(min_delta)

    @property
    def who(self) -> str:
        """How errors and warnings call it."""
        return type(self).__name__

    def get_state(self) -> Mapping[str, Any]:
        return {"best": self.best}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.best = state["best"]

    def get_monitor_value(self, logs: Logs | None) -> float | None:
        """The value that is followed; a warning, and None, when it is not logged.

        Raises:
            InvalidArgumentError: it is not a scalar.
        """
        logs = logs or {}
        if self.monitor not in logs:
            warn(self._missing(logs))
            return None
        value = np.asarray(logs[self.monitor])
        if value.size != 1:
            raise InvalidArgumentError(
                f"{self.who}: {self.monitor!r} has shape {value.shape}, expected one number",
                remedy="monitor another value, or log a mean of this one",
            )
        return float(value.reshape(()))

    def _missing(self, logs: Logs) -> str:
        text = f"{self.who}: there is no value {self.monitor!r} to monitor; "
        if not logs:
            return text + "nothing is logged"
        text += f"available are {', '.join(logs)}"
        if self.monitor.startswith("val_") and not any(n.startswith("val_") for n in logs):
            return text + " (there was no validation: pass validation_data to fit)"
        near = difflib.get_close_matches(self.monitor, logs, 1)
        return text + (f" (did you mean {near[0]!r}?)" if near else "")

    def is_improvement(self, value: float, reference: float | None) -> bool:
        """Whether `value` is better than `reference` by more than `min_delta`.

        Anything is better than None, and any number than NaN.

        Raises:
            InvalidArgumentError: with mode "auto", nothing says which of two values is better.
        """
        is_better = self.monitor_op
        if reference is None or math.isnan(reference):
            return reference is None or not math.isnan(value)
        margin = self.min_delta if is_better(0, 1) else -self.min_delta
        return bool(is_better(value + margin, reference))

    @open_property
    def monitor_op(self) -> Callable[[Any, Any], Any]:
        """`np.less` where less is better, `np.greater` where more is; may be set to another.

        Raises:
            InvalidArgumentError: with mode "auto", nothing says which of two values is better.
        """
        return np.less if self.is_less_better() else np.greater

    def is_less_better(self) -> bool:
        """Whether the lower of two values is the better one."""
        mode = _MODES[self.mode] or _mode_of(self.monitor.removeprefix("val_"), self.model)
        if mode is None:
            raise InvalidArgumentError(
                f"{self.who}: whether {self.monitor!r} should become less or more is not known",
                remedy="pass mode='min' or mode='max'",
            )
        return mode == "min"


def _mode_of(name: str, model: Any) -> str | None:
    """ "min" or "max" for a logged value, from its name or the metric behind it."""
    if name == "loss" or name.endswith("_loss"):
        return "min"
    found = None
    for metric in getattr(model, "metrics", ()):
        # A model with several outputs puts the name of the output before that of the metric.
        if name == metric.name:
            return _direction(metric)
        if name.endswith(f"_{metric.name}"):
            found = found or _direction(metric)
    return found


def _direction(metric: Any) -> str | None:
    if hasattr(metric, "_direction"):  # Keras's name: a metric of the user's own may say it
        return "max" if metric._direction == "up" else "min"
    if isinstance(metric, _GREATER_IS_BETTER):
        return "max"
    fn = getattr(metric, "_fn", None)
    if isinstance(metric, _LESS_IS_BETTER) or isinstance(fn, losses.Loss):
        return "min"
    return "min" if any(fn is loss for loss in vars(losses).values()) else None
