"""Functions and eager code on the devices of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar import ops
from laminar.distribute import connect_to_cluster
from laminar.engine import errors

from .local_cluster import LocalCluster, local_cluster

THERE = "/job:worker/task:1"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"worker": 2}) as found:
        yield found


@pytest.fixture
def connection(cluster: LocalCluster) -> Iterator[Any]:
    with connect_to_cluster(cluster.spec) as found:
        yield found


def test_a_function_runs_where_it_says(connection: Any) -> None:
    @laminar.function
    def f(x: Any) -> Any:
        with laminar.device(THERE):
            y = ops.matmul(x, ops.transpose(x))
        return y + 1.0

    metadata = eng.RunMetadata()
    told = f.with_options(eng.RunOptions(trace=True), metadata)
    np.testing.assert_allclose(told(X), X @ X.T + 1)
    np.testing.assert_allclose(f(X), X @ X.T + 1)
    ran = {s.device: {n.type for n in s.nodes} for s in metadata.step_stats}
    assert "MatMul" in ran["/job:worker/task:1/device:cpu:0"]
    assert "MatMul" not in ran["/job:client/task:0/device:cpu:0"]


def test_a_function_is_placed_softly_on_the_task_that_it_names(connection: Any) -> None:
    """As on devices of this process, a name is judged by placement when the function runs."""

    @laminar.function
    def f(x: Any) -> Any:
        with laminar.device(f"{THERE}/gpu:0"):
            return ops.matmul(x, ops.transpose(x))

    metadata = eng.RunMetadata()
    told = f.with_options(eng.RunOptions(trace=True), metadata)
    np.testing.assert_allclose(told(X), X @ X.T)
    ran = {s.device for s in metadata.step_stats for n in s.nodes if n.type == "MatMul"}
    assert ran == {f"{THERE}/device:cpu:0"}
    with pytest.raises(errors.NotFoundError, match="gpu:0"):  # eager code is not placed
        laminar.device(f"{THERE}/gpu:0").__enter__()


def test_variables_stay_and_are_trained(connection: Any) -> None:
    w = eng.Variable(np.ones((3, 2), np.float32))

    @laminar.function
    def step(x: Any) -> Any:
        with laminar.GradientTape() as tape, laminar.device(THERE):
            loss = ops.sum(ops.square(x @ w))
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    expected = np.ones((3, 2))
    for _ in range(3):
        loss = np.square(X @ expected).sum()
        np.testing.assert_allclose(float(step(X)), loss, rtol=1e-5)
        expected -= 0.01 * 2 * X.T @ (X @ expected)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5)


def test_each_op_of_eager_code_runs_there(connection: Any, cluster: LocalCluster) -> None:
    log = cluster.worker("worker:1").calls
    log.record(True)
    with laminar.device(THERE):
        y = ops.matmul(X, ops.transpose(X))
        z = ops.matmul(y, y)
    calls = [c.method for c in log.record(False)]
    np.testing.assert_allclose(np.asarray(z), X @ X.T @ X @ X.T)
    assert calls.count("RunGraph") >= 2
    v = eng.Variable(np.float32(2))
    with laminar.device(THERE):
        assert float(v * 3.0) == 6


def test_what_names_no_other_task_runs_here(connection: Any, cluster: LocalCluster) -> None:
    logs = [cluster.worker(name).calls for name in cluster.servers]
    for log in logs:
        log.record(True)

    @laminar.function
    def f(x: Any) -> Any:
        with laminar.device("/cpu:0"):
            return x * 2.0

    np.testing.assert_array_equal(f(X), X * 2)
    assert not [c for log in logs for c in log.record(False) if c.method == "RunGraph"]


def test_errors_have_the_line_and_change_nothing(connection: Any) -> None:
    v = eng.Variable(np.zeros((), np.float32))

    @laminar.function(input_signature=[eng.TensorSpec([None, None], "float32")])
    def f(x: Any) -> Any:
        v.assign_add(1.0)
        with laminar.device(THERE):
            return ops.matmul(x, x)

    with pytest.raises(errors.InvalidArgumentError, match="task:1"):
        f(X)
    assert v.numpy() == 0


def test_a_task_that_was_restarted_is_found_again(cluster: LocalCluster, connection: Any) -> None:
    @laminar.function
    def f(x: Any) -> Any:
        with laminar.device(THERE):
            return x * 2.0

    f(X)
    cluster.restart("worker:1")
    with pytest.raises((errors.AbortedError, errors.UnavailableError), match=THERE):
        f(X)
    with contextlib.suppress(errors.AbortedError):  # its old connection was what failed
        f(X)
    np.testing.assert_array_equal(f(X), X * 2)


def test_the_devices_that_can_be_named(connection: Any) -> None:
    tasks = ["/job:client/task:0", "/job:worker/task:0", THERE]
    assert [d.name for d in connection.list_devices()] == [f"{t}/device:cpu:0" for t in tasks]
    # How many threads a task has is its own affair.
    processors = {d.description.partition(",")[0] for d in connection.list_devices()}
    assert processors == {d.description.partition(",")[0] for d in eng.list_devices()}


def test_one_connection_at_a_time(cluster: LocalCluster, connection: Any) -> None:
    with pytest.raises(errors.AlreadyExistsError, match="connected"):
        connect_to_cluster(cluster.spec)


def test_names(cluster: LocalCluster) -> None:
    with pytest.raises(errors.NotFoundError):
        laminar.device(THERE).__enter__()
    with pytest.raises(errors.AlreadyExistsError, match="job_name"):
        connect_to_cluster(cluster.spec, "worker")
    with connect_to_cluster(cluster.servers["worker:0"]) as connection:
        assert connection.target == cluster.target()
        with laminar.device(THERE):
            assert np.asarray(ops.add(np.float32(1), np.float32(2))) == 3
        with pytest.raises(errors.NotFoundError, match="task:9"):
            laminar.device("/job:worker/task:9").__enter__()
    connection.close()


def test_a_task_without_a_port_is_not_waited_for() -> None:
    """A server may ask for a free port; who connects must know which."""
    with pytest.raises(errors.InvalidArgumentError, match="port 0 is for servers"):
        connect_to_cluster({"worker": ["localhost:0"]})
