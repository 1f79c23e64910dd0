"""Clusters of processes that are killed, run out of memory, or lose their network.

The seeds that are not for every day, and the soak, run with `pytest --exhaustive tests/distribute`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine import errors
from tests.distribute.wire.harness import eventually, num_fds
from tests.distribute.wire.proxy import Proxy

from .local_cluster import local_cluster, op_of
from .spawned_cluster import ROOT, SpawnedCluster, spawned_cluster
from .test_recovery import LOST, in_time, train_to

pytestmark = pytest.mark.slow  # interpreters are started

STEPS = 10
SEEDS = [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 10))]


class Killer:
    """Kills processes while a training goes on, each of which comes again at its address."""

    def __init__(self, cluster: SpawnedCluster, rng: random.Random, most: int) -> None:
        self._cluster, self._rng, self._left = cluster, rng, rng.randint(1, most)
        self._ended = threading.Event()
        self.killed: list[str] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while self._left and not self._ended.wait(self._rng.uniform(0.0, 0.6)):
            self._left -= 1
            # Sometimes two at a time, or one that has just come back.
            victims = self._rng.sample(["ps:0", "worker:0"], self._rng.choice([1, 1, 2]))
            for name in victims:
                self._cluster.kill(name)
            self.killed += victims
            for name in victims:
                self._cluster.start(name)

    def __call__(self, done: int) -> None:
        """What is done before each step: it takes long enough to be hit."""
        if not done and not self._thread.is_alive() and not self.killed:
            self._thread.start()
        time.sleep(0.05)
        if done >= STEPS - 2:  # what hooks do at the end is not done again
            self.end()

    def end(self) -> None:
        """Kill no more."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_training_survives_kills_at_any_time(tmp_path: Path, seed: int) -> None:
    """One after the other, two at once, one again while it recovers: the bits stay the same."""
    with spawned_cluster({"worker": 2, "ps": 1}, ["--root", str(tmp_path)]) as cluster:
        clean, hit = tmp_path / "clean", tmp_path / "hit"
        expected = in_time(60, lambda: train_to(cluster.target("worker:1"), clean, STEPS))
        cluster.kill("ps:0")
        cluster.start("ps:0")
        killer = Killer(cluster, random.Random(seed), 3)
        try:
            found = in_time(150, lambda: train_to(cluster.target("worker:1"), hit, STEPS, killer))
        finally:
            killer.end()
    np.testing.assert_array_equal(found, expected, err_msg=str(killer.killed))


CLIENT = """
import sys, time
import numpy as np
from laminar import engine as eng
with eng.Graph().as_default():
    with eng.device("/job:worker/task:0"):
        v = eng.Variable(np.zeros(1000, "float32"), name="left")
        waits = eng.FIFOQueue(1, "float32", shapes=[()], shared_name="none").dequeue()
    with eng.Session(sys.argv[1]) as session:
        session.run(v.initializer)
        print("runs", flush=True)
        session.run(waits)
"""


def test_a_client_that_is_killed_leaves_no_session() -> None:
    """In the middle of a step, which would wait for ever."""
    with local_cluster({"worker": 2}, lease_seconds=1.0) as cluster:
        command = [sys.executable, "-c", CLIENT, cluster.target("worker:1")]
        client = subprocess.Popen(
            command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True
        )
        assert client.stdout is not None
        assert client.stdout.readline() == "runs\n"
        workers = [cluster.worker(f"worker:{i}") for i in range(2)]
        eventually(lambda: len(workers[0].steps) == 1)
        client.kill()
        client.wait()
        client.stdout.close()
        eventually(lambda: not any(w.graphs or len(w.steps) for w in workers))


LIMITED = """
import resource, sys
from laminar.distribute import Server
from laminar.distribute.server import parse_cluster
with Server(parse_cluster(sys.argv[1]), "worker", 1) as server:
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
    print("serves", flush=True)
    sys.stdin.read()
"""


def test_a_task_that_runs_out_of_memory() -> None:
    """The step ends and says where; the task, and its session, go on."""
    with local_cluster({"worker": 2}) as cluster:
        cluster.servers["worker:1"].stop()
        addresses = ",".join(cluster.spec.task_address("worker", i) for i in range(2))
        task = subprocess.Popen(
            [sys.executable, "-c", LIMITED, f"worker={addresses}"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert task.stdout is not None
            assert task.stdout.readline() == "serves\n"
            with eng.Graph().as_default():
                size = eng.placeholder("int32", [1])
                with eng.device("/job:worker/task:1"):
                    big = ops.broadcast_to(eng.constant(1.0), size)
                    total = ops.sum(big * 2.0)
                with eng.device("/job:worker/task:0"):
                    y = total + 1.0
                with eng.Session(cluster.target()) as session:
                    assert session.run(y, {size: [10]}) == 21.0
                    with pytest.raises(
                        errors.ResourceExhaustedError, match="/job:worker/task:1"
                    ) as caught:
                        in_time(30, lambda: session.run(y, {size: [1 << 30]}))
                    assert caught.value.operation is not None
                    assert session.run(y, {size: [100]}) == 201.0
        finally:
            task.kill()
            task.communicate()


@contextmanager
def through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Proxy]]:
    """A task that its client reaches over a network alone."""
    monkeypatch.setattr("laminar.distribute.wire.local_pipe.boot_id", str)
    with local_cluster({"worker": 1}, lease_seconds=30.0) as cluster:
        proxy = Proxy(cluster.target().removeprefix("grpc://"))
        try:
            yield cluster, proxy
        finally:
            proxy.close()


