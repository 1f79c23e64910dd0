"""Workers of which one dies, and the others go on: `elastic_workers.py SUM FOLDER`.

Worker 1 dies in its SUM-th sum over all; 0: between two steps, and then another one does.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers
from laminar.distribute import MultiWorker
from laminar.distribute.collectives.mpi import MPIGroup

X = np.arange(120, dtype="float32").reshape(30, 4) / 100
Y = np.arange(30) % 2


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingGroup(MPIGroup):
    """Dies in one of its sums."""

    left = 0

    def sum(self, arrays: Sequence[Any]) -> list[Any]:
        self.left -= 1
        if not self.left:
            die()
        return super().sum(arrays)


def trained(strategy: Any, callbacks: Any = None) -> tuple[Any, Any]:
    laminar.set_random_seed(1)
    model = laminar.Sequential(
        [layers.Input((4,)), layers.Dense(3), layers.Dense(2, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", strategy=strategy)
    logs = model.fit(
        X, Y, batch_size=10, epochs=4, verbose=0, shuffle=False, callbacks=callbacks
    ).history
    return model, logs["loss"]


def main() -> None:
    number, folder = int(sys.argv[1]), sys.argv[2]
    strategy = MultiWorker(elastic=True, timeout_seconds=20)
    begun_as = strategy.rank

    class Dies(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if not number and strategy.rank == 1 and batch == 1:
                die()

    if number and strategy.rank == 1:
        strategy.group.__class__ = DyingGroup
        strategy.group.left = number  # type: ignore[attr-defined]  # it is one now
    model, losses = trained(strategy, [Dies()])
    alone, expected = trained(None)
    found = {f"all/{i}": w for i, w in enumerate(model.get_weights())}
    found |= {f"one/{i}": w for i, w in enumerate(alone.get_weights())}
    np.savez(
        Path(folder) / f"{begun_as}.npz",
        **found,
        **{"all/loss": losses, "one/loss": expected, "size": strategy.num_replicas},
    )


if __name__ == "__main__":
    main()
