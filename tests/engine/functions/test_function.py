"""`function`: traces and their count, state, methods, composition, gradients, errors."""

from __future__ import annotations

import dataclasses
import gc
import inspect
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    UnimplementedError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.arithmetic import add, square
from laminar.engine.ops.basic import zeros_like
from laminar.engine.ops.cast import cast
from laminar.engine.ops.compare import equal
from laminar.engine.ops.linalg import matmul
from laminar.engine.ops.math import tanh
from laminar.engine.ops.reduce import reduce_sum
from laminar.engine.ops.registry import define
from tests.engine import programs


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


# Calling


def test_a_function_calls_another() -> None:
    z1 = eng.function(lambda x, y: add(x, y))
    z0 = eng.function(lambda x: z1(x, square(x)))
    assert z0(2.0) == 6.0
    assert z1(2.0, 2.0) == 4.0


def test_python_runs_while_tracing_only() -> None:
    seen: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        seen.append(x)
        return x + 1.0

    for i in range(5):
        assert f(tensor(i)) == i + 1
    assert len(seen) == f.trace_count == 1


def test_a_function_may_give_nothing() -> None:
    w = eng.Variable(0.0)

    @eng.function
    def f() -> None:
        w.assign_add(1.0)

    assert [f(), f(), f()] == [None, None, None]
    assert float(w) == 3.0


def test_structures_go_in_and_come_out() -> None:
    @eng.function
    def f(batch: dict[str, Any], pair: tuple[Any, Any]) -> dict[str, Any]:
        return {"sum": batch["a"] + pair[0], "rest": [pair[1], None, {"k": batch["a"]}]}

    found = f({"a": tensor(1)}, (tensor(2), tensor(3)))
    assert found["sum"] == 3.0
    assert found["rest"][0] == 3.0
    assert found["rest"][1] is None
    assert found["rest"][2]["k"] == 1.0
    f({"a": tensor(5)}, (tensor(2), tensor(3)))
    assert f.trace_count == 1


def test_results_are_tensors() -> None:
    assert eng.function(lambda: (1, np.ones(2)))()[1].tolist() == [1.0, 1.0]
    variable = eng.Variable(3.0)
    assert eng.function(lambda: variable)() == 3.0
    with pytest.raises(InvalidArgumentError, match="may return tensors and None, got <object"):
        eng.function(lambda: object())()


def test_names_and_documentation_are_kept() -> None:
    @eng.function
    def named(x: Any) -> Any:
        """What it does."""
        return x

    assert (named.__name__, named.__doc__) == ("named", "What it does.")
    assert repr(named) == "<function named, 0 traces>"
    graph = named.concrete(TensorSpec([], "float32")).graph
    assert [op.name for op in graph.operations] == ["x"]


def test_decorator_with_arguments() -> None:
    @eng.function(input_signature=[TensorSpec([None])])
    def f(x: Any) -> Any:
        return x + 1.0

    assert f([2.0]).tolist() == [3.0]


# The count of traces: one for each dtype, shape, value, object and device scope


def count_traces(*calls: Any) -> int:
    f = eng.function(lambda x, y=None: x)
    for call in calls:
        f(*call) if isinstance(call, tuple) else f(call)
    return int(f.trace_count)


