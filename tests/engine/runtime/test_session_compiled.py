"""Sessions that run native code: when they do, and that it is the session of before."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, multiply, square, subtract
from laminar.engine.ops.math.elementary import exp, sin, tanh
from tests.engine import programs
from tests.engine.runtime.parts import in_thread, in_threads, plan_of

from ...sampling import examples

NATIVE = eng.SessionConfig(jit_compile=True)


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test."""
    with eng.Graph().as_default() as fresh:
        yield fresh


def clusters(session: eng.Session) -> int:
    """How many clusters the session's one signature runs."""
    return sum(op.type == "Cluster" for op in plan_of(session).operations)


def wave(x: Any) -> Any:
    """tanh(sin(x) x + x), by operations that become one cluster."""
    return tanh(add(multiply(sin(x), x), x))


def numpy_wave(x: Any) -> Any:
    return np.tanh(np.sin(x) * x + x)


# When


@pytest.mark.parametrize(("wish", "first"), [("auto", 10), (True, 1), (False, None)])
def test_the_run_from_which_on_it_is_native(wish: Any, first: int | None) -> None:
    x = eng.placeholder("float32", [None])
    y = wave(x)
    with eng.Session(config=eng.SessionConfig(jit_compile=wish)) as session:
        for i in range(1, 13):
            data = np.linspace(-2, 2, i, dtype="float32")
            found = session.run(y, {x: data})
            np.testing.assert_allclose(
                found, numpy_wave(data.astype("float64")), rtol=1e-5, atol=1e-6
            )
            assert clusters(session) == (first is not None and i >= first)


def test_every_set_of_fetches_and_feeds_counts_alone() -> None:
    x = eng.placeholder("float32", [])
    y = wave(x)
    z = wave(y)
    with eng.Session() as session:
        for _ in range(9):
            session.run(y, {x: 1.0})
            session.run(z, {x: 1.0})
        session.run(z, {x: 1.0})
        signatures = list(vars(session._engine)["_signatures"].values())
        assert [len(s.plan.operations) for s in signatures] == [4, 1]


def test_what_gains_nothing_stays_as_it_is() -> None:
    x = eng.placeholder("float32", [])
    y = square(x)
    with eng.Session() as session:
        session.run(y, {x: 1.0})
        before = plan_of(session)
        for _ in range(20):
            session.run(y, {x: 1.0})
        assert plan_of(session) is before


def test_a_run_with_a_time_limit_never_waits_for_the_compiler() -> None:
    x = eng.placeholder("float32", [])
    y = wave(x)
    limit = eng.RunOptions(timeout_in_ms=10_000)
    with eng.Session() as session:
        for _ in range(9):
            session.run(y, {x: 1.0}, limit)
        assert not clusters(session)
        session.run(y, {x: 1.0}, limit)
        for thread in threading.enumerate():
            if thread.name == "laminar-session-compiler":
                thread.join(60)
        assert clusters(session) == 1  # another thread has compiled it
        np.testing.assert_allclose(session.run(y, {x: 1.0}, limit), numpy_wave(1.0), rtol=1e-6)


@pytest.mark.parametrize("wish", ["always", None, 2])
def test_what_is_no_wish(wish: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="jit_compile must be True, False or 'auto'"):
        eng.SessionConfig(jit_compile=wish)


# What it gives


@examples(40)
@given(programs.programs(), st.data())
def test_any_feeds_and_any_fetches(program: programs.Program, data: st.DataObject) -> None:
    """Whatever is fed and fetched, in a graph of known and of unknown sizes."""
    rng = np.random.default_rng(len(program))
    arrays = [rng.normal(size=(2, 2)) for _ in range(2)]
    rows = data.draw(st.sampled_from([2, None]))
    with eng.Graph().as_default():
        xs = [eng.placeholder("float64", [rows, 2]) for _ in arrays]
        values = programs.run(program, xs)
        count = len(values)
        fetched = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4))
        inside = data.draw(st.sets(st.integers(2, count - 1), max_size=2))
        feeds = dict(zip(xs, arrays, strict=True))
        expected = list(arrays)
        for i, (name, taken) in enumerate(program, 2):
            if i in inside:
                expected.append(rng.normal(size=(2, 2)))
                feeds[values[i]] = expected[i]
            else:
                expected.append(programs.STEPS[name][2](*(expected[j] for j in taken)))
        with eng.Session(config=NATIVE) as session:
            for _ in range(2):
                found = session.run([values[i] for i in fetched], feeds)
                for i, y in zip(fetched, found, strict=True):
                    np.testing.assert_allclose(y, expected[i], rtol=1e-9, atol=1e-12)


def test_what_was_fetched_does_not_change() -> None:
    v = eng.Variable(np.ones(4, "float32"), name="v")
    step = v.assign_add(multiply(sin(v.value), tanh(v.value)))
    with eng.Session(config=NATIVE) as session:
        session.run(v.initializer)
        first = session.run(step)
        kept = first.copy()
        for _ in range(3):
            session.run(step)
        np.testing.assert_array_equal(first, kept)
        x = np.ones(4)
        for _ in range(4):
            x += np.sin(x) * np.tanh(x)
        np.testing.assert_allclose(session.run(v), x, rtol=1e-5)


