"""The pipeline: names, order, passes of other people, and `verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar.engine.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, square
from laminar.engine.ops.nn.activations import relu
from laminar.engine.passes import StepGraph, client_graph, run_passes, verify

runs: list[str] = []


@define("TestFused", dtypes=FLOATING)
def fused(a: TensorSpec, b: TensorSpec, c: TensorSpec) -> TensorSpec:
    """relu(a @ b + c)."""
    return TensorSpec((a.shape[0], b.shape[1]), a.dtype)


@fused.reference
def _fused(xp: Any, a: Any, b: Any, c: Any) -> Any:
    runs.append("fused")
    return xp.maximum(a @ b + c, 0)


def fuse(program: StepGraph) -> None:
    """MatMul, Add and Relu as one operation."""
    for op in program.operations:
        if op.type == "Relu" and op.inputs[0].op.type == "Add":
            product, bias = op.inputs[0].op.inputs
            if product.op.type == "MatMul":
                one = program.add(fused, [*product.op.inputs, bias], like=op)
                program.replace([(op.outputs[0], one.outputs[0])])


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test, and no passes left behind."""
    runs.clear()
    before = eng.pass_names()
    with eng.Graph().as_default() as fresh:
        yield fresh
    for name in eng.pass_names():
        if name not in before:
            eng.unregister_pass(name)


def layer(x: Any, w: Any, b: Any) -> Any:
    return relu(add(matmul(x, w), b))


A = np.array([[1, -2]], np.float32)
W = np.array([[1, 2], [3, -4]], np.float32)
B = np.array([0.5, 0.25], np.float32)


def test_a_pass_of_somebody_else_reaches_functions() -> None:
    eng.register_pass("fuse", fuse)
    with eng.eager_scope():
        call = eng.function(layer)
        y = call(eng.constant(A), eng.constant(W), eng.constant(B))
    np.testing.assert_array_equal(y.numpy(), np.maximum(A @ W + B, 0))
    assert runs == ["fused"]


def test_a_pass_of_somebody_else_reaches_sessions() -> None:
    x = eng.placeholder("float32", [None, 2], name="x")
    y = layer(x, W, B)
    eng.register_pass("fuse", fuse, before="merge_common")
    assert eng.pass_names().index("fuse") == eng.pass_names().index("merge_common") - 1
    with eng.Session() as session:
        np.testing.assert_array_equal(session.run(y, {x: A}), np.maximum(A @ W + B, 0))
        assert runs == ["fused"]
    eng.unregister_pass("fuse")
    with eng.Session() as session:
        session.run(y, {x: A})
    assert runs == ["fused"]


def _raises(program: StepGraph) -> None:
    program.fetches.clear()
    raise ValueError("broken pass")


def _wrong_type(program: StepGraph) -> None:
    op = program.operations[-1]
    one = program.graph.append(op.definition, "one", op.inputs, op.attrs, (), like=op)
    program.targets.append(one)


def _circle(program: StepGraph) -> None:
    op = program.operations[-1]
    op.control_inputs = [program.graph.append(fused, "c", (), {}, (), like=op)]
    op.control_inputs[0].control_inputs = [op]


@pytest.mark.parametrize(
    ("run", "message"),
    [(_raises, "broken pass"), (_wrong_type, "has 0 outputs"), (_circle, "'")],
)
def test_a_pass_that_fails_changes_nothing(run: Callable[[StepGraph], None], message: str) -> None:
    eng.register_pass("bad", run)
    y = square(eng.constant(3.0))
    with (
        eng.Session() as session,
        pytest.warns(RuntimeWarning, match=f"the pass 'bad' failed.*{message}"),
    ):
        assert session.run(y) == 9.0


def test_names_of_passes() -> None:
    with pytest.raises(AlreadyExistsError, match="a pass 'simplify' already"):
        eng.register_pass("simplify", fuse)
    with pytest.raises(NotFoundError, match="no pass 'nothing'"):
        eng.register_pass("fuse", fuse, before="nothing")
    with pytest.raises(InvalidArgumentError, match="must be a function"):
        eng.register_pass("fuse", "fuse")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidArgumentError, match="belongs to laminar"):
        eng.unregister_pass("simplify")
    with pytest.raises(NotFoundError):
        run_passes(StepGraph.of([]), ["nothing"])


def test_the_graph_of_the_user_stays_as_it_is(graph: eng.Graph) -> None:
    x = eng.placeholder("float32", [2], name="x")
    y: Any = add(square(x, name="a"), square(x, name="b"), name="y")
    before = graph.as_graph_def()
    program = run_passes(StepGraph.of([y], [x]), check=True)
    assert graph.as_graph_def() == before
    names = [op.name for op in program.graph.operations]
    assert names == ["x", "a", "y"]
    assert all(op.graph is not graph for op in program.graph.operations)


def test_only_the_passes_named_run() -> None:
    x = eng.placeholder("float32", [2], name="x")
    y: Any = add(square(x), square(x))
    program = run_passes(StepGraph.of([y], [x]), ["fold_constants", "simplify"], check=True)
    assert len(program.operations) == 3


