"""Variables on parameter servers: where they are put, and workers that train them together."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops, optimizers
from laminar.distribute import (
    ClusterSpec,
    GreedyLoadBalancing,
    RoundRobin,
    replica_device_setter,
)
from laminar.engine.errors import InvalidArgumentError
from tests.distribute.cluster.local_cluster import local_cluster

SIZES = [6, 2, 2, 3, 1]
rng = np.random.default_rng(0)
X = rng.normal(size=(64, 3)).astype("float32")
Y = X @ np.array([[1.0], [-2.0], [0.5]], "float32")


def tasks_of(strategy: Any, sizes: list[int] = SIZES) -> list[str]:
    """The devices of variables of so many numbers, made one after the other."""
    with eng.Graph().as_default(), eng.device(replica_device_setter(2, ps_strategy=strategy)):
        made = [eng.Variable(np.zeros(n, "float32"), name=f"v{n}") for n in sizes]
    return [v.op.device for v in made]


def ps(*tasks: int) -> list[str]:
    return [f"/job:ps/task:{task}" for task in tasks]


def test_round_robin() -> None:
    assert tasks_of(None) == ps(0, 1, 0, 1, 0)
    assert tasks_of(RoundRobin(2)) == ps(0, 1, 0, 1, 0)


def test_the_server_with_the_fewest_bytes() -> None:
    strategy = GreedyLoadBalancing(2)
    assert tasks_of(strategy) == ps(0, 1, 1, 1, 0)
    assert strategy.loads == [28.0, 28.0]  # float32
    counted = GreedyLoadBalancing(2, lambda op: 1)
    assert tasks_of(counted) == ps(0, 1, 0, 1, 0)


def test_parts_of_a_variable_are_spread() -> None:
    setter = replica_device_setter(3, ps_strategy=GreedyLoadBalancing(3))
    with eng.Graph().as_default(), eng.device(setter):
        eng.Variable(np.zeros(100, "float32"))
        whole = eng.get_variable(
            "w", (9, 10), partitioner=lambda shape, dtype: [3, *[1] * (len(shape) - 1)]
        )
    assert [part.op.device for part in whole] == ps(1, 2, 1)


def test_all_else_is_on_the_worker_and_inner_devices_stay() -> None:
    setter = replica_device_setter(1, worker_device="/job:worker/task:3")
    with eng.Graph().as_default(), eng.device(setter):
        w = eng.Variable(np.ones((3, 1), "float32"))
        x = eng.placeholder("float32", [None, 3])
        y: Any = x @ w
        with eng.device("/cpu:1"):
            z: Any = y + 1.0
        with eng.device("/job:ps/task:7"):
            pinned = eng.Variable(0.0)
    assert y.op.device == "/job:worker/task:3"
    assert z.op.device == "/job:worker/task:3/device:cpu:1"
    assert pinned.op.device == "/job:ps/task:7"


def placed(**arguments: Any) -> list[str]:
    """The devices of variables, and of what sets them: in no scope, of a job, of the servers."""
    with eng.Graph().as_default(), eng.device(replica_device_setter(**arguments)):
        made = [eng.Variable([1, 2])]
        for job in ("/job:moon", "/job:ps"):
            with eng.device(job):
                made.append(eng.Variable([1, 2]))
        assert (made[0] + made[1]).op.device == "/job:worker"
    for v in made:
        assert v.initializer.device == v.op.device
    return [v.op.device for v in made]


def test_only_variables_of_the_servers_job_get_a_server() -> None:
    """The devices that the documentation of TensorFlow's rule gives them."""
    assert placed(ps_tasks=2) == ["/job:ps/task:0", "/job:moon", "/job:ps/task:1"]
    cpu = "/device:cpu:0"
    found = placed(ps_tasks=2, ps_device="/job:ps/cpu:0")
    assert found == [f"/job:ps/task:0{cpu}", f"/job:moon{cpu}", f"/job:ps/task:1{cpu}"]
    assert placed(ps_tasks=1, ps_device="/cpu:0") == [cpu, f"/job:moon{cpu}", f"/job:ps{cpu}"]