def test_a_network_that_comes_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps end well or with an error, what was done is done once, and nothing is left behind."""
    with through_a_proxy(monkeypatch) as (_, proxy), eng.Graph().as_default():
        v = eng.Variable(np.float32(0), name="v")
        add = op_of(v.assign_add(np.float32(1)))
        with eng.Session(f"grpc://{proxy.address}") as session:
            session.run(v.initializer)
            session.run(add)
            fds, threads = num_fds() - 2 * proxy.num_connections, threading.active_count()
            done, lost = 1, 0
            for _ in range(20):
                proxy.drop_connections()
                try:
                    in_time(20, lambda: session.run(add))
                    done += 1
                except errors.UnavailableError:
                    lost += 1
            found = in_time(20, lambda: settled(lambda: session.run(v.value)))
            assert done <= found <= done + lost
            eventually(lambda: num_fds() - 2 * proxy.num_connections <= fds + 4)
            eventually(lambda: threading.active_count() <= threads + 4)


def settled(read: Callable[[], Any]) -> Any:
    """What `read` gives once the network is there again."""
    while True:
        try:
            return read()
        except errors.UnavailableError:
            time.sleep(0.05)


def test_a_clock_that_jumps_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases and deadlines go by a clock that does not."""
    with local_cluster({"worker": 2}, lease_seconds=1.0) as cluster, eng.Graph().as_default():
        with eng.device("/job:worker/task:1"):
            x = eng.constant(np.float32(3)) * 2.0
        config = eng.SessionConfig(operation_timeout_in_ms=20_000, rpc_for_inprocess_master=True)
        with eng.Session(cluster.target(), config=config) as session:
            assert session.run(x) == 6
            real, real_ns = time.time, time.time_ns
            for days in (1, -1):
                monkeypatch.setattr(time, "time", lambda d=days: real() + d * 86400)
                monkeypatch.setattr(time, "time_ns", lambda d=days: real_ns() + d * 86400 * 10**9)
                time.sleep(0.6)
                assert session.run(x) == 6


def test_kills_of_all_kinds_on_one_cluster(request: pytest.FixtureRequest) -> None:
    """A soak: the cluster works after each, and neither memory nor files of it grow."""
    soaks = request.config.getoption("exhaustive")
    end = time.monotonic() + (180.0 if soaks else 3.0)
    rng = random.Random(1)
    with spawned_cluster({"worker": 2, "ps": 1}, ["--lease-seconds", "5"]) as cluster:
        before: tuple[int, int] | None = None
        while time.monotonic() < end or before is None:
            victim = rng.choice(["worker:1", "ps:0"])
            with eng.Graph().as_default():
                with eng.device(f"/job:{victim[:-2]}/task:{victim[-1]}"):
                    y = eng.constant(np.float32(3)) * 2.0
                with eng.device("/job:worker/task:0"):
                    z = y + 1.0
                with eng.Session(cluster.target("worker:0")) as session:
                    for _ in range(20):
                        assert session.run(z) == 7
                    kind = rng.choice([signal.SIGKILL, signal.SIGTERM])
                    timer = threading.Timer(rng.uniform(0, 0.05), cluster.kill, [victim, kind])
                    timer.start()
                    with pytest.raises(LOST, match=f"/job:{victim[:-2]}/task:{victim[-1]}"):
                        in_time(30, partial(repeatedly, session, z))
                    timer.join()
            cluster.start(victim)
            found = used_by(cluster.processes["worker:0"].pid)
            if before is None:
                before = found
        files, memory = (a - b for a, b in zip(found, before, strict=True))
        assert files <= 8
        assert memory < 64 << 20


def repeatedly(session: eng.Session, fetch: Any) -> None:
    """Run it until that fails."""
    while True:
        session.run(fetch)


def used_by(pid: int) -> tuple[int, int]:
    """Open files and bytes of memory of a process."""
    with open(f"/proc/{pid}/statm") as file:
        memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return len(os.listdir(f"/proc/{pid}/fd")), memory
