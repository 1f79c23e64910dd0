"""Tensors from another process, and calls of one, over laminar's wire.

The time of a step is the median of single transfers, each of which begins when the one before has
come and been dropped.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import threading
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from laminar.distribute.wire import Channels, TensorClient, local_pipe
from laminar.engine.runtime.rendezvous import Arrival

from ..cases import ROOT, Case
from ..machine import use_all_cores
from ..problems import Problem
from ..transfers import CALL, ECHO, KB, WAYS, Way

_SECONDS = 60.0  # for one transfer


class _Other(Case):
    """Begins the other process; it ends with this one."""

    def __init__(self, *, is_elsewhere: bool = True) -> None:
        use_all_cores()
        if is_elsewhere:
            local_pipe.boot_id = secrets.token_hex  # no two names of hosts are the same
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.transfer_task"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        self.channels = Channels(has_links=True)

    def sample(self, number: int) -> float:
        found = []
        for _ in range(number):
            start = perf_counter()
            self.run()
            found.append(perf_counter() - start)
        return median(found)


class Transfer(_Other):
    """One tensor that is pulled from the other process."""

    def __init__(self, way: Way, problem: Problem) -> None:
        super().__init__(is_elsewhere=not way.shares_memory)
        self._key = str(problem.x.nbytes)
        self._client = TensorClient(self.channels)
        self._came = threading.Event()
        self._arrival = Arrival()

    def checks(self) -> list[float]:
        self.run()
        values: Any = self._arrival.value
        return [float(values[0]), float(values[-1]), float(values.sum(dtype="float64"))]

    def run(self) -> None:
        self._arrival = Arrival()  # drops the one before
        self._came.clear()
        self._client.receive(self.address, 1, self._key, 0, _SECONDS, self._take)
        self._came.wait()
        if self._arrival.error is not None:
            raise self._arrival.error

    def _take(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._came.set()


class CallOfTask(_Other):
    """One call that gives back what it is given."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self._request = bytes(KB)

    def checks(self) -> list[float]:
        return [float(len(self._call()))]

    def run(self) -> None:
        self._call()

    def _call(self) -> bytes:
        return self.channels.unary(self.address, ECHO, self._request, _SECONDS)


CASES: dict[str, Any] = {name: partial(Transfer, way) for name, way in WAYS.items()}
CASES[CALL] = CallOfTask
