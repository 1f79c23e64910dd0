"""LambdaCallback, TerminateOnNaN and History."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.callbacks import Callback, History, LambdaCallback, TerminateOnNaN
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError

from .conftest import Run, Screen

X = np.ones((6, 2), "float32")


def linear() -> laminar.Sequential:
    model = laminar.Sequential([layers.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def test_functions_for_every_method() -> None:
    told: list[str] = []
    methods = [name for name in vars(Callback) if name.startswith("on_")]
    functions = {
        name: lambda *args, name=name: told.append(f"{name}/{len(args)}") for name in methods
    }
    callback = LambdaCallback(**functions)
    model = linear()
    model.fit(X, X[:, :1], validation_data=(X, X[:, :1]), callbacks=callback, verbose=0)
    model.predict(X, callbacks=[callback], verbose=0)
    assert told == [
        "on_train_begin/1",
        "on_epoch_begin/2",
        "on_train_batch_begin/2",
        "on_train_batch_data/2",
        "on_train_batch_end/2",
        "on_test_begin/1",
        "on_test_batch_begin/2",
        "on_test_batch_end/2",
        "on_test_end/1",
        "on_epoch_end/2",
        "on_train_end/1",
        "on_predict_begin/1",
        "on_predict_batch_begin/2",
        "on_predict_batch_end/2",
        "on_predict_end/1",
    ]


def test_functions_under_the_older_names(run: Run) -> None:
    told: list[int] = []
    run(LambdaCallback(on_batch_end=lambda batch, logs: told.append(batch)), [{}], batches=2)
    assert told == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"on_epoch_ends": print}, "no method 'on_epoch_ends'\n.*\n.*did you mean on_epoch_end"),
        ({"set_model": print}, "no method 'set_model'"),
        ({"on_epoch_end": "print"}, "on_epoch_end must be a function, got 'print'"),
    ],
)
def test_bad_functions(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        LambdaCallback(**options)


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), -float("inf"), np.float32("nan")])
def test_nan_ends_training(run: Run, log_file: Screen, loss: Any) -> None:
    ended: list[bool] = []
    model = run(
        [TerminateOnNaN(), LambdaCallback(on_train_end=lambda logs: ended.append(True))],
        [{"loss": 1.0}, {"loss": loss}, {"loss": 1.0}],
        batches=1,
    )
    assert model.stop_training
    assert model.weight == 1
    assert ended == [True]
    assert log_file.lines == ["Batch 0: Invalid loss, terminating training"]


def test_nan_as_an_error(run: Run) -> None:
    with pytest.raises(FailedPreconditionError, match="the loss is nan at batch 0") as caught:
        run(TerminateOnNaN(raise_error=True), [{"loss": float("nan")}], batches=1)
    assert isinstance(caught.value, RuntimeError)  # as Keras has it


def test_numbers_go_on(run: Run) -> None:
    assert not run(TerminateOnNaN(raise_error=True), [{"loss": 1e30}, {}], batches=2).stop_training


def test_nan_in_fit() -> None:
    model = linear()
    model.compile(laminar.optimizers.SGD(1e30), "mse")
    history = model.fit(
        X, X[:, :1] * 3, batch_size=1, epochs=5, callbacks=TerminateOnNaN(), verbose=0
    )
    assert history.epoch == [0]


def test_history() -> None:
    model: Any = linear()
    mine = History()
    history = model.fit(X, X[:, :1], epochs=5, initial_epoch=3, callbacks=mine, verbose=0)
    assert history is mine
    assert model.history is mine
    assert history.epoch == [3, 4]
    assert list(history.history) == ["loss"]
    assert all(isinstance(v, float) for v in history.history["loss"])
    assert len(model.fit(X, X[:, :1], callbacks=mine, verbose=0).history["loss"]) == 1
