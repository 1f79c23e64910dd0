"""GraphDef: what a graph is written as, and the round trip."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import (
    InvalidArgumentError,
)
from laminar.engine.graph import ANY, TensorShape, TensorSpec
from laminar.engine.graph.graphdef import GraphDef, parse_input, read_tensor, write_tensor
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import square
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.ops.nn.convolution import conv
from tests.engine import programs

from ...sampling import examples
from .samples import load, sample


@define("TestAttributes")
def with_attributes(x: TensorSpec, *, value: Any, extra: int = 7) -> TensorSpec:
    """x, with an attribute of any kind."""
    return x


with_attributes.reference(lambda xp, x, *, value, extra: x)


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


@pytest.mark.parametrize(
    "value", [{"a": 1}, pytest.param(object(), id="object"), 2**64, -(2**64), "\ud800"], ids=repr
)
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


@examples(30)
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
        "w": TensorSpec([], "resource"),
        "captured": TensorSpec([100], "float64"),
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


def test_a_graphdef_answers_to_the_names_of_a_message() -> None:
    with eng.Graph().as_default() as graph:
        eng.constant([1.0, 2.0], name="x")
    found = graph.as_graph_def()
    assert [node.name for node in found.node] == ["x"]
    data = found.SerializeToString()
    assert found.ByteSize() == len(data)
    other = GraphDef()
    assert other.ParseFromString(data) == len(data)
    assert other == found == GraphDef.FromString(data)
    other.node[0].name = "y"
    assert other != found
    other.CopyFrom(found)
    assert other == found


def test_only_what_is_newer_than_a_version() -> None:
    with eng.Graph().as_default() as graph:
        x = eng.constant(1.0, name="x")
        version = graph.version
        eng.identity(x, name="y")
        assert [n.name for n in graph.as_graph_def(from_version=version).node] == ["y"]
        assert graph.as_graph_def(from_version=graph.version).node == []
        assert graph.as_graph_def(from_version=0, add_shapes=True) == graph.as_graph_def()
        with eng.Session() as session:
            assert session.run("x:0") == 1.0
    with eng.Graph().as_default() as copy:
        old = eng.GraphDef(graph.as_graph_def().message)
        del old.node[1:]
        eng.import_graph_def(old, name="")
        with eng.Session() as session:
            session.extend(graph.as_graph_def(from_version=version))
            assert session.run("y:0") == 1.0
        assert [op.name for op in copy.operations] == ["x", "y"]
