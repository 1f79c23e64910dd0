"""The messages of graph/proto/graph.proto, read without protobuf: for graphs that are only run.

They have the fields of protobuf's messages, by the same names and with the same defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from ..wire import BYTES, FIXED64, VARINT, Kind, Message

_KIND = Kind("a GraphDef", "write or copy it again")
_MOST_NESTED = 100  # as many as protobuf reads


class Field(NamedTuple):
    """A field of a record: its name, its wire type, how it is read, and its value without one.

    A default that is a class stands for a new object of it: list of a field that is repeated, dict
    of a map.
    """

    name: str
    wire: int
    read: Callable[[Message, int], Any]
    default: Any


class Record:
    """A message with its fields as attributes."""

    FIELDS: ClassVar[Mapping[int, Field]] = {}

    def __init__(self) -> None:
        for field in self.FIELDS.values():
            default = field.default
            setattr(self, field.name, default() if isinstance(default, type) else default)

    def CopyFrom(self, other: Record) -> None:  # noqa: N802  # a message's name for it
        """Be a copy of another one, which shares what is deeper than its own lists."""
        for name, value in vars(other).items():
            setattr(self, name, value.copy() if isinstance(value, list | dict) else value)

    @classmethod
    def read(cls, message: Message, depth: int) -> Any:
        """The record in the inside of a field.

        Args:
            message: stands at the field.
            depth: how many messages are around it.

        Raises:
            DataLossError: it is damaged, or nested too deep.
        """
        if depth > _MOST_NESTED:
            raise message.damage("messages nested too deep")
        found, inside = cls(), message.span()
        found.fill(inside, depth)
        return found

    def fill(self, message: Message, depth: int) -> None:
        """Read all fields of a message; those that the record does not have are left out."""
        for number, wire in message.fields():
            field = self.FIELDS.get(number)
            if field is None:
                message.skip(wire)
            elif wire == field.wire:
                self.take(field, field.read(message, depth + 1))
            elif wire == BYTES and field.default is list:  # numbers behind each other
                inside = message.span()
                while inside.position < inside.end:
                    self.take(field, field.read(inside, depth + 1))
            else:
                message.skip(wire)

    def take(self, field: Field, value: Any) -> None:
        """Keep the value of a field."""
        if field.default is list:
            getattr(self, field.name).append(value)
        elif field.default is dict:
            getattr(self, field.name)[value.key] = value.value
        else:
            setattr(self, field.name, value)


def _text(message: Message, _: int) -> str:
    return message.text()


def _bytes(message: Message, _: int) -> bytes:
    return message.bytes()


def _natural(message: Message, _: int) -> int:
    return message.varint()


def _integer(message: Message, _: int) -> int:
    found = message.varint()  # zigzag: 0, -1, 1, -2, ...
    return found >> 1 ^ -(found & 1)


def _bool(message: Message, _: int) -> bool:
    return bool(message.varint())


def _float(message: Message, _: int) -> float:
    return message.float64()


class Shape(Record):
    """Dimensions; -1 for one of unknown size."""

    FIELDS: ClassVar = {
        1: Field("dim", VARINT, _integer, list),
        2: Field("unknown_rank", VARINT, _bool, False),
    }


class Tensor(Record):
    """An array, as its bytes or as items."""

    FIELDS: ClassVar = {
        1: Field("dtype", BYTES, _text, ""),
        2: Field("shape", BYTES, Shape.read, Shape),
        3: Field("content", BYTES, _bytes, b""),
        4: Field("item", BYTES, _bytes, list),
    }


class Nothing(Record):
    """The value None."""


class AttrValue(Record):
    """The value of an attribute; `kind` names the one field that it has."""

    def __init__(self) -> None:
        self.kind: str | None = None

    def take(self, field: Field, value: Any) -> None:
        """Keep the value, in place of the one before."""
        vars(self).clear()
        self.kind = field.name
        setattr(self, field.name, value)

    def WhichOneof(self, _: str) -> str | None:  # noqa: N802  # a message's name for it
        """The field that it has."""
        return self.kind


class Values(Record):
    """Values in a list."""

    FIELDS: ClassVar = {1: Field("item", BYTES, AttrValue.read, list)}


AttrValue.FIELDS = {
    1: Field("i", VARINT, _integer, 0),
    2: Field("u", VARINT, _natural, 0),
    3: Field("f", FIXED64, _float, 0.0),
    4: Field("b", VARINT, _bool, False),
    5: Field("s", BYTES, _text, ""),
    6: Field("data", BYTES, _bytes, b""),
    7: Field("dtype", BYTES, _text, ""),
    8: Field("shape", BYTES, Shape.read, Shape),
    9: Field("tensor", BYTES, Tensor.read, Tensor),
    10: Field("list", BYTES, Values.read, Values),
    11: Field("none", BYTES, Nothing.read, Nothing),
    12: Field("function", BYTES, _text, ""),
}


class Attribute(Record):
    """A value and its name: an entry of a map."""

    FIELDS: ClassVar = {
        1: Field("key", BYTES, _text, ""),
        2: Field("value", BYTES, AttrValue.read, AttrValue),
    }


class NodeDef(Record):
    """One operation."""

    FIELDS: ClassVar = {
        1: Field("name", BYTES, _text, ""),
        2: Field("op", BYTES, _text, ""),
        3: Field("input", BYTES, _text, list),
        4: Field("device", BYTES, _text, ""),
        5: Field("colocation", BYTES, _text, list),
        6: Field("attr", BYTES, Attribute.read, dict),
    }


class FunctionDef(Record):
    """A function of the library."""

    FIELDS: ClassVar = {
        1: Field("name", BYTES, _text, ""),
        2: Field("node", BYTES, NodeDef.read, list),
        3: Field("input", BYTES, _text, list),
        4: Field("output", BYTES, _text, list),
    }


class Versions(Record):
    """Which version of the format wrote a graph, and which can read it."""

    FIELDS: ClassVar = {
        1: Field("producer", VARINT, _natural, 0),
        2: Field("min_consumer", VARINT, _natural, 0),
    }


class GraphMessage(Record):
    """A graph: nodes, and the functions that they use."""

    node_count: int
    node: list[NodeDef]
    FIELDS: ClassVar = {
        1: Field("node_count", VARINT, _natural, 0),
        2: Field("versions", BYTES, Versions.read, Versions),
        3: Field("node", BYTES, NodeDef.read, list),
        4: Field("function", BYTES, FunctionDef.read, list),
    }


def read_graph(data: bytes) -> GraphMessage:
    """A GraphDef in its binary form.

    Raises:
        DataLossError: the bytes are none, or not all of one.
    """
    message, found = Message(data, _KIND), GraphMessage()
    if not data:
        raise message.damage("there are none")
    found.fill(message, 0)
    if found.node_count and found.node_count != len(found.node):
        raise message.damage(f"there are {len(found.node)} of {found.node_count} nodes")
    return found