COUNTS: list[Any] = [
    pytest.param([tensor(1, "int32"), tensor(1.0)], 2, id="dtypes"),
    pytest.param([1.0, 2.0], 2, id="numbers"),
    pytest.param([1.0, 1.0], 1, id="one-number"),
    pytest.param([1, 1.0, True], 3, id="types-of-numbers"),
    pytest.param([0.0, -0.0], 2, id="signed-zeros"),
    pytest.param([float("nan"), float("nan"), np.nan], 1, id="nan"),
    pytest.param([complex("nanj"), complex("nanj")], 1, id="complex-nan"),
    pytest.param([(tensor(1), True), (tensor(2), False), (tensor(3), True)], 2, id="flags"),
    pytest.param([tensor(v) for v in ([2], [2, 3], [[2]], [3], [4, 5])], 3, id="shapes"),
    pytest.param([tensor(1), tensor([1]), tensor([[1]])], 3, id="ranks"),
    pytest.param([np.array([1.0]), np.array([2.0])], 1, id="arrays"),
    pytest.param([np.float32(1), np.float32(2)], 1, id="numpy-scalars"),
    pytest.param([(tensor(1), "a"), (tensor(1), b"a"), (tensor(1), "a")], 2, id="strings"),
    pytest.param([(tensor(1), [1, 2]), (tensor(1), (1, 2)), (tensor(1), [1, 2])], 2, id="nests"),
    pytest.param([(tensor(1), None), (tensor(1),)], 1, id="default"),
    pytest.param(
        [(tensor(1), {"a": 1, "b": 2}), (tensor(1), {"b": 2, "a": 1})], 1, id="order-of-a-dict"
    ),
    pytest.param([(tensor(1), eng.TensorShape(None)), (tensor(1), 3)], 2, id="unknown-shape"),
]


@pytest.mark.parametrize(("calls", "count"), COUNTS)
def test_trace_counts(calls: list[Any], count: int) -> None:
    assert count_traces(*calls) == count


def test_forms_of_one_call_share_a_trace() -> None:
    f = eng.function(lambda x, y=2.0, *rest, z=3.0, **more: x)
    x = tensor(1)
    for call in (
        lambda: f(x),
        lambda: f(x, 2.0),
        lambda: f(x, y=2.0),
        lambda: f(z=3.0, x=x),
    ):
        call()
    assert f.trace_count == 1
    f(x, 2.0, a=1, b=2)
    f(x, 2.0, b=2, a=1)
    assert f.trace_count == 2


def test_a_device_scope_is_part_of_the_key() -> None:
    f = eng.function(lambda x: x * 2.0)
    x = tensor(1)
    with eng.device("/cpu:0"):
        f(x)
        here = f.concrete(x)
    with eng.device("/cpu:1"):
        f(x)
        there = f.concrete(x)
    f(x)
    assert f.trace_count == 3
    devices = [{op.device for op in c.graph.operations if op.type == "Mul"} for c in (here, there)]
    assert devices == [{"/device:cpu:0"}, {"/device:cpu:1"}]


class Parameters:
    def __init__(self, multiply: bool) -> None:
        self.multiply = multiply


def test_objects_count_by_identity() -> None:
    f = eng.function(lambda x, p: x * 2.0 if p.multiply else x + 2.0)
    p = Parameters(multiply=True)
    assert f(3.0, p) == 6.0
    p.multiply = False
    assert f(3.0, p) == 6.0  # as documented: a change inside of an object is not seen
    assert f(3.0, Parameters(multiply=False)) == 5.0


def test_a_key_keeps_no_object_alive() -> None:
    f = eng.function(lambda x, p: x)
    x = tensor(1)
    for _ in range(4):
        p = Parameters(multiply=True)
        alive = weakref.ref(p)
        f(x, p)
        del p
        gc.collect()
        assert alive() is None
    assert f.trace_count == 4
    assert len(f._concrete) == 1  # graphs that no call can ask for again are dropped


@dataclasses.dataclass(frozen=True)
class Config:
    scale: float


def test_values_that_compare_equal_share_a_trace() -> None:
    f = eng.function(lambda x, c: x * c.scale)
    assert f(tensor(2), Config(3.0)) == f(tensor(2), Config(3.0)) == 6.0
    assert f(tensor(2), Config(4.0)) == 8.0
    assert f.trace_count == 2


def test_variables_as_arguments_count_by_identity() -> None:
    f = eng.function(lambda v: v.assign_add(1.0))
    v, w = eng.Variable(1.0), eng.Variable(10.0)
    assert [float(f(x)) for x in (v, w, v)] == [2.0, 11.0, 3.0]
    assert f.trace_count == 2


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    fail = [True]

    @eng.function
    def f(x: Any) -> Any:
        if fail[0]:
            raise KeyError("broken")
        return x * 2.0

    with pytest.raises(KeyError, match="broken"):
        f(tensor(1))
    assert f.variables == []
    fail[0] = False
    assert f(tensor(1)) == 2.0


