"""Folding, merging and simplifying: what is left to run, and that every bit stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar import random
from laminar.engine.functions import remat, while_loop
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import DENSE, TensorSpec
from laminar.engine.ops.array.axes import expand_dims, transpose
from laminar.engine.ops.array.broadcast import broadcast_to
from laminar.engine.ops.array.shape import reshape_op, shape_of, size_of
from laminar.engine.ops.core.basic import identity, stop_gradient
from laminar.engine.ops.core.registry import define, lookup
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math import arithmetic as ar
from laminar.engine.ops.math.cast import cast, cast_op
from laminar.engine.ops.math.compare import less, logical_not
from laminar.engine.ops.math.elementary import tanh
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.passes import StepGraph, prepare, run_passes
from tests.engine import programs

runs: list[str] = []


def test_dumps_show_a_graph_before_and_after_each_pass_that_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))
    x = eng.placeholder("float32", (2,))
    y: Any = identity(ar.multiply(x, x), name="top")
    run_passes(StepGraph.of([y], [x]), ["simplify", "merge_common"])
    stages = {path.name: path.read_text() for path in tmp_path.iterdir()}
    # What changes nothing is not written.
    assert sorted(stages) == ["0001_top.given.txt", "0002_top.simplify.txt", "README.txt"]
    assert "Identity" in stages["0001_top.given.txt"]
    assert "Identity" not in stages["0002_top.simplify.txt"]


@define("TestRewritten", dtypes=DENSE)
def counted(*xs: TensorSpec, label: Any = "") -> TensorSpec:
    """The first input, counting runs."""
    return xs[0]


@counted.reference
def _counted(xp: Any, *xs: Any, label: Any = "") -> Any:
    runs.append(label)
    return xs[0]


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test."""
    runs.clear()
    with eng.Graph().as_default() as fresh:
        yield fresh


def given_matrix(dtype: str = "float32", shape: Any = (2, 3), name: str = "x") -> Any:
    return eng.placeholder(dtype, shape, name=name)


def rewritten(*fetches: Any, feeds: Any = ()) -> StepGraph:
    return run_passes(StepGraph.of(fetches, feeds), check=True)


def left(*fetches: Any, feeds: Any = ()) -> list[str]:
    """The types of the operations that run, without constants."""
    found = rewritten(*fetches, feeds=feeds).operations
    return sorted(op.type for op in found if op.type not in ("Const", "Placeholder"))


def optimized() -> eng.Session:
    return eng.Session(config=eng.SessionConfig(optimize=True))


