"""Steps on several devices: the same results as on one, errors, memory, transfers, many at once."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops import arithmetic, basic
from laminar.engine.ops.dataflow import (
    close_loop,
    enter,
    exit_loop,
    loop_cond,
    merge,
    next_iteration,
    switch,
)
from laminar.engine.ops.registry import define
from laminar.engine.runtime import Machine, PartitionedPlan, Plan, SessionConfig, StepContext
from laminar.engine.runtime.devices import Device, local_devices
from laminar.engine.runtime.rendezvous import Rendezvous
from tests.engine import programs
from tests.engine.runtime.fake_gpu import one_gpu

# In a graph they give symbols, which have an operation.
add: Any = arithmetic.add
multiply: Any = arithmetic.multiply
identity: Any = basic.identity
TWO = SessionConfig(device_count={"cpu": 2})
THREE = SessionConfig(device_count={"cpu": 3})
WAIT = 60.0  # seconds after which a test has failed
events: list[tuple[str, str, float, int]] = []


@define("TestSlow", dtypes=FLOATING)
def slow(x: TensorSpec, *, label: str, seconds: float) -> TensorSpec:
    """x + 1, after a while."""
    return x


@slow.reference
def _slow(xp: Any, x: Any, *, label: str, seconds: float) -> Any:
    thread = threading.get_ident()
    events.append(("start", label, time.monotonic(), thread))
    time.sleep(seconds)
    events.append(("end", label, time.monotonic(), thread))
    return x + 1


@define("TestBroken", dtypes=FLOATING)
def broken(x: TensorSpec, *, error: str) -> TensorSpec:
    """Raises, when x is not 0."""
    return x


@broken.reference
def _broken(xp: Any, x: Any, *, error: str) -> Any:
    if float(np.sum(x)):
        raise {"value": ValueError("bad value"), "range": OutOfRangeError("the end")}[error]
    return x


def in_thread(fn: Callable[[], Any]) -> Any:
    """What `fn` gives, in a thread that is not waited for longer than WAIT."""
    box: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            box.append(fn())
        except BaseException as error:  # it is raised below
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(WAIT)
    assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]
    return box[0]


def parts_of(session: eng.Session) -> PartitionedPlan:
    (plan,) = session._engine._plans.values()
    assert isinstance(plan, PartitionedPlan)
    return plan


# Results


@settings(max_examples=60, deadline=None)
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
    expected = Plan(values, xs).run(inputs, StepContext())
    config = SessionConfig(device_count={"cpu": num_devices}, delay_receives=delay)
    importlib.import_module("laminar.engine.compiler")
    plan = Machine(config).plan(values, xs, compiled=compiled)
    for _ in range(2):
        found = in_thread(lambda: plan.run(inputs, StepContext()))
        for a, b in zip(found, expected, strict=True):
            if compiled:  # native code rounds otherwise than NumPy
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
            else:
                np.testing.assert_array_equal(a, b)


@settings(max_examples=20, deadline=None)
@given(programs.programs(most=20), st.integers(2, 3))
def test_the_simulated_placement_gives_the_same_bits(
    program: programs.Program, num_devices: int
) -> None:
    inputs = list(np.random.default_rng(0).normal(size=(2, 2, 2)))
    with eng.Graph().as_default():
        xs: list[Any] = [eng.placeholder("float64", [2, 2]) for _ in range(2)]
        values = programs.run(program, xs)
    expected = Plan(values, xs).run(inputs, StepContext())
    config = SessionConfig(device_count={"cpu": num_devices}, placement="simulated")
    found = in_thread(lambda: Machine(config).plan(values, xs).run(inputs, StepContext()))
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
    plan = Machine(TWO).plan(fetches, [p], compiled=compiled)
    x = np.array([1.0, 2.0], "float32")
    expected = Plan(fetches, [p]).run([x], StepContext())
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
                (plan,) = session._engine._plans.values()
                assert type(plan) is Plan


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
    plan.run(feeds, StepContext(), meeting)
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


def test_receives_are_delayed_to_save_memory() -> None:
    """A chain on cpu:1, each step of which takes 4 MB of its own from cpu:0."""
    n, steps = 1 << 20, 20
    peaks, results, waits = {}, {}, {}
    for delay in (True, False):
        config = SessionConfig(
            {"cpu": 2}, memory_limit_bytes={"cpu": 1 << 30}, delay_receives=delay
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


# Errors


@pytest.mark.parametrize("where", [0, 1])
def test_an_error_stops_all_parts_and_leaves_the_session_usable(where: int) -> None:
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [])
        with eng.device(f"cpu:{where}"):
            a = broken(p, error="value", name="a")
        with eng.device(f"cpu:{1 - where}"):
            b = add(a, 1.0)
            c = add(p, 1.0)
        with eng.device(f"cpu:{where}"):
            d = add(b, 1.0)
        with eng.Session(config=TWO) as session:
            for _ in range(3):
                with pytest.raises(InvalidArgumentError) as info:
                    in_thread(lambda: session.run([c, d], {p: 1.0}))
                text = str(info.value)
                assert "bad value" in text
                assert f"'a' on /job:localhost/device:cpu:{where}" in text
                assert f"{__file__}:" in text
                assert in_thread(lambda: session.run([c, d], {p: 0.0})) == [1.0, 2.0]


def test_the_class_of_an_error_is_kept() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:1"):
            a = broken(eng.constant(1.0), error="range")
        with eng.device("cpu:0"):
            b = add(a, 1.0)
        with eng.Session(config=TWO) as session, pytest.raises(OutOfRangeError, match="the end"):
            session.run(b)


def test_of_several_errors_the_first_is_raised_when_all_parts_have_ended() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:0"):
            late = broken(slow(eng.constant(1.0), label="late", seconds=0.2), error="value")
        with eng.device("cpu:1"):
            early = broken(eng.constant(1.0), error="range")
        events.clear()
        with eng.Session(config=TWO) as session, pytest.raises(OutOfRangeError):
            session.run([late, early])
    assert ("end", "late") in [e[:2] for e in events]


def test_unfed_placeholders_and_unset_variables_are_named() -> None:
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [], name="p")
        with eng.device("cpu:1"):
            v = eng.Variable(1.0, name="v")
            y = add(identity(p), 1.0)
        z = identity(v.value)
        with eng.Session(config=TWO) as session:
            with pytest.raises(InvalidArgumentError, match="'p' on .*was not fed|was not fed.*'p'"):
                session.run(y)
            with eng.device("cpu:0"), pytest.raises(FailedPreconditionError, match="'v'"):
                session.run(z)


def test_an_unplaceable_op_leaves_the_session_usable() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:7"):
            a = identity(1.0, name="a")
        b = identity(2.0)
        with eng.Session(config=TWO) as session:
            with pytest.raises(InvalidArgumentError, match="'a'|Const.*cannot be placed"):
                session.run(a)
            assert session.run(b) == 2.0


def test_memory_that_runs_out_on_one_device_stops_the_step() -> None:
    config = SessionConfig({"cpu": 2}, memory_limit_bytes={"cpu": 100_000})
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [None])
        with eng.device("cpu:0"):
            a = add(p, 1.0)
        with eng.device("cpu:1"):
            b = add(a, 1.0)
        with eng.Session(config=config) as session:
            with pytest.raises(ResourceExhaustedError, match="cpu:.* out of memory"):
                in_thread(lambda: session.run(b, {p: np.zeros(20_000)}))
            assert in_thread(lambda: session.run(b, {p: np.zeros(2)})).tolist() == [2.0, 2.0]


# Many at once


def test_layers_on_devices_overlap_over_time_steps() -> None:
    """A pipeline: layer 1 works on step t + 1 while layer 2 works on step t."""
    with eng.Graph().as_default():
        states = [eng.constant(0.0) for _ in range(3)]
        for t in range(4):
            x: Any = eng.constant(1.0)
            for layer in range(3):
                with eng.device(f"cpu:{layer}"):
                    x = states[layer] = slow(
                        add(x, states[layer]), label=f"{layer}{t}", seconds=0.02
                    )
        events.clear()
        with eng.Session(config=THREE) as session:
            session.run(states)
    at = {(what, label): t for what, label, t, _ in events}
    assert any(
        max(at["start", f"0{t + 1}"], at["start", f"1{t}"])
        < min(at["end", f"0{t + 1}"], at["end", f"1{t}"])
        for t in range(3)
    )
    assert len({thread for *_, thread in events}) == 3


def test_a_model_over_three_devices_learns_as_on_one() -> None:
    """Layer i on device i, forward and backward: the same gradients and the same weights."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 5)), rng.normal(size=(8, 5))
    start = [rng.normal(size=(5, 5)) * 0.5 for _ in range(3)]
    found = []
    for count in (1, 3):
        weights = [eng.Variable(w, name=f"w{i}") for i, w in enumerate(start)]

        def step(h: Any, target: Any, count: int = count, weights: Any = weights) -> Any:
            with eng.GradientTape() as tape:
                for i, w in enumerate(weights):
                    with eng.device(f"cpu:{i % count}"):
                        h = eng.lookup("Tanh")(eng.lookup("MatMul")(h, w.value))
                loss = eng.lookup("Sum")(eng.lookup("Square")(h - target), axis=(0, 1))
            gradients = tape.gradient(loss, weights)
            for w, g in zip(weights, gradients, strict=True):
                w.assign_sub(g * eng.constant(0.01, "float64"))
            return loss, *gradients

        spec = eng.TensorSpec((8, 5), "float64")
        concrete = eng.function(step).concrete(spec, spec)
        concrete.machine = Machine(SessionConfig({"cpu": count}, allow_soft_placement=True))
        concrete.compiled = False  # its operations are counted
        for _ in range(3):
            outputs = in_thread(partial(concrete, x, y))
        found.append([*outputs, *(w.value for w in weights)])
        if count == 3:
            (plan,) = concrete._plans.values()
            assert isinstance(plan, PartitionedPlan)
            products = {
                p.device.index: sum(op.type == "MatMul" for op in p.plan.operations)
                for p in plan.parts
            }
            # forward, and backward for the weights and (but for the first layer) for the input
            assert products == {0: 2, 1: 3, 2: 3}
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12, atol=1e-12)


