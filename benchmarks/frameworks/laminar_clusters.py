"""Steps on clusters, over grpc sessions of laminar."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from laminar import engine, ops, optimizers
from laminar.distribute import Server, replica_device_setter
from laminar.distribute.cluster.messages import WIRE_VERSION, messages, write_config
from laminar.distribute.cluster.peers import RemotePeer
from laminar.distribute.wire import Channels, local_pipe
from laminar.engine.graph.exchange import export_graph

from .. import tasks
from ..problems import CLASSES, Problem
from ..tasks import ClusterCase, free_addresses
from ..workloads import CHECKED_STEPS

# Has a process take all others to be on other hosts: no two names are the same.
ELSEWHERE = """
import secrets
from laminar.distribute.wire import local_pipe
local_pipe.boot_id = secrets.token_hex
"""
SERVE = """
import json, sys
from laminar.distribute import Server
cluster, job, task = sys.argv[1:]
with Server(json.loads(cluster), job, int(task)):
    print(flush=True)
    sys.stdin.read()
"""


class _Laminar(ClusterCase):
    program = SERVE


class Steps(_Laminar):
    """Values that go from one task to another and back.

    Args:
        own: whether the first of the two tasks is in this process.
    """

    def __init__(self, own: bool, problem: Problem) -> None:
        super().__init__({"worker": free_addresses(2)})
        self._tasks = [self.begin("worker", 1)]
        if own:
            self._server = Server(self.cluster, "worker", 0)
        else:
            self._tasks.append(self.begin("worker", 0))
        graph = engine.Graph()
        matrix = np.full((tasks.SIDE, tasks.SIDE), 0.5, "float32")
        with graph.as_default():
            with engine.device("/job:worker/task:0"):
                self._x = engine.placeholder("float32", matrix.shape)
                there = self._x @ matrix
            with engine.device("/job:worker/task:1"):
                back = there @ matrix
            with engine.device("/job:worker/task:0"):
                self._y = back + there
        self._session = engine.Session(f"grpc://{self.cluster['worker'][0]}", graph=graph)
        self._feeds = {self._x: matrix}

    def checks(self) -> list[float]:
        return [float(v) for v in self._session.run(self._y, self._feeds).ravel()]

    def run(self) -> None:
        self._session.run(self._y, self._feeds)


class Training(_Laminar):
    """A worker in this process, and a parameter server with the weights."""

    def __init__(self, problem: Problem) -> None:
        ps, worker = free_addresses(2)
        super().__init__({"ps": [ps], "worker": [worker]})
        self._task = self.begin("ps", 0)
        self._server = Server(self.cluster, "worker", 0)
        rule = replica_device_setter(cluster=self.cluster, worker_device="/job:worker/task:0")
        graph = engine.Graph()
        with graph.as_default(), engine.device(rule):
            step = engine.get_or_create_global_step()
            x = engine.placeholder("float32", [None, problem.x.shape[1]])
            y = engine.placeholder("int32", [None])
            h: Any = x
            for i, (kernel, bias) in enumerate(problem.weights.values()):
                h = ops.relu(h) if i else h
                w = engine.Variable(kernel, name=f"w{i}")
                h = h @ w + engine.Variable(bias, name=f"b{i}")
            self._loss = -ops.mean(ops.sum(ops.one_hot(y, CLASSES) * ops.log_softmax(h), -1))
            optimizer = optimizers.SGD(0.01, name="sgd")
            self._train = optimizer.minimize(self._loss, global_step=step)
            init = engine.global_variables_initializer()
        self._feeds = {x: problem.x[: problem.batch], y: problem.y[: problem.batch].astype("int32")}
        self._session = engine.Session(self._server.target, graph=graph)
        self._session.run(init)

    def checks(self) -> list[float]:
        return [self._step() for _ in range(CHECKED_STEPS)]

    def run(self) -> None:
        self._step()

    def _step(self) -> float:
        return float(self._session.run([self._train, self._loss], self._feeds)[1])


class FirstStep(_Laminar):
    """The first step of a chain of nodes on another task, less a second one."""

    is_fresh_process = True

    def __init__(self, problem: Problem) -> None:
        super().__init__({"worker": free_addresses(2)})
        self._task = self.begin("worker", 1)
        self._server = Server(self.cluster, "worker", 0)
        self._nodes = len(problem.x)

    def checks(self) -> list[float]:
        return [self._first()[0]]

    def run(self) -> None:
        self._first()

    def sample(self, number: int) -> float:
        return sum(self._first()[1] for _ in range(number)) / number

    def _first(self) -> tuple[float, float]:
        graph, x, y = chain(self._nodes, "/job:worker/task:1")
        with engine.Session(self._server.target, graph=graph) as session:
            times = [perf_counter()]
            for _ in range(2):
                found = session.run(y, {x: 0.5})
                times.append(perf_counter())
        return float(found), times[1] - times[0] - (times[2] - times[1])


class Register(_Laminar):
    """A graph that a worker is to run, as its master sends it."""

    is_fresh_process = True

    def __init__(self, problem: Problem) -> None:
        super().__init__({"worker": free_addresses(1)})
        self._task = self.begin("worker", 0)
        channels = Channels(has_links=True)
        self._worker = RemotePeer(channels, self.cluster["worker"][0], "laminar.WorkerService")
        request = messages().CreateWorkerSessionRequest(
            session_handle="mine", lease_seconds=600, wire_version=WIRE_VERSION
        )
        write_config(request.config, engine.SessionConfig())
        self._ask("CreateWorkerSession", request)
        device = "/job:worker/task:0/device:cpu:0"
        graph, x, y = chain(len(problem.x), device)
        part = messages().Part(
            device=device,
            graph=export_graph(graph, exact=True).message,
            feed=[messages().Part.Feed(index=0, tensor=x.name)],
            fetch=[y.name],
        )
        self._request = messages().RegisterGraphRequest(session_handle="mine", part=[part])

    def _ask(self, method: str, request: Any, values: Sequence[Any] = ()) -> Any:
        return self._worker.call(method, request, values, timeout_seconds=60.0)

    def checks(self) -> list[float]:
        handle = self._ask("RegisterGraph", self._request).message.graph_handle
        request = messages().RunGraphRequest(session_handle="mine", graph_handle=handle, step_id=1)
        return [float(self._ask("RunGraph", request, [np.float32(0.5)]).values[0])]

    def run(self) -> None:
        self._ask("RegisterGraph", self._request)


def chain(count: int, device: str) -> tuple[engine.Graph, Any, Any]:
    """So many operations, each on what the one before gives: graph, input and output."""
    graph = engine.Graph()
    with graph.as_default():
        x = engine.placeholder("float32", [])
        y: Any = x
        with engine.device(device):
            for i in range(count):
                y = ops.sin(y) if i % 2 else y * y
    return graph, x, y


class OverTcp:
    """Makes a case whose tasks, and this process, take each other to be on other hosts."""

    def __init__(self, case: Callable[[Problem], _Laminar]) -> None:
        self._case = case

    def __call__(self, problem: Problem) -> _Laminar:
        local_pipe.boot_id = secrets.token_hex
        _Laminar.program = ELSEWHERE + SERVE
        return self._case(problem)


_STEPS: dict[str, Callable[[Problem], _Laminar]] = {
    "cluster-step": partial(Steps, True),
    "cluster-step-remote": partial(Steps, False),
    **{tasks.parameter_server(width): Training for width in tasks.WIDTHS},
}
CASES: dict[str, Any] = {
    **_STEPS,
    **{name + tasks.OVER_TCP: OverTcp(case) for name, case in _STEPS.items()},
    tasks.FIRST_STEP: FirstStep,
    tasks.REGISTER: Register,
}