# Simplification: (type, expression of x, what is left of it)
SAME: list[Any] = [
    ("float32", lambda x: ar.add(x, -0.0), []),
    ("float32", lambda x: ar.add(-0.0, x), []),
    ("float32", lambda x: ar.add(x, 0.0), ["Add"]),  # -0.0 + 0.0 is 0.0
    ("int32", lambda x: ar.add(x, 0), []),
    ("int32", lambda x: ar.add(x, np.zeros((1, 1), np.int32)), []),
    ("int32", lambda x: ar.add(x, np.zeros((1, 1, 1), np.int32)), ["Add"]),  # another shape
    ("int32", lambda x: ar.add(x, np.zeros((2, 3), np.int32)), ["Add"]),
    ("float32", lambda x: ar.subtract(x, 0.0), []),
    ("float32", lambda x: ar.subtract(x, -0.0), ["Sub"]),
    ("float32", lambda x: ar.subtract(0.0, x), ["Sub"]),
    ("float32", lambda x: ar.multiply(x, 1.0), []),
    ("float32", lambda x: ar.multiply(1.0, x), []),
    ("bfloat16", lambda x: ar.multiply(x, eng.constant(1.0, "bfloat16")), []),
    ("float16", lambda x: ar.add(x, eng.constant(-0.0, "float16")), []),
    ("float32", lambda x: ar.multiply(x, 0.0), ["Mul"]),  # infinity times 0 is a NaN
    ("complex64", lambda x: ar.multiply(x, eng.constant(1, "complex64")), ["Mul"]),
    ("float32", lambda x: ar.divide(x, 1.0), []),
    ("float32", lambda x: ar.divide(1.0, x), ["Div"]),
    ("float32", lambda x: ar.negative(ar.negative(x)), []),
    ("float32", lambda x: ar.negative(ar.negative(ar.negative(x))), ["Neg"]),
    ("float32", lambda x: ar.reciprocal(ar.reciprocal(x)), ["Reciprocal"] * 2),
    ("bool", lambda x: logical_not(logical_not(x)), []),
    ("float32", lambda x: identity(stop_gradient(identity(x))), []),
    ("float32", lambda x: transpose(transpose(x)), []),
    ("float32", lambda x: transpose(x, (0, 1)), []),
    (
        "float32",
        lambda x: transpose(transpose(expand_dims(x, 0), (2, 0, 1))),
        ["ExpandDims", "Transpose"],
    ),
    ("float32", lambda x: cast_op(x, dtype="float32"), []),
    ("float32", lambda x: cast(cast(x, "float64"), "float32"), []),
    ("int8", lambda x: cast(cast(x, "int32"), "int8"), []),
    ("int64", lambda x: cast(cast(x, "float32"), "int64"), ["Cast", "Cast"]),
    ("float32", lambda x: cast(cast(x, "float16"), "float32"), ["Cast", "Cast"]),
    ("float32", lambda x: lookup("BroadcastTo")(x, shape=(2, 3)), []),
    ("float32", lambda x: broadcast_to(x, (2, 2, 3)), ["BroadcastTo"]),
    ("float32", lambda x: lookup("SumTo")(x, shape=(2, 3)), []),
    ("float32", lambda x: reshape_op(x, shape=(2, 3)), []),
    ("float32", lambda x: reshape_op(reshape_op(x, shape=(6,)), shape=(2, -1)), []),
    ("float32", lambda x: reshape_op(reshape_op(x, shape=(6,)), shape=(3, 2)), ["Reshape"]),
    ("float32", lambda x: ar.multiply(ar.add(identity(x), -0.0), 1.0), []),
]
SPECIAL = [[-0.0, 0.0, 1.5], [float("inf"), float("nan"), -3.0]]


@pytest.mark.parametrize(("dtype", "make", "expected"), SAME)
def test_what_gives_its_input_is_left_out(
    dtype: str, make: Callable[[Any], Any], expected: list[str]
) -> None:
    x = given_matrix(dtype)
    y = make(x)
    assert left(y, feeds=[x]) == expected
    floating = eng.as_dtype(dtype).is_floating or eng.as_dtype(dtype).is_complex
    value: Any = np.array(SPECIAL if floating else [[0, 1, 2], [3, 4, 5]])
    value = value.astype(x.dtype.numpy)
    with eng.Session() as plain, optimized() as session:
        one, two = plain.run(y, {x: value}), session.run(y, {x: value})
    assert one.dtype == two.dtype
    assert one.shape == two.shape
    assert one.tobytes() == two.tobytes()


def test_an_unknown_shape_is_not_taken_for_another() -> None:
    x = given_matrix(shape=None)
    row = given_matrix(shape=[None, 3], name="row")
    assert left(ar.multiply(x, eng.constant([[1.0]])), feeds=[x]) == ["Mul"]
    assert left(ar.multiply(row, 1.0), feeds=[row]) == []
    assert left(ar.multiply(row, eng.constant([1.0, 1.0, 1.0])), feeds=[row]) == ["Mul"]


def test_what_waits_stays() -> None:
    v = eng.Variable(0.0, name="v")
    x = given_matrix()
    with eng.control_dependencies([v.assign_add(1.0)]):
        y = identity(x)
    with optimized() as session:
        session.run(v.initializer)
        session.run(y, {x: SPECIAL})
        assert session.run(v) == 1.0


