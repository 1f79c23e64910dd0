"""GraphDef: a graph as data, for files, other processes and other languages.

The messages stand in proto/graph.proto; this module alone touches protobuf, and loads it on first
use. Nothing in a GraphDef can run code: an attribute is a number, text, a type, a shape, a tensor,
or a list of these.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)
from .device import DeviceSpec
from .dtypes import DType, as_dtype, resource, string
from .graph import Graph
from .library import inline_library
from .operation import OpDefinition, Operation
from .shapes import TensorShape
from .spec import TensorSpec
from .tensor import GraphTensor, Tensor

Message: TypeAlias = Any

# The version of the format; a reader refuses what asks for a later one.
VERSION = 1
_COLOCATED = "loc:@"


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


# Writing


def export_graph(graph: Graph) -> GraphDef:
    """The operations of `graph` as data.

    What a function captures becomes placeholders; attributes that are Python functions are left
    out.

    Raises:
        InvalidArgumentError: an attribute is of a kind that the format does not have.
    """
    found = GraphDef()
    found.message.versions.producer = VERSION
    found.message.versions.min_consumer = 1
    for op in graph.operations:
        node = found.message.node.add(name=op.name, op=op.type, device=op.device)
        node.input.extend(_input_name(x) for x in op.inputs)
        node.input.extend(f"^{c.name}" for c in op.control_inputs)
        node.colocation.extend(_COLOCATED + name for name in op.colocation)
        for name, value in op.attrs.items():
            if not callable(value):
                try:
                    _write(node.attr[name], value)
                except (TypeError, ValueError) as cause:
                    raise InvalidArgumentError(
                        f"{op.type} {op.name!r}: the attribute {name!r} cannot be written, "
                        f"it is {value!r}: {cause}",
                        remedy="attributes are numbers, text, dtypes, shapes, arrays, or tuples",
                    ) from cause
    found.message.node_count = len(found.message.node)
    return found


def _input_name(x: GraphTensor) -> str:
    return f"{x.op.name}:{x.value_index}" if x.value_index else x.op.name


def _write(to: Message, value: Any) -> None:
    """Put an attribute's value into an AttrValue."""
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
            _write(to.list.item.add(), item)
    elif isinstance(value, np.ndarray):
        write_tensor(to.tensor, value)
    else:
        raise TypeError(f"a {type(value).__name__} is not data")


def _write_shape(to: Message, shape: TensorShape) -> None:
    if shape.dims is None:
        to.unknown_rank = True
    else:
        to.SetInParent()
        to.dim.extend(-1 if d is None else d for d in shape.dims)


def write_tensor(to: Message, array: np.ndarray[Any, Any]) -> None:
    """Put an array into a Tensor message."""
    dtype = as_dtype(array.dtype)
    to.dtype = dtype
    _write_shape(to.shape, TensorShape(array.shape))
    if dtype == string:
        to.item.extend(array.ravel().tolist())
    else:
        to.content = (array if sys.byteorder == "little" else array.byteswap()).tobytes()


# Reading


def _read(value: Message) -> Any:
    """The attribute's value in an AttrValue."""
    kind = value.WhichOneof("value")
    if kind is None:
        raise DataLossError("an attribute without a value")
    if kind == "none":
        return None
    if kind == "dtype":
        return as_dtype(value.dtype)
    if kind == "shape":
        return _read_shape(value.shape)
    if kind == "tensor":
        return read_tensor(value.tensor)
    if kind == "list":
        return tuple(_read(item) for item in value.list.item)
    if kind == "function":
        raise UnimplementedError(f"an attribute that is the function {value.function!r}")
    return getattr(value, kind)


def _read_shape(shape: Message) -> TensorShape:
    if shape.unknown_rank:
        return TensorShape(None)
    return TensorShape([None if d == -1 else d for d in shape.dim])


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