def test_devices_that_are_not_merged() -> None:
    found = placed(ps_tasks=2, merge_devices=False, ps_device="/job:ps/cpu:0")
    assert found == ["/job:ps/task:0/device:cpu:0", "/job:moon", "/job:ps"]


def test_without_servers_nothing_changes() -> None:
    assert replica_device_setter() is None
    assert replica_device_setter(cluster={"worker": ["a:1"]}) is None
    found = replica_device_setter(cluster=ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]}))
    with eng.Graph().as_default(), eng.device(found):
        assert [eng.Variable(0.0).op.device for _ in range(3)] == ps(0, 1, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"ps_tasks": -1}, "ps_tasks must be a number of servers"),
        ({"ps_tasks": 1, "ps_device": "/job:"}, "device"),
        ({"ps_tasks": 1, "ps_strategy": 3}, "must be a function of an operation"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        replica_device_setter(**arguments)


@pytest.mark.parametrize("task", [2, -1, True, None, "0"])
def test_a_strategy_that_names_no_server(task: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"chose server {task!r} for 'v6'"):
        tasks_of(lambda op: task)


def test_wrong_strategies() -> None:
    with pytest.raises(InvalidArgumentError, match="from 1 on, got 0"):
        RoundRobin(0)
    with pytest.raises(InvalidArgumentError, match="must be at least 0, got -1"):
        tasks_of(GreedyLoadBalancing(2, lambda op: -1))


class Worker:
    """The graph that each worker builds: a linear model, with its variables on servers."""

    def __init__(self, cluster: ClusterSpec, task: int) -> None:
        self.graph = eng.Graph()
        setter = replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{task}")
        with self.graph.as_default(), eng.device(setter):
            self.w = eng.Variable(np.zeros((3, 1), "float32"), name="w")
            self.b = eng.Variable(np.zeros(1, "float32"), name="b")
            self.step = eng.get_or_create_global_step()
            self.x = eng.placeholder("float32", [None, 3], name="x")
            self.y = eng.placeholder("float32", [None, 1], name="y")
            error: Any = self.x @ self.w + self.b - self.y
            self.loss = ops.mean(error * error)
            optimizer = optimizers.SGD(0.05, name="sgd")  # workers mean the same variables
            self.train = optimizer.minimize(self.loss, [self.w, self.b], global_step=self.step)
            self.init = eng.global_variables_initializer()


def test_workers_train_variables_of_servers_together() -> None:
    """Two servers, two workers that do not wait for each other: every step counts once."""
    steps = 40
    with local_cluster({"worker": 2, "ps": 2}) as cluster:
        workers = [Worker(cluster.spec, task) for task in range(2)]
        with eng.Session(cluster.target("worker:0"), graph=workers[0].graph) as session:
            session.run(workers[0].init)
        errors: list[BaseException] = []

        def train(task: int) -> None:
            worker = workers[task]
            rows = slice(task, None, 2)
            try:
                with eng.Session(cluster.target(f"worker:{task}"), graph=worker.graph) as session:
                    for _ in range(steps):
                        session.run(worker.train, {worker.x: X[rows], worker.y: Y[rows]})
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=train, args=(task,)) for task in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not errors
        with eng.Session(cluster.target("worker:1"), graph=workers[1].graph) as session:
            step, loss, w = session.run(
                [workers[1].step.value, workers[1].loss, workers[1].w.value],
                {workers[1].x: X, workers[1].y: Y},
            )
    assert step == 2 * steps
    assert loss < 0.05 * np.mean(Y**2)
    np.testing.assert_allclose(w, [[1.0], [-2.0], [0.5]], atol=0.3)


def test_one_worker_trains_as_one_process() -> None:
    found = []
    with local_cluster({"worker": 1, "ps": 2}) as cluster:
        for target, spec in (
            (cluster.target(), cluster.spec),
            ("", ClusterSpec({"worker": ["a:1"]})),
        ):
            worker = Worker(spec, 0)
            with eng.Session(target, graph=worker.graph) as session:
                session.run(worker.init)
                for _ in range(5):
                    session.run(worker.train, {worker.x: X, worker.y: Y})
                found.append(session.run([worker.w.value, worker.b.value]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