def test_an_operation_moves_to_no_other_device() -> None:
    x = given_matrix()
    with eng.device("cpu:1"):
        y = identity(x)
    assert left(y, feeds=[x]) == ["Identity"]


# Folding


def test_constants_are_folded() -> None:
    x = given_matrix()
    table: Any = counted(ar.multiply(eng.constant([[1.0, 2.0, 3.0]]), 2.0), label="table")
    y = ar.add(x, table)
    assert left(y, feeds=[x]) == ["Add"]
    runs.clear()
    with optimized() as session:
        for _ in range(3):
            np.testing.assert_array_equal(session.run(y, {x: np.ones((2, 3))})[0], [3, 5, 7])
    assert runs == ["table"]


def test_shapes_are_folded_where_they_are_known() -> None:
    x, row = given_matrix(), given_matrix(shape=[None, 3], name="row")
    with optimized() as session:
        assert session.run(shape_of(x)).tolist() == [2, 3]  # nothing is fed
        assert session.run(size_of(x)) == 6
    assert left(shape_of(row), feeds=[row]) != []


def test_what_a_shape_is_asked_of_still_runs() -> None:
    v = eng.Variable(np.zeros((2, 3)), name="v", dtype="float32")
    shape = shape_of(v.assign_add(np.ones((2, 3), np.float32)))
    with optimized() as session:
        session.run(v.initializer)
        assert session.run(shape).tolist() == [2, 3]
        assert session.run(v).tolist() == np.ones((2, 3)).tolist()


def test_what_fails_fails_when_it_runs() -> None:
    bad = lookup("MatrixInverse")(eng.constant(np.zeros((2, 2), np.float32)))
    other = eng.constant(1.0)
    assert left(bad) == ["MatrixInverse"]
    with optimized() as session:
        assert session.run(other) == 1.0
        with pytest.raises(eng.errors.InvalidArgumentError, match="MatrixInverse"):
            session.run(bad)


def test_large_results_are_not_kept() -> None:
    big = broadcast_to(eng.constant(1.0), (1000, 1000))
    assert left(reduce_sum(big)) == ["BroadcastTo", "Sum"]


def test_a_fed_constant_is_not_folded() -> None:
    c = eng.constant(2.0)
    y = ar.square(c)
    with optimized() as session:
        assert session.run(y) == 4.0
        assert session.run(y, {c: 3.0}) == 9.0


# Merging


