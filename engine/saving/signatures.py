"""Signatures of graphs: which tensors are the inputs and outputs of a computation.

    SignatureDef {map<string, TensorInfo> inputs = 1, map<string, TensorInfo> outputs = 2,
                  string method_name = 3}
    TensorInfo {string name = 1, DataType dtype = 2, TensorShapeProto tensor_shape = 3}

Source: tensorflow/core/protobuf/meta_graph.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .. import wire
from ..errors import InvalidArgumentError
from ..graph import Graph, GraphTensor, TensorShape, TensorSpec
from ..graph.dtypes import BY_NUMBER, resource
from ..wire import BYTES, VARINT, Kind, Message

_TYPES = {**BY_NUMBER, resource.as_datatype_enum: resource}
_KIND = Kind("a signature of a graph", "export the graph again")


@dataclass(frozen=True)
class Signature:
    """Which tensors of a graph are the inputs and outputs of a computation.

    Attributes:
        inputs, outputs: names of tensors by the names that a user knows.
        method_name: what kind of computation it is.
        specs: what is known of these tensors, by their names; may be empty.

    Examples:
        >>> engine.Signature({"x": "x:0"}, {"y": "y:0"}).inputs
        {'x': 'x:0'}
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    method_name: str = ""
    specs: Mapping[str, TensorSpec] = field(default_factory=dict)

    def of(self, graph: Graph) -> Signature:
        """The same with the specs of the tensors of a graph.

        Raises:
            NotFoundError: the graph does not have one of them.
            InvalidArgumentError: a name is none of a tensor.
        """
        names = {*self.inputs.values(), *self.outputs.values()}
        return replace(self, specs={name: _spec(graph, name) for name in sorted(names)})


def _spec(graph: Graph, name: str) -> TensorSpec:
    found = graph.as_graph_element(name)
    if not isinstance(found, GraphTensor):
        raise InvalidArgumentError(
            f"a signature has tensors, and {name!r} is an operation", remedy=f'write "{name}:0"'
        )
    return found.spec


def map_bytes(number: int, values: Mapping[str, bytes]) -> bytes:
    """A field that is a map from text to messages, in the order of the keys."""
    return b"".join(
        wire.field(number, wire.text(1, key) + wire.field(2, value))
        for key, value in sorted(values.items())
    )


def signature_bytes(signature: Signature) -> bytes:
    """A signature as data."""
    inputs, outputs = (
        {key: _tensor_bytes(name, signature.specs.get(name)) for key, name in names.items()}
        for names in (signature.inputs, signature.outputs)
    )
    return map_bytes(1, inputs) + map_bytes(2, outputs) + wire.text(3, signature.method_name)


def _tensor_bytes(name: str, spec: TensorSpec | None) -> bytes:
    data = wire.text(1, name)
    if spec is None:
        return data
    if spec.shape.dims is None:
        shape = wire.integer(3, 1)
    else:
        sizes = (-1 if d is None else d for d in spec.shape.dims)
        shape = b"".join(wire.field(2, wire.integer(1, size)) for size in sizes)
    return data + wire.integer(2, spec.dtype.as_datatype_enum) + wire.field(3, shape)


def read_signature(data: bytes) -> Signature:
    """A signature of its data; DataLossError where they are none."""
    message = Message(data, _KIND)
    names: dict[int, dict[str, str]] = {1: {}, 2: {}}
    specs: dict[str, TensorSpec] = {}
    method = ""
    for number, kind in message.fields():
        if number in names and kind == BYTES:
            key, value = message.span().entry()
            name, spec = _read_tensor(value)
            names[number][key] = name
            if spec is not None:
                specs[name] = spec
        elif number == 3 and kind == BYTES:
            method = message.text()
        else:
            message.skip(kind)
    return Signature(names[1], names[2], method, specs)


def _read_tensor(data: bytes) -> tuple[str, TensorSpec | None]:
    message = Message(data, _KIND)
    name, dtype, shape = "", 0, TensorShape(None)
    for number, kind in message.fields():
        if number == 1 and kind == BYTES:
            name = message.text()
        elif number == 2 and kind == VARINT:
            dtype = message.varint()
        elif number == 3 and kind == BYTES:
            shape = _read_shape(message.span())
        else:
            message.skip(kind)
    known = _TYPES.get(dtype)
    return name, None if known is None else TensorSpec(shape, known)


def _read_shape(message: Message) -> TensorShape:
    sizes: list[int] = []
    for number, kind in message.fields():
        if number == 2 and kind == BYTES:
            dim, size = message.span(), 0
            for inner, inner_kind in dim.fields():
                if inner == 1 and inner_kind == VARINT:
                    size = dim.signed()
                else:
                    dim.skip(inner_kind)
            sizes.append(size)
        elif number == 3 and kind == VARINT:
            if message.varint():
                return TensorShape(None)
        else:
            message.skip(kind)
    return TensorShape([None if size < 0 else size for size in sizes])
