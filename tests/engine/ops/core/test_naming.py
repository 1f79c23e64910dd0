"""`name=` of the functions that build operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, ops, random
from laminar.engine.graph import GraphTensor
from laminar.ops.recording import public


def name_of(tensor: Any) -> str:
    """The name of the operation that makes a symbol."""
    found: str = tensor.op.name
    return found


def x(graph: engine.Graph) -> GraphTensor:
    with graph.as_default():
        return engine.placeholder("float32", [None, 3], name="x")


@pytest.mark.parametrize(
    ("build", "made"),
    [
        (lambda x: ops.add(x, 1.0, name="y"), ["y/Const", "y"]),
        (lambda x: ops.mean(x, axis=1, name="y"), ["y"]),
        (lambda x: ops.split(x, 3, axis=1, name="y")[1], ["y"]),
        (lambda x: ops.convert_to_tensor(x, name="y"), ["y"]),
        (lambda x: ops.convert_to_tensor(2.0, name="y"), ["y"]),
        (lambda x: engine.convert_to_tensor([2.0], name="y"), ["y"]),
        (lambda x: random.uniform([2], name="y"), None),
        (lambda x: ops.nn.silu(x, name="y"), None),
        (lambda x: engine.read_file("nothing", name="y"), ["Const", "y"]),
    ],
)
def test_the_operation_of_the_result_has_the_name(build: Any, made: list[str] | None) -> None:
    graph = engine.Graph()
    symbol = x(graph)
    with graph.as_default():
        y = build(symbol)
    assert y.op.name == "y"
    assert graph.get_operation_by_name("y") is y.op
    names = [op.name for op in graph.operations[1:]]
    if made is None:
        assert all(name == "y" or name.startswith("y/") for name in names)
    else:
        assert names == made
    assert [op.id for op in graph.operations] == list(range(len(graph.operations)))


def test_scopes_and_a_name_that_is_taken() -> None:
    graph = engine.Graph()
    symbol = x(graph)
    with graph.as_default(), engine.name_scope("s") as scope:
        assert name_of(ops.exp(symbol, name="x")) == "s/x"
        assert name_of(ops.exp(symbol, name="x")) == "s/x_1"
        assert name_of(ops.exp(symbol)) == "s/Exp"
        with engine.name_scope("t"):
            assert name_of(ops.exp(symbol, name=scope)) == "s"  # the operation the scope is for
    assert name_of(ops.exp(symbol, name="late")) == "late"  # the symbol tells which graph


def test_the_value_is_fetched_by_the_name() -> None:
    graph = engine.Graph()
    symbol = x(graph)
    with graph.as_default():
        w = engine.Variable([1.0, 2.0], name="w")
        engine.assign_add(w, [1.0, 1.0], name="more")
        ops.var(symbol, axis=1, name="spread")
        with engine.Session() as session:
            session.run(engine.global_variables_initializer(name="start"))
            np.testing.assert_array_equal(session.run("more:0"), [2.0, 3.0])
            values = np.asarray([[1, 2, 4], [0, 0, 3]], "float32")
            found = session.run("spread:0", {"x:0": values})
            np.testing.assert_allclose(found, values.var(axis=1), rtol=1e-6)


def test_what_is_colocated_with_the_operation_stays_so() -> None:
    graph = engine.Graph()
    symbol = x(graph)

    @public
    def both(x: Any) -> Any:
        first = ops.exp(x)
        with engine.colocate_with(first):
            ops.sin(x)
        return first

    with graph.as_default():
        first = both(symbol, name="first")
    assert name_of(first) == "first"
    assert [op.name for op in graph.operations] == ["x", "first", "first/Sin"]
    assert graph.operations[2].colocation == ("first",)


def test_a_finalized_graph_and_bad_names() -> None:
    graph = engine.Graph()
    symbol = x(graph)
    with pytest.raises(laminar.errors.InvalidArgumentError, match="not a name"):
        ops.exp(symbol, name="no\nname")
    graph.finalize()
    with pytest.raises(laminar.errors.FailedPreconditionError, match="finalized"):
        graph.rename(symbol.op, "z")
    assert symbol.op.name == "x"


def test_what_computes_at_once_has_no_name() -> None:
    assert ops.add(1, 2, name="y").numpy() == 3
    assert engine.convert_to_tensor(3.0, name="y").numpy() == 3.0
    w = laminar.Variable([1.0])
    np.testing.assert_array_equal(engine.assign(w, [2.0], name="y").numpy(), [2.0])


def test_in_a_function_and_in_a_model() -> None:
    @engine.function
    def f(x: Any) -> Any:
        return ops.exp(x, name="y")

    concrete = f.concrete(engine.TensorSpec([2], "float32"))
    assert "y" in concrete.graph
    model = laminar.Model(i := laminar.Input((3,)), ops.exp(i, name="y"))
    assert model.get_config()["layers"][-1]["config"] == {"name": "y"}
