"""Options of runs: time limits, cancellation, and what a run tells about itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import add, multiply, square
from laminar.engine.ops.math.compare import less


@define("TestSlowed", dtypes=FLOATING)
def slow(x: TensorSpec) -> TensorSpec:
    """`x`, after 20 ms."""
    return x


@slow.reference
def _slow(xp: Any, x: Any) -> Any:
    time.sleep(0.02)
    ran.append(x)
    return x


ran: list[Any] = []  # inputs of the slow ones


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test."""
    with eng.Graph().as_default() as fresh:
        yield fresh


TWO_CPUS = eng.SessionConfig(device_count={"cpu": 2})


def test_a_timeout_on_an_empty_queue_leaves_it_usable() -> None:
    queue = eng.FIFOQueue(4, ["float32"], [[]])
    put, take = queue.enqueue([eng.constant(3.0)]), queue.dequeue()
    with eng.Session() as session:
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError, match="longer than 100 ms"):
            session.run(take, options=eng.RunOptions(timeout_in_ms=100))
        assert time.monotonic() - began > 0.09
        session.run(put)
        assert session.run(take, options=eng.RunOptions(timeout_in_ms=10_000)) == 3.0


def test_a_timeout_stops_between_operations() -> None:
    y: Any = eng.constant(1.0)
    for _ in range(200):
        y = slow(y)
    with eng.Session() as session:
        ran.clear()
        with pytest.raises(DeadlineExceededError):
            session.run(y, options=eng.RunOptions(timeout_in_ms=60))
        assert len(ran) < 100


def test_a_timeout_stops_a_loop() -> None:
    y = eng.while_loop(
        lambda i: less(i, eng.constant(1e9)), lambda i: (add(i, 1.0),), (eng.constant(0.0),)
    )
    with eng.Session() as session, pytest.raises(DeadlineExceededError):
        session.run(y, options=eng.RunOptions(timeout_in_ms=60))


def test_a_run_without_a_limit_of_its_own_takes_that_of_the_session() -> None:
    take = eng.FIFOQueue(4, ["float32"], [[]]).dequeue()
    config = eng.SessionConfig(operation_timeout_in_ms=50)
    with eng.Session(config=config) as session:
        for options in (None, eng.RunOptions(), eng.RunOptions(timeout_in_ms=0)):
            with pytest.raises(DeadlineExceededError, match="longer than 50 ms"):
                session.run(take, options=options)
        with pytest.raises(DeadlineExceededError, match="longer than 20 ms"):
            session.run(take, options=eng.RunOptions(timeout_in_ms=20))


def test_a_timeout_reaches_all_devices() -> None:
    queue = eng.FIFOQueue(4, ["float32"], [[]])
    with eng.device("cpu:1"):
        take = queue.dequeue()
    with eng.device("cpu:0"):
        y = square(take)
    with eng.Session(config=TWO_CPUS) as session, pytest.raises(DeadlineExceededError):
        session.run(y, options=eng.RunOptions(timeout_in_ms=50))


@pytest.mark.parametrize("milliseconds", [-1, float("nan")])
def test_what_is_no_time_limit(milliseconds: float) -> None:
    with pytest.raises(InvalidArgumentError, match="timeout_in_ms must not be negative"):
        eng.RunOptions(timeout_in_ms=milliseconds)
    with pytest.raises(InvalidArgumentError, match="operation_timeout_in_ms must not be negative"):
        eng.SessionConfig(operation_timeout_in_ms=milliseconds)


def test_closing_cancels_what_waits() -> None:
    take = eng.FIFOQueue(4, ["float32"], [[]]).dequeue()
    session = eng.Session()
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            session.run(take)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    session.close()
    thread.join(30.0)
    assert not thread.is_alive()
    assert isinstance(errors[0], CancelledError)
    with pytest.raises(FailedPreconditionError):
        session.run(take)


def test_one_that_waits_holds_nobody_up() -> None:
    queue = eng.FIFOQueue(4, ["float32"], [[]])
    take, put = queue.dequeue(), queue.enqueue([eng.constant(7.0)])
    y = square(eng.constant(3.0))
    with eng.Session() as session:
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(session.run(take)))
        thread.start()
        for _ in range(20):
            assert session.run(y) == 9.0
        assert not found
        session.run(put)
        thread.join(5.0)
        assert found == [7.0]


