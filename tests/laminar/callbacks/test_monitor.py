"""Which of two values is better, and what is said when there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import losses, metrics
from laminar.callbacks import EarlyStopping, ModelCheckpoint, ReduceLROnPlateau
from laminar.callbacks.monitor import MonitorCallback
from laminar.engine.errors import InvalidArgumentError

from .conftest import FakeModel


def monitor(name: str, found: Any = (), **options: Any) -> MonitorCallback:
    callback = MonitorCallback(name, **options)
    callback.set_model(FakeModel(found))
    return callback


class Custom(metrics.Mean):
    """A user's metric that says which way is up, as Keras's do."""

    def __init__(self, direction: str) -> None:
        super().__init__(name="custom")
        self._direction = direction


DIRECTIONS = [
    ("loss", [], True),
    ("val_loss", [], True),
    ("val_side_loss", [], True),
    ("val_acc", [metrics.BinaryAccuracy(name="acc")], False),
    ("head_acc", [metrics.BinaryAccuracy(name="acc")], False),
    ("mse", [metrics.MeanSquaredError(name="mse")], True),
    ("auc", [metrics.AUC()], False),
    ("f1_score", [metrics.F1Score()], False),
    ("mean_io_u", [metrics.MeanIoU(num_classes=2, name="mean_io_u")], False),
    ("wrapped", [metrics.MeanMetricWrapper(losses.mean_squared_error, name="wrapped")], True),
    ("wrapped", [metrics.MeanMetricWrapper(losses.Huber(), name="wrapped")], True),
    ("custom", [Custom("up")], False),
    ("val_custom", [Custom("down")], True),
]


@pytest.mark.parametrize(("name", "found", "is_less_better"), DIRECTIONS)
def test_direction(name: str, found: Any, is_less_better: bool) -> None:
    assert monitor(name, found).is_less_better() == is_less_better
    assert monitor(name, found, mode="max").is_less_better() is False
    assert monitor(name, found, mode="min").is_less_better() is True


def test_directions_are_those_of_keras() -> None:
    keras = pytest.importorskip("keras")
    for name in dir(metrics):
        ours, theirs = getattr(metrics, name), getattr(keras.metrics, name, None)
        if not isinstance(ours, type) or theirs is None or name in ("Metric", "MeanMetricWrapper"):
            continue
        options = _OPTIONS.get(name, {})
        direction = {"up": False, "down": True, None: None}[
            getattr(theirs(**options), "_direction", None)
        ]
        callback = monitor("m", [ours(**options, name="m")])
        if direction is None:
            with pytest.raises(InvalidArgumentError, match="mode='min' or mode='max'"):
                callback.is_less_better()
        else:
            assert callback.is_less_better() == direction, name


_OPTIONS: dict[str, dict[str, Any]] = {
    "IoU": {"num_classes": 2, "target_class_ids": [0]},
    "OneHotIoU": {"num_classes": 2, "target_class_ids": [0]},
    "MeanIoU": {"num_classes": 2},
    "OneHotMeanIoU": {"num_classes": 2},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
}


NAN = float("nan")
IMPROVEMENTS = [
    ("min", 0, 1.0, None, True),
    ("min", 0, 1.0, 1.0, False),
    ("min", 0, 0.9, 1.0, True),
    ("min", 0.1, 0.95, 1.0, False),
    ("min", -0.1, 0.95, 1.0, False),  # the sign of min_delta says nothing
    ("min", 0.1, 0.85, 1.0, True),
    ("max", 0.1, 1.05, 1.0, False),
    ("max", 0.1, 1.15, 1.0, True),
    ("min", 0, NAN, 1.0, False),
    ("min", 0, 1.0, NAN, True),
    ("max", 0, NAN, NAN, False),
    ("max", 0, NAN, None, True),
]


@pytest.mark.parametrize(("mode", "delta", "value", "reference", "expected"), IMPROVEMENTS)
def test_improvement(
    mode: str, delta: float, value: float, reference: float | None, expected: bool
) -> None:
    callback = monitor("loss", mode=mode, min_delta=delta)
    assert callback.is_improvement(value, reference) is expected


def test_value_of_arrays() -> None:
    callback = monitor("loss")
    assert callback.get_monitor_value({"loss": np.float32(2)}) == 2.0
    assert callback.get_monitor_value({"loss": np.array([2.5])}) == 2.5
    with pytest.raises(InvalidArgumentError, match=r"has shape \(2,\), expected one number"):
        callback.get_monitor_value({"loss": np.array([1.0, 2.0])})


MISSING = [
    ("val_loss", {"loss": 1, "acc": 2}, "available are loss, acc.*pass validation_data to fit"),
    ("val_acc", {"val_loss": 1, "val_accuracy": 1}, "did you mean 'val_accuracy'"),
    ("loss", {}, "nothing is logged"),
]


@pytest.mark.parametrize(("name", "logs", "message"), MISSING)
@pytest.mark.parametrize(
    "callback",
    [
        EarlyStopping,
        ReduceLROnPlateau,
        lambda monitor: ModelCheckpoint("m.keras", monitor, save_best_only=True),
    ],
)
def test_a_value_that_is_not_logged(
    callback: Any, name: str, logs: dict[str, Any], message: str
) -> None:
    made = callback(monitor=name)
    made.set_model(FakeModel())
    if isinstance(made, ReduceLROnPlateau):
        message = message.replace("nothing is logged", "available are learning_rate")
    said = f"there is no value '{name}' to monitor; .*{message}"
    with pytest.warns(UserWarning, match=said) as caught:
        made.on_epoch_end(0, dict(logs))
    assert caught[0].filename == __file__, "the user's line"


BAD = [
    ({"monitor": None}, "monitor must be the name"),
    ({"mode": "best"}, "mode must be 'auto', 'min' or 'max', got 'best'"),
    ({"min_delta": "0.1"}, "min_delta must be a number"),
    ({"baseline": NAN}, "baseline must be a number"),
    ({"patience": -1}, "patience must be a whole number of at least 0"),
    ({"patience": 1.5}, "patience must be a whole number of at least 0"),
    ({"start_from_epoch": True}, "start_from_epoch must be a whole number"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"EarlyStopping: {message}"):
        EarlyStopping(**options)


def test_what_users_derive_from() -> None:
    """Classes of their own decide which value is followed, and which of two is the better one."""

    class Mean(EarlyStopping):
        def get_monitor_value(self, logs: Any) -> float | None:
            return float(logs["a"] + logs["b"]) / 2

    stop = Mean("both", mode="max", patience=1)
    stop.on_epoch_end(0, {"a": 1.0, "b": 3.0})
    assert (stop.best, stop.monitor_op) == (2.0, np.greater)
    assert EarlyStopping(mode="min").monitor_op is np.less
    farther = monitor("x", mode="min", min_delta=1.0)
    farther.monitor_op = np.greater
    assert farther.is_improvement(3.5, 2.0)
    assert not farther.is_improvement(2.5, 2.0)
