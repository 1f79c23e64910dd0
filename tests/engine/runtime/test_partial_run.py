"""Partial runs: one step, fed and fetched bit by bit."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    CancelledError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import add, multiply, square

runs: list[str] = []


@define("TestPartial", dtypes=FLOATING)
def counted(x: TensorSpec, *, label: str) -> TensorSpec:
    """`x`, counting runs."""
    return x


@counted.reference
def _counted(xp: Any, x: Any, *, label: str) -> Any:
    runs.append(label)
    return x


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test."""
    runs.clear()
    with eng.Graph().as_default() as fresh:
        yield fresh


def scalar(name: str) -> Any:
    return eng.placeholder("float32", [], name=name)


def test_nothing_is_computed_twice() -> None:
    a, b = scalar("a"), scalar("b")
    first: Any = counted(square(a), label="first")
    second = add(counted(multiply(first, b), label="second"), first)
    with eng.Session() as session:
        step = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(step, first, {a: 3.0}) == 9.0
        assert runs == ["first"]
        assert session.partial_run(step, {"y": second}, {"b:0": 2.0}) == {"y": 27.0}
        assert runs == ["first", "second"]
        again = session.partial_run_setup([first], [a])
        assert session.partial_run(again, first, {a: 1.0}) == 1.0


def test_any_tensor_can_be_fed_in_between() -> None:
    a = scalar("a")
    middle = counted(a, label="cut")
    end = square(middle)
    with eng.Session() as session:
        step = session.partial_run_setup(end, [middle])
        assert session.partial_run(step, end, {middle: 4.0}) == 16.0
    assert runs == []


def test_operations_run_once() -> None:
    v = eng.Variable(1.0, name="v")
    x = scalar("x")
    update: Any = v.assign_add(x)
    with eng.control_dependencies([update]):
        after = counted(v.read_value(), label="after")
    with eng.Session() as session:
        session.run(v.initializer)
        step = session.partial_run_setup([update.op, after], [x])
        assert session.partial_run(step, update.op, {x: 5.0}) is None
        assert session.partial_run(step, after) == 6.0
        assert session.run(v) == 6.0


def test_on_two_devices() -> None:
    a, b = scalar("a"), scalar("b")
    with eng.device("cpu:0"):
        first = square(a)
    with eng.device("cpu:1"):
        second = add(first, b)
    with eng.Session(config=eng.SessionConfig(device_count={"cpu": 2})) as session:
        step = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(step, first, {a: 3.0}) == 9.0
        assert session.partial_run(step, second, {b: 1.0}) == 10.0


def test_what_partial_runs_refuse() -> None:
    a, b, c = scalar("a"), scalar("b"), scalar("c")
    x, y = square(a), add(square(a), b)
    with eng.Session() as session, eng.Session() as other:
        step = session.partial_run_setup([x, y], [a, b])
        with pytest.raises(InvalidArgumentError, match="c:0 was not set up to be fed"):
            session.partial_run(step, x, {a: 1.0, c: 1.0})
        with pytest.raises(InvalidArgumentError, match="c:0 was not set up to be fetched"):
            session.partial_run(step, c)
        with pytest.raises(InvalidArgumentError, match="needs b:0, not fed so far"):
            session.partial_run(step, y, {a: 1.0})
        with pytest.raises(DTypeError):
            session.partial_run(step, x, {a: 1j})
        with pytest.raises(InvalidArgumentError, match="partial_run: expected a handle, got 'x'"):
            session.partial_run("x", x)  # type: ignore[arg-type]  # the mistake
        with pytest.raises(InvalidArgumentError, match="belongs to another session"):
            other.partial_run(step, x, {a: 1.0})
        assert session.partial_run(step, x, {a: 2.0}) == 4.0  # all of that has changed nothing
        with pytest.raises(InvalidArgumentError, match="a:0 was fed to this partial run before"):
            session.partial_run(step, y, {a: 1.0, b: 1.0})
        with pytest.raises(InvalidArgumentError, match="taken twice"):
            session.partial_run(step, x)
        assert session.partial_run(step, y, {b: 1.0}) == 5.0


def test_an_error_in_the_step_is_raised() -> None:
    v = eng.Variable(1.0, name="v")
    a = scalar("a")
    with eng.Session() as session:
        step = session.partial_run_setup([multiply(a, v)], [a])
        with pytest.raises(FailedPreconditionError, match="variable 'v' is read before"):
            session.partial_run(step, "Mul:0", {a: 1.0})


def test_closing_the_session_ends_it() -> None:
    take = eng.FIFOQueue(4, ["float32"], [[]]).dequeue()
    session = eng.Session()
    step = session.partial_run_setup(take)
    threading.Timer(0.05, session.close).start()
    with pytest.raises(CancelledError, match="the session was closed"):
        session.partial_run(step, take)
    with pytest.raises(FailedPreconditionError, match="the session is closed"):
        session.partial_run(step, take)


def test_a_step_that_is_dropped_does_not_wait_for_ever() -> None:
    a = scalar("a")
    with eng.Session() as session:
        step: Any = session.partial_run_setup(square(a), [a])
        frame = step.step._frame
        del step
        gc.collect()
        with pytest.raises(CancelledError, match="dropped"):
            frame.consume_retvals([0])