def test_steps_overlap() -> None:
    with eng.Graph().as_default():
        with eng.device("cpu:0"):
            a = slow(eng.constant(0.0), label="a", seconds=0.2)
        with eng.device("cpu:1"):
            b = add(a, 1.0)
        with eng.Session(config=TWO) as session:
            session.run(b)
            start = time.monotonic()
            threads = [threading.Thread(target=session.run, args=(b,)) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(WAIT)
            assert time.monotonic() - start < 0.7


def test_each_of_many_steps_gets_its_own_values() -> None:
    with eng.Graph().as_default():
        p = eng.placeholder("float32", [])
        with eng.device("cpu:0"):
            a = multiply(p, 2.0)
        with eng.device("cpu:1"):
            b = add(a, p)
        with eng.device("cpu:0"):
            c = multiply(b, a)
        wrong: list[float] = []
        with eng.Session(config=TWO) as session:

            def work(start: int) -> None:
                for i in range(start, 400, 4):
                    if session.run(c, {p: float(i)}) != 6.0 * i * i:
                        wrong.append(i)

            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(WAIT)
                assert not t.is_alive()
    assert not wrong


def test_each_device_gets_one_call_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many edges cross: who starts the step takes no part in it."""
    with eng.Graph().as_default():
        x = p = eng.placeholder("float32", [])
        for i in range(200):
            with eng.device(f"cpu:{i % 2}"):
                x = add(x, 1.0)
        with eng.Session(config=THREE) as session:
            session.run(x, {p: 0.0})
            calls: list[Device] = []
            for part in parts_of(session).parts:
                run = part.run

                def counted(*args: Any, run: Any = run, part: Any = part) -> Any:
                    calls.append(part.device)
                    return run(*args)

                monkeypatch.setattr(part, "run", counted)
            assert session.run(x, {p: 1.0}) == 201.0
    assert sorted(d.index for d in calls) == [0, 1]