def test_many_traces_are_warned_of_at_the_users_line() -> None:
    f = eng.function(lambda x: x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(12):
            f(float(i))
    assert len(caught) == 1
    assert "was traced 8 times in 8 calls" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_tracing_is_thread_safe() -> None:
    traces: list[int] = []

    @eng.function
    def f(x: Any) -> Any:
        traces.append(1)
        for _ in range(50):
            x = tanh(x)
        return x

    barrier = threading.Barrier(8)
    results: list[list[float]] = []

    def work(i: int) -> None:
        barrier.wait()
        results.append([float(f(tensor([1.0] * (1 + n % 3)))[0]) for n in range(20)])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(traces) == f.trace_count == 3
    assert len({tuple(r) for r in results}) == 1


def test_a_variable_of_another_thread_is_not_the_functions() -> None:
    started, made = threading.Event(), threading.Event()

    def other() -> None:
        started.wait()
        keep.append(eng.Variable(1.0))
        made.set()

    keep: list[Any] = []
    thread = threading.Thread(target=other)
    thread.start()

    @eng.function
    def f(x: Any) -> Any:
        started.set()
        made.wait()
        return x

    f(tensor(1))
    thread.join()
    assert f.trace_count == 1


# State


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

    with pytest.raises(InvalidArgumentError, match="Variable 'late': the initial value is symbolic"):
        f(tensor(1.0))
    with pytest.raises(InvalidArgumentError, match="Variable 'late': the initial value is symbolic"):
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
    assert one.increment is one.increment
    assert one.increment is not two.increment
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
    assert alive() is None
    with pytest.raises(FailedPreconditionError, match="increment: the object .* no longer exists"):
        method(tensor([1, 2]))


# Composition


def test_effects_of_inner_functions() -> None:
    v = eng.Variable(0.0)
    inner = eng.function(lambda: v.assign_add(1.0))

    @eng.function
    def outer() -> Any:
        inner()
        inner()
        return v.value

    assert [float(outer()), float(outer())] == [2.0, 4.0]


def test_an_inner_function_may_use_what_the_outer_one_computes() -> None:
    @eng.function
    def outer(x: Any) -> Any:
        y = x * 2.0
        inner = eng.function(lambda z: z + y)  # captures a symbol
        return inner(x) * inner(y)

    assert outer(tensor(1)) == (1 + 2) * (2 + 2)


def test_a_graph_that_captures_symbols_is_not_used_elsewhere() -> None:
    cell: dict[str, Any] = {}
    inner = eng.function(lambda z: z + cell["y"])

    @eng.function
    def outer(x: Any) -> Any:
        cell["y"] = x * 2.0
        return inner(x)

    assert outer(tensor(1)) == 3.0
    assert outer(tensor([1])).tolist() == [3.0]
    cell["y"] = tensor(10)
    assert inner(tensor(1)) == 11.0


def test_devices_pass_into_inner_functions() -> None:
    def pinned(x: Any) -> Any:
        with eng.device("/cpu:1"):
            return x * 2.0

    inner = eng.function(pinned)
    outer = eng.function(lambda x: inner(x) + 1.0)
    with eng.device("/job:worker"):
        graph = outer.concrete(tensor(1)).graph
    devices = {op.type: op.device for op in graph.operations}
    assert devices["Mul"] == "/job:worker/device:cpu:1"
    assert devices["Add"] == "/job:worker"


def test_names_of_inner_functions() -> None:
    def block(x: Any) -> Any:
        return tanh(x)

    inner = eng.function(block)
    graph = eng.function(lambda x: inner(inner(x))).concrete(tensor(1)).graph
    assert [op.name for op in graph.operations] == ["x", "block/Tanh", "block_1/Tanh"]


def test_recursion_on_a_python_value() -> None:
    @eng.function
    def power(x: Any, n: int) -> Any:
        return x * power(x, n - 1) if n else tensor(1)

    assert power(tensor(2), 5) == 32.0
    assert power.trace_count == 6


def test_in_a_plain_graph() -> None:
    c = eng.Variable(0.0)

    @eng.function
    def f(x: Any) -> Any:
        c.assign_add(1.0)
        return x * 2.0

    with eng.Graph().as_default():
        x = eng.placeholder("float32", [], name="x")
        y = f(x)
        with eng.Session() as session:
            assert session.run(y, {x: 3.0}) == 6.0
    assert float(c) == 1.0


# Symbols and values


def test_a_symbol_that_leaks_has_no_value() -> None:
    leaked: list[Any] = []

    @eng.function
    def f(x: Any) -> Any:
        leaked.append(x * 2.0)
        with pytest.raises(FailedPreconditionError, match="is symbolic"):
            leaked[0].numpy()
        return x

    f(tensor(1))
    with pytest.raises(FailedPreconditionError, match="belongs to a function that has been traced"):
        leaked[0] + 1.0
    with pytest.raises(FailedPreconditionError, match="belongs to a function that has been traced"):
        f(leaked[0])


def test_branching_on_a_value() -> None:
    def f(x: Any, y: Any) -> Any:
        if equal(y, tensor(0)):
            return y
        return x / y

    assert f(tensor(2), tensor(2)) == 1.0
    lines, first = inspect.getsourcelines(f)
    with pytest.raises(FailedPreconditionError, match="data-dependent control flow") as caught:
        eng.function(f)(tensor(2), tensor(2))
    assert caught.value.location is not None
    assert caught.value.location.line == first + 1
    assert "if equal(y, tensor(0)):" in str(caught.value)
    assert caught.value.remedy is not None
    assert "cond" in caught.value.remedy
    assert "Python value" in caught.value.remedy


def test_an_error_at_run_time_points_to_the_users_line() -> None:
    @eng.function(input_signature=[TensorSpec([None, None]), TensorSpec([None, None])])
    def f(x: Any, y: Any) -> Any:
        return matmul(x, y)

    line = inspect.getsourcelines(f._fn)[1] + 2
    with pytest.raises(LaminarError, match=r"MatMul.*\[operation 'MatMul'\]") as caught:
        f(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))
    assert f"{__file__}:{line}: return matmul(x, y)" in str(caught.value)
    outer = eng.function(lambda x: f(x, x))
    with pytest.raises(LaminarError, match=r"\[operation 'f/MatMul'\]") as caught:
        outer.concrete(TensorSpec([None, None]))(np.ones((2, 3), np.float32))
    assert f"{__file__}:{line}" in str(caught.value)


