"""Coordinator: steps on whichever worker is free, also when workers and servers are lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.distribute import Coordinator
from laminar.engine.errors import InvalidArgumentError, UnavailableError
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with local_cluster({"ps": 1, "worker": 2}, roots=[tmp_path]) as found:
        yield found


def build(task: int) -> dict[str, Any]:
    """A ledger of the steps that have been applied, and of who applied them."""
    ledger = eng.Variable(np.zeros(64, np.int64), name="ledger")
    i = eng.placeholder("int64", [1], name="i")
    mark = eng.scatter_add(ledger, i, np.ones(1, np.int64))
    return {"i": i, "mark": mark.op, "ledger": ledger, "task": eng.constant(task)}  # type: ignore[attr-defined]  # of a graph


def mark(worker: Any, i: int) -> int:
    worker.run(worker.made["mark"], {worker.made["i"]: [i]})
    return int(worker.run(worker.made["task"]))


def ledger(worker: Any) -> Any:
    return worker.run(worker.made["ledger"])


def test_each_step_is_run_once(cluster: LocalCluster) -> None:
    with Coordinator(cluster.spec, build) as coordinator:
        coordinator.initialize()
        results = [coordinator.schedule(mark, i) for i in range(40)]
        coordinator.join()
        assert set(coordinator.fetch(results)) <= {0, 1}
        found = coordinator.schedule(ledger).fetch()
        np.testing.assert_array_equal(found, np.arange(64) < 40)
        assert coordinator.num_workers == 2


def test_a_cluster_without_servers() -> None:
    """Its one worker keeps the variables."""
    with (
        local_cluster({"worker": 1}) as alone,
        Coordinator(alone.spec, build) as coordinator,
    ):
        coordinator.initialize()
        assert coordinator.schedule(mark, 3).fetch() == 0
        np.testing.assert_array_equal(coordinator.schedule(ledger).fetch(), np.arange(64) == 3)


def test_a_step_of_a_lost_worker_is_run_by_another(
    cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    began, gone = threading.Event(), threading.Event()

    def step(worker: Any, i: int) -> int:
        if worker.task == 1 and not gone.is_set():
            began.set()
            gone.wait(10)
        return mark(worker, i)

    with Coordinator(cluster.spec, build, patience_seconds=0.5) as coordinator:
        coordinator.initialize()
        for task in (0, 1):  # both have their sessions
            coordinator.schedule(mark, task).fetch()
        results = [coordinator.schedule(step, i) for i in range(2, 30)]
        assert began.wait(10)
        cluster.servers["worker:1"].stop()
        gone.set()
        coordinator.join()
        while coordinator.num_workers == 2:
            coordinator.schedule(mark, 40).fetch()
        assert "worker 1 has not answered for 0.5 s and is left out" in caplog.text
        assert len(coordinator.fetch(results)) == 28
        found = coordinator.schedule(ledger).fetch()
        np.testing.assert_array_equal(found[:30] > 0, True)
        np.testing.assert_array_equal(found[2:30], 1)  # the worker had begun none of them


def test_a_lost_server_is_one_error_and_a_checkpoint_goes_on(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    with Coordinator(cluster.spec, build) as coordinator:
        coordinator.initialize()
        for i in range(5):
            coordinator.schedule(mark, i)
        saved = coordinator.save(str(tmp_path / "model"))
        cluster.restart("ps:0")
        coordinator.schedule(mark, 6)
        with pytest.raises(UnavailableError, match="a parameter server was lost.*/job:ps/task:0"):
            coordinator.join()
        coordinator.initialize(saved)
        for i in range(5, 20):  # both workers have new sessions
            coordinator.schedule(mark, i)
        coordinator.join()
        found = coordinator.schedule(ledger).fetch()
        np.testing.assert_array_equal(found, np.arange(64) < 20)


def test_a_step_that_fails_gives_up_those_that_wait(cluster: LocalCluster) -> None:
    def fail(worker: Any) -> None:
        raise ValueError("no such batch")

    with Coordinator(cluster.spec, build) as coordinator:
        coordinator.initialize()
        failed = coordinator.schedule(fail)
        with pytest.raises(ValueError, match="no such batch"):
            coordinator.join()
        with pytest.raises(ValueError, match="no such batch"):
            failed.fetch()
        coordinator.schedule(mark, 0).fetch()  # it goes on
        coordinator.join()
    with pytest.raises(eng.errors.FailedPreconditionError, match="closed"):
        coordinator.schedule(mark, 0)
    with pytest.raises(InvalidArgumentError, match="no job 'worker'"):
        Coordinator({"ps": ["localhost:1"]}, build)


def test_a_cluster_without_workers_is_an_error() -> None:
    """Not a coordinator that waits for ever."""
    with pytest.raises(InvalidArgumentError, match="no job 'worker' with tasks"):
        Coordinator({"ps": ["localhost:1"], "worker": []}, build)


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        (
            {"w": (4,)},
            "variable 'w' is float32\\[4\\] on /job:ps/task:0.* for worker 1, and float32\\[3\\]",
        ),
        ({"w": (3,), "b": (2,)}, "variable 'b' is float32\\[2\\] on .* for worker 1, and none"),
        ({}, "variable 'w' is none for worker 1, and float32\\[3\\]"),
        ({"b": (3,), "w": (3,)}, "variable 'b' is float32\\[3\\] on .*, and none for worker 0"),
    ],
)
def test_workers_that_would_not_share_their_variables(shapes: dict[str, Any], told: str) -> None:
    """No server is asked, so none has anything left of it."""

    def other(task: int) -> None:
        for name, shape in (shapes if task else {"w": (3,)}).items():
            eng.Variable(np.zeros(shape, np.float32), name=name)

    cluster = {"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}
    with pytest.raises(InvalidArgumentError, match=told):
        Coordinator(cluster, other)


def test_workers_that_put_a_variable_on_other_servers() -> None:
    def other(task: int) -> None:
        for name in ("wb", "bw")[task]:
            eng.Variable(np.zeros(3, np.float32), name=name)

    cluster = {"ps": ["localhost:1", "localhost:2"], "worker": ["localhost:3", "localhost:4"]}
    with pytest.raises(InvalidArgumentError, match="'b' is .*task:0.* for worker 1, and .*task:1"):
        Coordinator(cluster, other)
