"""Steps on several devices: errors, memory that runs out, many steps and layers at once."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.devices import Device
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from laminar.engine.runtime import Machine, PartitionedPlan, SessionConfig
from tests.engine.runtime.parts import (
    THREE,
    TWO,
    WAIT,
    add,
    broken,
    events,
    identity,
    in_thread,
    multiply,
    parts_of,
    slow,
)

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
            events.clear()
            threads = [threading.Thread(target=session.run, args=(b,)) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(WAIT)
    begun = [t for what, _, t, _ in events if what == "start"]
    ended = [t for what, _, t, _ in events if what == "end"]
    assert len(begun) == len(ended) == 4
    assert max(begun) < min(ended)  # all of them ran at some moment


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

                def counted(*args: Any, run: Any = run, part: Any = part, **kwargs: Any) -> Any:
                    calls.append(part.device)
                    return run(*args, **kwargs)

                monkeypatch.setattr(part, "run", counted)
            assert session.run(x, {p: 1.0}) == 201.0
    assert sorted(d.index for d in calls) == [0, 1]
