"""CallbackList: who is told of what, and in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.callbacks import (
    Callback,
    CallbackList,
    EarlyStopping,
    History,
    LambdaCallback,
    ProgbarLogger,
)
from laminar.engine.errors import InvalidArgumentError

from .conftest import FakeModel, Recorder

X = np.arange(40, dtype="float32").reshape(10, 4) / 40
Y = X[:, :1]


def linear() -> laminar.Sequential:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def test_order_in_fit(recorder: Recorder) -> None:
    linear().fit(X, Y, batch_size=5, validation_data=(X, Y), callbacks=recorder, verbose=0)
    assert recorder.told == [
        ("train_begin",),
        ("epoch_begin", 0),
        ("train_batch_begin", 0),
        ("train_batch_end", 0),
        ("train_batch_begin", 1),
        ("train_batch_end", 1),
        ("test_begin",),
        ("test_batch_end", 0),
        ("test_batch_end", 1),
        ("test_end",),
        ("epoch_end", 0, ["loss", "val_loss"]),
        ("train_end",),
    ]


def test_a_last_group_of_steps_is_told() -> None:
    ends: list[int] = []
    model = linear()
    model.compile("sgd", "mse", steps_per_execution=2)
    model.fit(
        X,
        Y,
        batch_size=2,
        callbacks=LambdaCallback(on_train_batch_end=lambda b, logs: ends.append(b)),
        verbose=0,
    )
    assert ends == [1, 3, 5]  # the number that the last one of a whole group would have


def test_older_names_of_batches() -> None:
    class Old(Callback):
        def __init__(self) -> None:
            super().__init__()
            self.told: list[Any] = []

        def on_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.told.append(("begin", batch))

        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            self.told.append(("end", batch, logs))

    old = Old()
    listeners = CallbackList(old)
    listeners.on_train_batch_begin(0)
    listeners.on_train_batch_end(0, {"loss": 1.0})
    listeners.on_batch_begin(1)
    assert old.told == [("begin", 0), ("end", 0, {"loss": 1.0}), ("begin", 1)]


def test_only_those_with_something_to_do_are_asked_at_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    idle = Callback()
    listeners = CallbackList([idle, recorder := Recorder()])
    monkeypatch.setattr(Callback, "on_train_batch_end", None)  # asking it would be an error
    monkeypatch.setattr(Callback, "on_test_batch_begin", None)
    listeners.on_train_batch_end(3)
    listeners.on_test_batch_begin(3)
    assert recorder.told == [("train_batch_end", 3)]


def test_what_a_callback_logs_is_seen_by_the_next() -> None:
    def put(epoch: int, logs: dict[str, Any]) -> None:
        logs["extra"] = epoch

    history = linear().fit(X, Y, epochs=2, verbose=0, callbacks=[LambdaCallback(on_epoch_end=put)])
    assert history.history["extra"] == [0, 1]


def test_history_and_progress_are_added_unless_they_are_there() -> None:
    added = CallbackList(None, add_history=True, add_progbar=True)
    assert [type(c) for c in added] == [ProgbarLogger, History]
    mine = History()
    model = FakeModel()
    kept = CallbackList([mine], add_history=True, model=model)
    assert list(kept) == [mine]
    assert model.history is mine


def test_append_gives_model_and_params(recorder: Recorder) -> None:
    model = FakeModel()
    listeners = CallbackList([], model=model, epochs=3)
    listeners.on_train_batch_begin(0)
    listeners.append(recorder)
    listeners.on_train_batch_begin(1)
    assert recorder.told == [("train_batch_begin", 1)]
    assert recorder.model is model
    assert recorder.params == {"epochs": 3}


@pytest.mark.parametrize(
    ("given", "remedy"), [(EarlyStopping, r"pass EarlyStopping\(\)"), ("x", "pass a Callback")]
)
def test_other_objects_are_refused(given: Any, remedy: str) -> None:
    with pytest.raises(InvalidArgumentError, match=remedy):
        CallbackList([given])
    with pytest.raises(InvalidArgumentError, match=remedy):
        CallbackList().append(given)


def test_stopping_in_the_middle_of_an_epoch() -> None:
    def stop(batch: int, logs: Any) -> None:
        if batch == 1:
            model.stop_training = True

    model = linear()
    seen: list[int] = []
    model.fit(
        X,
        Y,
        batch_size=1,
        epochs=3,
        verbose=0,
        callbacks=[
            LambdaCallback(on_train_batch_end=stop),
            LambdaCallback(on_train_batch_begin=lambda b, logs: seen.append(b)),
        ],
    )
    assert seen == [0, 1]


def test_a_callback_sees_the_batch_of_each_step() -> None:
    seen: list[tuple[int, Any, Any]] = []

    class Watcher(laminar.callbacks.Callback):
        def on_train_batch_data(self, batch: int, data: Any) -> None:
            x, y, *_ = data
            seen.append((batch, np.array(x), np.array(y)))

    model = laminar.Sequential([layers.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    x, y = np.arange(10, dtype="float32").reshape(5, 2), np.arange(5, dtype="float32")
    model.fit(x, y, batch_size=2, shuffle=False, verbose=0, callbacks=[Watcher()])
    assert [number for number, _, _ in seen] == [0, 1, 2]
    np.testing.assert_array_equal(np.concatenate([part for _, part, _ in seen]), x)
    np.testing.assert_array_equal(np.concatenate([part for _, _, part in seen]), y)
