"""Trainings by parameter servers whose tasks, networks, disks and files fail.

The numbers in the names are those of the list of faults that a training must live through; those
that kill and stop processes are in test_training_chaos_servers.py. One seed runs every day:
`pytest --exhaustive tests/distribute/test_training_chaos.py` runs ten.
"""

from __future__ import annotations

import errno
import pickle
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, optimizers
from laminar.distribute import (
    ClusterSpec,
    Credentials,
    Keepalive,
    ParameterServer,
    Server,
    certs,
)
from laminar.distribute.wire.server import Limits
from laminar.engine.errors import (
    LaminarError,
    ResourceExhaustedError,
    UnavailableError,
)
from tests.distribute.cluster.local_cluster import LocalCluster, free_addresses, local_cluster
from tests.distribute.wire.harness import eventually, num_fds
from tests.distribute.wire.proxy import Change, Proxy, unchanged

SEEDS = [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 10))]
seeded = pytest.mark.parametrize("seed", SEEDS)

chance = np.random.default_rng(0)
X = chance.normal(size=(48, 6)).astype("float32")
Y = chance.integers(0, 3, 48)


class At(laminar.callbacks.Callback):
    """Does something before some batches, counted from the first one of the training."""

    def __init__(self, batches: Any, does: Callable[[], Any]) -> None:
        super().__init__()
        self._batches, self._does, self._count = set(batches), does, 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._count in self._batches:
            self._does()
        self._count += 1


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


def trained(strategy: Any, *does: Any, epochs: int = 2, **given: Any) -> Any:
    model = dense()
    model.compile("adam", "sparse_categorical_crossentropy", strategy=strategy, jit_compile=False)
    model.fit(X, Y, batch_size=8, epochs=epochs, verbose=0, callbacks=list(does), **given)
    return model


def check_same_bits(model: Any, other: Any) -> None:
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def counted(strategy: Any, *does: Any, batches: int = 24) -> int:
    """How many updates an asynchronous training has made, each of which adds 1 to the weight."""
    model = laminar.Sequential([layers.Input((1,)), layers.Dense(1, use_bias=False)])
    model.layers[0].set_weights([np.zeros((1, 1), "float32")])
    model.compile(optimizers.SGD(1.0), "mae", strategy=strategy, jit_compile=False)
    x, y = np.ones((2 * batches, 1), "float32"), np.full((2 * batches, 1), 1e6, "float32")
    model.fit(x, y, batch_size=2, verbose=0, callbacks=list(does))
    total = int(model.get_weights()[0].item())
    assert int(model.optimizer.iterations.numpy()) == total
    return total


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"ps": 1, "worker": 2}) as found:
        yield found


@pytest.fixture(scope="module")
def clean(cluster: LocalCluster) -> Any:
    """What a synchronous training makes of it where nothing fails."""
    return trained(ParameterServer(cluster.spec, synchronous=True))


