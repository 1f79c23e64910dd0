"""EarlyStopping: when it stops, and which weights stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, optimizers
from laminar.callbacks import EarlyStopping

from .conftest import FakeModel, Run, Screen

# values of the epochs, options, epochs run, weight at the end (the epoch that made it)
CASES = [
    pytest.param([3, 2, 1, 0], {}, 4, 3, id="gets better"),
    pytest.param([1, 2, 3, 4], {}, 2, 1, id="no patience"),
    pytest.param([1, 2, 3, 4], {"patience": 1}, 2, 1, id="patience 1 is as 0"),
    pytest.param([1, 2, 3, 4], {"patience": 2}, 3, 2, id="patience"),
    pytest.param([1, 2, 3, 4], {"patience": 2, "restore_best_weights": True}, 3, 0, id="restore"),
    pytest.param([3, 1, 2, 4], {"restore_best_weights": True}, 3, 1, id="restore at the end"),
    pytest.param([1, 2, 0, 3, 4], {"patience": 2}, 5, 4, id="patience begins again"),
    pytest.param([1, 2, 3, 4], {"mode": "max"}, 4, 3, id="max"),
    pytest.param([1, 2, 3, 4], {"start_from_epoch": 2}, 4, 3, id="start from epoch"),
    pytest.param([5, 4.9, 4.8, 4], {"min_delta": 0.5}, 2, 1, id="min delta"),
    pytest.param([5, 4, 3, 2], {"baseline": 1, "patience": 2}, 4, 3, id="baseline not reached"),
    pytest.param([5, 6, 6], {"baseline": 1, "patience": 1}, 2, 1, id="baseline and worse"),
    pytest.param(
        [5, 4, 6, 6],
        {"baseline": 1, "patience": 2, "restore_best_weights": True},
        3,
        1,
        id="the best is restored though it is no better than the baseline",
    ),
    pytest.param([float("nan")] * 4, {"patience": 2}, 3, 2, id="nan is no improvement"),
    pytest.param([float("nan"), 2, 1], {}, 3, 2, id="a number is better than nan"),
]


@pytest.mark.parametrize(("values", "options", "epochs", "weight"), CASES)
def test_stops(
    run: Run, values: list[float], options: dict[str, Any], epochs: int, weight: int
) -> None:
    stopper = EarlyStopping("loss", **options)
    model = run([stopper], [{"loss": v} for v in values])
    assert model.stop_training == (stopper.stopped_epoch > 0)
    assert (stopper.stopped_epoch + 1 if model.stop_training else len(values)) == epochs
    assert model.weight == weight


def test_agrees_with_keras(run: Run) -> None:
    keras = pytest.importorskip("keras")
    rng = np.random.default_rng(0)
    for _ in range(60):
        options: dict[str, Any] = {
            "monitor": "loss",
            "mode": str(rng.choice(["min", "max"])),
            "patience": int(rng.integers(0, 4)),
            "min_delta": float(rng.choice([0, 0.5])),
            "baseline": [None, 1.5][rng.integers(2)],
            "restore_best_weights": bool(rng.integers(2)),
            "start_from_epoch": int(rng.integers(0, 3)),
        }
        epochs = [{"loss": float(v)} for v in rng.integers(0, 5, 10)]
        ours, theirs = EarlyStopping(**options), keras.callbacks.EarlyStopping(**options)
        expected = run_keras(theirs, epochs)
        assert run(ours, epochs).weight == expected, options
        assert (ours.stopped_epoch, ours.wait) == (theirs.stopped_epoch, theirs.wait)
        assert (ours.best, ours.best_epoch) == (theirs.best, theirs.best_epoch)


def run_keras(callback: Any, epochs: list[dict[str, Any]]) -> float:
    model = FakeModel()
    callback.set_model(model)
    callback.on_train_begin()
    for epoch, logs in enumerate(epochs):
        model.weight = float(epoch)
        callback.on_epoch_end(epoch, logs)
        if model.stop_training:
            break
    callback.on_train_end()
    return model.weight


def test_can_be_used_again(run: Run) -> None:
    stopper = EarlyStopping("loss", restore_best_weights=True)
    first = run(stopper, [{"loss": 0.0}, {"loss": 1.0}])
    first.stop_training = False
    assert run(stopper, [{"loss": 9.0}, {"loss": 8.0}, {"loss": 7.0}]).weight == 2
    assert stopper.best == 7.0


def test_messages(run: Run, log_file: Screen) -> None:
    run(
        EarlyStopping("loss", verbose=1, restore_best_weights=True),
        [{"loss": 1}, {"loss": 0}, {"loss": 2}],
    )
    assert log_file.lines == [
        "Epoch 3: early stopping",
        "Restoring model weights from the end of the best epoch: 2.",
    ]


def test_restores_the_weights_of_a_real_model() -> None:
    x = np.ones((8, 2), "float32")
    y = np.zeros((8, 1), "float32")
    model = laminar.Sequential([layers.Input((2,)), layers.Dense(1, kernel_initializer="ones")])
    model.compile(optimizers.SGD(0.6), "mse")  # too fast: it gets worse from the first step on
    before = model.get_weights()
    stopper = EarlyStopping("loss", patience=3, restore_best_weights=True)
    seen: list[list[np.ndarray]] = []

    class Keep(laminar.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append([np.array(w) for w in self.model.get_weights()])

    model.fit(x, y, epochs=20, callbacks=[stopper, Keep()], verbose=0)
    assert stopper.best_epoch == 0
    assert len(seen) == 4
    for restored, kept, first in zip(model.get_weights(), seen[0], before, strict=True):
        np.testing.assert_array_equal(restored, kept)
        assert not np.array_equal(restored, first)