def test_updates_of_many_threads_are_all_there() -> None:
    v = eng.Variable(0.0, name="v")
    add_one = v.assign_add(1.0)
    with eng.Session() as session:
        session.run(v.initializer)
        threads = [
            threading.Thread(target=lambda: [session.run(add_one) for _ in range(100)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30.0)
        assert session.run(v) == 800.0


# Pools of threads


@define("TestWhere", dtypes=FLOATING)
def where(x: TensorSpec) -> TensorSpec:
    """x, after 20 ms, in a thread that is remembered."""
    return x


threads_of: list[str] = []


@where.reference
def _where(xp: Any, x: Any) -> Any:
    threads_of.append(threading.current_thread().name)
    time.sleep(0.02)
    return x


def test_each_run_takes_the_pool_that_it_asks_for() -> None:
    """Two runs at the same time are in threads of different pools, and neither is held up."""
    x = eng.placeholder("float32", [])
    y = sum((where(add(x, float(i))) for i in range(4)), eng.constant(0.0))
    config = eng.SessionConfig(inter_op_threads=[3, 1, 3])
    with eng.Session(config=config) as session:
        pools = [threads for (threads,) in vars(session._engine)["_pools"]]
        for pool, prefix in zip(pools, ("one", "", "three"), strict=True):
            if pool is not None:
                pool._thread_name_prefix = prefix
        used = []
        for number in range(3):
            threads_of.clear()
            assert session.run(y, {x: 1.0}, eng.RunOptions(inter_op_pool=number)) == 10.0
            used.append({name.split("_")[0] for name in threads_of} - {"MainThread"})
        assert used == [{"one"}, set(), {"three"}]
        threads_of.clear()
        runs = [
            threading.Thread(
                target=session.run, args=(y, {x: 1.0}, eng.RunOptions(inter_op_pool=number))
            )
            for number in (0, 2)
        ]
        for thread in runs:
            thread.start()
        for thread in runs:
            thread.join(30.0)
        assert {"one", "three"} <= {name.split("_")[0] for name in threads_of}
        threads_of.clear()
        assert session.run(y, {x: 1.0}) == 10.0  # without a wish, the first
        assert "one" in {name.split("_")[0] for name in threads_of}
        with pytest.raises(InvalidArgumentError, match="there is no pool 3, the session has 3"):
            session.run(y, {x: 1.0}, eng.RunOptions(inter_op_pool=3))
    with pytest.raises(InvalidArgumentError, match="at least one operation"):
        eng.Session(config=eng.SessionConfig(inter_op_threads=[0]))


def test_a_pool_of_one_thread_ends_steps_of_several_devices() -> None:
    y: Any = eng.constant(1.0)
    for i in range(10):
        with eng.device(f"cpu:{i % 2}"):
            y = add(y, 1.0)
    config = eng.SessionConfig({"cpu": 2}, inter_op_threads=[1])
    with eng.Session(config=config) as session:
        assert session.run(y) == 11.0


# What a run tells


def test_a_plain_run_tells_nothing() -> None:
    told = eng.RunMetadata()
    with eng.Session() as session:
        session.run(square(eng.constant(2.0)), run_metadata=told)
        session.run(square(eng.constant(2.0)), options=eng.RunOptions(), run_metadata=told)
    assert told == eng.RunMetadata()


def test_a_trace_has_one_entry_for_each_operation() -> None:
    x = eng.placeholder("float32", [1000], name="x")
    y = slow(square(x, name="a"), name="b")
    z = multiply(y, y, name="c")
    square(x, name="not_needed")
    told = eng.RunMetadata()
    with eng.Session() as session:
        value = session.run(z, {x: np.ones(1000)}, eng.RunOptions(trace=True), told)
        np.testing.assert_array_equal(value, np.ones(1000))
    assert told.HasField("step_stats")
    assert not told.HasField("partition_graphs")
    (device,) = told.step_stats
    assert device.device.endswith("cpu:0")
    assert [n.name for n in device.nodes] == ["a", "b", "c"]
    assert [n.type for n in device.nodes] == ["Square", "TestSlowed", "Mul"]
    assert all(n.output_bytes == 4000 for n in device.nodes)
    a, b, c = device.nodes
    assert 20_000 <= b.duration_us < 2e6
    assert a.start_us <= b.start_us <= c.start_us
    assert abs(a.start_us * 1e-6 - time.time()) < 60
    assert [n.inputs for n in told.cost_graph] == [("x:0",), ("a:0",), ("b:0", "b:0")]
    assert told.cost_graph[1].seconds == pytest.approx(b.duration_us * 1e-6)
    assert told.partition_graphs == []


def test_a_trace_tells_how_long_an_operation_waited() -> None:
    queue = eng.FIFOQueue(4, ["float32"], [[]])
    take, put = queue.dequeue(name="take"), queue.enqueue([eng.constant(7.0)])
    told = eng.RunMetadata()
    with eng.Session() as session:
        timer = threading.Timer(0.05, lambda: session.run(put))
        timer.start()
        assert session.run(take, None, eng.RunOptions(trace=True), told) == 7.0
        timer.join()
    (entry,) = [n for d in told.step_stats for n in d.nodes if n.type == "QueueDequeue"]
    assert 40_000 < entry.duration_us < 5e6


def test_a_trace_tells_of_what_is_inside_of_loops_and_conditions() -> None:
    x = eng.placeholder("float32", [])
    _, y = eng.while_loop(lambda i, y: less(i, 3), lambda i, y: (i + 1, square(y)), [0, x])
    z = eng.cond(
        less(x, 9.0), lambda: slow(y), lambda: eng.cond(less(x, 99.0), lambda: y, lambda: x)
    )
    told = eng.RunMetadata()
    with eng.Session() as session:
        assert session.run(z, {x: 2.0}, eng.RunOptions(trace=True), told) == 256.0
    costs = {node.name: node for node in told.cost_graph}
    inside = {
        name.partition("/")[2]: node.executions for name, node in costs.items() if "/" in name
    }
    assert inside["Square"] == 3
    assert inside["Less"] == 4
    (waited,) = [node for name, node in costs.items() if name.endswith("TestSlowed")]
    assert waited.executions == 1
    assert waited.seconds >= 0.02


def test_a_trace_of_several_devices() -> None:
    with eng.device("cpu:0"):
        a = square(eng.placeholder("float32", [2], name="x"), name="a")
    with eng.device("cpu:1"):
        b = square(a, name="b")
    told = eng.RunMetadata()
    options = eng.RunOptions(trace=True, output_partition_graphs=True)
    with eng.Session(config=TWO_CPUS) as session:
        np.testing.assert_array_equal(session.run(b, {"x:0": [1.0, 2.0]}, options, told), [1, 16])
    names = {d.device[-5:]: {n.name for n in d.nodes} for d in told.step_stats}
    assert "a" in names["cpu:0"]
    assert "b" in names["cpu:1"]
    assert "b" not in names["cpu:0"]
    ops = [{n.op for n in g.message.node} for g in told.partition_graphs]
    places = [{n.device for n in g.node} for g in told.partition_graphs]
    assert places == [{f"/job:localhost/device:cpu:{i}"} for i in (0, 1)]
    assert sorted(map(sorted, ops)) == [
        ["Placeholder", "Send", "Square"],
        ["Recv", "Square"],
    ]


def test_a_step_on_one_of_several_cpus_is_told_to_be_there() -> None:
    with eng.device("cpu:1"):
        y = square(eng.placeholder("float32", [2], name="x"))
    told = eng.RunMetadata()
    options = eng.RunOptions(trace=True, output_partition_graphs=True)
    with eng.Session(config=TWO_CPUS) as session:
        session.run(y, {"x:0": [1.0, 2.0]}, options, told)
    assert [d.device for d in told.step_stats] == ["/job:localhost/device:cpu:1"]
    assert {n.device for g in told.partition_graphs for n in g.node} == {told.step_stats[0].device}


def test_a_traced_loop_counts_each_execution() -> None:
    queue = eng.FIFOQueue(4, ["float32"], [[]])
    put = queue.enqueue([eng.constant(1.0)])
    total = eng.while_loop(
        lambda i, s: less(i, eng.constant(3.0)),
        lambda i, s: (add(i, 1.0), add(s, queue.dequeue())),
        (eng.constant(0.0), eng.constant(0.0)),
    )[1]
    told = eng.RunMetadata()
    with eng.Session() as session:
        for _ in range(3):
            session.run(put)
        assert session.run(total, None, eng.RunOptions(trace=True), told) == 3.0
    (takes,) = [n for n in told.cost_graph if "Dequeue" in n.name]
    assert takes.executions == 3


def test_an_error_of_a_traced_run_names_the_operation() -> None:
    v = eng.Variable(1.0, name="v")
    told = eng.RunMetadata()
    with (
        eng.Session() as session,
        pytest.raises(FailedPreconditionError, match="variable 'v' is read before"),
    ):
        session.run(v, None, eng.RunOptions(trace=True), told)