class _Node:
    """A node that is about to be added, with its names resolved."""

    def __init__(self, message: Message, definition: OpDefinition, attrs: dict[str, Any]) -> None:
        self.name: str = message.name
        self.message = message
        self.device = DeviceSpec.from_string(message.device)
        self.definition = definition
        self.attrs = attrs
        self.inputs: list[tuple[str, int]] = []
        self.controls: list[str] = []
        for text in message.input:
            name, index = parse_input(text)
            if index is None:
                self.controls.append(name)
            elif self.controls:
                raise InvalidArgumentError(f"the data input {text!r} stands after a control input")
            else:
                self.inputs.append((name, index))
        for text in message.colocation:
            if not text.startswith(_COLOCATED):
                raise InvalidArgumentError(f'colocation is written "loc:@node", got {text!r}')
        self.colocation = [text.removeprefix(_COLOCATED) for text in message.colocation]


def parse_input(text: str) -> tuple[str, int | None]:
    """The node and the output of an input: "a" and "a:0" are ("a", 0), "^a" is ("a", None)."""
    if text.startswith("^"):
        return text[1:], None
    name, colon, index = text.rpartition(":")
    if not colon:
        return text, 0
    if not index.isdecimal() or len(index) > 9:
        raise InvalidArgumentError(f'an input is written "node:1" or "^node", got {text!r}')
    return name, int(index)


def import_graph(
    graph: Graph,
    graph_def: GraphDef,
    lookup: Callable[[str], OpDefinition],
    *,
    as_input: Callable[[Tensor], GraphTensor],
    input_map: Mapping[str, Tensor | Operation],
    return_elements: Sequence[str],
    name: str,
    allow_internal: bool,
) -> list[GraphTensor | Operation]:
    """Add the nodes of `graph_def` to `graph`; see `laminar.engine.import_graph_def`.

    Args:
        lookup: the op of a name; NotFoundError when there is none.
        as_input: brings a tensor of `input_map` into the graph.
    """
    _check_version(graph_def)
    if graph_def.message.function:
        for function in graph_def.message.function:
            if _is_op(function.name, lookup):
                raise AlreadyExistsError(
                    f"a function of the GraphDef has an op's name: {function.name!r}"
                )
        graph_def, return_elements = inline_library(graph_def, return_elements)
    nodes = _read_nodes(graph_def, lookup, allow_internal)
    mapped = {parse_input(key): value for key, value in input_map.items()}
    order = _in_order(nodes, mapped)
    _check_specs(order, mapped)
    with graph.name_scope(name or graph.scopes.name) as prefix:
        for node in nodes.values():
            if prefix + node.name in graph:
                raise AlreadyExistsError(
                    f"the graph has an operation {prefix + node.name!r} already",
                    remedy="import under another name",
                )
        made: dict[str, Operation] = {}

        def element(source: str, index: int | None) -> Any:
            given = mapped.get((source, index))
            if given is not None:
                return as_input(given) if isinstance(given, Tensor) else given
            op = made.get(source)
            if op is None:
                raise NotFoundError(f"the GraphDef has no node {source!r}")
            if index is not None and index >= len(op.outputs):
                raise NotFoundError(f"node {source!r} has no output {index}")
            return op if index is None else op.outputs[index]

        for node in order:
            controls = [element(c, None) for c in node.controls]
            with (
                graph.control_dependencies(controls),
                graph.device(node.device),
                graph.name_scope(None),
            ):
                op = graph.add(
                    node.definition,
                    [element(*source) for source in node.inputs],
                    node.attrs,
                    name=f"{prefix}{node.name}/",
                )
            op.colocation += tuple(prefix + n for n in node.colocation if n in nodes)
            made[node.name] = op
        return [element(*_element_of(text)) for text in return_elements]


def _element_of(text: str) -> tuple[str, int | None]:
    """What a return element names: a tensor with ":", else an operation."""
    return parse_input(text) if ":" in text else (text.removeprefix("^"), None)


def _check_version(graph_def: GraphDef) -> None:
    versions = graph_def.message.versions
    if versions.min_consumer > VERSION:
        raise UnimplementedError(
            f"the GraphDef was written by version {versions.producer} of the format and needs "
            f"version {versions.min_consumer} to be read; this is version {VERSION}",
            remedy="update laminar",
        )


