"""Sessions on a cluster: the same values as in one process, state that stays with its task."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine import errors
from laminar.engine.ops.core.basic import identity

from .local_cluster import LocalCluster, local_cluster, op_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)
RPC = eng.SessionConfig(rpc_for_inprocess_master=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"worker": 2, "ps": 1}) as found:
        yield found


@pytest.fixture(params=["calls", "rpc"])
def config(request: Any) -> eng.SessionConfig:
    return RPC if request.param == "rpc" else eng.SessionConfig()


class Linear:
    """y = x @ w on a worker, w on a parameter server, and a step of gradient descent."""

    def __init__(self, where: str = "/job:ps/task:0", on: str = "/job:worker/task:1") -> None:
        self.graph = eng.Graph()
        with self.graph.as_default():
            with eng.device(where):
                self.w = eng.Variable(np.ones((3, 2), "float32"), name="w")
            self.x = eng.placeholder("float32", [None, 3], name="x")
            with eng.device(on):
                self.y = self.x @ self.w
                self.loss = ops.sum(self.y * self.y)
            dw: Any = eng.gradients(self.loss, [self.w])[0]
            self.train = op_of(self.w.assign_sub(0.01 * dw))
            self.init = eng.global_variables_initializer()


def trained(session: eng.Session, model: Linear, steps: int = 5) -> Any:
    session.run(model.init)
    for _ in range(steps):
        session.run(model.train, {model.x: X})
    return session.run([model.w.value, model.loss], {model.x: X})


def test_training_gives_the_same_as_in_one_process(
    cluster: LocalCluster, config: eng.SessionConfig
) -> None:
    here, there = Linear(where="", on=""), Linear()
    with eng.Session(graph=here.graph) as session:
        expected = trained(session, here)
    with eng.Session(cluster.target(), graph=there.graph, config=config) as session:
        found = trained(session, there)
    w = np.ones((3, 2))
    for _ in range(5):
        w -= 0.01 * 2 * X.T @ (X @ w)
    np.testing.assert_allclose(found[0], w, rtol=1e-5)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_devices_of_all_tasks(cluster: LocalCluster, config: eng.SessionConfig) -> None:
    with eng.Session(cluster.target("worker:1"), graph=eng.Graph(), config=config) as session:
        names = [d.name for d in session.list_devices()]
    assert names == [
        f"/job:{task}/device:cpu:0" for task in ("worker/task:1", "ps/task:0", "worker/task:0")
    ]


def test_each_task_runs_its_own_operations(cluster: LocalCluster) -> None:
    model = Linear()
    metadata = eng.RunMetadata()
    with eng.Session(cluster.target(), graph=model.graph) as session:
        session.run(model.init)
        session.run(model.loss, {model.x: X}, eng.RunOptions(trace=True), metadata)
    ran = {s.device: {n.type for n in s.nodes} for s in metadata.step_stats}
    spans = [(n.start_us, n.start_us + n.duration_us) for s in metadata.step_stats for n in s.nodes]
    assert max(end for _, end in spans) - min(start for start, _ in spans) < 20e6
    sent = {
        (s.device, n.type): n.output_bytes
        for s in metadata.step_stats
        for n in s.nodes
        if s.device.endswith("/transfers") and n.output_bytes
    }
    assert sent == {("/job:worker/task:1/transfers", "RecvTensor"): 24}
    assert "MatMul" in ran["/job:worker/task:1/device:cpu:0"]
    assert "ReadVariable" in ran["/job:ps/task:0/device:cpu:0"]
    assert "MatMul" not in ran["/job:ps/task:0/device:cpu:0"]


def test_variables_outlive_sessions_and_are_shared(cluster: LocalCluster) -> None:
    model = Linear()
    with eng.Session(cluster.target("worker:0"), graph=model.graph) as session:
        session.run(model.init)
        session.run(op_of(model.w.assign_add(np.full((3, 2), 4, "float32"))))
    again = Linear()
    with eng.Session(cluster.target("worker:1"), graph=again.graph) as session:
        np.testing.assert_array_equal(session.run(again.w.value), np.full((3, 2), 5, "float32"))


def test_the_graph_may_grow(cluster: LocalCluster, config: eng.SessionConfig) -> None:
    with (
        eng.Graph().as_default(),
        eng.Session(cluster.target(), config=config) as session,
    ):
        with eng.device("/job:worker/task:1"):
            a = eng.constant(np.float32(3))
            b = a * a
        assert session.run(b) == 9
        with eng.device("/job:ps"):
            c = b + a
        assert session.run(c) == 12
        op_of(c).add_control_input(op_of(eng.constant(np.float32(1))))  # what was sent has changed
        assert session.run(c) == 12
        assert session.run([c, b, a]) == [12, 9, 3]


def test_any_tensor_is_fed_and_fetched(cluster: LocalCluster, config: eng.SessionConfig) -> None:
    with eng.Graph().as_default(), eng.Session(cluster.target(), config=config) as session:
        with eng.device("/job:worker/task:1"):
            a = eng.constant(np.float32(3))
            b = a * 2.0
        text = eng.placeholder("string", [None])
        with eng.device("/job:ps"):
            same = identity(text)
        assert session.run({"b": b, "a": [a]}, {a: 5}) == {"b": 10, "a": [5]}
        assert session.run(b, {b: 7}) == 7
        found = session.run(same, {text: np.array([b"x", b"yz"], object)})
        assert list(found) == [b"x", b"yz"]
        one = eng.placeholder("string", [])
        with eng.device("/job:ps"):
            there = identity(one)
        with eng.device("/job:worker/task:1"):
            back = identity(there)
        assert session.run(back, {one: b"alone"}) == b"alone"
        assert session.run(eng.no_op()) is None


def test_concurrent_steps_do_not_mix(cluster: LocalCluster) -> None:
    model = Linear()
    wrong: list[Any] = []
    with eng.Session(cluster.target(), graph=model.graph) as session:
        session.run(model.init)

        def run(k: int) -> None:
            for _ in range(10):
                x = np.full((1, 3), k, np.float32)
                if session.run(model.y, {model.x: x})[0, 0] != 3 * k:
                    wrong.append(k)

        threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_one_registration_and_one_request_a_step_for_each_worker(
    cluster: LocalCluster,
) -> None:
    model = Linear()
    logs = {name: cluster.worker(name).calls for name in cluster.servers}
    with eng.Session(cluster.target(), graph=model.graph) as session:
        session.run(model.init)
        for log in logs.values():
            log.record(True)
        for _ in range(9):
            session.run(model.y, {model.x: X})
        deadline = time.monotonic() + 10
        while any(len(cluster.worker(name).steps) for name in logs) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not any(len(cluster.worker(name).steps) for name in logs)
    steps = {}
    for name, log in logs.items():
        calls = log.record(False)
        steps[name] = [c.step_id for c in calls if c.method == "RunGraph"]
        assert sum(c.method == "CleanupGraph" for c in calls) <= 2  # the next request tells of most
        registered = [c for c in calls if c.method == "RegisterGraph"]
        assert len(registered) == (name != "worker:0")
    assert steps["worker:0"] == []
    assert steps["worker:1"] == steps["ps:0"]
    assert len({*steps["ps:0"]}) == 9
    assert all(1 << 56 <= step < 1 << 57 for step in steps["ps:0"])


def test_errors_name_the_task_the_operation_and_the_line(
    cluster: LocalCluster, config: eng.SessionConfig
) -> None:
    with eng.Graph().as_default(), eng.Session(cluster.target(), config=config) as session:
        x = eng.placeholder("float32", [None, None])
        with eng.device("/job:worker/task:1"):
            y = x @ x  # this line
        with pytest.raises(errors.LaminarError) as caught:
            session.run(y, {x: X})
        text = str(caught.value)
        assert caught.value.origin.task == "/job:worker/task:1"  # type: ignore[union-attr]  # it has one
        assert caught.value.operation == op_of(y).name
        assert "y = x @ x  # this line" in text
        assert session.run(y, {x: np.eye(2, dtype="float32")}).shape == (2, 2)


def test_a_step_that_fails_changes_no_variable(cluster: LocalCluster) -> None:
    model = Linear()
    with model.graph.as_default():
        square = eng.placeholder("float32", [None, None])
        with eng.device("/job:worker/task:0"):
            fails = square @ square
        with eng.device("/job:ps"):
            added = model.w.assign_add(np.ones((3, 2), "float32"))
    with eng.Session(cluster.target("worker:1"), graph=model.graph) as session:
        session.run(model.init)
        for _ in range(5):
            with pytest.raises(errors.InvalidArgumentError):
                session.run([op_of(added), fails], {square: X})
        np.testing.assert_array_equal(session.run(model.w.value), np.ones((3, 2), "float32"))


def test_containers_are_reset(cluster: LocalCluster) -> None:
    with eng.Graph().as_default() as graph:
        with eng.device("/job:ps"), graph.container("mine"):
            v = eng.Variable(np.float32(3), name="kept")
        with eng.Session(cluster.target()) as session:
            session.run(v.initializer)
            assert session.run(v.value) == 3
            eng.Session.reset(cluster.target(), ["mine"])
            with pytest.raises(errors.FailedPreconditionError):
                session.run(v.value)


def test_partial_runs(cluster: LocalCluster, config: eng.SessionConfig) -> None:
    with eng.Graph().as_default(), eng.Session(cluster.target(), config=config) as session:
        a, b = eng.placeholder("float32", []), eng.placeholder("float32", [])
        with eng.device("/job:worker/task:1"):
            doubled = a * 2.0
        with eng.device("/job:ps"):
            total = doubled + b
        handle = session.partial_run_setup([doubled, total], [a, b])
        assert session.partial_run(handle, doubled, {a: 3}) == 6
        assert session.partial_run(handle, total, {b: 4}) == 10
        with pytest.raises(errors.InvalidArgumentError):
            session.partial_run(handle, total, {b: 4})


def test_a_step_that_takes_too_long(cluster: LocalCluster, config: eng.SessionConfig) -> None:
    with eng.Graph().as_default(), eng.Session(cluster.target(), config=config) as session:
        with eng.device("/job:worker/task:1"):
            queue = eng.FIFOQueue(3, "float32", shapes=[()])
            item = queue.dequeue()
            put = queue.enqueue(np.float32(2))
        with pytest.raises(errors.DeadlineExceededError):
            session.run(item, options=eng.RunOptions(timeout_in_ms=200))
        session.run(put)
        assert session.run(item, options=eng.RunOptions(timeout_in_ms=20_000)) == 2


def test_closing_cancels_what_runs_and_leaves_nothing(cluster: LocalCluster) -> None:
    caught: list[BaseException] = []
    with eng.Graph().as_default() as graph:
        with eng.device("/job:worker/task:1"):
            item = eng.FIFOQueue(3, "float32", shapes=[()]).dequeue()
        session = eng.Session(cluster.target(), graph=graph)

        def run() -> None:
            try:
                session.run(item)
            except errors.LaminarError as error:
                caught.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while not len(cluster.worker("worker:1").steps):
            threading.Event().wait(0.01)
        session.close()
        thread.join(20)
        assert not thread.is_alive()
    assert isinstance(caught[0], errors.CancelledError)
    with pytest.raises(errors.FailedPreconditionError):
        session.run(item)
    for name in cluster.servers:
        assert not len(cluster.worker(name).steps)
        assert cluster.worker(name).graphs == {}