# Gradients


@define("TestNoGradientInside", dtypes=FLOATING)
def no_gradient_inside(x: TensorSpec) -> TensorSpec:
    """x, without a rule for its gradient."""
    return x


no_gradient_inside.reference(lambda xp, x: x)


def test_gradient_of_a_composition() -> None:
    f = eng.function(square)
    g = eng.function(lambda x: square(f(x)))
    x = tensor(2)
    assert g(x) == 16.0
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    assert tape.gradient(y, x) == 32.0


def test_gradients_reach_captures() -> None:
    v, frozen = eng.Variable(3.0), eng.Variable(5.0, trainable=False)
    outside = tensor(7)
    f = eng.function(lambda x: x * v * frozen * outside)
    x = tensor(2)
    with eng.GradientTape() as tape:
        tape.watch([x, outside])
        y = f(x)
    found = tape.gradient(y, [x, v, frozen, outside])
    assert [None if g is None else float(g) for g in found] == [105.0, 70.0, None, 30.0]


def test_a_missing_gradient_matters_only_if_it_is_asked_for() -> None:
    f = eng.function(lambda x: no_gradient_inside(x))
    x = tensor(2)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y == 2.0
    with pytest.raises(UnimplementedError, match="TestNoGradientInside has no gradient"):
        tape.gradient(y, x)


