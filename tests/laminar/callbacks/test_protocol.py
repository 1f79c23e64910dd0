"""What callbacks are told, and in which order, is what Keras tells them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import laminar
from laminar.callbacks import LambdaCallback

from .protocol import SCENARIOS, X, Y, fit, stop_at

REFERENCE = json.loads((Path(__file__).parent / "protocol.json").read_text())


@pytest.mark.parametrize("name", SCENARIOS)
def test_told_as_by_keras(name: str) -> None:
    assert SCENARIOS[name](laminar) == REFERENCE[name]


@pytest.mark.exhaustive
@pytest.mark.keras_on_jax
def test_the_reference_is_what_keras_tells() -> None:
    keras = pytest.importorskip("keras")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {name: json.loads(json.dumps(run(keras))) for name, run in SCENARIOS.items()}
    assert found == REFERENCE


def test_stopping_before_the_first_epoch_trains_nothing() -> None:
    told = fit(laminar, stop_at("on_train_begin", None), epochs=2)
    assert [entry[0] for entry in told] == ["on_train_begin", "on_train_end"]


def test_history_of_a_training_that_stops_in_the_first_batch() -> None:
    model = laminar.Sequential([laminar.layers.Input((4,)), laminar.layers.Dense(1)])
    model.compile("sgd", "mse")
    stop = LambdaCallback(
        on_train_batch_end=lambda batch, logs: setattr(model, "stop_training", True)
    )
    history = model.fit(X, Y, epochs=5, verbose=0, callbacks=stop)
    assert history.epoch == [0]
    assert list(history.history) == ["loss"]