class Network:
    """A cluster in which the client and the workers reach others through proxies alone.

    Attributes:
        spec: as the client has it.
        proxies: before the workers, and before the server.
    """

    def __init__(self, change: Change = unchanged) -> None:
        ps, *workers = free_addresses(3)
        behind = ClusterSpec({"ps": [ps], "worker": workers})
        alive = Keepalive(0.4, 0.4)
        self.servers = [Server(behind, "ps", 0, keepalive=alive)]
        self.proxies = [Proxy(ps, change)]
        seen = ClusterSpec({"ps": [self.proxies[0].address], "worker": workers})
        for i, address in enumerate(workers):
            self.servers.append(Server(seen, "worker", i, keepalive=alive))
            self.proxies.append(Proxy(address, change))
        first, *others = (proxy.address for proxy in self.proxies)
        self.spec = ClusterSpec({"ps": [first], "worker": others})

    def break_connections(self, *, of_workers_alone: bool = False) -> None:
        for proxy in self.proxies[of_workers_alone:]:
            proxy.drop_connections()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Nothing goes through, and nobody is told."""
        for proxy in self.proxies:
            proxy.is_cut.set()
        try:
            yield
        finally:
            for proxy in self.proxies:
                proxy.is_cut.clear()

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        for proxy in self.proxies:
            proxy.close()


@contextmanager
def network(monkeypatch: pytest.MonkeyPatch, change: Change = unchanged) -> Iterator[Network]:
    monkeypatch.setattr("laminar.distribute.wire.local_pipe.boot_id", str)  # over the network alone
    found = Network(change)
    try:
        yield found
    finally:
        found.close()


@seeded
def test_6_a_worker_dies_and_is_back_at_once(cluster: LocalCluster, clean: Any, seed: int) -> None:
    """At the same address, with another incarnation: what the first one was told is not taken."""
    rng = random.Random(seed)
    strategy = ParameterServer(cluster.spec, synchronous=True, patience_seconds=1)
    again = At(
        rng.sample(range(1, 12), 2), lambda: cluster.restart(rng.choice(["worker:0", "worker:1"]))
    )
    check_same_bits(trained(strategy, again), clean)


def goes_on_or_says_so(strategy: Any, clean: Any, *does: Any) -> None:
    """The same bits, or an error that names the server; with the next training, the bits."""
    try:
        check_same_bits(trained(strategy, *does), clean)
    except UnavailableError as error:
        if "a parameter server was lost: /job:ps/task:0" not in str(error):
            raise
        check_same_bits(trained(strategy), clean)


@seeded
def test_9_a_network_is_cut_and_heals(
    monkeypatch: pytest.MonkeyPatch, clean: Any, seed: int
) -> None:
    """What was lost on the way is noticed, and no update is made twice."""
    rng = random.Random(seed)
    threads: list[threading.Thread] = []
    with network(monkeypatch) as net:
        strategy = ParameterServer(net.spec, synchronous=True, patience_seconds=20)

        def heal() -> None:
            with net.cut():
                time.sleep(rng.uniform(0.05, 0.3))
            net.break_connections()

        def cut() -> None:
            threads.append(threading.Thread(target=heal))
            threads[-1].start()

        try:
            goes_on_or_says_so(strategy, clean, At([rng.randrange(1, 12)], cut))
        finally:
            for thread in threads:
                thread.join()


@seeded
def test_10_a_link_that_flaps(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """No batch is applied twice, few go with a connection, and no thread or file is left."""
    rng = random.Random(seed)
    with network(monkeypatch) as net:
        strategy = ParameterServer(net.spec, patience_seconds=20)
        assert counted(strategy) == 24
        open_sockets = 2 * sum(proxy.num_connections for proxy in net.proxies)
        fds, threads = num_fds() - open_sockets, threading.active_count()
        drop = partial(net.break_connections, of_workers_alone=True)
        # Each time, a batch of each worker may be on its way.
        assert 12 <= counted(strategy, At(rng.sample(range(24), 6), drop)) <= 24

        def left() -> int:
            return num_fds() - 2 * sum(proxy.num_connections for proxy in net.proxies)

        eventually(lambda: left() <= fds + 8)
        eventually(lambda: threading.active_count() <= threads + 12)


@seeded
def test_11_a_disk_that_is_full(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    """The save fails loudly, what stood there stays, and the tasks train again."""
    strategy = ParameterServer(cluster.spec, synchronous=seed % 2 == 0)
    path = tmp_path / "model.keras"
    keep = laminar.callbacks.ModelCheckpoint(path)
    before = trained(strategy, keep, epochs=1).get_weights()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        with pytest.raises(ResourceExhaustedError, match=r"model\.keras cannot be written"):
            trained(strategy, keep, epochs=2)
    for a, b in zip(laminar.saving.load_model(path).get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert [p.name for p in tmp_path.iterdir()] == ["model.keras"]
    trained(strategy, keep, epochs=1)


class StoppedError(Exception):
    """Ends a training."""


def stop() -> None:
    raise StoppedError


@seeded
@pytest.mark.parametrize("how", ["cut", "flip", "pickle"])
def test_12_and_18_a_torn_state(
    cluster: LocalCluster,
    clean: Any,
    tmp_path: Path,
    recwarn: pytest.WarningsRecorder,
    seed: int,
    how: str,
) -> None:
    """It is refused, nothing of it runs, and training goes on from the state before."""
    rng = random.Random(seed)
    strategy = ParameterServer(cluster.spec, synchronous=True)
    folder, canary = tmp_path / "states", tmp_path / "canary"
    backup = laminar.callbacks.BackupAndRestore(str(folder), save_freq=2, double_checkpoint=True)
    with pytest.raises(StoppedError):
        trained(strategy, backup, At([rng.randrange(7, 12)], stop))
    files = sorted(folder.glob("state-*"))
    newest = [p for p in files if p.name.startswith(files[-1].name.partition(".")[0])]
    torn = rng.choice([p for p in newest if p.stat().st_size])
    data = bytearray(torn.read_bytes())
    if how == "cut":
        del data[rng.randrange(len(data)) :]
    elif how == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    else:
        data[:] = pickle.dumps(Evil(str(canary)))
    torn.write_bytes(data)
    check_same_bits(trained(strategy, backup), clean)
    assert not canary.exists()
    assert any("is passed over" in str(w.message) for w in recwarn)


class Evil:
    """Makes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return open, (self._path, "w")


