"""GraphDef from damaged bytes and texts: an error of ours, or a graph; no harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import (
    DataLossError,
    DTypeError,
    LaminarError,
)
from laminar.engine.graph.graphdef import GraphDef, write_tensor

from ...sampling import examples
from .samples import load, sample


def test_truncated_bytes_are_noticed() -> None:
    data = sample().as_graph_def().to_bytes()
    for length in range(1, len(data)):
        with pytest.raises(DataLossError):
            GraphDef.from_bytes(data[:length])
    with pytest.raises(DataLossError, match="there are no bytes"):
        GraphDef.from_bytes(b"")
    with pytest.raises(TypeError):
        GraphDef.from_bytes(5)  # type: ignore[arg-type]  # what is tested


def read_and_import(data: bytes) -> None:
    """Either it works or it is our error."""
    try:
        load(GraphDef.from_bytes(data))
    except LaminarError as error:
        assert error.message  # noqa: PT017  # any of ours is right


@examples(300)
@given(st.data())
def test_changed_bytes(data: st.DataObject) -> None:
    original = bytearray(sample().as_graph_def().to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(original) - 1))
        original[position] = data.draw(st.integers(0, 255))
    read_and_import(bytes(original))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    read_and_import(data)


@given(st.text(max_size=100))
def test_any_text(text: str) -> None:
    try:
        GraphDef.from_text(text)
    except DataLossError as error:
        assert error.message.startswith("the text is not a GraphDef")  # noqa: PT017  # most texts raise nothing


def constant(**changes: Any) -> GraphDef:
    graph_def = GraphDef()
    node = graph_def.message.node.add(name="c", op="Const")
    node.attr["dtype"].dtype = "float32"
    write_tensor(node.attr["value"].tensor, np.zeros(2, np.float32))
    tensor = node.attr["value"].tensor
    for key, value in changes.items():
        if key == "dims":
            del tensor.shape.dim[:]
            tensor.shape.dim.extend(value)
        elif key == "unknown_rank":
            tensor.shape.unknown_rank = value
        else:
            setattr(tensor, key, value)
    return graph_def


DAMAGED: list[Any] = [
    pytest.param({"dims": [2**40]}, "has 4398046511104 bytes, found 8", id="huge"),
    pytest.param({"dims": [2**62, 2**62]}, "bytes, found 8", id="huge-product"),
    pytest.param(
        {"dims": [2**62, 0, 2**62], "content": b""}, "c' .Const.: a tensor", id="huge-empty"
    ),
    pytest.param({"dims": [-1]}, "has no values", id="unknown-size"),
    pytest.param({"unknown_rank": True}, "has no values", id="unknown-rank"),
    pytest.param({"content": b"123"}, "has 8 bytes, found 3", id="short"),
    pytest.param({"dtype": "float64"}, "has 16 bytes, found 8", id="dtype"),
    pytest.param({"dtype": "string"}, "has 2 items, found 0", id="items"),
    pytest.param({"dtype": "resource"}, "has no values", id="resource"),
]


@pytest.mark.parametrize(("changes", "message"), DAMAGED)
def test_damaged_tensors(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataLossError, match=message):
        load(constant(**changes))


def test_bools_are_bools() -> None:
    graph_def = constant(dtype="bool", dims=[3], content=b"\x00\x01\x07")
    graph_def.message.node[0].attr["dtype"].dtype = "bool"
    graph = load(graph_def)
    with eng.Session(graph=graph) as session:
        assert session.run("c:0").view(np.uint8).tolist() == [0, 1, 1]


def test_deep_nesting() -> None:
    # list { item { list { item { ... } } } }: two length-delimited fields for each level.
    data = b""
    for _ in range(5000):
        for tag in (b"\x0a", b"\x52"):  # AttrValue.List.item, AttrValue.list
            data = tag + varint(len(data)) + data
    entry = b"\x0a\x01a\x12" + varint(len(data)) + data
    node = b"\x32" + varint(len(entry)) + entry
    with pytest.raises(DataLossError, match="not a GraphDef"):
        GraphDef.from_bytes(b"\x1a" + varint(len(node)) + node)
    text = "node { attr { key: 'a' value { " + "list { item { " * 50000 + "}" * 100003
    with pytest.raises(DataLossError, match="not a GraphDef"):
        GraphDef.from_text(text)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def test_a_value_of_another_dtype_than_it_says() -> None:
    graph_def = constant()
    graph_def.message.node[0].attr["dtype"].dtype = "int32"
    with pytest.raises(DTypeError, match="the value is float32, the attribute says int32"):
        load(graph_def)
