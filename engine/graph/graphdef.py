"""GraphDef: a graph as data, for files, other processes and other languages.

The messages stand in proto/graph.proto; this module alone touches protobuf, and loads it on first
use. exchange.py writes graphs as such data, and reads it.
"""

from __future__ import annotations

from typing import Any

from ..errors import DataLossError, InvalidArgumentError, ResourceExhaustedError
from .attr_values import Message


def _messages() -> Any:
    from .proto import graph_pb2  # protobuf loads on first use

    return graph_pb2


class GraphDef:
    """A graph as data.

    Attributes:
        message: the protobuf message; `message.node` are the nodes.
    """

    def __init__(self, message: Message = None) -> None:
        self.message = _messages().GraphDef() if message is None else message

    def to_bytes(self) -> bytes:
        """The binary form: equal graphs give equal bytes.

        Raises:
            ResourceExhaustedError: it would exceed protobuf's 2 GiB.
        """
        self.message.node_count = len(self.message.node)
        try:
            data: bytes = self.message.SerializeToString(deterministic=True)
        except Exception as cause:  # EncodeError, or ValueError, by the version of protobuf
            raise ResourceExhaustedError(
                f"the graph cannot be written: {cause}",
                remedy="keep large constants in variables, and save them in a checkpoint",
            ) from cause
        return data

    @staticmethod
    def from_bytes(data: bytes) -> GraphDef:
        """Read the binary form.

        Raises:
            DataLossError: the bytes are not a GraphDef, or not all of one.
        """
        found = GraphDef()
        whole = bytes(memoryview(data))
        if not whole:
            raise DataLossError("there are no bytes to read a GraphDef from")
        try:
            found.message.ParseFromString(whole)
        except Exception as cause:  # DecodeError; its module differs between implementations
            raise DataLossError(f"the bytes are not a GraphDef: {cause}") from cause
        count = found.message.node_count
        if count and count != len(found.message.node):
            raise DataLossError(
                f"the GraphDef is incomplete: it has {len(found.message.node)} of {count} nodes",
                remedy="write or copy it again",
            )
        return found

    def to_text(self) -> str:
        """The text form, to be read and edited by people."""
        from google.protobuf import text_format  # protobuf loads on first use

        text: str = text_format.MessageToString(self.message)
        return text

    @staticmethod
    def from_text(text: str) -> GraphDef:
        """Read the text form; DataLossError when it is not that of a GraphDef."""
        from google.protobuf import text_format  # protobuf loads on first use

        found = GraphDef()
        try:
            text_format.Parse(text, found.message)
        except Exception as cause:  # ParseError, or what the nesting of the text exceeds
            raise DataLossError(f"the text is not a GraphDef: {cause}") from cause
        found.message.node_count = len(found.message.node)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphDef):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        return f"<GraphDef of {len(self.message.node)} nodes>"


def is_number(text: str) -> bool:
    """Whether a text is a number of decimal digits, as names have them: ASCII's."""
    return text.isascii() and text.isdecimal()


def parse_input(text: str) -> tuple[str, int | None]:
    """The node and the output of an input: "a" and "a:0" are ("a", 0), "^a" is ("a", None)."""
    if text.startswith("^"):
        return text[1:], None
    name, colon, index = text.rpartition(":")
    if not colon:
        return text, 0
    if not is_number(index) or len(index) > 9:
        raise InvalidArgumentError(f'an input is written "node:1" or "^node", got {text!r}')
    return name, int(index)
