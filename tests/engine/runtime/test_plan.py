"""The executor: each operation once, after its inputs, in any order that allows."""

from __future__ import annotations

import gc
import random
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import (
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import add, square
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Plan, StepContext, dataflow_executor
from laminar.engine.runtime.dataflow_executor import DataflowRun
from laminar.engine.source import inside_layer
from tests.engine import programs

from ...sampling import examples

events: list[tuple[str, str]] = []


@define("TestTraced", dtypes=FLOATING)
def traced(*xs: TensorSpec, label: str) -> TensorSpec:
    """The sum of the inputs and 1, leaving a trace of its run."""
    return TensorSpec((), "float64")


@traced.reference
def _traced(xp: Any, *xs: Any, label: str) -> Any:
    events.append(("start", label))
    events.append(("end", label))
    return np.asarray(sum(float(x) for x in xs) + 1.0)


@define("TestFailing")
def failing(x: TensorSpec, *, error: str) -> TensorSpec:
    """Raises."""
    return x


@failing.reference
def _failing(xp: Any, x: Any, *, error: str) -> Any:
    raise {
        "value": ValueError("bad value"),
        "memory": MemoryError("no memory"),
        "range": OutOfRangeError("the end", remedy="stop"),
    }[error]


@define("TestGpuOnly")
def gpu_only(x: TensorSpec) -> TensorSpec:
    """x, with a kernel for one device type."""
    return x


gpu_only.kernel("gpu")(lambda x: x)


def run_in_order_of(plan: Plan, queue: Callable[[Iterable[Any]], Any], feeds: list[Any]) -> Any:
    """Run a plan that decides as it goes, with a ready queue of that kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataflow_executor, "deque", lambda: queue(()))
        return DataflowRun(plan.nodes, plan.layout, StepContext(), feeds).wait()


class Lifo(deque[Any]):
    """A ready queue that gives the newest first."""

    def popleft(self) -> Any:
        return self.pop()


class Shuffled(deque[Any]):
    """A ready queue that gives any."""

    rng = random.Random(0)

    def popleft(self) -> Any:
        self.rotate(self.rng.randrange(len(self)))
        return super().popleft()


DAGS = st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=1, max_size=25)


@given(DAGS, DAGS, st.sampled_from([None, deque, Lifo, Shuffled]), st.data())
def test_each_needed_operation_runs_once_after_what_it_waits_for(
    inputs: list[list[int]],
    controls: list[list[int]],
    queue: Callable[[Iterable[Any]], Any] | None,
    data: st.DataObject,
) -> None:
    with eng.Graph().as_default():
        tensors: list[Any] = []
        for i, taken in enumerate(inputs):
            xs = [tensors[j % i] for j in taken] if i else []
            waits = [tensors[j % i] for j in controls[i % len(controls)]] if i else []
            with eng.control_dependencies(waits):
                tensors.append(traced(*xs, label=str(i)))
    wanted = [tensors[i] for i in data.draw(st.lists(st.integers(0, len(tensors) - 1), max_size=3))]
    before: dict[str, set[str]] = {}
    values: dict[str, float] = {}
    for i, t in enumerate(tensors):
        sources = [*t.op.inputs, *(c.outputs[0] for c in t.op.control_inputs)]
        before[str(i)] = {s.op.attrs["label"] for s in sources}
        values[str(i)] = 1.0 + sum(values[x.op.attrs["label"]] for x in t.op.inputs)
    needed: set[str] = set()
    stack = [t.op.attrs["label"] for t in wanted]
    while stack:
        label = stack.pop()
        if label not in needed:
            needed.add(label)
            stack.extend(before[label])
    plan = Plan(StepGraph(wanted))
    events.clear()
    found = plan.run([], StepContext()) if queue is None else run_in_order_of(plan, queue, [])
    assert [float(v) for v in found] == [values[t.op.attrs["label"]] for t in wanted]
    assert sorted(label for what, label in events if what == "start") == sorted(needed)
    ended: set[str] = set()
    for what, label in events:
        if what == "end":
            ended.add(label)
        else:
            assert before[label] <= ended


@examples(30)
@given(programs.programs(), st.integers(0, 2**31))
def test_the_order_of_the_queue_does_not_matter(program: programs.Program, seed: int) -> None:
    inputs = list(np.random.default_rng(seed).normal(size=(2, 2, 2)))
    with eng.Graph().as_default():
        xs: list[Any] = [eng.placeholder("float64", [2, 2]) for _ in range(2)]
        plan = Plan(StepGraph(programs.run(program, xs), xs))
    results = [plan.run(inputs, StepContext())]
    for queue in (deque, Lifo, Shuffled, Shuffled):
        results.append(run_in_order_of(plan, queue, inputs))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)
    for a, b in zip(results[0], programs.reference(program, inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_one_tensor_taken_twice() -> None:
    with eng.Graph().as_default():
        x: Any = eng.placeholder("float64", [])
        y: Any = traced(x, x, label="y")
        z: Any = traced(y, y, y, label="z")
        with eng.control_dependencies([y]):
            w: Any = traced(y, label="w")
    events.clear()
    assert Plan(StepGraph([z, w, z], [x])).run([np.asarray(2.0)], StepContext()) == [
        16.0,
        6.0,
        16.0,
    ]
    assert [label for what, label in events if what == "start"] == ["y", "z", "w"]


def test_feeds_cut_the_graph() -> None:
    with eng.Graph().as_default():
        x: Any = eng.placeholder("float64", [])
        y: Any = traced(x, label="y")
        z: Any = add(x, y)
    plan = Plan(StepGraph([z], [x, y]))
    assert [op.type for op in plan.operations] == ["Add"]
    assert plan.run([np.asarray(1.0), np.asarray(10.0)], StepContext()) == [11.0]


def test_a_fed_output_keeps_its_value_though_its_operation_runs() -> None:
    with eng.Graph().as_default():
        x: Any = eng.placeholder("float64", [])
        y: Any = traced(x, label="y")
        z: Any = square(y)
    events.clear()
    plan = Plan(StepGraph([y, z], [x, y], [y.op]))
    assert plan.run([np.asarray(1.0), np.asarray(3.0)], StepContext()) == [3.0, 9.0]
    assert events == [("start", "y"), ("end", "y")]


def test_a_feed_can_be_fetched_and_given_twice() -> None:
    with eng.Graph().as_default():
        x: Any = eng.placeholder("float64", [])
        y: Any = square(x)
    plan = Plan(StepGraph([x, y], [x, x]))
    assert plan.run([np.asarray(3.0), np.asarray(5.0)], StepContext()) == [3.0, 9.0]


def test_values_are_dropped_after_their_last_use() -> None:
    alive: list[weakref.ref[Any]] = []
    seen: list[bool] = []

    @define("TestBig")
    def big() -> TensorSpec:
        """An array that can be watched."""
        return TensorSpec([3], "float64")

    @big.reference
    def _big(xp: Any) -> Any:
        array = np.ones(3)
        alive.append(weakref.ref(array))
        return array

    @define("TestLook")
    def look(x: TensorSpec) -> TensorSpec:
        """x, noting whether the array is still there."""
        return x

    @look.reference
    def _look(xp: Any, x: Any) -> Any:
        gc.collect()
        seen.append(alive[0]() is not None)
        return x

    with eng.Graph().as_default():
        y: Any = look(look(square(big())))
    Plan(StepGraph([y])).run([], StepContext())
    assert seen == [False, False]


ERRORS: list[Any] = [
    pytest.param(
        "value", InvalidArgumentError, r"TestFailing\(float32\[2\]\): bad value", id="any"
    ),
    pytest.param("memory", ResourceExhaustedError, "no memory", id="memory"),
    pytest.param("range", OutOfRangeError, "the end", id="own"),
]


@pytest.mark.parametrize(("error", "kind", "message"), ERRORS)
def test_an_error_names_its_operation_and_the_users_line(
    error: str, kind: type[Exception], message: str
) -> None:
    with eng.Graph().as_default(), inside_layer("model"), inside_layer("dense"):
        x: Any = eng.placeholder("float32", [2])
        y: Any = failing(x, error=error, name="culprit")
    with pytest.raises(kind, match=message + r" \[operation 'culprit'\]") as caught:
        Plan(StepGraph([y], [x])).run([np.ones(2, np.float32)], StepContext())
    found: Any = caught.value
    assert found.location == y.op.location
    assert found.layer == "model/dense"
    assert found.remedy == ("stop" if error == "range" else None)
    assert caught.value.__cause__ is not None
    with pytest.raises(kind, match=message):
        failing(np.ones(2, np.float32), error=error)  # as when computed at once


def test_a_placeholder_that_is_not_fed() -> None:
    with eng.Graph().as_default():
        y: Any = square(eng.placeholder("float32", [2], name="images"))
    with pytest.raises(
        InvalidArgumentError, match=r"placeholder of float32\[2\] was not fed .*'images'"
    ):
        Plan(StepGraph([y])).run([], StepContext())


def test_an_operation_without_a_kernel_is_found_before_anything_runs() -> None:
    with eng.Graph().as_default():
        y: Any = gpu_only(traced(label="never"))
    events.clear()
    with pytest.raises(UnimplementedError, match="no kernel for 'cpu'; it has kernels for: gpu"):
        Plan(StepGraph([y]))
    assert events == []


def test_numbers_that_kernels_return_are_arrays() -> None:
    with eng.Graph().as_default():
        y: Any = traced(label="y")
    (found,) = Plan(StepGraph([y])).run([], StepContext())
    assert isinstance(found, np.ndarray)
