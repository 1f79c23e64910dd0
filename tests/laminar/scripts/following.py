"""Callbacks: those that come along, and those that users write."""

# mypy: disable-error-code="misc,name-defined"
# (classes derived from those of `keras`, which is any module here)

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from .tools import data, fill

X, Y = data("following x", 48, 4), data("following y", 48, 1)


def compiled(keras: Any, rate: float = 0.1) -> Any:
    model = fill(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]))
    model.compile(keras.optimizers.RMSprop(learning_rate=rate), "mse", metrics=["mae"])
    return model


def every_hook(keras: Any) -> Any:
    told: list[Any] = []

    def note(name: str) -> Any:
        def hook(self: Any, *args: Any, logs: Any = None) -> None:
            *place, logs = (*args, logs) if logs is not None else args
            told.append((name, *place, sorted(logs or {})))

        return hook

    hooks = [
        f"on_{what}_{when}"
        for what in (
            "train",
            "test",
            "predict",
            "epoch",
            "train_batch",
            "test_batch",
            "predict_batch",
        )
        for when in ("begin", "end")
    ]
    callback = type("Custom", (keras.callbacks.Callback,), {name: note(name) for name in hooks})()
    model = compiled(keras)
    model.fit(
        X,
        Y,
        batch_size=24,
        epochs=2,
        validation_split=0.25,
        callbacks=[callback],
        verbose=0,
    )
    model.evaluate(X, Y, batch_size=24, callbacks=[callback], verbose=0)
    model.predict(X, batch_size=24, callbacks=[callback], verbose=0)
    return told


def stop_at_minimum(keras: Any) -> Any:
    class EarlyStoppingAtMinLoss(keras.callbacks.Callback):
        def __init__(self, patience: int = 0) -> None:
            super().__init__()
            self.patience = patience
            self.best_weights = None

        def on_train_begin(self, logs: Any = None) -> None:
            self.wait = 0
            self.stopped_epoch = 0
            self.best = np.inf

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            current = logs.get("loss")
            if np.less(current, self.best):
                self.best = current
                self.wait = 0
                self.best_weights = self.model.get_weights()
            else:
                self.wait += 1
                if self.wait >= self.patience:
                    self.stopped_epoch = epoch
                    self.model.stop_training = True
                    self.model.set_weights(self.best_weights)

    stopper = EarlyStoppingAtMinLoss(patience=2)
    model = compiled(keras, rate=0.5)
    history = model.fit(
        X, Y, batch_size=12, epochs=30, shuffle=False, callbacks=[stopper], verbose=0
    )
    return {
        "stopped": stopper.stopped_epoch,
        "epochs": history.epoch,
        "history": history.history,
        "weights": model.get_weights(),
    }


def change_the_rate(keras: Any) -> Any:
    class CustomLearningRateScheduler(keras.callbacks.Callback):
        def __init__(self, schedule: Any) -> None:
            super().__init__()
            self.schedule = schedule
            self.seen: list[float] = []

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if not hasattr(self.model.optimizer, "learning_rate"):
                raise ValueError('Optimizer must have a "learning_rate" attribute.')
            lr = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
            self.model.optimizer.learning_rate = self.schedule(epoch, lr)
            self.seen.append(float(np.asarray(self.model.optimizer.learning_rate)))

    callback = CustomLearningRateScheduler(lambda epoch, rate: rate / 2 if epoch else rate)
    model = compiled(keras)
    history = model.fit(
        X, Y, batch_size=12, epochs=4, shuffle=False, callbacks=[callback], verbose=0
    )
    return {"seen": callback.seen, "history": history.history, "weights": model.get_weights()}


def stop_in_a_batch(keras: Any) -> Any:
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 2:
                self.model.stop_training = True

    model, same = compiled(keras), compiled(keras)
    history = model.fit(
        X, Y, batch_size=6, epochs=5, shuffle=False, callbacks=Stop(), verbose=0
    ).history
    expected = same.fit(X[:18], Y[:18], batch_size=6, shuffle=False, verbose=0).history
    assert history == expected
    return history


def built_in(keras: Any) -> Any:
    callbacks = keras.callbacks
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        model = compiled(keras, rate=0.3)
        history = model.fit(
            X[:32],
            Y[:32],
            batch_size=8,
            epochs=12,
            shuffle=False,
            validation_data=(X[32:], Y[32:]),
            callbacks=[
                callbacks.EarlyStopping("val_loss", patience=3, restore_best_weights=True),
                callbacks.ReduceLROnPlateau("val_loss", factor=0.5, patience=1, min_lr=0.01),
                callbacks.ModelCheckpoint(
                    path / "best.keras", monitor="val_loss", save_best_only=True
                ),
                callbacks.ModelCheckpoint(
                    str(path / "epoch_{epoch:02d}.weights.h5"), save_weights_only=True
                ),
                callbacks.CSVLogger(str(path / "log.csv")),
                callbacks.TerminateOnNaN(),
                callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: None),
            ],
            verbose=0,
        )
        best = keras.models.load_model(path / "best.keras")
        files = sorted(p.name for p in path.iterdir())
        with (path / "log.csv").open() as file:
            rows = list(csv.reader(file))
    return {
        "history": history.history,
        "epochs": history.epoch,
        "best": best.get_weights(),
        "kept": model.get_weights(),
        "files": files,
        "columns": rows[0],
        "rows": len(rows),
    }


def schedule_by_epoch(keras: Any) -> Any:
    model = compiled(keras)
    history = model.fit(
        X,
        Y,
        epochs=4,
        shuffle=False,
        callbacks=[
            keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 * 0.5**epoch),
            keras.callbacks.History(),
        ],
        verbose=0,
    )
    return {"history": history.history}


def logs_of_batches(keras: Any) -> Any:
    class LossHistory(keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            self.per_batch_losses: list[float] = []
            self.params_seen = dict(self.params)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.per_batch_losses.append(logs.get("loss"))

    callback = LossHistory()
    compiled(keras).fit(
        X, Y, batch_size=16, epochs=2, shuffle=False, callbacks=[callback], verbose=0
    )
    return {"losses": callback.per_batch_losses, "params": callback.params_seen}


SCRIPTS = [
    every_hook,
    stop_at_minimum,
    change_the_rate,
    built_in,
    schedule_by_epoch,
    logs_of_batches,
]

# Keras on JAX loses the weights when training is stopped inside an epoch.
OWN_SCRIPTS = [stop_in_a_batch]
