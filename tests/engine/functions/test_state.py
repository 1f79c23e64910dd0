"""`function` and state: captured variables, those made in the first call, methods."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
)
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.elementary import tanh


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


def test_captured_by_reference() -> None:
    w, b = eng.Variable(np.ones((2, 2), np.float32)), eng.Variable([1.0, 2.0])
    c = eng.Variable(0, dtype="int32")

    @eng.function
    def f(x: Any) -> Any:
        c.assign_add(1)  # nothing depends on it, and it runs
        return matmul(x, w.value) + b

    x = tensor([[1, 2]])
    assert f(x).tolist() == [[4.0, 5.0]]
    assert int(c) == 1
    w.assign(np.zeros((2, 2)))
    assert f(x).tolist() == [[1.0, 2.0]]
    assert (int(c), f.trace_count) == (2, 1)
    concrete = f.concrete(x)
    assert {id(v) for v in concrete.captured_state} == {id(w), id(b), id(c)}
    assert {id(v) for v in f.variables} == {id(w), id(b), id(c)}
    types = [op.type for op in concrete.graph.operations]
    assert {"MatMul", "Add", "AssignAdd"} <= set(types)


def test_values_are_captured_by_value() -> None:
    outside = tensor([1.0, 2.0])
    f = eng.function(lambda x: x + outside * 10.0)
    assert f(tensor(1)).tolist() == [11.0, 21.0]
    concrete = f.concrete(tensor(1))
    assert len(concrete.captured) == 1  # and 10.0, written in the code, is a constant of the graph
    assert concrete.captured[0] is outside
    assert "Const" in [op.type for op in concrete.graph.operations]


def test_variables_are_made_once() -> None:
    made: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        if not made:
            made.append(eng.Variable(1.0))
        return cast(x, "float32") + made[0]

    assert f(tensor(1.0)) == 2.0
    assert f.trace_count == 2  # the graph that is kept makes none
    assert f(tensor(1, "int32")) == 2.0
    assert f(tensor(2, "int32")) == 3.0
    assert (len(made), f.trace_count) == (1, 3)


def test_the_first_call_has_its_effect_once() -> None:
    made: list[Any] = []

    @eng.function
    def f() -> Any:
        if not made:
            made.append(eng.Variable(1.0))
        return made[0].assign_add(1.0)

    assert [float(f()), float(f())] == [2.0, 3.0]
    assert f.trace_count == 2


def test_a_variable_on_each_call_is_refused() -> None:
    @eng.function
    def f() -> Any:
        return eng.Variable(1.0, name="again").value

    with pytest.raises(ValueError, match=r"makes a variable \('again'\).*first call only"):
        f()


def test_a_later_trace_may_not_make_variables() -> None:
    made: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        if x.dtype == "int32":
            made.append(eng.Variable(1))
        return x

    f(tensor(1.0))
    with pytest.raises(InvalidArgumentError, match="first call only"):
        f(tensor(1, "int32"))


def test_a_failed_first_trace_does_not_count_as_the_first_call() -> None:
    state: dict[str, Any] = {"fail": True}

    @eng.function
    def f() -> Any:
        if state["fail"]:
            raise KeyError
        if "v" not in state:
            state["v"] = eng.Variable(4.0)
        return state["v"].value

    with pytest.raises(KeyError):
        f()
    state["fail"] = False
    assert f() == 4.0


def test_the_initial_value_may_be_computed_from_the_arguments() -> None:
    state: dict[str, Any] = {}

    @eng.function
    def inner(x: Any) -> Any:
        if "v" not in state:
            state["v"] = eng.Variable(x * 2.0)
        return state["v"] + x

    outer = eng.function(lambda x: inner(x + 1.0))
    assert outer(tensor(1.0)) == 6.0  # v = 4, as the undecorated functions make it
    assert outer(tensor(2.0)) == 7.0


def test_an_initial_value_that_is_not_known_is_refused() -> None:
    counter = eng.Variable(1.0)
    state: dict[str, Any] = {}

    @eng.function
    def f(x: Any) -> Any:
        if "v" not in state:
            state["v"] = eng.Variable(counter.assign_add(x), name="late")
        return state["v"].value

    with pytest.raises(
        InvalidArgumentError, match="Variable 'late': the initial value is symbolic"
    ):
        f(tensor(1.0))
    with pytest.raises(
        InvalidArgumentError, match="Variable 'late': the initial value is symbolic"
    ):
        f.concrete(TensorSpec([]))
    assert float(counter) == 1.0


def test_made_variables_are_kept_by_the_user_alone() -> None:
    h: dict[str, Any] = {}

    @eng.function
    def f(x: Any) -> Any:
        if "v" not in h:
            h["v"] = eng.Variable(1.0)
        return h["v"] + x

    assert f(tensor(1)) == 2.0
    h.clear()
    gc.collect()
    with pytest.raises(FailedPreconditionError, match="no longer exists"):
        f(tensor(1))


# Methods


class Counter:
    def __init__(self) -> None:
        self.total = eng.Variable(0.0)
        self.lazy: Any = None

    @eng.function
    def increment(self, amount: Any) -> Any:
        return self.total.assign_add(amount)

    @eng.function
    def accumulate(self, amount: Any) -> Any:
        if self.lazy is None:
            self.lazy = eng.Variable(zeros_like(amount))
        return self.lazy.assign_add(amount)


def test_each_instance_has_its_own_state() -> None:
    one, two = Counter(), Counter()
    assert [float(one.increment(tensor(3))), float(one.increment(tensor(4)))] == [3.0, 7.0]
    assert float(two.increment(tensor(5))) == 5.0
    assert float(one.total) == 7.0
    assert one.increment == one.increment
    assert one.increment != two.increment
    assert len({one.increment, one.increment, two.increment}) == 2
    assert Counter.increment.trace_count == 0


def test_each_instance_makes_its_variables() -> None:
    one, two = Counter(), Counter()
    assert [float(one.accumulate(tensor(3))), float(one.accumulate(tensor(4)))] == [3.0, 7.0]
    assert two.accumulate(tensor([4, 5])).tolist() == [4.0, 5.0]


@dataclasses.dataclass
class Equal:
    """Instances compare equal and cannot be hashed."""

    scale: float

    @eng.function
    def apply(self, x: Any) -> Any:
        return x * self.scale


def test_instances_count_by_identity() -> None:
    one, two = Equal(2.0), Equal(2.0)
    assert one.apply(tensor(3)) == 6.0
    two.scale = 5.0
    assert two.apply(tensor(3)) == 15.0


def test_the_cache_keeps_no_instance_alive() -> None:
    counter = Counter()
    counter.increment(tensor(1))
    counter.accumulate(tensor(1))
    alive = weakref.ref(counter)
    method = counter.increment
    del counter
    gc.collect()
    assert method(tensor(2)) == 3.0  # a method in hand keeps its object, as Python's do
    del method
    gc.collect()
    assert alive() is None


class Scaled:
    """Of instances that nothing can refer to weakly."""

    __slots__ = ("by",)

    def __init__(self, by: float) -> None:
        self.by = by

    @eng.function
    def apply(self, x: Any) -> Any:
        return x * self.by


def test_methods_of_temporaries_and_of_slotted_classes() -> None:
    assert [float(Counter().increment(tensor(i))) for i in (3, 4)] == [3.0, 4.0]
    scaled = Scaled(2.0)
    assert [float(scaled.apply(tensor(3))), float(Scaled(5.0).apply(tensor(3)))] == [6.0, 15.0]
    assert (scaled.apply(tensor(1)), scaled.apply.trace_count) == (2.0, 1)


def test_graphs_go_with_an_object_that_they_were_made_for() -> None:
    f = eng.function(lambda x, counter: x + counter.total)
    counter = Counter()
    f(tensor(1), counter)
    graph = weakref.ref(f.concrete(tensor(1), counter).graph)
    del counter
    gc.collect()
    assert graph() is None


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("update", ["assign", "assign_add", None])
def test_a_variable_that_is_gone(update: str | None, jit_compile: bool) -> None:
    kept = eng.Variable(np.ones(3, np.float32))
    held = {"v": eng.Variable(np.ones(3, np.float32), name="gone")}

    @eng.function(jit_compile=jit_compile)
    def f(x: Any) -> Any:
        kept.assign_add(x)
        v = held["v"]
        return v + x if update is None else getattr(v, update)(x)

    x = tensor([1, 2, 3])
    f(x)
    before = kept.numpy()
    held["v"].assign(np.zeros(3))
    store, array = weakref.ref(held["v"].store), weakref.ref(np.asarray(held["v"]).base)
    held.clear()
    assert store() is not None  # the graph holds it
    assert array() is None  # the bytes are free at once
    with pytest.raises(FailedPreconditionError, match="variable 'gone' no longer exists"):
        f(x)
    np.testing.assert_array_equal(kept.numpy(), before)
    with pytest.raises(FailedPreconditionError, match="variable 'gone' no longer exists"):
        eng.function(lambda x: f(x), jit_compile=jit_compile)(x)


@define("TestLimited")
def limited(x: TensorSpec) -> TensorSpec:
    """x, if no element is larger than 1."""
    return x


@limited.kernel("cpu")
def _limited_kernel(x: Any) -> Any:
    if np.any(x > 1):
        raise ValueError("too large")
    return x


@pytest.mark.parametrize("reads", [False, True], ids=["written", "read again"])
def test_a_call_that_fails_changes_nothing(reads: bool) -> None:
    """Though what comes before the operation that raises is one cluster, with the updates."""
    count, total = eng.Variable(1.0), eng.Variable(np.zeros(8, np.float32))

    @eng.function(jit_compile=True)
    def f(x: Any) -> Any:
        count.assign_add(1.0)
        y = tanh(x * 2.0 + count.value) if reads else tanh(x * 2.0 + 1.0)
        total.assign_add(x + y)
        total.assign_add(x * y)
        return tanh(limited(x * 2.0 + y - y) * 2.0 + 1.0) * y

    def expected(x: Any) -> Any:
        y = np.tanh(x * 2 + (float(count) if reads else 1))
        return y, np.tanh(x * 4 + 1) * y

    x = np.linspace(-0.4, 0.4, 8).astype(np.float32)
    sums = np.zeros(8)
    for _ in range(2):
        found = f(tensor(x))
        y, z = expected(x)
        sums += x + y + x * y
        np.testing.assert_allclose(found.numpy(), z, rtol=1e-5)
        np.testing.assert_allclose(total.numpy(), sums, rtol=1e-5)
    before = float(count), total.numpy()
    with pytest.raises(ValueError, match="too large"):
        f(tensor(x + 1))
    np.testing.assert_array_equal(total.numpy(), before[1])
    # What an operation that may raise is computed from is written before it, and taken back.
    assert float(count) == before[0]
    f(tensor(x))
    np.testing.assert_allclose(total.numpy(), sums + x + expected(x)[0] * (1 + x), rtol=1e-5)
