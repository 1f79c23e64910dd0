"""What a graph may have that runs on several tasks: loops, queues, native code, many edges."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.distribute.cluster.remote_rendezvous import RemoteRendezvous
from laminar.distribute.wire.tensor_link import Peer
from laminar.engine import errors

from .local_cluster import LocalCluster, local_cluster, op_of

ON = ["/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Any:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[LocalCluster]:
    with local_cluster({"worker": 2, "ps": 1}, roots=[folder]) as found:
        yield found


def run_here_and_there(cluster: LocalCluster, build: Any, feed: dict[str, Any]) -> tuple[Any, Any]:
    """What a graph gives in one process, and with its operations on several tasks."""
    found = []
    for target, on in (("", ["", "", ""]), (cluster.target(), ON)):
        with eng.Graph().as_default(), eng.Session(target) as session:
            found.append(session.run(build(on), feed))
    return found[0], found[1]


@pytest.mark.parametrize("times", [0, 1, 5])
def test_a_loop_whose_body_is_on_several_tasks(cluster: LocalCluster, times: int) -> None:
    def build(on: list[str]) -> Any:
        n = eng.placeholder("int32", [], name="n")

        def body(i: Any, x: Any) -> Any:
            with eng.device(on[1]):
                x = x * 2.0
            with eng.device(on[2]):
                return i + 1, x + 1.0

        return eng.while_loop(lambda i, x: i < n, body, [np.int32(0), np.float32(1)])

    here, there = run_here_and_there(cluster, build, {"n:0": times})
    assert there == here
    assert there[1] == 2.0 ** (times + 1) - 1


def test_nested_loops(cluster: LocalCluster) -> None:
    def build(on: list[str]) -> Any:
        n = eng.placeholder("int32", [], name="n")

        def inner(j: Any, x: Any) -> Any:
            with eng.device(on[1]):
                return j + 1, x + 1.0

        def outer(i: Any, x: Any) -> Any:
            _, x = eng.while_loop(lambda j, x: j < i, inner, [np.int32(0), x])
            with eng.device(on[2]):
                return i + 1, x * 2.0

        return eng.while_loop(lambda i, x: i < n, outer, [np.int32(0), np.float32(1)])

    here, there = run_here_and_there(cluster, build, {"n:0": 4})
    assert there == here


@pytest.mark.parametrize("truth", [True, False])
def test_a_condition_whose_branches_are_on_other_tasks(cluster: LocalCluster, truth: bool) -> None:
    def build(on: list[str]) -> Any:
        p = eng.placeholder("bool", [], name="p")
        x = eng.constant(np.float32(3))

        def yes() -> Any:
            with eng.device(on[1]):
                return x * x

        def no() -> Any:
            with eng.device(on[2]):
                return -x

        return eng.cond(p, yes, no)

    here, there = run_here_and_there(cluster, build, {"p:0": truth})
    assert there == here == (9 if truth else -3)


def test_a_scan_over_tasks_and_its_gradient(cluster: LocalCluster) -> None:
    def build(on: list[str]) -> Any:
        xs = eng.placeholder("float32", [4], name="xs")

        def step(carry: Any, x: Any) -> Any:
            with eng.device(on[1]):
                carry = carry * x
            with eng.device(on[2]):
                return carry, carry + x

        last, ys = eng.scan(step, eng.constant(np.float32(1)), xs)
        return [last, ys, *eng.gradients(last, [xs])]

    xs = np.array([1, 2, 3, 4], np.float32)
    here, there = run_here_and_there(cluster, build, {"xs:0": xs})
    for a, b in zip(there, here, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(there[2], 24 / xs)


def test_many_edges_are_one_request_for_each_worker(cluster: LocalCluster) -> None:
    logs = {name: cluster.worker(name).calls for name in cluster.servers}
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        x: Any = eng.constant(np.float32(0))
        for i in range(200):
            with eng.device(ON[1 + i % 2]):
                x = x + 1.0
        for log in logs.values():
            log.record(True)
        assert session.run(x) == 200
    asked = {
        name: sum(c.method == "RunGraph" for c in log.record(False)) for name, log in logs.items()
    }
    assert asked == {"worker:0": 0, "worker:1": 1, "ps:0": 1}


def test_a_tensor_crosses_once(cluster: LocalCluster) -> None:
    metadata = eng.RunMetadata()
    options = eng.RunOptions(output_partition_graphs=True)
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        with eng.device(ON[1]):
            x = eng.placeholder("float32", [None]) * 2.0
        with eng.device(ON[2]):
            y = x + ops.exp(x)
        session.run(y, {"Placeholder:0": np.ones(3, np.float32)}, options, metadata)
    counts = [
        sum(node.op == kind for g in metadata.partition_graphs for node in g.message.node)
        for kind in ("Send", "Recv")
    ]
    assert counts == [1, 1]


def test_signatures_become_native_on_their_workers(cluster: LocalCluster) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 16)).astype(np.float32)
    with eng.Graph().as_default():
        with eng.device(ON[2]):
            w = eng.Variable(rng.normal(size=(16, 4)).astype(np.float32), name="native_w")
        a = eng.placeholder("float32", [None, 16])
        with eng.device(ON[1]):
            y = ops.tanh(a @ w) * 2.0 + 1.0
            loss = ops.mean(y * y)
        dw: Any = eng.gradients(loss, [w])[0]
        train = op_of(w.assign_sub(0.1 * dw))
        plain, native = eng.SessionConfig(jit_compile=False), eng.SessionConfig(jit_compile=True)
        found = []
        for config in (plain, native):
            with eng.Session(cluster.target(), config=config) as session:
                session.run(w.initializer)
                for _ in range(3):
                    session.run(train, {a: x})
                found.append(session.run([w.value, loss], {a: x}))
                if config is native:
                    worker = cluster.worker("worker:1")
                    ran = {
                        op.type
                        for session_ in worker._sessions.values()
                        for graph in session_.graphs.values()
                        for op in graph.plan.operations
                    }
                    assert "Cluster" in ran
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5)


def test_a_session_compiles_what_it_runs_often(cluster: LocalCluster) -> None:
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        a = eng.placeholder("float32", [None, 8])
        with eng.device(ON[1]):
            y = ops.softmax(a * 2.0)
        x = np.arange(16, dtype=np.float32).reshape(2, 8)
        values = [session.run(y, {a: x}) for _ in range(12)]
    for value in values[1:]:
        np.testing.assert_allclose(value, values[0], rtol=1e-6)


def test_a_queue_on_a_worker_joins_sessions(cluster: LocalCluster) -> None:
    def queue() -> eng.FIFOQueue:
        with eng.device(ON[1]):
            return eng.FIFOQueue(4, "float32", shapes=[()], shared_name="between", name="q")

    with eng.Graph().as_default(), eng.Session(cluster.target("worker:0")) as session:
        session.run(queue().enqueue(np.float32(7)))
    with eng.Graph().as_default(), eng.Session(cluster.target("ps:0")) as session:
        assert session.run(queue().dequeue()) == 7


def test_readers_read_on_the_worker(cluster: LocalCluster, folder: Path) -> None:
    file = folder / "lines.txt"
    file.write_text("".join(f"line {i}\n" for i in range(3)))
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        with eng.device(ON[1]):
            files = eng.FIFOQueue(2, "string", shapes=[()])
            reader = eng.TextLineReader()
            put = files.enqueue(np.array(str(file).encode(), object))
            close = files.close()
            _, value = reader.read(files)
        session.run(put)
        session.run(close)
        assert [session.run(value) for _ in range(3)] == [b"line 0", b"line 1", b"line 2"]
        with pytest.raises(errors.OutOfRangeError):
            session.run(value)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint64", "float16", "bfloat16", "float64", "complex64", "complex128"],
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_of_all_kinds_travel(
    cluster: LocalCluster, dtype: str, shape: tuple[int, ...]
) -> None:
    value = np.ones(shape, np.float64).astype(eng.as_dtype(dtype).numpy)
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        x = eng.placeholder(dtype, list(shape))
        with eng.device(ON[1]):
            y = eng.identity(x)
        with eng.device(ON[2]):
            z = eng.identity(y)
        found = session.run(z, {x: value})
    np.testing.assert_array_equal(found, value)
    assert np.asarray(found).dtype == value.dtype


def test_large_tensors_arrive_whole(cluster: LocalCluster) -> None:
    x = np.random.default_rng(1).normal(size=3_000_000).astype(np.float32)
    with eng.Graph().as_default(), eng.Session(cluster.target()) as session:
        a = eng.placeholder("float32", [None])
        with eng.device(ON[1]):
            b = a * 2.0
        with eng.device(ON[2]):
            c = b + 1.0
        np.testing.assert_array_equal(session.run(c, {a: x}), x * np.float32(2) + np.float32(1))


def test_what_a_step_receives_is_asked_for_in_one_message(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where other values come first; before it was a message for each tensor."""
    asked: list[list[str]] = []
    ask = Peer.ask

    def noted(self: Peer, wanted: Any) -> None:
        asked.append([one.key for one in wanted])
        ask(self, wanted)

    def build(on: list[str]) -> Any:
        with eng.device(on[2]):
            p = eng.placeholder("float32", [3], name="p")
            xs = [eng.identity(p * (i + 2.0), name=f"x{i}") for i in range(6)]
        with eng.device(on[0]):
            y: Any = xs[0]
            for x in xs[1:]:
                y = y * 0.5 + x
        return y

    feed = {"p:0": np.array([1, -2, 3], np.float32)}
    expected = sum(np.array([1, -2, 3]) * (i + 2) * 0.5 ** (5 - i) for i in range(6))
    blocks: list[RemoteRendezvous] = []
    together = RemoteRendezvous.together

    def counted(self: RemoteRendezvous) -> Any:
        blocks.append(self)
        return together(self)

    monkeypatch.setattr(Peer, "ask", noted)
    monkeypatch.setattr(RemoteRendezvous, "together", counted)
    for wish in (True, False):
        asked.clear()
        blocks.clear()
        config = eng.SessionConfig(jit_compile=wish)
        with eng.Graph().as_default(), eng.Session(cluster.target(), config=config) as session:
            np.testing.assert_allclose(session.run(build(ON), feed), expected, rtol=1e-6)
        (keys,) = asked
        assert len(keys) == len(set(keys)) == 6
        assert len(blocks) == 1  # what native code, or a walk, made is sent together
