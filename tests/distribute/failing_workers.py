"""Workers that go wrong, in the tests of training over processes.

`failing_workers.py CASE FOLDER`: each worker writes the error that it gets to
FOLDER/<rank>-CASE.txt, and ends with it. With several cases (`a,b,c`) it goes on with the next.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import layers
from laminar.distribute import MultiWorker
from laminar.distribute.collectives import mpi

X = np.arange(120, dtype="float32").reshape(30, 4) / 100
Y = np.arange(30) % 2


def model(strategy: MultiWorker, units: int = 3, **options: Any) -> Any:
    made = laminar.Sequential(
        [layers.Input((4,)), layers.Dense(units), layers.Dense(2, activation="softmax")]
    )
    made.compile("sgd", "sparse_categorical_crossentropy", strategy=strategy, **options)
    return made


def fit(strategy: MultiWorker, x: Any = X, y: Any = Y, **options: Any) -> Any:
    return model(strategy).fit(x, y, batch_size=10, verbose=0, **options)


def shapes(strategy: MultiWorker) -> None:
    made = laminar.Sequential([layers.Dense(2, activation="softmax")])
    made.compile("sgd", "sparse_categorical_crossentropy", strategy=strategy)
    made.fit(X[:, : 4 - strategy.rank], Y, batch_size=10, verbose=0)


def lengths(strategy: MultiWorker) -> None:
    fit(strategy, X[: 30 - strategy.rank], Y[: 30 - strategy.rank])


def contents(strategy: MultiWorker) -> None:
    fit(strategy, X + strategy.rank)


def weights(strategy: MultiWorker) -> None:
    model(strategy, 3 + strategy.rank).fit(X, Y, batch_size=10, verbose=0)


def programs(strategy: MultiWorker) -> None:
    """The same weights, and another computation."""
    made = laminar.Sequential(
        [layers.Input((4,)), layers.Dense(2, activation=["softmax", "sigmoid"][strategy.rank % 2])]
    )
    made.compile("sgd", "sparse_categorical_crossentropy", strategy=strategy)
    made.fit(X, Y, batch_size=10, verbose=0)


def places(strategy: MultiWorker) -> None:
    made = model(strategy)
    if strategy.rank:
        made.evaluate(X, Y, batch_size=10, verbose=0)
    else:
        made.fit(X, Y, batch_size=10, verbose=0)


def own_places(strategy: MultiWorker) -> None:
    made = model(MultiWorker(auto_shard="off", timeout_seconds=30))
    if strategy.rank:
        made.evaluate(X, Y, batch_size=10, verbose=0)
    else:
        made.fit(X, Y, batch_size=10, verbose=0)


def fine(strategy: MultiWorker) -> None:
    fit(strategy)


class Broken:
    """Batches of which the fourth cannot be made in worker 1."""

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def __iter__(self) -> Iterator[Any]:
        for k in range(6):
            if k == 3 and self._rank == 1:
                raise ValueError("the disk of worker 1 is full")
            yield X[k : k + 4], Y[k : k + 4]


def data(strategy: MultiWorker) -> None:
    model(strategy).fit(Broken(strategy.rank), verbose=0)


def empty(strategy: MultiWorker) -> None:
    strategy = MultiWorker(auto_shard="off", timeout_seconds=30)
    batches = [] if strategy.rank else [(X[:5], Y[:5])]
    model(strategy).fit(batches, verbose=0)


def apart(strategy: MultiWorker) -> None:
    """A callback changes the weights of one worker."""
    made = model(strategy)

    class Changes(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if strategy.rank:
                made.layers[-1].bias.assign_add([1.0, 0.0])

    made.fit(X, Y, batch_size=10, verbose=0, callbacks=[Changes()])


def leaves(strategy: MultiWorker) -> None:
    """Worker 1 has nothing to do after one epoch."""
    vars(mpi).update(_FAREWELL_SECONDS=1.0)  # which the others wait for what it sent before
    made = model(strategy)
    made.fit(X, Y, batch_size=10, verbose=0, epochs=1)
    if strategy.rank != 1:
        made.fit(X, Y, batch_size=10, verbose=0, epochs=1)


def late(strategy: MultiWorker) -> None:
    """Worker 1 takes longer than the others wait."""
    strategy.group.timeout_seconds = 2.0

    class Sleeps(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if strategy.rank == 1:
                time.sleep(4)

    fit(strategy, callbacks=[Sleeps()])


def killed(strategy: MultiWorker) -> None:
    """Worker 1 dies after some steps."""

    class Dies(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if strategy.rank == 1 and batch == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    fit(strategy, epochs=3, callbacks=[Dies()])


CASES: dict[str, Callable[[MultiWorker], Any]] = {
    fn.__name__: fn
    for fn in (
        shapes,
        lengths,
        contents,
        weights,
        programs,
        places,
        own_places,
        fine,
        data,
        empty,
        apart,
        leaves,
        late,
        killed,
    )
}


def main() -> None:
    cases, folder = sys.argv[1].split(","), sys.argv[2]
    strategy = MultiWorker(timeout_seconds=30)
    for case in cases:
        begin = time.monotonic()
        error: BaseException | None = None
        try:
            CASES[case](strategy)
        except Exception as caught:
            error = caught
            if len(cases) == 1:
                raise
        finally:
            text = "no error" if error is None else f"{type(error).__name__}: {error}"
            seconds = time.monotonic() - begin
            Path(folder, f"{strategy.rank}-{case}.txt").write_text(f"{seconds:.1f} {text}")


if __name__ == "__main__":
    main()
