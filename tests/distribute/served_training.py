"""A script for one machine that trains under TF_CONFIG: `served_training.py FOLDER EPOCHS`.

Who leads writes the weights and the history to FOLDER/found.npz, and says when it has begun.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import laminar
from laminar import layers
from laminar.distribute import ParameterServer


class Told(laminar.callbacks.Callback):
    """Says which batch has ended."""

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Say so."""
        print("batch", batch, flush=True)


def main(folder: Path, epochs: int) -> None:
    """Train."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(128, 20)).astype("float32"), rng.integers(0, 3, 128)
    laminar.set_random_seed(0)
    model = laminar.Sequential(
        [
            layers.Input((20,)),
            layers.Dense(16, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(3, activation="softmax"),
        ]
    )
    strategy = ParameterServer(synchronous=True)
    model.compile("adam", "sparse_categorical_crossentropy", strategy=strategy)
    backup = laminar.callbacks.BackupAndRestore(str(folder / "backup"), save_freq=2)
    history = model.fit(x, y, epochs=epochs, verbose=0, callbacks=[backup, Told()]).history
    found = {f"weight_{i}": w for i, w in enumerate(model.get_weights())}
    np.savez(folder / "found.npz", loss=history["loss"], **found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
