"""A training that is killed again and again, and goes on: run by test_resuming.py as a process.

    python resumed_training.py FOLDER KILL_AFTER_STEPS

Without a folder it runs through. It prints the history and a digest of all state at the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import warnings
from typing import Any

import numpy as np

import laminar
from laminar import callbacks, layers, optimizers

EPOCHS, BATCH = 5, 8


class KillAfter(callbacks.Callback):
    """Kills the process after so many steps of it, wherever that is."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)


def make_model() -> laminar.Model:
    laminar.set_random_seed(7)
    model = laminar.Sequential(
        [
            layers.Dense(16, "relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.GaussianNoise(0.1),
            layers.Dense(3, "softmax"),
        ]
    )
    rate = optimizers.schedules.CosineDecay(0.05, 30)
    model.compile(
        optimizers.Adam(rate, clipnorm=1.0, use_ema=True),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main(folder: str | None, kill_after: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5)).astype("float32")
    y = (x[:, :3].argmax(1)).astype("int32")
    model = make_model()
    stopping = callbacks.EarlyStopping("val_loss", patience=3, restore_best_weights=True)
    given: list[Any] = [stopping, KillAfter(kill_after)]
    if folder is not None:
        every = callbacks.BackupAndRestore(folder, save_freq=3, delete_checkpoint=False)
        given.append(every)
        given.append(callbacks.CSVLogger(os.path.join(folder, "log.csv")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = model.fit(
            x,
            y,
            batch_size=BATCH,
            epochs=EPOCHS,
            validation_split=0.2,
            callbacks=given,
            verbose=0,
        )
    state = [v.numpy() for v in (*model.variables, *model.optimizer.variables)]
    state.append(np.random.random(3))
    digest = hashlib.sha256(b"".join(a.tobytes() for a in state)).hexdigest()
    table = ""
    if folder is not None:
        with open(os.path.join(folder, "log.csv")) as file:
            table = file.read()
    found = {"digest": digest, "best": stopping.best, "table": table}
    print(json.dumps({"history": history.history, "epochs": history.epoch} | found))


if __name__ == "__main__":
    main(sys.argv[1] or None, int(sys.argv[2]))
