"""GraphDef: the round trip, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from laminar.engine.graph import ANY, TensorShape, TensorSpec
from laminar.engine.graph.attr_values import read_tensor, write_tensor
from laminar.engine.graph.graphdef import GraphDef, parse_input
from laminar.engine.ops.arithmetic import add, multiply, square
from laminar.engine.ops.convolution import conv
from laminar.engine.ops.reduce import reduce_sum
from laminar.engine.ops.registry import define
from tests.engine import programs

from .samples import load, sample


@define("TestAttributes")
def with_attributes(x: TensorSpec, *, value: Any, extra: int = 7) -> TensorSpec:
    """x, with an attribute of any kind."""
    return x


with_attributes.reference(lambda xp, x, *, value, extra: x)


@define("_TestInternal")
def internal() -> TensorSpec:
    """An op that only laminar adds."""
    return TensorSpec(())


@define("TestDivides")
def divides(x: TensorSpec, *, by: Any) -> TensorSpec:
    """A rule that fails on attributes it does not expect."""
    return TensorSpec([4 // by], x.dtype)


def describe(graph: eng.Graph) -> list[Any]:
    """All that a graph says of its operations."""
    return [
        (
            op.name,
            op.type,
            [x.name for x in op.inputs],
            [c.name for c in op.control_inputs],
            op.device,
            op.colocation,
            [y.spec for y in op.outputs],
            {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in op.attrs.items()},
        )
        for op in graph.operations
    ]


# The round trip


def test_a_graph_comes_back_as_it_was() -> None:
    graph = sample()
    data = graph.as_graph_def().to_bytes()
    twin = load(GraphDef.from_bytes(data))
    assert describe(twin) == describe(graph)
    assert twin.as_graph_def().to_bytes() == data
    assert GraphDef.from_bytes(data).to_bytes() == data


def test_the_text_form() -> None:
    graph_def = sample().as_graph_def()
    text = graph_def.to_text()
    assert 'name: "layer/w/read"' in text
    assert GraphDef.from_text(text) == graph_def
    assert GraphDef.from_text(text).to_text() == text


def test_the_order_of_attributes_does_not_matter() -> None:
    names = [f"attribute{i}" for i in range(20)]
    found = []
    for keys in (names, names[::-1]):
        graph_def = GraphDef()
        node = graph_def.message.node.add(name="a", op="NoOp")
        for key in keys:
            node.attr[key].i = 1
        found.append(graph_def)
    assert found[0].to_bytes() == found[1].to_bytes()
    assert found[0] == found[1]


def test_equality() -> None:
    one, two = sample().as_graph_def(), sample().as_graph_def()
    assert one == two
    assert one != eng.Graph().as_graph_def()
    assert one != "text"
    assert repr(one) == f"<GraphDef of {len(one.message.node)} nodes>"
    two.message.node[0].device = "/cpu:0"
    assert one != two


VALUES: list[Any] = [
    *(True, False, 0, 1, -5, 2**62, -(2**63), 2**63, 2**64 - 1, 1.0, 0.1, -0.0, float("inf")),
    *("", "text", "ä", b"\x00\xff", None, (), (1, (2.0, None), ("a", (b"b",), (True,)))),
    *(eng.float32, eng.bfloat16, TensorShape(None), TensorShape(()), TensorShape([None, 3])),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_attributes_keep_value_and_type(value: Any) -> None:
    with eng.Graph().as_default() as graph:
        with_attributes(eng.constant(1.0), value=value, name="op")
    data = graph.as_graph_def().to_bytes()
    found = load(GraphDef.from_bytes(data)).get_operation_by_name("op").attrs["value"]
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    text = GraphDef.from_bytes(data).to_text()
    assert GraphDef.from_text(text).to_bytes() == data


def test_numpy_scalars_and_lists_become_plain() -> None:
    with eng.Graph().as_default() as graph:
        with_attributes(eng.constant(1.0), value=[np.int64(3), np.float32(0.5)], name="op")
    found = load(graph.as_graph_def()).get_operation_by_name("op").attrs["value"]
    assert found == (3, 0.5)
    assert [type(v) for v in found] == [int, float]


@pytest.mark.parametrize("value", [{"a": 1}, object(), 2**64, -(2**64), "\ud800"], ids=repr)
def test_attributes_that_are_no_data(value: Any) -> None:
    with eng.Graph().as_default() as graph:
        with_attributes(eng.constant(1.0), value=value, name="op")
    with pytest.raises(
        InvalidArgumentError, match="TestAttributes 'op': the attribute 'value' cannot be written"
    ):
        graph.as_graph_def()


@pytest.mark.parametrize("dtype", sorted(ANY))
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 1, 2)], ids=str)
def test_tensors(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    array: Any = rng.integers(0, 2 if dtype == "bool" else 100, shape)
    if dtype == "string":
        array = np.array([b"\x00%d" % i for i in range(array.size)], object).reshape(shape)
    else:
        array = np.asarray(array).astype(eng.as_dtype(dtype).numpy)
    message = GraphDef().message.node.add().attr["value"].tensor
    write_tensor(message, array.T)
    found = read_tensor(message)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array.T)


def test_special_numbers_keep_their_bits() -> None:
    array = np.array([np.nan, -np.nan, np.inf, -0.0], np.float32)
    message = GraphDef().message.node.add().attr["value"].tensor
    write_tensor(message, array)
    np.testing.assert_array_equal(read_tensor(message).view(np.uint32), array.view(np.uint32))


def test_default_attributes_are_filled_in() -> None:
    with eng.Graph().as_default() as graph:
        with_attributes(eng.constant(1.0), value=1, name="op")
    graph_def = graph.as_graph_def()
    del graph_def.message.node[1].attr["extra"]
    assert load(graph_def).get_operation_by_name("op").attrs == {"value": 1, "extra": 7}


@settings(max_examples=30, deadline=None)
@given(programs.programs(), st.integers(0, 2**31), st.randoms())
def test_random_programs(program: programs.Program, seed: int, rng: Any) -> None:
    """The imported graph computes the same, from nodes in any order."""
    inputs = list(np.random.default_rng(seed).normal(size=(2, 2, 2)))
    with eng.Graph().as_default() as graph:
        xs = [eng.placeholder("float64", [2, 2], name=n) for n in "ab"]
        y: Any = programs.run(program, xs)[-1]
    feeds = dict(zip(("a:0", "b:0"), inputs, strict=True))
    with eng.Session(graph=graph) as session:
        expected = session.run(y, feeds)
    graph_def = GraphDef.from_bytes(graph.as_graph_def().to_bytes())
    nodes = list(graph_def.message.node)
    rng.shuffle(nodes)
    shuffled = GraphDef()
    shuffled.message.node.extend(nodes)
    for found in (graph_def, shuffled):
        twin = load(found)
        with eng.Session(graph=twin) as session:
            np.testing.assert_array_equal(session.run(y.name, feeds), expected)


NEW_PROCESS = """
import sys
from laminar import engine as eng
graph_def = eng.GraphDef.from_bytes(open(sys.argv[1], "rb").read())
with eng.Graph().as_default() as graph:
    eng.import_graph_def(graph_def, name="")
