"""Trainings by parameter servers whose processes are killed and stopped.

The numbers in the names are those of the list of faults that a training must live through.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, optimizers
from laminar.distribute import ParameterServer
from laminar.engine.errors import UnavailableError
from tests.distribute.cluster.local_cluster import free_addresses
from tests.distribute.cluster.spawned_cluster import ROOT, SpawnedCluster, spawned_cluster

pytestmark = pytest.mark.exhaustive  # processes are killed, and started again: minutes of waiting

rng = np.random.default_rng(0)
X = rng.normal(size=(96, 6)).astype("float32")
Y = rng.integers(0, 3, 96)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SpawnedCluster]:
    with spawned_cluster({"ps": 1, "worker": 2}, ["--lease-seconds", "3"]) as found:
        yield found


class At(laminar.callbacks.Callback):
    """Does something before a batch of the second epoch."""

    def __init__(self, batch: int, does: Callable[[], Any]) -> None:
        super().__init__()
        self._batch, self._does, self._epoch = batch, does, 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if (self._epoch, batch) == (1, self._batch):
            self._does()


def dense() -> Any:
    laminar.set_random_seed(1)
    return laminar.Sequential(
        [
            layers.Input((6,)),
            layers.Dense(8, activation="tanh"),
            layers.Dropout(0.2),
            layers.Dense(3, activation="softmax"),
        ]
    )


def trained(strategy: Any, *does: Any) -> Any:
    model = dense()
    model.compile("adam", "sparse_categorical_crossentropy", strategy=strategy)
    model.fit(X, Y, batch_size=8, epochs=3, verbose=0, callbacks=list(does))
    return model


def check_same_bits(model: Any, other: Any) -> None:
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@contextmanager
def stopped(cluster: SpawnedCluster, name: str) -> Iterator[Callable[[], None]]:
    """What stops a process, which goes on after the block."""
    try:
        yield lambda: cluster.kill(name, signal.SIGSTOP)
    finally:
        cluster.kill(name, signal.SIGCONT)


def test_1_a_worker_is_killed_in_synchronous_training(cluster: SpawnedCluster) -> None:
    """Every bit is as without that; once it comes back, once it does not."""
    strategy = ParameterServer(cluster.spec, synchronous=True, patience_seconds=1)
    clean = trained(strategy)

    def again() -> None:
        cluster.kill("worker:1")
        cluster.start("worker:1")

    check_same_bits(trained(strategy, At(4, again)), clean)
    try:
        check_same_bits(trained(strategy, At(4, lambda: cluster.kill("worker:1"))), clean)
    finally:
        cluster.start("worker:1")


def test_2_a_worker_is_killed_in_asynchronous_training(cluster: SpawnedCluster) -> None:
    """The weight counts the updates: each batch is applied once, what was under way at most so."""
    model = laminar.Sequential([layers.Input((1,)), layers.Dense(1, use_bias=False)])
    model.layers[0].set_weights([np.zeros((1, 1), "float32")])
    strategy = ParameterServer(cluster.spec, patience_seconds=1)
    model.compile(optimizers.SGD(1.0), "mae", strategy=strategy)
    x, y = np.ones((160, 1), "float32"), np.full((160, 1), 1e6, "float32")
    killed = At(7, lambda: cluster.kill("worker:0"))
    try:
        model.fit(x, y, batch_size=4, epochs=3, verbose=0, callbacks=[killed])
    finally:
        cluster.start("worker:0")
    assert model.get_weights()[0] == 120
    assert int(model.optimizer.iterations.numpy()) == 120


def test_3_a_server_is_killed(cluster: SpawnedCluster) -> None:
    """One error that names it; the weights are those of the last epoch, and training goes on."""
    for synchronous in (True, False):
        model = dense()
        strategy = ParameterServer(cluster.spec, synchronous=synchronous, patience_seconds=1)
        model.compile("adam", "sparse_categorical_crossentropy", strategy=strategy)
        model.fit(X, Y, batch_size=8, verbose=0)
        before = model.get_weights()

        def kill() -> None:
            cluster.kill("ps:0")
            cluster.start("ps:0")

        with pytest.raises(UnavailableError, match=r"a parameter server was lost.*/job:ps/task:0"):
            model.fit(
                X, Y, batch_size=8, epochs=2, initial_epoch=1, verbose=0, callbacks=At(3, kill)
            )
        for a, b in zip(model.get_weights(), before, strict=True):
            np.testing.assert_array_equal(a, b)
        loss = model.evaluate(X, Y, verbose=0)
        history = model.fit(X, Y, batch_size=8, epochs=3, verbose=0).history
        assert history["loss"][-1] < loss


def test_5_all_workers_are_killed(cluster: SpawnedCluster) -> None:
    strategy = ParameterServer(cluster.spec, synchronous=True, patience_seconds=0.5)

    def kill() -> None:
        for name in ("worker:0", "worker:1"):
            cluster.kill(name)

    try:
        with pytest.raises(UnavailableError, match="no worker is left"):
            trained(strategy, At(3, kill))
    finally:
        for name in ("worker:0", "worker:1"):
            cluster.start(name)


def test_8_a_slow_worker_and_a_backup(cluster: SpawnedCluster) -> None:
    """A step ends without it, with the same bits."""
    strategy = ParameterServer(cluster.spec, synchronous=True, replicas_to_aggregate=1)
    clean = trained(strategy)
    for name in ("worker:0", "worker:1"):
        with stopped(cluster, name) as stop:
            check_same_bits(trained(strategy, At(4, stop)), clean)


def test_4_who_leads_is_killed_under_tf_config(tmp_path: Path) -> None:
    """The others wait for the one that takes its place; it goes on with the same bits."""
    addresses = free_addresses(4)
    spec = {"ps": addresses[:1], "worker": addresses[1:3], "chief": addresses[3:]}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}

    def start(job: str, task: int, folder: Path) -> subprocess.Popen[str]:
        config = {"cluster": spec, "task": {"type": job, "index": task}}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.distribute.served_training", str(folder), "3"],
            cwd=ROOT,
            env={**environment, "PYTHONPATH": str(ROOT), "TF_CONFIG": json.dumps(config)},
            stdout=subprocess.PIPE,
            text=True,
        )

    (tmp_path / "killed").mkdir()
    (tmp_path / "clean").mkdir()
    for name in ("killed", "clean"):
        folder = tmp_path / name
        others = [start(job, i, folder) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]
        chief = start("chief", 0, folder)
        try:
            if name == "killed":
                assert chief.stdout is not None
                for _ in range(6):  # in the middle of the second epoch
                    assert chief.stdout.readline()
                chief.kill()
                chief.communicate()
                chief = start("chief", 0, folder)
            assert chief.wait(60) == 0
            end = time.monotonic() + 20
            assert [p.wait(max(0.1, end - time.monotonic())) for p in others] == [0, 0, 0]
        finally:
            for process in (chief, *others):
                if process.poll() is None:
                    process.kill()
                process.communicate()
    found, clean = (np.load(tmp_path / name / "found.npz") for name in ("killed", "clean"))
    for key in clean.files:
        if key != "loss":
            np.testing.assert_array_equal(found[key], clean[key])
