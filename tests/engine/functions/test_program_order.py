"""Automatic control dependencies: the order of effects is that of the program."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine import TensorSpec
from laminar.engine.ops.core.registry import define
from laminar.engine.runtime import Plan, StepContext, dataflow_executor


class RandomQueue:
    """A ready queue that gives its items in random order."""

    rng = random.Random(0)

    def __init__(self) -> None:
        self._items: list[Any] = []

    def append(self, item: Any) -> None:
        self._items.append(item)

    def popleft(self) -> Any:
        return self._items.pop(self.rng.randrange(len(self._items)))

    def __len__(self) -> int:
        return len(self._items)


@pytest.fixture
def any_order(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def execute(plan: Plan, context: StepContext, feeds: Sequence[Any]) -> list[Any]:
        return dataflow_executor.DataflowRun(plan.nodes, plan.layout, context, feeds).wait()

    monkeypatch.setattr(dataflow_executor, "deque", RandomQueue)
    monkeypatch.setattr(Plan, "execute", execute)
    yield
    monkeypatch.undo()


log: list[str] = []


@define("TestLog", stateful=True)
def log_line(*, text: str) -> TensorSpec:
    """Append a line to the log; gives its length."""
    return TensorSpec((), "int32")


@log_line.effect
def _log_kernel(context: Any, *, text: str) -> Any:
    log.append(text)
    return len(log)


@pytest.mark.usefixtures("any_order")
def test_a_read_after_a_write() -> None:
    v = eng.Variable(1.0)

    @eng.function
    def f() -> Any:
        v.assign(2.0)
        return v.read_value()

    for _ in range(1000):
        v.assign(1.0)
        assert f() == 2.0


@pytest.mark.usefixtures("any_order")
def test_reads_around_a_write() -> None:
    v = eng.Variable(1.0)

    @eng.function
    def f(x: Any) -> Any:
        before = v.read_value()
        v.assign(x)
        after = v.read_value()
        v.assign_sub(100.0)
        return before, after

    for i in range(300):
        v.assign(-float(i))
        before, after = f(eng.convert_to_tensor(float(i)))
        assert (float(before), float(after), float(v)) == (-i, i, i - 100.0)


@pytest.mark.usefixtures("any_order")
def test_a_long_program() -> None:
    v, w = eng.Variable(1.0), eng.Variable(0.0)

    def program(x: Any) -> Any:
        v.assign_add(x)
        v.assign(v.value * 3.0)
        w.assign(v.value - 1.0)
        v.assign_sub(w.value)
        w.assign_add(v.value)
        return w.value + v.value * 10.0

    f = eng.function(program)
    x = eng.convert_to_tensor(2.0)
    expected = program(x)
    states = (float(v), float(w))
    for _ in range(200):
        v.assign(1.0)
        w.assign(0.0)
        assert f(x) == expected
        assert (float(v), float(w)) == states


def paths(graph: eng.Graph) -> dict[str, set[str]]:
    """For each operation, the names of all that run before it."""
    before: dict[str, set[str]] = {}
    for op in graph.operations:
        sources = [*(x.op for x in op.inputs), *op.control_inputs]
        before[op.name] = {s.name for s in sources}.union(*(before[s.name] for s in sources))
    return before


def test_different_variables_are_not_ordered() -> None:
    a, b = eng.Variable(1.0), eng.Variable(1.0)

    @eng.function
    def f() -> Any:
        a.assign(2.0)
        b.assign(3.0)
        return a + b

    assert f() == 5.0
    before = paths(f.concrete().graph)
    assert "Assign" not in before["Assign_1"]
    assert "Assign_1" not in before["Assign"]


def test_reads_are_not_ordered_among_themselves() -> None:
    v = eng.Variable(1.0)

    @eng.function
    def f() -> Any:
        first, second = v.read_value(), v.read_value()
        v.assign(first + second)
        return v.value

    assert f() == 2.0
    before = paths(f.concrete().graph)
    assert "ReadVariable" not in before["ReadVariable_1"]
    assert {"ReadVariable", "ReadVariable_1"} <= before["Assign"]
    assert "Assign" in before["ReadVariable_2"]


@pytest.mark.usefixtures("any_order")
def test_stateful_operations_keep_their_order() -> None:
    @eng.function
    def f(x: Any) -> Any:
        for text in "abcd":
            log_line(text=text)
        return x

    g = eng.function(lambda x: f(f(x)))
    for function, count in ((f, 1), (g, 2)):
        for _ in range(50):
            log.clear()
            function(eng.convert_to_tensor(1.0))
            assert "".join(log) == "abcd" * count


@pytest.mark.usefixtures("any_order")
def test_effects_run_although_nothing_needs_them() -> None:
    v = eng.Variable(0.0)

    @eng.function
    def f(x: Any) -> Any:
        v.assign_add(x)
        log_line(text="ran")
        return None

    log.clear()
    assert f(eng.convert_to_tensor(3.0)) is None
    assert (float(v), log) == (3.0, ["ran"])


@pytest.mark.usefixtures("any_order")
def test_functions_and_their_callers_share_one_order() -> None:
    v = eng.Variable(1.0)
    double = eng.function(lambda: v.assign(v.value * 2.0))

    @eng.function
    def f() -> Any:
        v.assign_add(1.0)
        double()
        v.assign_add(1.0)
        double()
        return v.value

    for _ in range(100):
        v.assign(1.0)
        assert f() == 10.0


def test_plain_graphs_have_no_order_of_their_own() -> None:
    with eng.Graph().as_default():
        v = eng.Variable(1.0, name="v")
        v.assign(2.0)
        read = v.read_value()
    assert read.op.control_inputs == []  # type: ignore[attr-defined]  # in a graph
