"""LearningRateScheduler and ReduceLROnPlateau."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, optimizers
from laminar.callbacks import LearningRateScheduler, ReduceLROnPlateau
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError

from .conftest import FakeModel, Run, Screen


def rates(run: Run, callback: Any, epochs: list[dict[str, Any]]) -> list[float]:
    logs = [dict(e) for e in epochs]
    run(callback, logs)
    return [round(e["learning_rate"], 6) for e in logs]


def losses(*values: float) -> list[dict[str, Any]]:
    return [{"loss": v} for v in values]


# The optimizer begins with 0.1; the rate of an epoch is logged before it is reduced.
PLATEAUS = [
    pytest.param({}, [3, 2, 1, 0], [0.1, 0.1, 0.1, 0.1], 0.1, id="gets better"),
    pytest.param({"patience": 1}, [1, 1, 1, 1], [0.1, 0.1, 0.01, 0.001], 0.0001, id="patience 1"),
    pytest.param({"patience": 2}, [1, 1, 1, 1], [0.1, 0.1, 0.1, 0.01], 0.01, id="patience 2"),
    pytest.param(
        {"patience": 1, "cooldown": 2}, [1] * 6, [0.1, 0.1, 0.01, 0.01, 0.001, 0.001], 0.0001,
        id="cooldown",
    ),
    pytest.param(
        {"patience": 1, "min_lr": 0.02}, [1] * 4, [0.1, 0.1, 0.02, 0.02], 0.02, id="min_lr"
    ),
    pytest.param(
        {"patience": 1, "factor": 0.5, "mode": "max"}, [1, 2, 2], [0.1, 0.1, 0.1], 0.05, id="max"
    ),
    pytest.param(
        {"patience": 1, "min_delta": 0.5}, [2, 1.8, 1.0], [0.1, 0.1, 0.01], 0.01, id="min_delta"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "values", "expected", "last"), PLATEAUS)
def test_reduces(
    run: Run, options: dict[str, Any], values: list[float], expected: list[float], last: float
) -> None:
    callback = ReduceLROnPlateau("loss", **options)
    assert rates(run, callback, losses(*values)) == pytest.approx(expected)
    assert float(callback.model.optimizer.learning_rate) == pytest.approx(last)


def test_reduction_agrees_with_keras(run: Run) -> None:
    keras = pytest.importorskip("keras")
    rng = np.random.default_rng(0)
    for _ in range(60):
        options: dict[str, Any] = {
            "monitor": "loss",
            "mode": str(rng.choice(["min", "max"])),
            "factor": float(rng.choice([0.1, 0.5])),
            "patience": int(rng.integers(0, 4)),
            "min_delta": float(rng.choice([0, 1.0])),
            "cooldown": int(rng.integers(0, 3)),
            "min_lr": float(rng.choice([0, 0.02])),
        }
        values = [float(v) for v in rng.integers(0, 5, 12)]
        theirs = keras.callbacks.ReduceLROnPlateau(**options)
        theirs.set_model(SimpleNamespace(optimizer=SimpleNamespace(learning_rate=0.1), metrics=[]))
        theirs.on_train_begin()
        expected = losses(*values)
        for epoch, logs in enumerate(expected):
            theirs.on_epoch_end(epoch, logs)
        ours = ReduceLROnPlateau(**options)
        found = losses(*values)
        run(ours, found)
        np.testing.assert_allclose(
            [e["learning_rate"] for e in found],
            [e["learning_rate"] for e in expected],
            rtol=1e-6,
            err_msg=str(options),
        )
        assert (ours.wait, ours.cooldown_counter) == (theirs.wait, theirs.cooldown_counter)


def test_reduction_says_so(run: Run, log_file: Screen) -> None:
    run(ReduceLROnPlateau("loss", patience=1, factor=0.5, verbose=1), losses(1, 1))
    (line,) = log_file.lines
    assert line.startswith("Epoch 2: ReduceLROnPlateau reducing learning rate to 0.05")


def test_reduction_begins_anew_in_each_fit(run: Run) -> None:
    callback = ReduceLROnPlateau("loss", patience=2)
    run(callback, losses(1, 1))
    assert callback.wait == 1
    run(callback, losses(5))
    assert (callback.wait, callback.best) == (0, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factor": 1.0}, "factor must be at least 0 and less than 1, got 1.0"),
        ({"factor": "x"}, "factor must be a number"),
        ({"cooldown": -1}, "cooldown must be a whole number of at least 0"),
        ({"epsilon": 1e-3}, "did you mean min_delta"),
        ({"pacience": 3}, "did you mean patience"),
    ],
)
def test_bad_arguments_of_reduction(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ReduceLROnPlateau(**options)


SCHEDULES = [
    pytest.param(lambda epoch, rate: rate * 0.5, [0.05, 0.025, 0.0125], id="of both"),
    pytest.param(lambda epoch: 0.1 / (epoch + 1), [0.1, 0.05, 0.033333], id="of the epoch"),
    pytest.param(lambda epoch, rate: np.float32(0.25), [0.25] * 3, id="a numpy number"),
    pytest.param(lambda epoch, rate: 1, [1.0] * 3, id="a whole number"),
    pytest.param(
        optimizers.schedules.InverseTimeDecay(0.1, 1, 1.0), [0.1, 0.05, 0.033333], id="a schedule"
    ),
]


@pytest.mark.parametrize(("schedule", "expected"), SCHEDULES)
def test_schedules(run: Run, schedule: Any, expected: list[float]) -> None:
    found = rates(run, LearningRateScheduler(schedule), losses(1, 1, 1))
    assert found == pytest.approx(expected, abs=1e-6)


def test_schedule_says_so(run: Run, log_file: Screen) -> None:
    run(LearningRateScheduler(lambda epoch: 0.5, verbose=1), losses(1, 1))
    assert log_file.lines == [
        "Epoch 1: LearningRateScheduler setting learning rate to 0.5.",
        "Epoch 2: LearningRateScheduler setting learning rate to 0.5.",
    ]


def test_an_error_in_a_schedule_is_not_hidden(run: Run) -> None:
    def broken(epoch: int, rate: float) -> float:
        return float([rate][str(epoch)])  # type: ignore[call-overload]  # the error is tested

    with pytest.raises(TypeError, match="list indices"):
        run(LearningRateScheduler(broken), losses(1))


@pytest.mark.parametrize("result", [None, "0.1", [0.1, 0.2], True, float("nan")])
def test_what_is_no_learning_rate(run: Run, result: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="the schedule gave .* for epoch 0"):
        run(LearningRateScheduler(lambda epoch: result), losses(1))


def test_a_schedule_must_be_a_function() -> None:
    with pytest.raises(InvalidArgumentError, match="schedule must be a function, got 0.1"):
        LearningRateScheduler(0.1)  # type: ignore[arg-type]  # the error is what is tested


@pytest.mark.parametrize(
    "callback", [LearningRateScheduler(lambda e: 0.1), ReduceLROnPlateau("loss")]
)
def test_an_optimizer_with_a_schedule_is_refused_at_once(callback: Any) -> None:
    model = FakeModel()
    model.optimizer = optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 10, 0.9))
    callback.set_model(model)
    with pytest.raises(FailedPreconditionError, match="follows a schedule or a function"):
        callback.on_train_begin()


def test_the_rate_is_used_by_the_next_steps() -> None:
    x = np.ones((4, 1), "float32")
    model = laminar.Sequential(
        [layers.Input((1,)), layers.Dense(1, use_bias=False, kernel_initializer="zeros")]
    )
    model.compile(optimizers.SGD(1.0), "mse")
    scheduler = LearningRateScheduler(lambda epoch: [0.25, 0.0][epoch])
    history = model.fit(x, x, epochs=2, callbacks=scheduler, verbose=0)
    # d loss / d kernel = 2 (kernel - 1): the first epoch goes halfway, the second stays
    np.testing.assert_allclose(model.get_weights()[0], [[0.5]])
    assert history.history["learning_rate"] == [0.25, 0.0]
    assert history.history["loss"] == pytest.approx([1.0, 0.25])
