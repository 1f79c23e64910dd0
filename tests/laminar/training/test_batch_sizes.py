"""Sizes of batches that are known beforehand: what each of them needs is made before the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import callbacks, datasets, layers
from laminar.engine.compiler.native import cluster_kernel

rng = np.random.default_rng(0)
X = rng.normal(size=(11, 6)).astype("float32")
Y = rng.normal(size=(11, 2)).astype("float32")


class Log(callbacks.Callback):
    """Notes the ends of batches, between the sizes of the batches that are made ready."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.seen: list[Any] = []
        make = cluster_kernel.NativeCluster._make

        def noted(cluster: Any, keys: Any, *how: Any) -> Any:
            self.seen.append([key[0][0] for key in keys])
            return make(cluster, keys, *how)

        monkeypatch.setattr(cluster_kernel.NativeCluster, "_make", noted)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen.append("step")

    on_test_batch_end = on_predict_batch_end = on_train_batch_end


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    if not cluster_kernel.is_offered():
        pytest.skip("there is no native code here")
    return Log(monkeypatch)


def model() -> Any:
    found = laminar.Sequential([layers.Input((6,)), layers.Dense(5), layers.Dense(2)])
    found.compile("adam", "mse")
    return found


def pairs() -> Any:
    return datasets.Dataset.from_tensor_slices((X, Y))


def test_fit_prepares_the_last_batch_with_the_first(log: Log) -> None:
    model().fit(X, Y, batch_size=4, epochs=2, verbose=0, callbacks=[log])
    assert log.seen == [[4, 3], *["step"] * 6]


def test_another_fit_prepares_its_first_batch(log: Log) -> None:
    trained = model()
    trained.fit(X, Y, batch_size=4, verbose=0)
    del log.seen[:]
    trained.fit(X[:10], Y[:10], batch_size=4, verbose=0, callbacks=[log])
    assert log.seen == ["step", "step", [2], "step"]
    del log.seen[:]
    trained.fit(X, Y, batch_size=6, verbose=0, callbacks=[log])
    assert log.seen == [[6], "step", [5], "step"]


def test_validation_is_prepared_as_a_whole(log: Log) -> None:
    validation = X[:7], Y[:7]
    model().fit(X[:8], Y[:8], batch_size=4, verbose=0, callbacks=[log], validation_data=validation)
    assert log.seen == [[4], "step", "step", [4, 3], "step", "step"]


@pytest.mark.parametrize(
    "run",
    [
        lambda m, log: m.evaluate(X, Y, batch_size=4, verbose=0, callbacks=[log]),
        lambda m, log: m.predict(X, batch_size=4, verbose=0, callbacks=[log]),
        lambda m, log: m.fit(pairs().batch(4).prefetch(1), verbose=0, callbacks=[log]),
        lambda m, log: m.evaluate(pairs().batch(4).repeat(1), verbose=0, callbacks=[log]),
    ],
    ids=["evaluate", "predict", "fit on a data set", "evaluate on a data set"],
)
def test_all_loops_prepare(run: Callable[[Any, Log], Any], log: Log) -> None:
    run(model(), log)
    assert log.seen == [[4, 3], "step", "step", "step"]


@pytest.mark.parametrize(
    "data",
    [
        lambda: pairs().batch(4, drop_remainder=True),
        lambda: pairs().repeat().batch(4).take(2),
        lambda: pairs().take(8).batch(4),
    ],
    ids=["dropped", "endless", "even"],
)
def test_batches_of_one_size_need_no_other(data: Callable[[], Any], log: Log) -> None:
    model().fit(data(), verbose=0, callbacks=[log])
    assert log.seen == [[4], "step", "step"]


def test_a_size_that_does_not_fit_is_told_when_it_comes(log: Log) -> None:
    class Pairs(layers.Layer):
        def call(self, x: Any) -> Any:
            return laminar.ops.reshape(laminar.ops.reshape(x, (-1, 2, 6)), (-1, 6))

    found = laminar.Sequential([layers.Input((6,)), Pairs(), layers.Dense(2)])
    found.compile("sgd", "mse")
    with pytest.raises(laminar.errors.InvalidArgumentError):
        found.fit(X, Y, batch_size=4, verbose=0, callbacks=[log], shuffle=False)
    assert log.seen.count("step") == 2


def test_results_do_not_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for prepares in (True, False):
        if not prepares:
            monkeypatch.setattr(cluster_kernel.NativeCluster, "prepare", lambda *_: None)
        laminar.set_random_seed(1)
        trained = model()
        trained.fit(X, Y, batch_size=4, verbose=0)
        found.append(trained.get_weights())
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