def test_training_of_a_graph() -> None:
    """Least squares by gradient descent, as NumPy does it in double precision."""
    rng = np.random.default_rng(0)
    data, target = rng.normal(size=(32, 5)), rng.normal(size=(32, 1))
    x, t = eng.placeholder("float32", [None, 5]), eng.placeholder("float32", [None, 1])
    w = eng.Variable(np.zeros((5, 1), "float32"), name="w")
    loss = eng.lookup("Sum")(square(subtract(matmul(x, w.value), t)), axis=(0, 1))
    (dw,) = eng.gradients(loss, [w])
    step = w.assign_sub(multiply(dw, 0.005))
    expected = np.zeros((5, 1))
    with eng.Session() as session:
        session.run(w.initializer)
        for _ in range(30):
            session.run([step, loss], {x: data.astype("f"), t: target.astype("f")})
            expected -= 0.005 * 2 * data.T @ (data @ expected - target)
        (signature,) = [s for s in vars(session._engine)["_signatures"].values() if not s.runs_left]
        assert any(op.type == "Cluster" for op in signature.plan.operations)
        np.testing.assert_allclose(session.run(w), expected, rtol=1e-4, atol=1e-6)


def test_two_handles_of_one_variable() -> None:
    """What is written through one is read through the other, in the order of a control edge."""
    define: Any = eng.lookup("VarHandle")
    one, other = (
        define(shape=(3,), dtype="float32", container="shared", shared_name="same")
        for _ in range(2)
    )
    assign: Any = eng.lookup("Assign")
    spec: dict[str, Any] = {"shape": (3,), "dtype": "float32"}
    start = assign(one, np.ones(3, "float32"), **spec)
    with eng.control_dependencies([eng.lookup("AssignAdd")(one, np.ones(3, "float32"), **spec)]):
        later = eng.lookup("ReadVariable")(other, **spec)
    y = tanh(multiply(later, 0.5))
    try:
        with eng.Session(config=NATIVE) as session:
            session.run(start)
            for i in range(1, 4):
                np.testing.assert_allclose(session.run(y), np.tanh([0.5 * (1 + i)] * 3), rtol=1e-6)
    finally:
        eng.Session.reset("", ["shared"])


def test_a_loop_is_native_too() -> None:
    def body(i: Any, x: Any) -> Any:
        return add(i, 1.0), tanh(add(multiply(sin(x), x), x))

    x = eng.placeholder("float32", [8])
    y = eng.while_loop(lambda i, x: eng.lookup("Less")(i, 5.0), body, (eng.constant(0.0), x))[1]
    data = np.linspace(-1, 1, 8)
    expected = data
    for _ in range(5):
        expected = numpy_wave(expected)
    with eng.Session() as session:
        for _ in range(12):
            np.testing.assert_allclose(session.run(y, {x: data}), expected, rtol=1e-5, atol=1e-6)


# What stays true


def test_an_error_names_the_operation_and_the_users_line() -> None:
    v = eng.Variable(np.ones(3, "float32"), name="v")
    x = eng.placeholder("float32", [3])
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]  # CPython has frames
    value: Any = v.value
    y = tanh(add(multiply(sin(x), value), x))
    with eng.Session(config=NATIVE) as session:
        for _ in range(2):
            with pytest.raises(FailedPreconditionError, match="variable 'v' is read") as caught:
                session.run(y, {x: np.ones(3)})
            assert f"[operation {value.op.name!r}]" in str(caught.value)
            assert f"{__file__}:{line}" in str(caught.value)
        session.run(v.initializer)
        expected = np.tanh(np.sin(1.0) + 1.0)
        np.testing.assert_allclose(session.run(y, {x: np.ones(3)}), [expected] * 3, rtol=1e-6)


def test_a_step_that_fails_changes_no_variable() -> None:
    a, b = (eng.Variable(np.ones(2, "float32"), name=name) for name in "ab")
    x = eng.placeholder("float32", [2])
    first = a.assign_add(multiply(sin(x), 2.0))
    with eng.control_dependencies([first]):
        second = b.assign_add(tanh(exp(x)))
    with eng.Session(config=NATIVE) as session:
        session.run(a.initializer)
        with pytest.raises(FailedPreconditionError, match="'b'"):
            session.run([first, second], {x: np.ones(2)})
        np.testing.assert_array_equal(session.run(a), [1.0, 1.0])