def test_targets_and_control_edges_follow() -> None:
    v = eng.Variable(0.0, name="v")
    x = eng.placeholder("float32", [], name="x")
    one: Any = square(x)
    two: Any = square(x)
    with eng.control_dependencies([two]):
        update = v.assign_add(1.0)
    with eng.Session(config=eng.SessionConfig(optimize=True)) as session:
        session.run(v.initializer)
        session.run([one, two.op, update], {x: 2.0})
        assert session.run(v) == 1.0
        with pytest.raises(InvalidArgumentError, match="was not fed"):
            session.run(update)


# Verify


def program() -> StepGraph:
    x = eng.placeholder("float32", [2, 2], name="x")
    y: Any = matmul(x, square(x, name="a"), name="y")
    return StepGraph.of([y], [x])


def _named(p: StepGraph, name: str) -> eng.Operation:
    return p.graph.get_operation_by_name(name)


def _foreign_input(p: StepGraph) -> None:
    _named(p, "a").inputs = (program().feeds[0],)


def _foreign_control(p: StepGraph) -> None:
    _named(p, "a").control_inputs.append(program().feeds[0].op)


def _foreign_fetch(p: StepGraph) -> None:
    p.fetches = program().fetches


def _cycle(p: StepGraph) -> None:
    _named(p, "a").inputs = (_named(p, "y").outputs[0],)


def _wrong_shape(p: StepGraph) -> None:
    vector = eng.placeholder("float32", [3], name="z")
    other = StepGraph.of([vector]).operations[0]
    made = p.graph.append(other.definition, "z", (), other.attrs, (vector.spec,), like=other)
    _named(p, "y").inputs = (p.feeds[0], made.outputs[0])


def _fed_twice_over(p: StepGraph) -> None:
    p.feeds.append(_named(p, "a").outputs[0])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_foreign_input, "'a' .Square. takes x_1:0, which is not in its graph"),
        (_foreign_control, "'a' .Square. waits for 'x_1', which is not in its graph"),
        (_foreign_fetch, r"%y_1: f32.* = MatMul.*\n  is fetched, and is not in"),
        (_cycle, "waits for itself, through"),
        (_wrong_shape, "'y' .MatMul. does not take its inputs"),
        (_fed_twice_over, "'a' .Square. is fed and is not a placeholder"),
    ],
)
def test_verify_finds(damage: Callable[[StepGraph], None], message: str) -> None:
    whole = program()
    verify(whole)
    damage(whole)
    with pytest.raises(InternalError, match=message):
        verify(whole)


def test_verify_shows_the_neighbours() -> None:
    whole = program()
    _cycle(whole)
    with pytest.raises(InternalError) as caught:
        verify(whole)
    assert "  takes %a: f32[2, 2] = Square(%y)  # test_pipeline.py" in str(caught.value)


# Client graphs


def test_feeds_and_fetches_become_operations() -> None:
    x = eng.placeholder("float32", [2], name="inx")
    a: Any = square(x, name="ina")
    users: list[Any] = [square(a, name=f"u{i}") for i in range(3)]
    f: Any = add(add(users[0], users[1]), users[2], name="f")
    square(x, name="other")
    made = client_graph([f, users[0].op], [a])
    names = {op.name for op in made.graph.operations}
    assert {"_arg_ina_0", "_retval_f_0_0", "_retval_u0_1", "f"} <= names
    assert not names & {"ina", "inx", "other"}
    (arg,) = [op for op in made.graph.operations if op.type == "_Arg"]
    takers = [op.name for op in made.graph.operations if any(x.op is arg for x in op.inputs)]
    assert sorted(takers) == ["u0", "u1", "u2"]
    verify(made)


# Who goes through it


def test_every_step_goes_through_it() -> None:
    """What a pass that comes last sees has been through those before."""
    seen: list[StepGraph] = []
    eng.register_pass("look", seen.append)
    assert eng.pass_names() == [
        *["prune", "order_initializers", "rewrite_bodies", "fold_constants", "simplify"],
        *["merge_common", "remove_dead"],
        *["look", "lower_control_flow", "place", "partition", "cluster", "schedule"],
    ]

    def twice(x: Any) -> Any:
        return add(square(x), square(x))

    def counts(kind: str) -> list[int]:
        found = [[op.type for op in step.operations].count(kind) for step in seen]
        seen.clear()
        return found

    x = eng.placeholder("float32", [2], name="x")
    value = np.ones(2, np.float32)
    for config, left in (
        (eng.SessionConfig(jit_compile=False), 2),  # there may be no other run
        (eng.SessionConfig(jit_compile=True), 1),
    ):
        with eng.Session(config=config) as session:
            session.run(twice(x), {x: value})
        assert counts("Square") == [left]
    with eng.eager_scope():
        for compiled in (False, True):
            eng.function(twice, jit_compile=compiled)(eng.constant(value))
            assert counts("Square") == [1]
            model = laminar.Sequential([laminar.layers.Input((3,)), laminar.layers.Dense(2)])
            model.compile("adam", "mse", jit_compile=compiled)
            model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
            assert counts("Pow") == [2]  # of beta_1 and beta_2, for all weights


def test_there_is_no_pass_to_run_before_where_graphs_are_not_rewritten() -> None:
    for name in ("prune", "place", "cluster"):
        with pytest.raises(NotFoundError, match=f"no pass '{name}' rewrites a graph"):
            eng.register_pass("fuse", fuse, before=name)
