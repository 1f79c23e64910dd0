"""Steps on clusters, over TensorFlow's grpc sessions."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import tensorflow as tf

from .. import tasks
from ..problems import CLASSES, Problem
from ..tasks import ClusterCase, free_addresses
from ..workloads import CHECKED_STEPS

v1: Any = tf.compat.v1
v1.disable_eager_execution()

SERVE = """
import json, sys
import tensorflow as tf
cluster, job, task = sys.argv[1:]
server = tf.compat.v1.train.Server(json.loads(cluster), job, int(task))
print(flush=True)
sys.stdin.read()
"""


class _TensorFlow(ClusterCase):
    program = SERVE

    def serve(self, job: str, task: int) -> Any:
        """Have a task in this process."""
        return v1.train.Server(self.cluster, job, task)


class Steps(_TensorFlow):
    """As laminar's."""

    def __init__(self, own: bool, problem: Problem) -> None:
        super().__init__({"worker": free_addresses(2)})
        self._tasks = [self.begin("worker", 1)]
        self._tasks.append(self.serve("worker", 0) if own else self.begin("worker", 0))
        graph = tf.Graph()
        matrix = np.full((tasks.SIDE, tasks.SIDE), 0.5, "float32")
        with graph.as_default():
            with tf.device("/job:worker/task:0"):
                x = v1.placeholder("float32", matrix.shape)
                there = tf.matmul(x, matrix)
            with tf.device("/job:worker/task:1"):
                back = tf.matmul(there, matrix)
            with tf.device("/job:worker/task:0"):
                self._y = back + there
        self._session = v1.Session(f"grpc://{self.cluster['worker'][0]}", graph=graph)
        self._feeds = {x: matrix}

    def checks(self) -> list[float]:
        return [float(v) for v in self._session.run(self._y, self._feeds).ravel()]

    def run(self) -> None:
        self._session.run(self._y, self._feeds)


class Training(_TensorFlow):
    """As laminar's."""

    def __init__(self, problem: Problem) -> None:
        ps, worker = free_addresses(2)
        super().__init__({"ps": [ps], "worker": [worker]})
        self._task, server = self.begin("ps", 0), self.serve("worker", 0)
        rule = v1.train.replica_device_setter(
            cluster=tf.train.ClusterSpec(self.cluster), worker_device="/job:worker/task:0"
        )
        graph = tf.Graph()
        with graph.as_default(), v1.device(rule):
            step = v1.train.get_or_create_global_step()
            x = v1.placeholder(tf.float32, [None, problem.x.shape[1]])
            y = v1.placeholder(tf.int32, [None])
            h = x
            for i, (kernel, bias) in enumerate(problem.weights.values()):
                h = tf.nn.relu(h) if i else h
                h = tf.matmul(h, v1.Variable(kernel)) + v1.Variable(bias)
            right = tf.reduce_sum(tf.one_hot(y, CLASSES) * tf.nn.log_softmax(h), -1)
            self._loss = -tf.reduce_mean(right)
            optimizer = v1.train.GradientDescentOptimizer(0.01)
            self._train = optimizer.minimize(self._loss, global_step=step)
            init = v1.global_variables_initializer()
        self._feeds = {x: problem.x[: problem.batch], y: problem.y[: problem.batch].astype("int32")}
        self._session = v1.Session(server.target, graph=graph)
        self._session.run(init)

    def checks(self) -> list[float]:
        return [self._step() for _ in range(CHECKED_STEPS)]

    def run(self) -> None:
        self._step()

    def _step(self) -> float:
        return float(self._session.run([self._train, self._loss], self._feeds)[1])


class FirstStep(_TensorFlow):
    """As laminar's."""

    is_fresh_process = True

    def __init__(self, problem: Problem) -> None:
        super().__init__({"worker": free_addresses(2)})
        self._task, self._server = self.begin("worker", 1), self.serve("worker", 0)
        self._nodes = len(problem.x)

    def checks(self) -> list[float]:
        return [self._first()[0]]

    def run(self) -> None:
        self._first()

    def sample(self, number: int) -> float:
        return sum(self._first()[1] for _ in range(number)) / number

    def _first(self) -> tuple[float, float]:
        graph = tf.Graph()
        with graph.as_default():
            x = v1.placeholder("float32", [])
            y = x
            with tf.device("/job:worker/task:1"):
                for i in range(self._nodes):
                    y = tf.sin(y) if i % 2 else y * y
        with v1.Session(self._server.target, graph=graph) as session:
            times = [perf_counter()]
            for _ in range(2):
                found = session.run(y, {x: 0.5})
                times.append(perf_counter())
        return float(found), times[1] - times[0] - (times[2] - times[1])


_STEPS: dict[str, Any] = {
    "cluster-step": partial(Steps, True),
    "cluster-step-remote": partial(Steps, False),
    **{tasks.parameter_server(width): Training for width in tasks.WIDTHS},
}
CASES: dict[str, Any] = {
    **_STEPS,
    **{name + tasks.OVER_TCP: case for name, case in _STEPS.items()},  # it knows no other way
    tasks.FIRST_STEP: FirstStep,
}
