"""GraphDefs between tasks: loops written out, shapes that were set, graphs that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Graph
from laminar.engine.graph.exchange import export_graph
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.control.dataflow import (
    close_loop,
    enter,
    exit_loop,
    loop_cond,
    merge,
    next_iteration,
    switch,
)
from laminar.engine.ops.core.graphs import extend_graph, import_graph_def


def count_to(limit: int) -> Any:
    """A loop of its primitives: 2 ** limit by doubling."""
    i = enter(np.int32(0), "loop")
    x = enter(np.float32(1), "loop")
    top = enter(np.int32(limit), "loop", is_constant=True)
    now_i, now_x = merge([i])[0], merge([x])[0]
    goes_on = loop_cond(now_i < top)
    _, inside_i = switch(now_i, goes_on)
    left, inside_x = switch(now_x, goes_on)
    close_loop(now_i, next_iteration(inside_i + 1))
    close_loop(now_x, next_iteration(inside_x * 2.0))
    return exit_loop(left)


def test_a_loop_of_primitives_is_read_as_it_was_written() -> None:
    with Graph().as_default() as graph:
        y = count_to(5)
    with Graph().as_default():
        data = GraphDef.from_bytes(graph.as_graph_def().to_bytes())
        (again,) = import_graph_def(data, None, [y.name], name="")
        with eng.Session() as session:
            assert session.run(again) == 32
        assert eng.get_default_graph().as_graph_def() == graph.as_graph_def()


def test_a_loop_that_is_not_closed_by_its_merge_is_refused() -> None:
    with Graph().as_default() as graph:
        count_to(5)
    data = graph.as_graph_def()
    for node in data.message.node:
        if node.op == "Merge":
            node.input[:] = reversed(node.input)
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match="comes round a loop"):
        import_graph_def(data)


def test_what_a_loop_brings_back_has_to_fit() -> None:
    with Graph().as_default() as graph:
        count_to(5)
    data = graph.as_graph_def()
    merges = [node for node in data.message.node if node.op == "Merge"]
    merges[0].input[1], merges[1].input[1] = merges[1].input[1], merges[0].input[1]
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match="the next iteration"):
        import_graph_def(data)


def test_shapes_that_were_set_are_written_for_those_who_want_them() -> None:
    with Graph().as_default() as graph:
        x = eng.placeholder("float32", None, name="x")
        y = eng.identity(x, name="y")
        assert isinstance(y, eng.GraphTensor)
        y.set_shape([2, 3])
    for exact, shape in ((False, None), (True, [2, 3])):
        with Graph().as_default():
            data = export_graph(graph, exact=exact)
            (found,) = import_graph_def(data, None, ["y:0"], name="", allow_internal=True)
            assert found.shape == eng.TensorShape(shape)  # type: ignore[union-attr]  # a tensor


def test_shapes_that_cannot_be_are_refused() -> None:
    with Graph().as_default() as graph:
        x = eng.placeholder("float32", [None, 3], name="x")
        y = eng.identity(x, name="y")
        assert isinstance(y, eng.GraphTensor)
        y.set_shape([2, 3])
    data = export_graph(graph, exact=True)
    data.message.node[1].attr["_output_shapes"].list.item[0].shape.dim[1] = 4
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match="are not those"):
        import_graph_def(data, allow_internal=True)


def test_only_what_is_new_is_written_and_read() -> None:
    graph, copy = Graph(), Graph()
    with graph.as_default():
        a = eng.constant(np.float32(2), name="a")
        extend_graph(copy, export_graph(graph))
        known = len(graph.operations)
        with graph.control_dependencies([graph.get_operation_by_name("a")]):
            b = eng.identity(a + 1.0, name="b")
        with graph.colocate_with(a):
            eng.identity(b, name="c")
    more = export_graph(graph, graph.operations[known:])
    assert "a" not in {node.name for node in more.message.node}
    extend_graph(copy, more)
    assert copy.as_graph_def() == graph.as_graph_def()
    with pytest.raises(InvalidArgumentError, match="send new nodes only"):
        extend_graph(copy, more)


def test_a_file_may_say_less_of_a_shape_and_not_more() -> None:
    with Graph().as_default() as graph:
        eng.identity(eng.placeholder("float32", [2, 3], name="x"), name="y")
    data = graph.as_graph_def()
    dims = data.message.node[1].attr["_output_shapes"].list.item.add().shape.dim
    dims.extend([-1, 3])
    with Graph().as_default():
        (found,) = import_graph_def(data, None, ["y:0"], name="")
        assert found.shape == eng.TensorShape([None, 3])  # type: ignore[union-attr]  # a tensor
    data.message.node[0].attr["shape"].shape.dim[0] = -1
    dims[0] = 2
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match="say more than"):
        import_graph_def(data)