def test_a_trace_tells_of_operations() -> None:
    x = eng.placeholder("float32", [100], name="x")
    y = wave(x)
    told = eng.RunMetadata()
    options = eng.RunOptions(trace=True, output_partition_graphs=True)
    data = np.linspace(-1, 1, 100, dtype="float32")
    with eng.Session(config=NATIVE) as session:
        plain = session.run(y, {x: data})
        assert clusters(session) == 1
        np.testing.assert_allclose(session.run(y, {x: data}, options, told), plain, rtol=1e-6)
        (device,) = told.step_stats
        assert [n.type for n in device.nodes] == ["Sin", "Mul", "Add", "Tanh"]
        (part,) = told.partition_graphs
        assert {n.op for n in part.message.node} == {"Placeholder", "Sin", "Mul", "Add", "Tanh"}
        np.testing.assert_array_equal(session.run(y, {x: data}), plain)


def batches() -> tuple[Any, Any]:
    """An operation that enqueues 4 numbers, and what is computed of them when they are there."""
    queue = eng.FIFOQueue(8, ["float32"], [[4]])
    return queue.enqueue([eng.constant(np.arange(4, dtype="float32"))]), wave(queue.dequeue())


def test_clusters_take_what_comes_from_queues() -> None:
    put, y = batches()
    with eng.Session(config=NATIVE) as session:
        thread = threading.Timer(0.05, lambda: session.run(put))
        thread.start()
        found = in_thread(lambda: session.run(y))
        thread.join()
        np.testing.assert_allclose(found, numpy_wave(np.arange(4.0)), rtol=1e-5, atol=1e-6)


def test_time_limits_and_closing_reach_what_waits() -> None:
    put, y = batches()
    session = eng.Session(config=NATIVE)
    with pytest.raises(DeadlineExceededError, match="longer than 50 ms"):
        session.run(y, options=eng.RunOptions(timeout_in_ms=50))
    session.run(put)
    np.testing.assert_allclose(session.run(y), numpy_wave(np.arange(4.0)), rtol=1e-5, atol=1e-6)
    timer = threading.Timer(0.05, session.close)
    timer.start()
    with pytest.raises(CancelledError):
        in_thread(lambda: session.run(y))
    timer.join()


def test_steps_at_the_same_time_do_not_mix() -> None:
    """Four threads, a hundred runs each, of one signature and of several sizes."""
    x = eng.placeholder("float32", [None, 16])
    w = eng.Variable(np.eye(16, dtype="float32") * 0.5, name="w")
    y = wave(matmul(x, w.value))
    with eng.Session() as session:
        session.run(w.initializer)

        def work(i: int) -> None:
            for k in range(100):
                data = np.full((1 + k % 3, 16), i + k / 100, "float32")
                found = session.run(y, {x: data})
                np.testing.assert_allclose(found, numpy_wave(data * 0.5), rtol=1e-5, atol=1e-6)

        in_threads(4, work)
        (cluster,) = {
            op.attrs["body"].native
            for s in vars(session._engine)["_signatures"].values()
            for op in s.plan.operations
            if op.type == "Cluster"
        }
        assert len(vars(cluster)["_contexts"]) <= 4


def test_no_update_of_many_threads_is_lost() -> None:
    v, total = eng.Variable(0.0, name="v"), eng.Variable(0.0, name="total")
    x = eng.placeholder("float32", [])
    one = subtract(add(multiply(x, 2.0), 1.0), multiply(x, 2.0))
    steps = [v.assign_add(one), total.assign_add(multiply(one, 2.0))]
    with eng.Session(config=NATIVE) as session:
        session.run([v.initializer, total.initializer])

        def work(i: int) -> None:
            for _ in range(100):
                session.run(steps, {x: 1.0})

        in_threads(8, work)
        assert session.run([v, total]) == [800.0, 1600.0]


def test_parts_on_devices_are_native() -> None:
    rng = np.random.default_rng(0)
    kernels = [rng.normal(size=(6, 6)) / 3 for _ in range(4)]
    x = eng.placeholder("float32", [None, 6])
    h: Any = x
    for i, kernel in enumerate(kernels):
        with eng.device(f"cpu:{i % 2}"):
            h = tanh(add(matmul(h, eng.constant(kernel.astype("float32"))), 0.5))
    config = eng.SessionConfig(device_count={"cpu": 2})
    with eng.Session(config=config) as session:
        for rows in range(1, 14):
            expected = data = rng.normal(size=(rows, 6))
            for kernel in kernels:
                expected = np.tanh(expected @ kernel + 0.5)
            found = in_thread(lambda data=data: session.run(h, {x: data.astype("float32")}))  # type: ignore[misc]  # bound now
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert clusters(session) == 4


def test_partial_runs_are_as_before() -> None:
    x, z = eng.placeholder("float32", [2]), eng.placeholder("float32", [2])
    a = wave(x)
    b = add(a, z)
    with eng.Session(config=NATIVE) as session:
        handle = session.partial_run_setup([a, b], [x, z])
        first = session.partial_run(handle, a, {x: [1.0, 2.0]})
        np.testing.assert_allclose(first, numpy_wave(np.array([1.0, 2.0])), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(session.partial_run(handle, b, {z: [1.0, 1.0]}), first + 1)
