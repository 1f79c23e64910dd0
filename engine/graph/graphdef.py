"""GraphDef: a graph as data, for files, other processes and other languages.

The messages stand in proto/graph.proto; this module alone touches protobuf, and loads it on first
use. exchange.py writes graphs as such data, and reads it; it reads what graph_messages.py read,
too, which needs no protobuf.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ..errors import DataLossError, InvalidArgumentError, NotFoundError, ResourceExhaustedError
from .dtypes import DType, as_dtype, resource, string
from .shapes import TensorShape

Message: TypeAlias = Any


def _messages() -> Any:
    from .proto import graph_pb2  # protobuf loads on first use

    return graph_pb2


def shape_message(dims: Sequence[int | None] | None) -> Message:
    """Dimensions as a Shape message; None for an unknown rank."""
    found = _messages().Shape(unknown_rank=dims is None)
    found.dim.extend(-1 if d is None else d for d in dims or ())
    return found


def dims_of_message(shape: Message) -> list[int | None] | None:
    """The dimensions in a Shape message, None where not even their number is known."""
    return None if shape.unknown_rank else [None if d == -1 else d for d in shape.dim]


class GraphDef:
    """A graph as data. It answers to the names of a protobuf message, too.

    Attributes:
        message: the protobuf message; `message.node` are the nodes.

    Examples:
        >>> with engine.Graph().as_default() as graph:
        ...     x = engine.constant(1.0, name="x")
        >>> data = graph.as_graph_def().to_bytes()
        >>> engine.GraphDef.from_bytes(data) == graph.as_graph_def()
        True
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

    @property
    def node(self) -> Any:
        """The nodes, which can be changed, and added to."""
        return self.message.node

    @property
    def library(self) -> Any:
        """What has the functions that nodes call, as its field `function`."""
        return self.message

    def SerializeToString(self) -> bytes:  # noqa: N802  # a message's name for it
        """`to_bytes`."""
        return self.to_bytes()

    def ParseFromString(self, data: bytes) -> int:  # noqa: N802  # a message's name for it
        """Be the graph that `to_bytes` wrote; gives the number of bytes."""
        self.message = GraphDef.from_bytes(data).message
        return len(data)

    @classmethod
    def FromString(cls, data: bytes) -> GraphDef:  # noqa: N802  # a message's name for it
        """`from_bytes`."""
        return cls.from_bytes(data)

    def CopyFrom(self, other: GraphDef) -> None:  # noqa: N802  # a message's name for it
        """Be a copy of another one."""
        self.message.CopyFrom(other.message)

    def ByteSize(self) -> int:  # noqa: N802  # a message's name for it
        """The number of bytes of the binary form."""
        return len(self.to_bytes())

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


def no_function(name: str) -> NoReturn:
    """NotFoundError of a function that an attribute names."""
    raise NotFoundError(f"the GraphDef has no function {name!r}, which an attribute names")


# Values of attributes: numbers, text, types, shapes, tensors, lists, and names of functions


def write_value(to: Message, value: Any, name_of: Callable[[Any], str | None]) -> None:
    """Put an attribute's value into an AttrValue.

    Args:
        to: the message.
        value: what is written.
        name_of: the name of the function that a value is, None if it is none.

    Raises:
        TypeError: the value is of a kind that the format does not have.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        to.none.SetInParent()
    elif isinstance(value, bool):
        to.b = value
    elif isinstance(value, int):
        if value >= 2**63:
            to.u = value
        else:
            to.i = value
    elif isinstance(value, float):
        to.f = value
    elif isinstance(value, DType):
        to.dtype = value
    elif isinstance(value, str):
        to.s = value
    elif isinstance(value, bytes):
        to.data = value
    elif isinstance(value, TensorShape):
        _write_shape(to.shape, value)
    elif isinstance(value, list | tuple):
        to.list.SetInParent()
        for item in value:
            write_value(to.list.item.add(), item, name_of)
    elif isinstance(value, np.ndarray):
        write_tensor(to.tensor, value)
    else:
        function = name_of(value)
        if function is None:
            raise TypeError(f"a {type(value).__name__} is not data")
        to.function = function


def _write_shape(to: Message, shape: TensorShape) -> None:
    to.SetInParent()
    to.CopyFrom(shape.as_proto())


def write_tensor(to: Message, array: np.ndarray[Any, Any]) -> None:
    """Put an array into a Tensor message."""
    dtype = as_dtype(array.dtype)
    to.dtype = dtype
    _write_shape(to.shape, TensorShape(array.shape))
    if dtype == string:
        to.item.extend(array.ravel().tolist())
    else:
        to.content = (array if sys.byteorder == "little" else array.byteswap()).tobytes()


def read_value(value: Message, function: Callable[[str], Any]) -> Any:
    """The attribute's value in an AttrValue.

    Args:
        value: the message.
        function: gives what the name of a function stands for.

    Raises:
        DataLossError: the message is damaged.
    """
    kind = value.WhichOneof("value")
    if kind is None:
        raise DataLossError("an attribute without a value")
    if kind == "none":
        return None
    if kind == "dtype":
        return as_dtype(value.dtype)
    if kind == "shape":
        return TensorShape(value.shape)
    if kind == "tensor":
        return read_tensor(value.tensor)
    if kind == "list":
        return tuple(read_value(item, function) for item in value.list.item)
    if kind == "function":
        return function(value.function)
    return getattr(value, kind)


def read_tensor(tensor: Message) -> np.ndarray[Any, Any]:
    """The array in a Tensor message, which must not be written to.

    Raises:
        DataLossError: the content does not fit the shape and dtype.
    """
    dtype, shape = as_dtype(tensor.dtype), tuple(tensor.shape.dim)
    if tensor.shape.unknown_rank or any(d < 0 for d in shape) or dtype == resource:
        raise DataLossError(f"a tensor of {dtype}{list(shape)} has no values")
    size = math.prod(shape)
    found, expected = len(tensor.content), size * dtype.size
    if dtype == string:
        found, expected = len(tensor.item), size
    if found != expected:
        unit = "items" if dtype == string else "bytes"
        raise DataLossError(
            f"a tensor of {dtype}{list(shape)} has {expected} {unit}, found {found}"
        )
    if dtype == string:
        array = np.empty(size, object)
        array[:] = list(tensor.item)
    elif dtype == "bool":
        array = np.frombuffer(tensor.content, np.uint8) != 0
    else:
        array = np.frombuffer(tensor.content, dtype.numpy)
        if sys.byteorder != "little":
            array = array.byteswap()
    try:
        return array.reshape(shape)
    except ValueError as cause:  # sizes that NumPy does not take, beside a size of 0
        raise DataLossError(f"a tensor of {dtype}{list(shape)}: {cause}") from cause
