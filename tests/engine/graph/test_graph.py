"""The graph: adding operations, finding them, freezing, collections."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
)
from laminar.engine.ops.array.join import split
from laminar.engine.ops.core.basic import placeholder_op
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, square


def test_names_are_unique_and_follow_the_op() -> None:
    graph = eng.Graph()
    with graph.as_default():
        x = eng.placeholder("float32", [], name="x")
        square(square(x))
        square(x, name="square")  # names that differ in case alone would collide in files
    assert [op.name for op in graph.operations] == ["x", "Square", "Square_1", "square_2"]


def test_a_made_up_suffix_is_not_given_twice() -> None:
    graph = eng.Graph()
    with graph.as_default():
        names = [eng.no_op(name=n).name for n in ("a", "a_1", "a", "a", "A_1")]
    assert len({n.lower() for n in names}) == 5
    assert names[:2] == ["a", "a_1"]


@pytest.mark.parametrize("name", ["", "a b", "-a", "a:0", "^a", "ä", "a\n", 3])
def test_names_that_cannot_be(name: Any) -> None:
    graph = eng.Graph()
    with pytest.raises(InvalidArgumentError, match="is not a name"):
        graph.unique_name(name)


def test_operation() -> None:
    graph = eng.Graph()
    with graph.as_default():
        x = eng.placeholder("float32", [2], name="x")
        y = add(x, x)
    op = graph.get_operation_by_name("Add")
    assert op.graph is graph
    assert op.type == "Add"
    assert op.inputs == (x, x)
    assert op.outputs[0] is y
    assert y.name == "Add:0"
    assert op.control_inputs == []
    assert repr(op).startswith("%Add: f32[2] = Add(%x, %x)  # test_graph.py:")


def test_outputs_are_numbered_and_ids_rise() -> None:
    graph = eng.Graph()
    with graph.as_default():
        x: Any = eng.placeholder("float32", [4], name="x")
        parts: Any = split(x, 2, axis=0)
        total: Any = add(*parts)
    op = parts[0].op
    assert [t.name for t in op.outputs] == [f"{op.name}:0", f"{op.name}:1"]
    assert [t.value_index for t in op.outputs] == [0, 1]
    ids = [o.id for o in graph.operations]
    assert ids == sorted(set(ids))
    assert op.outputs[1].consumers() == [total.op]
    assert total.consumers() == []


def test_shapes_and_dtypes_are_checked_while_building() -> None:
    graph = eng.Graph()
    with graph.as_default():
        x = eng.placeholder("int32", [2, 3], name="x")
        y = eng.placeholder("float32", [2, 3], name="y")
        before = graph.version
        with pytest.raises(DTypeError, match=r"Add: the inputs must have one dtype, got int32"):
            add(x, y)
        with pytest.raises(ShapeError, match="MatMul"):
            matmul(y, y)
        with pytest.raises(InvalidArgumentError, match="Add: expected 2 inputs"):
            add(x)
        with pytest.raises(InvalidArgumentError, match="there is no attribute 'axes'"):
            add(x, x, axes=1)
        with pytest.raises(InvalidArgumentError, match="the attribute 'dtype' is missing"):
            graph.add(placeholder_op, (), {"shape": ()})
        assert graph.version == before  # nothing was added
        assert square(x, name="ok").name == "ok:0"  # type: ignore[attr-defined]  # in a graph


def test_tensors_of_two_graphs_do_not_mix() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [], name="x")
    with eng.Graph().as_default():
        y = eng.placeholder("float32", [], name="y")
        with pytest.raises(FailedPreconditionError, match="belongs to another graph"):
            add(x, y)


def test_inputs_must_be_symbols_of_the_graph() -> None:
    graph = eng.Graph()
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [], name="x")
    for value in (x, eng.convert_to_tensor(1.0), 3.0):
        with pytest.raises(InvalidArgumentError, match="does not belong to this graph"):
            graph.add(square, [value])  # type: ignore[list-item]  # what is tested
    assert graph.value_of(x) is None  # a plain graph has no values while it is built


def test_version_counts_operations() -> None:
    graph = eng.Graph()
    assert graph.version == 0
    with graph.as_default():
        eng.no_op()
        eng.no_op()
    assert graph.version == 2


def test_lookup() -> None:
    graph = eng.Graph()
    with graph.as_default():
        x = eng.placeholder("float32", [], name="scope/x")
    assert graph.get_operation_by_name("scope/x") is x.op
    assert graph.get_tensor_by_name("scope/x:0") is x
    for value in (x, "scope/x:0"):
        assert graph.as_graph_element(value) is x
    for value in ("scope/x", "^scope/x"):
        assert graph.as_graph_element(value) is x.op


UNKNOWN: list[Any] = [
    pytest.param("y:0", NotFoundError, "no operation is named 'y'", id="tensor"),
    pytest.param("y", NotFoundError, "no operation is named 'y'", id="operation"),
    pytest.param("scope/x:1", NotFoundError, "has 1 outputs", id="output"),
    pytest.param("scope/x:-1", InvalidArgumentError, "does not name a tensor", id="negative"),
    pytest.param("scope/x:", InvalidArgumentError, "does not name a tensor", id="no-index"),
    pytest.param(3, InvalidArgumentError, "expected a tensor, an operation or a name", id="int"),
    pytest.param(None, InvalidArgumentError, "expected a tensor", id="none"),
]


@pytest.mark.parametrize(("value", "kind", "message"), UNKNOWN)
def test_lookup_of_what_is_not_there(value: Any, kind: type[Exception], message: str) -> None:
    graph = eng.Graph()
    with graph.as_default():
        eng.placeholder("float32", [], name="scope/x")
    with pytest.raises(kind, match=message):
        graph.as_graph_element(value)


def test_near_names_are_suggested() -> None:
    graph = eng.Graph()
    with graph.as_default():
        eng.placeholder("float32", [], name="images")
    with pytest.raises(KeyError, match="did you mean images?"):
        graph.get_operation_by_name("image")


def test_a_finalized_graph_stays_as_it_is() -> None:
    graph = eng.Graph()
    with graph.as_default():
        a, b = eng.no_op("a"), eng.no_op("b")
        x = eng.placeholder("float32", [None])
        y = eng.identity(x * 2.0)
        assert isinstance(y, eng.GraphTensor)
    names = [op.name for op in graph.operations]
    graph.finalize()
    assert graph.finalized
    with graph.as_default():
        for change in (
            lambda: eng.constant(1),
            lambda: b.add_control_input(a),
            lambda: eng.add_to_collection("key", 1),
        ):
            with pytest.raises(RuntimeError, match="the graph is finalized"):
                change()
        for write in (
            lambda: setattr(b, "device", "cpu:0"),
            lambda: setattr(b, "attrs", {}),
            lambda: graph.rename(b, "c"),
            lambda: graph.keep([a]),
            lambda: x.set_shape([2]),
            lambda: eng.gradients(y, x),
        ):
            with pytest.raises(RuntimeError, match="the graph is finalized"):
                write()
        with pytest.raises(TypeError):
            y.op.attrs["dtype"] = "float64"  # type: ignore[index]  # it does not take any
    assert [op.name for op in graph.operations] == names
    assert (b.name, b.device, b.control_inputs, str(x.spec)) == ("b", "", [], "float32[?]")
    with eng.Session(graph=graph) as session:
        assert session.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]


def test_collections() -> None:
    graph = eng.Graph()
    with graph.as_default():
        for number in (1, 1, 2):
            eng.add_to_collection("numbers", number)
        x = eng.placeholder("float32", [], name="left/x")
        y = eng.placeholder("float32", [], name="right/y")
        for value in (x, y, 3):
            eng.add_to_collection("things", value)
        assert eng.get_collection("numbers") == [1, 1, 2]
    assert graph.get_collection("nothing") == []
    assert graph.collection_keys == ["numbers", "things"]
    found = graph.get_collection("things", scope="left")
    assert len(found) == 1
    assert found[0] is x
    graph.get_collection("numbers").clear()
    assert graph.get_collection("numbers") == [1, 1, 2]


def test_threads_may_build_one_graph() -> None:
    graph = eng.Graph()
    barrier = threading.Barrier(4)

    def build(i: int) -> None:
        with graph.as_default(), eng.name_scope(f"thread{i}") as scope:
            barrier.wait()
            x = eng.constant(1.0)
            for _ in range(100):
                x = add(x, x)
                assert x.name.startswith(scope)  # type: ignore[attr-defined]  # in a graph

    threads = [threading.Thread(target=build, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [op.name for op in graph.operations]
    assert len(names) == len(set(names)) == 404
    assert [op.id for op in graph.operations] == list(range(404))


def test_a_value_becomes_one_constant() -> None:
    graph = eng.Graph()
    value = eng.convert_to_tensor(np.arange(3.0))
    with graph.as_default(), graph.control_dependencies([eng.no_op("first")]):
        add(value, value)
        square(value)
    constants = [op for op in graph.operations if op.type == "Const"]
    assert len(constants) == 1
    assert constants[0].control_inputs == []


def test_operations_by_the_name_of_their_op() -> None:
    with eng.Graph().as_default() as graph, eng.Session() as session:
        x = eng.placeholder("float32", [None])
        total = graph.create_op("Sum", [x], ["float32"], name="total", attrs={"axis": (0,)})
        product = graph.create_op("MatMul", [[[2.0]], [[3.0]]], input_types=["float64"] * 2)
        assert (total.name, total.outputs[0].dtype) == ("total", "float32")
        assert session.run([total.outputs[0], product.outputs[0]], {x: [1.0, 2.0]}) == [3.0, 6.0]
        count = len(graph.operations)
        with pytest.raises(TypeError, match="Sum has the output types float32, expected int32"):
            graph.create_op("Sum", [x], ["int32"], attrs={"axis": (0,)})
        with pytest.raises(TypeError, match="Square has the input types float32, expected int32"):
            graph.create_op("Square", [x], input_types=["int32"])
        with pytest.raises(NotFoundError, match="no op is named 'Squares'"):
            graph.create_op("Squares", [x])
        with pytest.raises(InvalidArgumentError, match="expected 1 inputs"):
            graph.create_op("Square", [x, x])
        assert len(graph.operations) == count


def test_edits_are_counted() -> None:
    graph = eng.Graph()
    with graph.as_default():
        a, b = eng.no_op(), eng.no_op()
    before = graph.edits
    b.add_control_input(a)
    b.add_control_input(a)
    b.add_control_input(b)
    assert b.control_inputs == [a]
    assert graph.edits == before + 1


@pytest.mark.parametrize("name", ["a\n", "\u0663", "a\u0663", "a b", "caf\u00e9", "a\u2028"])
def test_foreign_characters_in_names(name: str) -> None:
    graph = eng.Graph()
    with graph.as_default():
        for make in (eng.no_op, eng.container, eng.name_scope):
            with pytest.raises(InvalidArgumentError, match="not a name"), as_block(make(name)):
                pass
        eng.no_op("a")
    with pytest.raises(InvalidArgumentError, match="does not name a tensor"):
        graph.get_tensor_by_name("a:\u0663")
    assert [op.name for op in graph.operations] == ["a"]


def as_block(made: Any) -> Any:
    return made if hasattr(made, "__enter__") else contextlib.nullcontext()


def test_names_may_be_bytes() -> None:
    with eng.Graph().as_default() as graph:
        name: Any = b"e"
        e: Any = eng.constant(4.0, name=name)
        tensor: Any = b"e:0"
        assert e.name == "e:0"
        assert graph.get_tensor_by_name(tensor) is graph.as_graph_element(tensor) is e
        assert graph.get_operation_by_name(name) is graph.as_graph_element(name) is e.op
        with eng.Session() as session:
            assert session.run(tensor, {tensor: 5.0}) == 5.0
