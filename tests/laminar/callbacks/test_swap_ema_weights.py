"""SwapEMAWeights: evaluation with the averages, training with the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, layers, optimizers
from laminar.engine.errors import FailedPreconditionError

X = np.linspace(-1, 1, 24).reshape(12, 2).astype("float32")
Y = X[:, :1] + 1


def linear(optimizer: Any = None) -> laminar.Sequential:
    model = laminar.Sequential([layers.Input((2,)), layers.Dense(1, kernel_initializer="ones")])
    average = optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9)
    model.compile(optimizer or average, "mse")
    return model


def fit(model: laminar.Model, *given: Any, **options: Any) -> Any:
    data = {"batch_size": 4, "epochs": 3, "shuffle": False, "verbose": 0}
    return model.fit(X, Y, callbacks=list(given), validation_data=(X, Y), **(data | options))


def mse(kernel: Any, bias: Any) -> float:
    return float(np.mean((X @ kernel + bias - Y) ** 2))


@pytest.mark.parametrize("scales", [False, True])
def test_validation_is_that_of_the_averages(scales: bool) -> None:
    optimizer: Any = optimizers.SGD(0.1, use_ema=True, ema_momentum=0.9)
    plain = linear(optimizers.LossScaleOptimizer(optimizer) if scales else optimizer)
    averages: list[float] = []
    weights: list[Any] = []

    def note(epoch: int, logs: Any) -> None:
        averages.append(mse(*(v.numpy() for v in optimizer._model_variables_moving_average)))
        weights.append(plain.get_weights())

    history = fit(
        plain, callbacks.SwapEMAWeights(), callbacks.LambdaCallback(on_epoch_end=note)
    ).history
    np.testing.assert_allclose(history["val_loss"], averages, rtol=1e-5)
    without = linear()
    seen: list[Any] = []
    fit(
        without,
        callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: seen.append(without.get_weights())
        ),
    )
    for left, right in zip(weights, seen, strict=True):  # training itself is the same
        np.testing.assert_allclose(left[0], right[0], rtol=1e-6)
    np.testing.assert_allclose(plain.get_weights()[0], without.get_weights()[0], rtol=1e-6)


def test_averages_are_saved_between_epochs(tmp_path: Path) -> None:
    model = linear()
    path = tmp_path / "{epoch}.weights.h5"
    saving = callbacks.ModelCheckpoint(path, save_weights_only=True)
    history = fit(model, callbacks.SwapEMAWeights(swap_on_epoch=True), saving).history
    for epoch in range(3):
        model.load_weights(tmp_path / f"{epoch + 1}.weights.h5")
        loss = model.evaluate(X, Y, verbose=0)
        assert loss == pytest.approx(history["val_loss"][epoch], rel=1e-5)


def test_the_averages_stay_at_the_end() -> None:
    on_epoch, only_test = linear(), linear()
    fit(on_epoch, callbacks.SwapEMAWeights(swap_on_epoch=True))
    fit(only_test, callbacks.SwapEMAWeights())
    for left, right in zip(on_epoch.get_weights(), only_test.get_weights(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    fit(on_epoch, callbacks.SwapEMAWeights(swap_on_epoch=True))  # and can go on


def test_prediction_and_evaluation_by_themselves() -> None:
    model = linear()
    fit(model)
    before = model.get_weights()
    swap = callbacks.SwapEMAWeights()
    model.evaluate(X, Y, verbose=0, callbacks=swap)
    model.predict(X, verbose=0, callbacks=swap)
    for left, right in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(left, right)


def test_without_averages() -> None:
    with pytest.raises(FailedPreconditionError, match="keeps no averages") as caught:
        fit(linear("sgd"), callbacks.SwapEMAWeights())
    assert "use_ema=True" in str(caught.value)
