"""A script for one process, as `laminar launch` runs it: `launched_training.py FOLDER [WAY [HOW]]`.

It writes its weights to FOLDER/weights-<process>.npz. WAY: "resumed" keeps the state of training in
FOLDER/state and has worker 1 die in its second epoch, the first time; "slow" takes a minute;
"wrong" raises an error at the end. HOW: of `MultiWorker(auto_shard=HOW)`, on a Dataset.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers

folder, way = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 5)).astype("float32")
y = x.sum(axis=1, keepdims=True)
model = laminar.Sequential([layers.Dense(4, activation="relu"), layers.Dropout(0.2)])
model.add(layers.Dense(1))
how = sys.argv[3] if len(sys.argv) > 3 else ""
data: dict[str, Any] = {"x": x, "y": y, "batch_size": 8}
if how:
    pairs = laminar.datasets.Dataset.from_tensor_slices((x, y)).shuffle(64, seed=4)
    data = {"x": pairs.map(lambda a, b: (a, b)).batch(8)}
strategy = laminar.distribute.MultiWorker(auto_shard=how) if how else None
model.compile("adam", "mse", strategy=strategy)


class Special(laminar.callbacks.Callback):
    """What befalls the workers."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if way == "slow":
            (folder / f"pid-{rank}").write_text(str(os.getpid()))
            time.sleep(0.5)
        flag = folder / "died"
        if way == "resumed" and rank == 1 and self.epoch == 1 and batch == 1 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch


callbacks: list[Any] = [Special()]
if way in ("resumed", "whole"):
    callbacks.append(laminar.callbacks.BackupAndRestore(folder / "state", save_freq=1))
callbacks.append(laminar.callbacks.ModelCheckpoint(folder / "model.keras"))
model.fit(**data, epochs=30 if way == "slow" else 4, verbose=2, callbacks=callbacks)
np.savez(folder / f"weights-{rank}.npz", *model.get_weights())
print(f"worker {rank} has {sys.argv[1:]}")
if way == "wrong":
    raise ValueError("it ends badly")