@seeded
def test_13_two_writers_of_one_folder(tmp_path: Path, seed: int) -> None:
    """What is read is whole, of one of them."""
    rng = random.Random(seed)
    found: list[Any] = []

    def train(rate: float) -> None:
        model = laminar.Sequential([layers.Input((6,)), layers.Dense(1000)])
        model.compile(optimizers.SGD(rate), "mse", jit_compile=False)
        model.layers[0].set_weights([np.full((6, 1000), rate), np.full(1000, rate)])
        keep = laminar.callbacks.ModelCheckpoint(tmp_path / "both.keras", save_freq=1)
        pause = At(range(6), lambda: time.sleep(rng.uniform(0, 0.01)))
        model.fit(X, np.zeros((48, 1000)), batch_size=8, verbose=0, callbacks=[keep, pause])
        found.append(model)

    threads = [threading.Thread(target=train, args=(rate,)) for rate in (0.0, 1e-3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 2
    weights = laminar.saving.load_model(tmp_path / "both.keras").get_weights()
    assert any(
        all(np.array_equal(a, b) for a, b in zip(weights, m.get_weights(), strict=True))
        for m in found
    )
    assert [p.name for p in tmp_path.iterdir()] == ["both.keras"]


class FlipSometimes:
    """Flips a bit of some of the bytes that go by."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._lock = rng, threading.Lock()
        self._left = 10
        self.is_on = False

    def __call__(self, data: bytes, before: int, is_answer: bool) -> bytes:
        with self._lock:
            if not self.is_on or not self._left or self._rng.random() > 0.2:
                return data
            self._left -= 1
            flipped = bytearray(data)
            flipped[self._rng.randrange(len(flipped))] ^= 1 << self._rng.randrange(8)
        return bytes(flipped)


@seeded
def test_14_bytes_that_are_damaged(monkeypatch: pytest.MonkeyPatch, clean: Any, seed: int) -> None:
    """The bits stay the same, or an error says so: never a wrong value."""
    flips = FlipSometimes(random.Random(seed))
    with network(monkeypatch, flips) as net:
        strategy = ParameterServer(net.spec, synchronous=True, patience_seconds=20)

        def begin() -> None:
            flips.is_on = True

        with suppress(LaminarError):
            check_same_bits(trained(strategy, At([2], begin)), clean)
        flips.is_on = False
        net.break_connections()
        goes_on_or_says_so(strategy, clean)


def test_17_weights_beyond_the_limits_of_a_server() -> None:
    """One error that says so, and what fits is trained."""
    limits = Limits(request_bytes=1 << 20)
    with local_cluster({"ps": 1, "worker": 1}, limits=limits) as cluster:
        strategy = ParameterServer(cluster.spec, synchronous=True)
        model = laminar.Sequential([layers.Input((1024,)), layers.Dense(1024)])
        model.compile("sgd", "mse", strategy=strategy, jit_compile=False)
        with pytest.raises(ResourceExhaustedError):
            model.fit(np.ones((4, 1024)), np.ones((4, 1024)), verbose=0)
        trained(strategy, epochs=1)


def test_19_who_shows_no_credentials(tmp_path: Path) -> None:
    """Nothing is trained, in time; with them, it is."""
    pytest.importorskip("cryptography")
    certs.make_authority(tmp_path)
    certs.make_certificate(tmp_path, "task")
    shown = Credentials.from_files(
        ca=tmp_path / "ca.pem", cert=tmp_path / "task.pem", key=tmp_path / "task.key"
    )
    with local_cluster({"ps": 1, "worker": 1}, credentials=shown) as cluster:
        with pytest.raises(UnavailableError, match="credentials that fit"):
            trained(ParameterServer(cluster.spec, timeout_seconds=0.5))
        trained(ParameterServer(cluster.spec, synchronous=True, credentials=shown), epochs=1)


def test_21_a_clock_that_jumps(
    cluster: LocalCluster, clean: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlines and leases go by a clock that does not."""
    real, real_ns = time.time, time.time_ns
    days = [0]
    monkeypatch.setattr(time, "time", lambda: real() + days[0] * 86400)
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + days[0] * 86400 * 10**9)

    def jump() -> None:
        days[0] = 1 if days[0] < 1 else -1

    strategy = ParameterServer(cluster.spec, synchronous=True)
    check_same_bits(trained(strategy, At([3, 8], jump)), clean)


def test_21_a_port_that_is_taken(cluster: LocalCluster) -> None:
    with pytest.raises(LaminarError, match="127.0.0.1"):
        Server(cluster.spec, "worker", 0)


@seeded
def test_22_faults_of_all_kinds(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """One after the other, on one cluster: no batch is applied twice, and none hangs."""
    rng = random.Random(seed)
    with network(monkeypatch) as net:
        strategy = ParameterServer(net.spec, patience_seconds=20)

        def fault() -> None:
            if rng.random() < 0.3:
                with net.cut():
                    time.sleep(0.02)
                net.break_connections()
            else:
                rng.choice(net.proxies).drop_connections()

        for _ in range(2):
            try:
                assert 16 <= counted(strategy, At(rng.sample(range(24), 4), fault)) <= 24
            except UnavailableError as error:
                if "a parameter server was lost" not in str(error):
                    raise
