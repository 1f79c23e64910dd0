"""Importing a GraphDef: names, what is given and returned, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    AlreadyExistsError,
    DataLossError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
    ShapeError,
    UnimplementedError,
)
from laminar.engine.graph import TensorSpec
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import add, multiply, square

from .samples import load, sample


@define("_TestInternal")
def internal() -> TensorSpec:
    """An op that only laminar adds."""
    return TensorSpec(())


@define("TestDivides")
def divides(x: TensorSpec, *, by: Any) -> TensorSpec:
    """A rule that fails on attributes it does not expect."""
    return TensorSpec([4 // by], x.dtype)


def test_names_are_put_under_a_scope() -> None:
    graph_def = sample().as_graph_def()
    with eng.Graph().as_default() as graph:
        eng.import_graph_def(graph_def)
        eng.import_graph_def(graph_def)
        with eng.name_scope("outer"):
            eng.import_graph_def(graph_def, name="inner")
    names = {op.name for op in graph.operations}
    for prefix in ("import/", "import_1/", "outer/inner/"):
        assert {prefix + op.name for op in sample().operations} <= names
    assert graph.get_operation_by_name("import/layer/w/read").colocation == ("import/layer/w",)
    assert len(names) == 3 * len(graph_def.message.node)


def test_names_are_taken_literally() -> None:
    graph_def = GraphDef()
    for name in ("A", "a", "a_1", "b/a"):
        graph_def.message.node.add(name=name, op="NoOp")
    assert [op.name for op in load(graph_def).operations] == ["A", "a", "a_1", "b/a"]


def test_input_map_and_return_elements() -> None:
    with eng.Graph().as_default() as graph:
        x: Any = eng.placeholder("float32", [None], name="x")
        before = eng.no_op("before")
        with eng.control_dependencies([before]):
            y = multiply(x, x, name="y")
        add(y, x, name="z")
    graph_def = graph.as_graph_def()
    with eng.Graph().as_default() as target:
        given: Any = eng.placeholder("float32", [3], name="given")
        after = eng.no_op("after")
        y_new, op, z_new = eng.import_graph_def(
            graph_def, {"x:0": given, "^before": after}, ["y:0", "y", "z:0"]
        )
        (constant,) = eng.import_graph_def(graph_def, {"x": 5.0 * np.ones(2, "f4")}, ["z:0"])
        with eng.Session() as session:
            found = session.run([z_new, constant], {given: [1.0, 2.0, 3.0]})
    assert [f.tolist() for f in found] == [[2.0, 6.0, 12.0], [30.0, 30.0]]
    assert isinstance(y_new, eng.GraphTensor)
    assert y_new.op is op
    assert y_new.op.control_inputs == [after]
    assert y_new.shape == (3,)  # shapes are inferred anew
    assert target.get_tensor_by_name("import/z:0") is z_new


def test_surrounding_scopes_apply() -> None:
    graph_def = sample().as_graph_def()
    with eng.Graph().as_default() as graph, eng.device("/job:ps/cpu:0"):
        eng.import_graph_def(graph_def, name="")
    assert graph.get_operation_by_name("x").device == "/job:ps/device:cpu:0"
    assert graph.get_operation_by_name("layer/w").device == "/job:worker/device:gpu:1"


def test_into_a_function() -> None:
    with eng.Graph().as_default() as graph:
        square(eng.placeholder("float32", [], name="x"), name="y")
    graph_def = graph.as_graph_def()

    @eng.function
    def f(x: Any) -> Any:
        (y,) = eng.import_graph_def(graph_def, {"x:0": x}, ["y:0"])
        return y

    value = eng.convert_to_tensor(3.0)
    with eng.GradientTape() as tape:
        tape.watch(value)
        y = f(value)
    assert (y, tape.gradient(y, value)) == (9.0, 6.0)


def changed(change: Any, graph: eng.Graph | None = None) -> GraphDef:
    """The GraphDef of x -> Square with something changed."""
    with eng.Graph().as_default() as simple:
        square(eng.placeholder("float32", [2], name="x"), name="y")
    graph_def = (graph or simple).as_graph_def()
    change(graph_def.message)
    return graph_def


def add_node(message: Any, *inputs: str, name: str = "new", op: str = "NoOp", **attrs: int) -> None:
    node = message.node.add(name=name, op=op, input=inputs)
    for key, value in attrs.items():
        node.attr[key].i = value


REFUSED: list[Any] = [
    pytest.param(
        lambda m: add_node(m, op="Sqare"), NotFoundError, "no op is named 'Sqare'", id="unknown-op"
    ),
    pytest.param(
        lambda m: setattr(m.versions, "min_consumer", 9),
        UnimplementedError,
        "needs version 9 to be read; this is version 1",
        id="newer-version",
    ),
    pytest.param(
        lambda m: add_node(m, name="x"), InvalidArgumentError, "two nodes 'x'", id="duplicate"
    ),
    pytest.param(
        lambda m: add_node(m, "z"), InvalidArgumentError, "takes 'z', which", id="missing-input"
    ),
    pytest.param(
        lambda m: add_node(m, "^z"), InvalidArgumentError, "takes 'z', which", id="missing-control"
    ),
    pytest.param(
        lambda m: add_node(m, "y:1", op="Square"),
        InvalidArgumentError,
        "node 'new' takes output 1 of 'y', which has 1",
        id="missing-output",
    ),
    pytest.param(
        lambda m: m.node[0].input.append("^y"),
        InvalidArgumentError,
        "a cycle through x, y",
        id="cycle",
    ),
    pytest.param(
        lambda m: add_node(m, "new"), InvalidArgumentError, "a cycle through new", id="own-input"
    ),
    pytest.param(
        lambda m: add_node(m, "^x", "y", op="Square"),
        InvalidArgumentError,
        "the data input 'y' stands after a control input",
        id="order-of-inputs",
    ),
    pytest.param(
        lambda m: add_node(m, "x:a"), InvalidArgumentError, "an input is written", id="bad-input"
    ),
    pytest.param(
        lambda m: add_node(m, "x:" + "9" * 5000),
        InvalidArgumentError,
        "an input is written",
        id="huge-output",
    ),
    pytest.param(
        lambda m: add_node(m, name="a b"), InvalidArgumentError, "is not a name", id="bad-name"
    ),
    pytest.param(
        lambda m: add_node(m, name="a/"), InvalidArgumentError, "names a scope", id="scope-name"
    ),
    pytest.param(
        lambda m: add_node(m, name=""), InvalidArgumentError, "is not a name", id="no-name"
    ),
    pytest.param(
        lambda m: add_node(m, op="_TestInternal"),
        InvalidArgumentError,
        "is an internal op",
        id="internal",
    ),
    pytest.param(
        lambda m: m.node[1].colocation.append("x"),
        InvalidArgumentError,
        r"node 'y' \(Square\): colocation is written",
        id="colocation",
    ),
    pytest.param(
        lambda m: setattr(m.node[1], "device", "nowhere/"),
        InvalidArgumentError,
        "is not a device name",
        id="device",
    ),
    pytest.param(
        lambda m: add_node(m, "x", op="Square", axis=1),
        InvalidArgumentError,
        "node 'new' .* there is no attribute 'axis'",
        id="unknown-attribute",
    ),
    pytest.param(
        lambda m: m.node[0].attr.pop("dtype"),
        InvalidArgumentError,
        "node 'x' .* the attribute 'dtype' is missing",
        id="missing-attribute",
    ),
    pytest.param(
        lambda m: m.node[0].attr["dtype"].Clear(),
        DataLossError,
        "an attribute without a value",
        id="empty-attribute",
    ),
    pytest.param(
        lambda m: setattr(m.node[0].attr["dtype"], "dtype", "float33"),
        DTypeError,
        "got 'float33'",
        id="unknown-dtype",
    ),
    pytest.param(
        lambda m: m.node[0].attr["shape"].shape.dim.append(-7),
        ShapeError,
        "cannot be negative",
        id="negative-dimension",
    ),
    pytest.param(
        lambda m: setattr(m.node[0].attr["shape"], "function", "f"),
        NotFoundError,
        "has no function 'f'",
        id="function",
    ),
    pytest.param(
        lambda m: m.function.add(name="Square"),
        AlreadyExistsError,
        "has an op's name: 'Square'",
        id="library",
    ),
    pytest.param(
        lambda m: add_node(m, "x", op="TestDivides", by=0),
        InvalidArgumentError,
        r"node 'new' \(TestDivides\): integer division",
        id="failing-rule",
    ),
    pytest.param(
        lambda m: add_node(m, "x", "y", op="Square"),
        InvalidArgumentError,
        r"node 'new' \(Square\): Square: expected 1 inputs",
        id="arity",
    ),
]


@pytest.mark.parametrize(("change", "kind", "message"), REFUSED)
def test_what_is_refused(change: Any, kind: type[LaminarError], message: str) -> None:
    graph_def = changed(change)
    with eng.Graph().as_default() as graph:
        kept = eng.no_op("kept")
        with pytest.raises(kind, match=message):
            eng.import_graph_def(graph_def)
        assert graph.operations == [kept]  # all or nothing


def test_internal_ops_may_be_allowed() -> None:
    graph_def = GraphDef()
    add_node(graph_def.message, op="_TestInternal")
    assert load(graph_def, allow_internal=True).operations[0].type == "_TestInternal"


def test_wrong_arguments() -> None:
    with pytest.raises(InvalidArgumentError, match="expected a GraphDef, got bytes"):
        eng.import_graph_def(b"graph")  # type: ignore[arg-type]  # the mistake
    graph_def = sample().as_graph_def()
    with eng.Graph().as_default() as graph:
        with pytest.raises(InvalidArgumentError, match="input_map: no node takes q"):
            eng.import_graph_def(graph_def, {"q:0": 1.0})
        eng.import_graph_def(graph_def, name="")
        for element in ("q", "q:0", "x:1"):
            with pytest.raises(NotFoundError, match="no node 'q'|has no output 1"):
                eng.import_graph_def(graph_def, return_elements=[element])
        before = len(graph.operations)
        with pytest.raises(AlreadyExistsError, match="has an operation 'x' already"):
            eng.import_graph_def(graph_def, name="")
        graph.finalize()
        with pytest.raises(FailedPreconditionError, match="finalized"):
            eng.import_graph_def(graph_def)
    assert len(graph.operations) == before
