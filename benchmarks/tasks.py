"""Steps of clusters: their names, and processes that are tasks of one.

Each framework has a session over grpc on the same cluster and the same graph. The time of a step
is the median of single ones.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from statistics import median
from time import perf_counter

from .cases import ROOT, Case
from .machine import use_all_cores
from .problems import CLASSES

WIDTHS = (32, 512)  # of the perceptrons whose weights are on a parameter server
SIDE = 4  # of the matrices that go from task to task
NODES = 1000  # of the graph whose first step is measured
STEPS = {
    "cluster-step": "step over the client's own task and another, grpc session",
    "cluster-step-remote": "step over two other tasks, grpc session",
}
OVER_TCP = "-tcp"  # ends the names of what is done as if each task were on a host of its own
GOALS = {"cluster-step-remote": 1.5e-3, "cluster-register": 0.1}
FIRST_STEP = "cluster-first-step"
REGISTER = "cluster-register"
GRAPHS = {
    FIRST_STEP: f"first step of {NODES} nodes on another task, beyond a second step",
    REGISTER: f"RegisterGraph of {NODES} nodes, on another task",
}


def names() -> list[str]:
    """Of all steps of clusters."""
    steps = [*STEPS, *map(parameter_server, WIDTHS)]
    return [*steps, *(name + OVER_TCP for name in steps), *GRAPHS]


def over_tcp(title: str) -> str:
    """The title of a workload that goes over TCP."""
    return f"{title}, over TCP"


def parameter_server(width: int) -> str:
    """The name of a workload."""
    return f"cluster-train-{width}"


def parameter_server_title(width: int) -> str:
    """What it is."""
    return f"training step, MLP 784-{width}-{width}-{CLASSES} on a parameter server, SGD, batch 128"


def free_addresses(count: int) -> list[str]:
    """So many addresses of this machine at which nobody listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return found


class TaskProcess:
    """A process that is a task of a cluster until this one ends.

    Args:
        program: Python code; it gets the cluster as JSON, a job and the number of a task, prints
            a line when it serves, and ends with its input.
        cluster: addresses by job.
        job, task: which of them.
    """

    def __init__(
        self, program: str, cluster: Mapping[str, Sequence[str]], job: str, task: int
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, json.dumps(cluster), job, str(task)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()


class ClusterCase(Case):
    """Tasks of a cluster, and steps on them.

    Args:
        cluster: addresses by job.
    """

    program: str  # of a task; see `TaskProcess`

    def __init__(self, cluster: Mapping[str, Sequence[str]]) -> None:
        use_all_cores()
        self.cluster = cluster

    def begin(self, job: str, task: int) -> TaskProcess:
        """Have a task in a process of its own."""
        return TaskProcess(self.program, self.cluster, job, task)

    @abstractmethod
    def run(self) -> None:
        """One step."""

    def sample(self, number: int) -> float:
        found = []
        for _ in range(number):
            start = perf_counter()
            self.run()
            found.append(perf_counter() - start)
        return median(found)
