"""Graphs read without protobuf: what protobuf reads of the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine import wire
from laminar.engine.errors import DataLossError, LaminarError
from laminar.engine.graph.graph_messages import Record, read_graph
from laminar.engine.graph.graphdef import GraphDef

from ...sampling import examples
from ..graph.samples import load, sample


def with_bodies() -> eng.Graph:
    with eng.Graph().as_default() as graph:
        n: Any = eng.placeholder("int32", [], name="n")
        eng.while_loop(
            lambda i, x: i < n, lambda i, x: (i + 1, x * 2.0), (0, eng.constant([1.0, np.inf]))
        )
        eng.cond(n > 2, lambda: n, lambda: -n)
    return graph


def as_data(message: Any) -> Any:
    """All fields of a message, read by either."""
    if isinstance(message, str | bytes | int | float):
        return repr(message)  # NaN is NaN
    if type(message).__name__ == "AttrValue":
        kind = message.WhichOneof("value")
        return kind, as_data(getattr(message, kind))
    if isinstance(message, Record):
        names = [field.name for field in message.FIELDS.values()]
    elif hasattr(message, "DESCRIPTOR"):
        names = [field.name for field in message.DESCRIPTOR.fields]
    elif hasattr(message, "items"):
        return {key: as_data(message[key]) for key in message}
    else:
        return [as_data(item) for item in message]
    return {name: as_data(getattr(message, name)) for name in names}


@pytest.mark.parametrize("make", [sample, with_bodies])
def test_it_reads_what_protobuf_reads(make: Any) -> None:
    data = make().as_graph_def().to_bytes()
    found = read_graph(data)
    assert as_data(found) == as_data(GraphDef.from_bytes(data).message)
    assert load(GraphDef(found)).as_graph_def() == load(GraphDef.from_bytes(data)).as_graph_def()


def test_calls_of_functions_are_written_out_again_and_again() -> None:
    graph_def = GraphDef()
    square = graph_def.message.function.add(name="twice", input=["x"], output=["y"])
    square.node.add(name="x", op="Placeholder").attr["dtype"].dtype = "float32"
    square.node[0].attr["shape"].shape.SetInParent()
    square.node.add(name="y", op="Add", input=["x", "x"])
    given = graph_def.message.node.add(name="a", op="Placeholder")
    given.CopyFrom(square.node[0])
    given.name = "a"
    graph_def.message.node.add(name="b", op="twice", input=["a"])
    graph_def.message.node.add(name="c", op="Neg", input=["b"])
    found = GraphDef(read_graph(graph_def.to_bytes()))
    for _ in range(2):  # reading changes nothing of it
        graph = load(found)
        with eng.Session(graph=graph) as session:
            assert session.run("c:0", {"a:0": 3.0}) == -6.0


def test_damage_is_told() -> None:
    data = sample().as_graph_def().to_bytes()
    for length in range(len(data)):
        with pytest.raises(DataLossError, match="GraphDef"):
            read_graph(data[:length])
    value = b""
    for _ in range(5000):
        value = wire.field(10, wire.field(1, value))
    node = wire.field(6, wire.text(1, "a") + wire.field(2, value))
    with pytest.raises(DataLossError, match="nested too deep"):
        read_graph(wire.field(3, node))


@examples(200)
@given(st.data())
def test_changed_bytes(data: st.DataObject) -> None:
    original = bytearray(with_bodies().as_graph_def().to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(original) - 1))
        original[position] = data.draw(st.integers(0, 255))
    try:
        load(GraphDef(read_graph(bytes(original))))
    except LaminarError as error:
        assert error.message  # noqa: PT017  # any of ours is right