def _is_op(name: str, lookup: Callable[[str], OpDefinition]) -> bool:
    try:
        lookup(name)
    except NotFoundError:
        return False
    return True


def _read_nodes(
    graph_def: GraphDef, lookup: Callable[[str], OpDefinition], allow_internal: bool
) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for message in graph_def.message.node:
        if message.name in nodes:
            raise InvalidArgumentError(f"the GraphDef has two nodes {message.name!r}")
        Graph.check_name(message.name)
        if message.name.endswith("/"):
            raise InvalidArgumentError(f"{message.name!r} names a scope, not a node")
        if message.op.startswith("_") and not allow_internal:
            raise InvalidArgumentError(
                f"node {message.name!r}: {message.op!r} is an internal op, which only laminar adds"
            )
        try:
            definition = lookup(message.op)
            attrs = {key: _read(message.attr[key]) for key in sorted(message.attr)}
            nodes[message.name] = _Node(message, definition, attrs)
        except LaminarError as cause:
            raise _at(message, cause) from cause
    return nodes


def _at(message: Message, cause: LaminarError) -> LaminarError:
    """The error with the node that it is about."""
    text = f"node {message.name!r} ({message.op}): {cause.message}"
    return type(cause)(text, remedy=cause.remedy)


def _in_order(nodes: Mapping[str, _Node], mapped: Mapping[Any, Any]) -> list[_Node]:
    """The nodes with inputs before consumers, otherwise as they stand.

    Raises:
        InvalidArgumentError: an input is missing, nodes form a cycle, or a mapped input is not
            used.
    """
    unused = set(mapped)
    place = {name: i for i, name in enumerate(nodes)}
    waiting: dict[str, int] = {}
    consumers: dict[str, list[str]] = {}
    for node in nodes.values():
        sources = {*node.inputs, *((c, None) for c in node.controls)}
        unused -= sources
        names = {name for name, index in sources if (name, index) not in mapped}
        for name in names:
            if name not in nodes:
                raise InvalidArgumentError(
                    f"node {node.name!r} takes {name!r}, which the GraphDef does not have",
                    remedy="write the whole graph, or give the tensor in input_map",
                )
            consumers.setdefault(name, []).append(node.name)
        waiting[node.name] = len(names)
    if unused:
        names_of = ", ".join(n if i is not None else f"^{n}" for n, i in sorted(unused, key=str))
        raise InvalidArgumentError(f"input_map: no node takes {names_of}")
    ready = [place[name] for name, count in waiting.items() if not count]
    by_place = list(nodes.values())
    order: list[_Node] = []
    while ready:
        node = by_place[heapq.heappop(ready)]
        order.append(node)
        for consumer in consumers.get(node.name, ()):
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heapq.heappush(ready, place[consumer])
    if len(order) < len(nodes):
        stuck = [name for name, count in waiting.items() if count]
        raise InvalidArgumentError(f"the GraphDef has a cycle through {', '.join(stuck[:5])}")
    return order


def _check_specs(order: Sequence[_Node], mapped: Mapping[Any, Any]) -> None:
    """Infer all shapes and dtypes before anything is added."""
    specs: dict[str, tuple[TensorSpec, ...]] = {}
    for node in order:
        inputs = []
        for source, index in node.inputs:
            given = mapped.get((source, index))
            if given is not None:
                inputs.append(given.spec)
            elif index < len(specs[source]):
                inputs.append(specs[source][index])
            else:
                raise InvalidArgumentError(
                    f"node {node.name!r} takes output {index} of {source!r}, "
                    f"which has {len(specs[source])}"
                )
        try:
            specs[node.name], _ = node.definition.infer(inputs, node.attrs)
        except LaminarError as cause:
            raise _at(node.message, cause) from cause
        except Exception as cause:  # a rule that meets attributes of kinds it does not expect
            message = f"node {node.name!r} ({node.message.op}): {cause}"
            raise InvalidArgumentError(message) from cause