def test_what_no_tape_watches_is_not_recorded() -> None:
    f = eng.function(tanh)
    with eng.GradientTape() as tape:
        f(tensor(1))
    assert tape._records == []


def test_results_that_carry_no_gradient() -> None:
    f = eng.function(lambda x: (x * 2.0, cast(x, "int32"), x, x))
    x = tensor(3)
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(x)
        doubled, number, same, again = f(x)
    assert tape.gradient(doubled, x) == 2.0
    assert tape.gradient(number, x) is None
    assert tape.gradient([same, again], x) == 2.0


@pytest.mark.parametrize("order", [2, 3, 4])
def test_derivatives_of_higher_order(order: int) -> None:
    v = eng.Variable(np.asarray(0.7))
    f = eng.function(lambda x: tanh(x * v) * x)
    tapes = [eng.GradientTape() for _ in range(order)]

    def derivative(fn: Any, depth: int, x: Any) -> Any:
        if not depth:
            return fn(x)
        with tapes[depth - 1] as tape:
            tape.watch(x)
            y = derivative(fn, depth - 1, x)
        return tape.gradient(y, x)

    x = eng.convert_to_tensor(np.asarray(0.4))
    found = derivative(f, order, x)
    tapes = [eng.GradientTape() for _ in range(order)]
    expected = derivative(f._fn, order, x)
    assert float(found) == pytest.approx(float(expected), rel=1e-12)


def test_second_order_sees_the_state_of_the_call() -> None:
    v = eng.Variable(np.asarray(1.0))

    def f(x: Any) -> Any:
        v.assign_add(1.0)
        y = v * x * x
        v.assign_add(10.0)
        return y * v

    def second(fn: Any) -> tuple[float, float]:
        v.assign(1.0)
        x = eng.convert_to_tensor(np.asarray(3.0))
        with eng.GradientTape() as outer:
            outer.watch(x)
            with eng.GradientTape() as inner:
                inner.watch(x)
                y = fn(x)
            dx = inner.gradient(y, x)
        ddx = outer.gradient(dx, x)
        return float(ddx), float(v)

    assert second(eng.function(f)) == second(f) == (2 * 2.0 * 12.0, 12.0)


def test_tapes_inside_and_outside() -> None:
    @eng.function
    def slope(x: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        return tape.gradient(y, x)

    x = tensor(2)
    with eng.GradientTape() as tape:
        tape.watch(x)
        dx = slope(x)
    assert (dx, tape.gradient(dx, x)) == (12.0, 12.0)


@settings(max_examples=30, deadline=None)
@given(programs.programs(), st.integers(0, 2**31))
def test_random_programs_agree(program: programs.Program, seed: int) -> None:
    """NumPy, eager, function and Session; then gradients of the last three, twice."""
    inputs = list(np.random.default_rng(seed).normal(size=(2, 2, 2)))
    tensors = [eng.convert_to_tensor(x) for x in inputs]

    def last(*xs: Any) -> Any:
        return programs.run(program, xs)[-1]

    eager, traced = last(*tensors), eng.function(last)
    np.testing.assert_allclose(eager.numpy(), programs.reference(program, inputs)[-1], rtol=1e-12)
    np.testing.assert_array_equal(traced(*tensors).numpy(), eager.numpy())
    with eng.Graph().as_default():
        xs = [eng.placeholder("float64", [2, 2], name=n) for n in "ab"]
        y = traced(*xs)
        with eng.Session() as session:
            np.testing.assert_array_equal(
                session.run(y, dict(zip(xs, inputs, strict=True))), eager.numpy()
            )

    def slopes(fn: Any) -> list[Any]:
        with eng.GradientTape() as outer:
            outer.watch(tensors)
            with eng.GradientTape() as inner:
                inner.watch(tensors)
                result = fn(*tensors)
            first = inner.gradient(result, tensors, unconnected_gradients="zero")
            total = reduce_sum(square(first[0])) + reduce_sum(square(first[1]))
        return [*first, *outer.gradient(total, tensors, unconnected_gradients="zero")]

    for a, b in zip(slopes(last), slopes(traced), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)
