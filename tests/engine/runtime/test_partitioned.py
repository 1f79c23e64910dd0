"""Steps on several devices: the same results as on one, control flow, transfers."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar import ops
from laminar.datasets import digits
from laminar.engine.devices import local_devices
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.control.dataflow import (
    close_loop,
    enter,
    exit_loop,
    loop_cond,
    merge,
    next_iteration,
    switch,
)
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Machine, Plan, SessionConfig, StepContext
from laminar.engine.runtime.rendezvous import Rendezvous
from tests.engine import programs
from tests.engine.runtime.fake_gpu import one_gpu
from tests.engine.runtime.parts import (
    TWO,
    add,
    events,
    identity,
    in_thread,
    multiply,
    parts_of,
    plan_of,
    slow,
)

from ...sampling import examples

# Results


@pytest.mark.slow
@examples(60)
@given(programs.programs(most=20), st.integers(1, 4), st.booleans(), st.booleans(), st.data())
def test_any_placement_gives_the_same_bits(
    program: programs.Program, num_devices: int, compiled: bool, delay: bool, data: st.DataObject
) -> None:
    inputs = list(np.random.default_rng(0).normal(size=(2, 2, 2)))

    def pick(op: Any) -> str:
        return f"cpu:{data.draw(st.integers(0, num_devices - 1))}"

    with eng.Graph().as_default(), eng.device(pick):
        xs: list[Any] = [eng.placeholder("float64", [2, 2]) for _ in range(2)]
        values = programs.run(program, xs)
    expected = Plan(StepGraph(values, xs)).run(inputs, StepContext())
    config = SessionConfig(device_count={"cpu": num_devices}, delay_receives=delay)
    importlib.import_module("laminar.engine.compiler")
    plan = Machine(config).plan(StepGraph(values, xs), compiled=compiled)
    for _ in range(2):
        found = in_thread(lambda: plan.run(inputs, StepContext()))
        for a, b in zip(found, expected, strict=True):
            if compiled:  # native code rounds otherwise than NumPy
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(a, b)


@examples(20)
@given(programs.programs(most=20), st.integers(2, 3))
def test_the_simulated_placement_gives_the_same_bits(
    program: programs.Program, num_devices: int
) -> None:
    inputs = list(np.random.default_rng(0).normal(size=(2, 2, 2)))
    with eng.Graph().as_default():
        xs: list[Any] = [eng.placeholder("float64", [2, 2]) for _ in range(2)]
        values = programs.run(program, xs)
    expected = Plan(StepGraph(values, xs)).run(inputs, StepContext())
    config = SessionConfig(device_count={"cpu": num_devices}, placement="simulated")
    found = in_thread(
        lambda: Machine(config).plan(StepGraph(values, xs)).run(inputs, StepContext())
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_there_and_back_many_times() -> None:
    """Each part waits for the other, over and over."""
    with eng.Graph().as_default():
        p = x = eng.placeholder("float32", [])
        for i in range(200):
            with eng.device(f"cpu:{i % 2}"):
                x = add(x, 1.0)
        with eng.Session(config=TWO) as session:
            assert in_thread(lambda: session.run(x, {p: 0.0})) == 200.0


@pytest.mark.parametrize("compiled", [False, True])
def test_transfers_in_an_order_that_nobody_foresees(compiled: bool) -> None:
    """Two chains that cross in opposite directions: no receive may hold up the other chain."""
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [2])
        a = b = p
        for i in range(10):
            with eng.device(f"cpu:{i % 2}"):
                a = multiply(add(a, 1.0), 0.5)
            with eng.device(f"cpu:{1 - i % 2}"):
                b = add(multiply(b, 0.5), a)
    fetches = [a, b]
    plan = Machine(TWO).plan(StepGraph(fetches, [p]), compiled=compiled)
    x = np.array([1.0, 2.0], "float32")
    expected = Plan(StepGraph(fetches, [p])).run([x], StepContext())
    found = in_thread(lambda: plan.run([x], StepContext()))
    for u, v in zip(found, expected, strict=True):
        np.testing.assert_array_equal(u, v)


def test_state_of_all_dtypes_and_strings_crosses() -> None:
    values = {
        "int8": -3,
        "uint64": 2**63,
        "float16": 1.5,
        "bfloat16": 1.5,
        "complex64": 1 + 2j,
        "bool": True,
        "string": b"\x00\xff\x00",
    }
    with eng.Graph().as_default():
        found = []
        for dtype, value in values.items():
            with eng.device("cpu:0"):
                x = identity(eng.constant(value, dtype))
            with eng.device("cpu:1"):
                found.append(identity(x))
        with eng.Session(config=TWO) as session:
            got = session.run(found)
    assert [v.item() if hasattr(v, "item") else v for v in got] == list(values.values())


def test_variables_live_with_their_device_and_are_seen_everywhere() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:1"):
            v = eng.Variable(np.ones(3, "float32"), name="v")
        with eng.device("cpu:0"):
            y = multiply(v.value, 2.0)
        step = v.assign_add(np.ones(3, "float32"))
        with eng.Session(config=TWO) as session:
            session.run(eng.global_variables_initializer())
            assert session.run(y).tolist() == [2.0] * 3
            assert session.placement is not None
            where = {d.type: d.device[-5:] for d in session.placement.decisions}
            assert (where["VarHandle"], where["Mul"]) == ("cpu:1", "cpu:0")
            session.run(step)
            assert session.run(y).tolist() == [4.0] * 3


def test_a_control_edge_across_devices_orders() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:0"):
            first = slow(eng.constant(0.0), label="first", seconds=0.1)
        with eng.device("cpu:1"), eng.control_dependencies([first]):
            second = slow(eng.constant(0.0), label="second", seconds=0.0)
        events.clear()
        with eng.Session(config=TWO) as session:
            session.run(second)
    at = {(what, label): t for what, label, t, _ in events}
    assert at["start", "second"] >= at["end", "first"]


def test_functions_run_on_several_devices() -> None:
    v = eng.Variable(np.ones(3), name="v")

    @eng.function
    def step(x: Any) -> Any:
        with eng.device("cpu:1"):
            y = x * v.value
        with eng.device("cpu:0"):
            z = y + 1.0
        v.assign_add(z)
        return z, v.value

    concrete = step.concrete(eng.TensorSpec([3], "float64"))
    concrete.machine = Machine(SessionConfig({"cpu": 2}, allow_soft_placement=True))
    z, after = concrete(np.full(3, 2.0))
    assert z.numpy().tolist() == [3.0] * 3
    assert after.numpy().tolist() == v.numpy().tolist() == [4.0] * 3
    assert step(np.full(3, 2.0))[0].numpy().tolist() == [9.0] * 3  # softly, on the one there is


def test_the_path_of_one_device_is_the_plain_one() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        with eng.device("cpu:0"):
            y = add(x, 1.0)
        for config in (None, TWO):
            with eng.Session(config=config) as session:
                assert session.run(y, {x: 1.0}) == 2.0
                assert type(plan_of(session)) is Plan


def test_cpu_and_gpu_together() -> None:
    x = np.random.default_rng(0).normal(size=(3, 2))
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [None, 2])
        with eng.device("cpu:0"):
            a = multiply(p, 2.0)
        b = add(a, p)
        with eng.device("cpu:0"):
            c = multiply(b, a)
        with one_gpu(), eng.Session() as session:
            found = session.run([a, b, c], {p: x})
    for got, expected in zip(found, [2 * x, 3 * x, 6 * x * x], strict=True):
        assert type(got) is np.ndarray
        np.testing.assert_allclose(got, expected, rtol=1e-6)


# Control flow


@pytest.mark.parametrize(("taken", "expected"), [(True, 20.0), (False, 12.0)])
def test_the_branches_of_a_condition_are_on_two_devices(taken: bool, expected: float) -> None:
    """The branch that is not taken does not run, and nobody waits for it."""
    with eng.Graph().as_default():
        p, x = eng.placeholder("bool", []), eng.placeholder("float32", [])
        with eng.device("cpu:0"):
            false, true = switch(x, p)
            a = slow(false, label="false", seconds=0.0)
        with eng.device("cpu:1"):
            b = slow(multiply(true, 2.0), label="true", seconds=0.0)
        with eng.device("cpu:0"):
            y, _ = merge([a, b])
            z = add(y, y) if taken else add(y, 1.0)
        events.clear()
        with eng.Session(config=TWO) as session:
            found = in_thread(lambda: session.run(z, {p: taken, x: 4.5 if taken else 10.0}))
    assert found == expected
    assert {label for _, label, *_ in events} == {"true" if taken else "false"}


def test_a_dead_fetch_of_another_device_is_named() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:0"):
            false, _ = switch(eng.constant(1.0), eng.constant(True))
        with eng.device("cpu:1"):
            y = add(false, 1.0)
        with (
            eng.Session(config=TWO) as session,
            pytest.raises(InvalidArgumentError, match="has no value in this run"),
        ):
            in_thread(lambda: session.run(y))


@pytest.mark.parametrize("count", [0, 5])
def test_a_loop_stays_together_and_its_values_cross(count: int) -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:0"):
            n = identity(eng.constant(float(count)))
        with eng.device("cpu:1"):
            i = merge([enter(eng.constant(0.0), "loop")])[0]
            limit = enter(n, "loop", is_constant=True)
            goes_on = loop_cond(eng.lookup("Less")(i, limit))
            done, more = switch(i, goes_on)
            close_loop(i, next_iteration(add(more, 1.0)))
            out = exit_loop(done)
        with eng.device("cpu:0"):
            y = multiply(out, 10.0)
        with eng.Session(config=TWO) as session:
            assert in_thread(lambda: session.run(y)) == 10.0 * count


# Transfers


def run_counted(session: eng.Session, fetches: Any, feeds: list[Any]) -> Rendezvous:
    plan = parts_of(session)
    meeting = Rendezvous(local_devices({"cpu": 2}))
    context = StepContext()
    context.rendezvous = meeting
    plan.run(feeds, context)
    return meeting


def test_bytes_cross_once() -> None:
    zero, one = (d.name for d in local_devices({"cpu": 2}))
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [100])
        with eng.device("cpu:0"):
            x = identity(p)
        with eng.device("cpu:1"):
            y = [add(x, 1.0), multiply(x, x)]
        with eng.Session(config=TWO) as session:
            session.run(y, {p: np.zeros(100)})
            meeting = run_counted(session, y, [np.zeros(100, "float32")])
    assert meeting.bytes_sent == {(zero, one): 400}
    assert meeting.num_received == {(zero, one): 1}


def test_lossy_transfers_halve_the_bytes_of_floats_alone() -> None:
    x = np.random.default_rng(0).normal(size=100).astype("float32")
    x[:3] = [np.nan, np.inf, -np.inf]
    n = np.arange(100)
    config = SessionConfig(device_count={"cpu": 2}, lossy_transfers=True)
    with eng.Graph().as_default():
        p, q = eng.placeholder("float32", [100]), eng.placeholder("int64", [100])
        with eng.device("cpu:0"):
            a, b = identity(p), identity(q)
        with eng.device("cpu:1"):
            y = [identity(a), identity(b)]
        with eng.Session(config=config) as session:
            found = session.run(y, {p: x, q: n})
            meeting = run_counted(session, y, [x, n])
            (nbytes,) = meeting.bytes_sent.values()
    assert nbytes == x.nbytes // 2 + n.nbytes
    np.testing.assert_array_equal(found[0][1:], (x.view("u4") & 0xFFFF0000).view("f4")[1:])
    assert np.isnan(found[0][0])
    np.testing.assert_array_equal(found[1], n)


def test_lossy_by_edge() -> None:
    config = SessionConfig(
        device_count={"cpu": 2}, lossy_transfers=lambda x, source, target: x.op.name == "half"
    )
    x = np.float32(1 + 2**-20)
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [])
        with eng.device("cpu:0"):
            a, b = identity(p, name="half"), identity(p, name="full")
        with eng.device("cpu:1"):
            y = [identity(a), identity(b)]
        with eng.Session(config=config) as session:
            assert session.run(y, {p: x}) == [1.0, x]


def test_a_network_learns_as_well_with_lossy_transfers() -> None:
    """Activations and their gradients lose 16 bits on the way; accuracy stays within a point."""
    (images, labels), (held, held_labels) = digits.load_data()
    scaled = [(x.reshape(len(x), -1) / 16).astype("float32") for x in (images, held)]
    onehot = np.eye(10, dtype="float32")[labels.ravel()]
    accuracies = []
    for lossy in (False, True):
        rng = np.random.default_rng(0)
        config = SessionConfig({"cpu": 2}, lossy_transfers=lossy)
        with eng.Graph().as_default():
            x, t = eng.placeholder("float32", [None, 64]), eng.placeholder("float32", [None, 10])
            with eng.device("cpu:0"):
                w: Any = eng.Variable(rng.normal(size=(64, 32)).astype("float32") / 8)
                hidden = ops.tanh(ops.matmul(x, w.value))
            with eng.device("cpu:1"):
                v: Any = eng.Variable(rng.normal(size=(32, 10)).astype("float32") / 6)
                logits = ops.matmul(hidden, v.value)
                loss: Any = -ops.mean(ops.sum(t * ops.log_softmax(logits), axis=-1))
            slopes: list[Any] = eng.gradients(loss, [w, v])
            step = [a.assign_sub(slope * 2.0) for a, slope in zip((w, v), slopes, strict=True)]
            with eng.Session(config=config) as session:
                session.run([w.initializer, v.initializer])
                for _ in range(150):
                    session.run(step, {x: scaled[0], t: onehot})
                found = session.run(logits, {x: scaled[1]}).argmax(axis=-1)
        accuracies.append(float(np.mean(found == held_labels.ravel())))
    assert accuracies[0] > 0.9
    assert abs(accuracies[0] - accuracies[1]) < 0.01


@pytest.mark.parametrize("compiled", [False, True])
def test_receives_are_delayed_to_save_memory(compiled: bool) -> None:
    """A chain on cpu:1, each step of which takes 4 MB of its own from cpu:0."""
    n, steps = 1 << 20, 20
    peaks, results, waits = {}, {}, {}
    for delay in (True, False):
        config = SessionConfig(
            {"cpu": 2},
            memory_limit_bytes={"cpu": 1 << 30},
            delay_receives=delay,
            jit_compile=compiled,
        )
        with eng.Graph().as_default():
            p = eng.placeholder("float32", [n])
            with eng.device("cpu:0"):
                xs = [multiply(p, float(i)) for i in range(steps)]
            with eng.device("cpu:1"):
                y = eng.lookup("Sum")(p, axis=(0,))
                for x in xs:
                    y = add(y, eng.lookup("Sum")(add(x, y), axis=(0,)))
            with eng.Session(config=config) as session:
                data = np.full(n, 1e-6, "float32")
                session.run(y, {p: data})
                device = local_devices(config.device_count, config.memory_limit_bytes)[1]
                before = device.memory_stats().bytes_in_use
                device.reset_peak()
                results[delay] = session.run(y, {p: data})
                peaks[delay] = device.memory_stats().peak_bytes - before
                (part,) = [p for p in parts_of(session).parts if p.device is device]
                waits[delay] = [
                    c
                    for op in part.part.graph.operations
                    for c in op.control_inputs
                    if op.type == "Recv"
                ]
                held_back = [op for op in part.part.graph.operations if op.control_inputs]
                assert all(op.type == "Recv" for op in held_back)
    assert results[True] == results[False]
    assert len(waits[True]) >= steps - 3
    assert not waits[False]
    assert peaks[True] <= peaks[False] / 2


def test_a_compiled_part_that_receives_is_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread waits for what it receives; nothing decides as it goes what can run next."""
    graph = eng.Graph()
    with graph.as_default():
        x = eng.placeholder("float32", [2], name="x")
        with eng.device("cpu:0"):
            here = [eng.identity(x + float(i)) for i in range(4)]
        with eng.device("cpu:1"):
            there = here[0] * here[1] - here[2] * here[3]
        with eng.device("cpu:0"):
            back = eng.identity(there + here[0])
    config = eng.SessionConfig(device_count={"cpu": 2}, jit_compile=True)
    monkeypatch.setattr("laminar.engine.runtime.plan.DataflowRun", None)
    value = np.array([1.5, -2], np.float32)
    with eng.Session(graph=graph, config=config) as session:
        for _ in range(3):
            found = session.run([back, there], {x: value})
            expected = value * (value + 1) - (value + 2) * (value + 3)
            np.testing.assert_allclose(found, [expected + value, expected], rtol=1e-6)