with eng.Session(graph=graph) as session:
    print(session.run("Square_1:0", {"Square:0": 2.0}))
print(float(eng.graph_function(graph, ["Square:0"], "Square_1:0")(3.0)))
"""


def test_in_a_new_process(tmp_path: Path) -> None:
    with eng.Graph().as_default() as graph:
        square(square(eng.placeholder("float32", [], name="x")))
    file = tmp_path / "graph.pb"
    file.write_bytes(graph.as_graph_def().to_bytes())
    done = subprocess.run(
        [sys.executable, "-c", NEW_PROCESS, str(file)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.split() == ["4.0", "9.0"]


def test_protobuf_is_loaded_on_first_use() -> None:
    code = "import sys, laminar.engine; assert 'google.protobuf' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


def test_a_graph_with_nested_attributes_of_real_ops() -> None:
    with eng.Graph().as_default() as graph:
        x: Any = eng.placeholder("float32", [None, 8, 8, 3], name="x")
        k: Any = eng.placeholder("float32", [3, 3, 3, 4], name="k")
        y = conv(x, k, strides=(2, 2), padding="same")
        reduce_sum(y[:, 1:-1, ::2, None, ...], axis=(1, 2), keepdims=True)
    assert describe(load(GraphDef.from_bytes(graph.as_graph_def().to_bytes()))) == describe(graph)


# Functions


def test_the_graph_of_a_function() -> None:
    w = eng.Variable(np.full((10, 10), 1.25, np.float32), name="w")
    big = eng.convert_to_tensor(np.arange(100.0))

    @eng.function
    def f(x: Any) -> Any:
        w.assign_add(w.value)
        return reduce_sum(x @ w) * 3.0 + reduce_sum(big)

    concrete = f.concrete(TensorSpec([None, 10]))
    graph_def = concrete.graph.as_graph_def()
    twin = load(GraphDef.from_bytes(graph_def.to_bytes()))
    placeholders = {
        op.name: op.outputs[0].spec for op in twin.operations if op.type == "Placeholder"
    }
    assert placeholders == {
        "x": TensorSpec([None, 10]),
        "captured": TensorSpec([], "resource"),
        "captured_1": TensorSpec([100], "float64"),
    }
    values = w.numpy().tobytes() + np.arange(100.0).tobytes()
    data = graph_def.to_bytes()
    assert all(values[i : i + 16] not in data for i in range(0, len(values), 16))
    order = {op.name: [c.name for c in op.control_inputs] for op in twin.operations}
    assert order == {
        op.name: [c.name for c in op.control_inputs] for op in concrete.graph.operations
    }


def test_a_custom_gradient_is_written_without_its_rule() -> None:
    @eng.custom_gradient
    def doubled(x: Any) -> Any:
        return x * 2.0, lambda dy: dy * 100.0

    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float64", [], name="x")
        y: Any = doubled(x)
        (own,) = eng.gradients(y, x)
    twin = load(GraphDef.from_bytes(graph.as_graph_def().to_bytes()))
    (plain,) = eng.gradients(twin.get_tensor_by_name(y.name), twin.get_tensor_by_name("x:0"))
    with eng.Session(graph=twin) as session:
        assert session.run([y.name, plain, own.name], {"x:0": 3.0}) == [6.0, 2.0, 100.0]  # type: ignore[union-attr]  # a symbol


# Import


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


INPUTS = [("a", "a", 0), ("a:0", "a", 0), ("s/a:2", "s/a", 2), ("^a", "a", None)]


@pytest.mark.parametrize(("text", "name", "index"), INPUTS)
def test_inputs_are_written_so(text: str, name: str, index: int | None) -> None:
    assert parse_input(text) == (name, index)


def test_data_in_a_constant_is_in_the_graph_and_data_in_a_variable_is_not() -> None:
    """A variable whose initial value is fed once holds a data set of any size."""
    data = np.random.default_rng(0).normal(size=(100, 50))
    with eng.Graph().as_default() as inline:
        eng.constant(data, name="data")
    with eng.Graph().as_default() as fed:
        given = eng.placeholder("float64", data.shape, name="given")
        kept = eng.Variable(given, trainable=False, collections=[], name="data")
        assert not eng.global_variables()
        assert not eng.trainable_variables()
    assert data.tobytes() in inline.as_graph_def().to_bytes()
    assert len(fed.as_graph_def().to_bytes()) < 2000
    with eng.Session(graph=fed) as session:
        session.run(kept.initializer, {given: data})
        np.testing.assert_array_equal(session.run(kept), data)
