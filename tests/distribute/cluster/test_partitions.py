"""Two hosts whose network is cut, one way and both ways, and comes again: network namespaces.

The system drops packets here, so nobody is told, and a connection that is given up is one that the
kernel gives up. The other tests of a cut go through a proxy, which needs no rights.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from laminar import engine as eng
from laminar.distribute import Keepalive, Server
from laminar.distribute.wire.keepalive import PATIENCE
from laminar.engine import errors
from tests.distribute.wire.harness import eventually, num_fds, num_threads

from .local_cluster import op_of
from .spawned_cluster import ROOT
from .test_recovery import in_time

pytestmark = pytest.mark.slow  # an interpreter is started

ALIVE = Keepalive(0.2, 0.2)
BOUND = 2 * (ALIVE.time_seconds + PATIENCE * ALIVE.timeout_seconds)
PORT = 2222
SERVE = """
import sys
from laminar.distribute import Keepalive, Server
cluster = {"worker": [sys.argv[1]], "ps": [sys.argv[2]]}
with Server(cluster, "ps", 0, allow_insecure_network=True, keepalive=Keepalive(0.2, 0.2)):
    print("serves", flush=True)
    sys.stdin.read()
"""


def ip(command: str) -> None:
    subprocess.run(["ip", *command.split()], check=True, capture_output=True, timeout=20)


class Wire:
    """A network of two hosts, this one and a namespace."""

    def __init__(self) -> None:
        self.space = f"laminar-{secrets.token_hex(4)}"
        self._near, self._far = f"lm{self.space[-6:]}a", f"lm{self.space[-6:]}b"
        net = f"10.{secrets.randbelow(200) + 20}.{secrets.randbelow(250)}"
        self.here, self.there = f"{net}.1", f"{net}.2"
        ip(f"netns add {self.space}")
        ip(f"link add {self._near} type veth peer name {self._far} netns {self.space}")
        ip(f"addr add {self.here}/30 dev {self._near}")
        ip(f"-n {self.space} addr add {self.there}/30 dev {self._far}")
        ip(f"-n {self.space} link set lo up")
        ip(f"link set {self._near} up")
        self.set_up(True)

    def set_up(self, is_up: bool) -> None:
        """Both ways, at the other end: here the route stays, where there may be another one."""
        ip(f"-n {self.space} link set {self._far} {'up' if is_up else 'down'}")

    def set_answers(self, come: bool) -> None:
        """What is sent to the other host gets there; what it answers does not come."""
        ip(f"-n {self.space} route {'del' if come else 'add'} blackhole {self.here}/32")

    def close(self) -> None:
        ip(f"netns del {self.space}")


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    if not hasattr(os, "geteuid") or os.geteuid() or not shutil.which("ip"):
        pytest.skip("network namespaces are made by root, with the program `ip`")
    try:
        found = Wire()
    except (subprocess.CalledProcessError, OSError) as cause:
        pytest.skip(f"no network namespace can be made: {cause}")
    yield found
    found.close()


@pytest.fixture(scope="module")
def target(wire: Wire) -> Iterator[str]:
    """A worker here, and a parameter server on the other host."""
    here, there = f"{wire.here}:{PORT}", f"{wire.there}:{PORT}"
    command = ["ip", "netns", "exec", wire.space, sys.executable, "-c", SERVE, here, there]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "serves\n"
        cluster = {"worker": [here], "ps": [there]}
        with Server(cluster, "worker", 0, allow_insecure_network=True, keepalive=ALIVE) as server:
            yield server.target
        child.kill()


class Counter:
    """A variable on the other host, and a session that counts it up."""

    def __init__(self, target: str) -> None:
        graph = eng.Graph()
        with graph.as_default():
            with eng.device("/job:ps/task:0"):
                self.variable = eng.Variable(np.float32(0), name=f"v{secrets.token_hex(4)}")
            with eng.device("/job:worker/task:0"):
                one = eng.constant(np.float32(0.5)) * 2.0
            self.add = op_of(self.variable.assign_add(one))
        self.session = eng.Session(target, graph=graph)
        self.session.run(self.variable.initializer)
        self.done = self.lost = 0
        self.told = ""

    def count(self) -> bool:
        """Whether it went well."""
        try:
            in_time(30, lambda: self.session.run(self.add))
        except errors.UnavailableError as error:
            self.lost += 1
            self.told = str(error)
            return False
        self.done += 1
        return True

    def check(self) -> None:
        """Each count that was told to be done was done once; of the others, each at most once."""
        found = in_time(30, lambda: self.session.run(self.variable.value))
        assert self.done <= found <= self.done + self.lost


@contextmanager
def counter(target: str) -> Iterator[Counter]:
    found = Counter(target)
    with found.session:
        yield found


@pytest.mark.parametrize("way", ["both", "one"])
def test_a_cut_is_noticed_and_heals(wire: Wire, target: str, way: str) -> None:
    def connect(is_up: bool) -> None:
        wire.set_up(is_up) if way == "both" else wire.set_answers(is_up)

    with counter(target) as counts:
        for _ in range(20):
            assert counts.count()
        connect(False)
        start = time.monotonic()
        try:
            assert not counts.count()
            assert time.monotonic() - start < BOUND
            assert "/job:ps/task:0" in counts.told
        finally:
            connect(True)
        eventually(counts.count)
        counts.check()


def test_a_network_that_flaps(wire: Wire, target: str) -> None:
    """It goes on as soon as it can, and leaves neither files nor threads behind."""
    with counter(target) as counts:
        assert counts.count()
        fds, threads = num_fds(), num_threads()
        ended = threading.Event()

        def flap() -> None:
            for i in range(5):
                wire.set_up(False)
                ended.wait(0.1 if i % 2 else 0.9)
                wire.set_up(True)
                ended.wait(0.2)
            ended.set()

        thread = threading.Thread(target=flap)
        thread.start()
        while not ended.is_set():
            counts.count()
        thread.join()
        eventually(counts.count)
        assert counts.done > 5
        counts.check()
        eventually(lambda: num_fds() <= fds + 4)
        eventually(lambda: num_threads() <= threads + 4)