def test_copies_of_one_computation_are_one() -> None:
    a, b = given_matrix(shape=[2, 2], name="a"), given_matrix(shape=[2, 2], name="b")
    products = [counted(matmul(a, b, name=f"m{i}"), label="product") for i in range(3)]
    ys = [ar.square(products[0]), ar.negative(products[1]), ar.add(products[2], 1.0)]
    assert left(*ys, feeds=[a, b]).count("MatMul") == 1
    feeds = {a: [[1, 2], [3, 4]], b: [[0, 1], [1, 0]]}
    with eng.Session() as plain, optimized() as session:
        expected = plain.run(ys, feeds)
        runs.clear()
        found = session.run([*ys, "m1:0", "m2:0"], feeds)
    assert runs == ["product"]
    for one, two in zip(expected, found[:3], strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(found[3], [[2, 1], [4, 3]])
    np.testing.assert_array_equal(found[4], [[2, 1], [4, 3]])


def test_a_fed_copy_is_another_value() -> None:
    x = given_matrix(shape=[])
    one, two = ar.square(x), ar.square(x)
    with optimized() as session:
        assert session.run([one, two], {x: 3.0, two: 5.0}) == [9.0, 5.0]
        assert session.run([one, two], {x: 3.0}) == [9.0, 9.0]


def test_inputs_that_can_be_exchanged() -> None:
    a, b = given_matrix(name="a"), given_matrix(name="b")
    assert left(ar.multiply(a, b), ar.multiply(b, a), feeds=[a, b]) == ["Mul"]
    assert left(ar.maximum(a, b), ar.maximum(b, a), feeds=[a, b]) == ["Maximum"] * 2
    assert left(ar.subtract(a, b), ar.subtract(b, a), feeds=[a, b]) == ["Sub"] * 2


@pytest.mark.parametrize(
    ("one", "two", "count"),
    [
        (1.0, 1.0, 1),
        (0.0, -0.0, 2),
        (1, True, 2),
        (1, 1.0, 2),
        (float("nan"), float("nan"), 1),
        ("a", "b", 2),
        ((1, 2), (1, 2), 1),
        ((1, 0.0), (1, -0.0), 2),
    ],
)
def test_attributes_are_compared_by_their_bits(one: Any, two: Any, count: int) -> None:
    x = given_matrix()
    found = left(counted(x, label=one), counted(x, label=two), feeds=[x])
    assert found == ["TestRewritten"] * count


def test_state_is_never_merged() -> None:
    v = eng.Variable(1.0, name="v")
    before = v.read_value()
    with eng.control_dependencies([before]):
        update = v.assign_add(1.0)
    with eng.control_dependencies([update]):
        after = v.read_value()
    queue = eng.FIFOQueue(4, ["float32"], [[]])
    put = queue.enqueue_many([eng.constant([1.0, 2.0])])
    takes = [queue.dequeue(), queue.dequeue()]
    with optimized() as session:
        session.run(v.initializer)
        assert session.run([before, after]) == [1.0, 2.0]
        session.run(put)
        assert sorted(session.run(takes)) == [1.0, 2.0]


def test_random_draws_are_never_merged() -> None:
    seeds = random.SeedGenerator(3)
    a, b = (random.uniform((4,), seed=seeds) for _ in range(2))
    with optimized() as session:
        session.run(eng.global_variables_initializer())
        one, two = session.run([a, b])
    assert not np.array_equal(one, two)


def test_control_edges_are_kept_apart() -> None:
    v = eng.Variable(0.0, name="v")
    x = given_matrix()
    with eng.control_dependencies([v.assign_add(1.0)]):
        a = ar.square(x)
    b = ar.square(x)
    assert left(a, b, feeds=[x]).count("Square") == 2
    with optimized() as session:
        session.run(v.initializer)
        session.run(b, {x: SPECIAL})
        assert session.run(v) == 0.0
        session.run([a, b], {x: SPECIAL})
        assert session.run(v) == 1.0


def test_two_constant_subgraphs_are_computed_once() -> None:
    def table() -> Any:
        return counted(ar.square(eng.constant([2.0, 3.0])), label="table")

    y = ar.add(table(), table())
    with optimized() as session:
        for _ in range(2):
            np.testing.assert_array_equal(session.run(y), [8.0, 18.0])
    assert len(runs) <= 2  # when the plan is made, and not in a step


@given(programs.programs(), st.integers(0, 30), st.integers(0, 30))
def test_random_graphs(program: programs.Program, pick: int, feed: int) -> None:
    arrays = [np.array([[0.5, -0.0], [2.0, 1.0]], np.float32), np.eye(2, dtype=np.float32)]
    with eng.Graph().as_default():
        x = given_matrix(shape=[2, 2])
        values = programs.run(program, [x, eng.constant(arrays[1])])
        wanted = [values[pick % len(values)], values[-1]]
        fed = values[feed % len(values)]
        feeds = {x: arrays[0]} | ({fed: arrays[1]} if fed is not x else {})
        rewritten(*wanted, feeds=list(feeds))
        with eng.Session() as plain, optimized() as session:
            for one, two in zip(plain.run(wanted, feeds), session.run(wanted, feeds), strict=True):
                assert one.tobytes() == two.tobytes()


# Reads of variables


def types_of(step: StepGraph) -> list[str]:
    """The types of what runs, in order, without constants and what is given."""
    silent = ("Const", "Placeholder")
    return [op.type for op in step.operations if op.type not in silent]


def traced(f: Callable[..., Any], *specs: TensorSpec, compiled: bool = False) -> StepGraph:
    """The graph of a function after laminar's passes."""
    with eng.eager_scope():
        concrete = eng.function(f).concrete(*specs)
    feeds = [*concrete.inputs, *concrete.captured_inputs]
    step = StepGraph(concrete.outputs, feeds, concrete.effects)
    step.compiled = compiled
    return prepare(step, optimize=True).step


def test_reads_between_the_same_updates_are_one() -> None:
    with eng.eager_scope():
        v, w = eng.Variable(1.0), eng.Variable(2.0)

    def f() -> Any:
        a = ar.square(v.value)
        b = ar.square(v.value)
        w.assign_add(ar.add(a, b))
        c = ar.square(v.value)  # the update was of another variable
        v.assign_add(c)
        d = ar.square(v.value)
        return ar.add(ar.square(v.value), d)

    assert types_of(traced(f)) == [
        *["ReadVariable", "Square", "Add", "AssignAdd"],
        *["AssignAdd", "Square", "Add"],  # what is read is what the update gives
    ]
    with eng.eager_scope():
        assert eng.function(f, jit_compile=False)().numpy() == 8.0
        assert (v.numpy(), w.numpy()) == (2.0, 4.0)


def test_reads_of_a_plain_graph_stay_on_their_side_of_an_update() -> None:
    v = eng.Variable(3.0, name="v")
    before = ar.square(v.value)
    with eng.control_dependencies([before]):
        update = v.assign_add(1.0)
    with eng.control_dependencies([update]):
        after: Any = ar.square(v.value)
        again: Any = ar.square(v.value)
    with optimized() as session:
        session.run(v.initializer)
        assert session.run([before, after, again]) == [9.0, 16.0, 16.0]


# Loops and conditions


def test_the_graphs_inside_are_rewritten() -> None:
    def f(x: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            return ar.add(i, 1), ar.add(ar.multiply(ar.square(a), 1.0), ar.square(a))

        (_, y) = while_loop(lambda i, a: less(i, 3), body, (0, x))
        return y

    spec = TensorSpec([2, 2], "float32")
    (loop,) = (op for op in traced(f, spec).operations if op.type == "While")
    body = loop.attrs["body"]
    inside = [op.type for op in body.operations_for(body.outputs)]
    assert sorted(t for t in inside if t not in ("Const", "Placeholder")) == [
        *["Add", "Add", "Square"]
    ]
    x = np.full((2, 2), 0.5, np.float32)
    expected = x
    for _ in range(3):
        expected = 2 * expected**2
    with eng.eager_scope():
        for compiled in (False, True):
            y = eng.function(f, jit_compile=compiled)(eng.constant(x))
            np.testing.assert_array_equal(y.numpy(), expected)


def test_what_is_computed_again_for_a_gradient_stays_apart() -> None:
    def f(x: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(x)
            y = remat(lambda a: ar.square(tanh(a)))(x)
        return y, tape.gradient(y, x)

    found = types_of(traced(f, TensorSpec([4], "float32"), compiled=True))
    assert found.count("Tanh") == 2
    assert "Barrier" in found


# What is to be compiled


def test_only_what_has_the_same_bits_is_folded_where_it_is_compiled() -> None:
    def f(x: Any) -> Any:
        size = ar.add(eng.constant(2), eng.constant(3))
        row = broadcast_to(eng.constant([1.0, 2.0, 3.0]), (2, 3))
        return ar.add(ar.multiply(x, cast(size, "float32")), tanh(row))

    spec = TensorSpec([2, 3], "float32")
    assert types_of(traced(f, spec)) == ["Mul", "Add"]
    assert types_of(traced(f, spec, compiled=True)) == ["Mul", "Tanh", "Add"]


def test_an_operation_without_outputs_stays_where_all_is_compiled() -> None:
    """There is nothing that could stand for it."""
    with (
        eng.Graph().as_default(),
        eng.Session(config=eng.SessionConfig(jit_compile=True)) as session,
    ):
        assert session.run([eng.no_op(), eng.constant(1.0) + 1.0])[1] == 2.0
