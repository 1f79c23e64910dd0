"""GraphDefs of TensorFlow as data: nodes with their attributes, tensors as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ...errors import DataLossError, InvalidArgumentError, UnimplementedError
from ...graph import TensorShape
from ...graph.graphdef import parse_input

_REF = 100  # what the number of a type is above that of what it refers to
# numpy type, and the field of a TensorProto that lists values; by the number of the type
_TYPES: dict[int, tuple[Any, str]] = {
    1: ("float32", "float_val"),
    2: ("float64", "double_val"),
    3: ("int32", "int_val"),
    4: ("uint8", "int_val"),
    5: ("int16", "int_val"),
    6: ("int8", "int_val"),
    7: ("string", "string_val"),
    8: ("complex64", "scomplex_val"),
    9: ("int64", "int64_val"),
    10: ("bool", "bool_val"),
    14: ("bfloat16", "half_val"),
    17: ("uint16", "int_val"),
    18: ("complex128", "dcomplex_val"),
    19: ("float16", "half_val"),
    20: ("resource", ""),
    21: ("resource", ""),  # a variant, here a list of tensors
    22: ("uint32", "uint32_val"),
    23: ("uint64", "uint64_val"),
}

NUMBERS = {name: number for number, (name, _) in reversed(_TYPES.items())}


class TensorFlowGraph(NamedTuple):
    """A graph of TensorFlow.

    Attributes:
        message: the GraphDef.
        version: the TensorFlow that wrote it, "" where that is not known.
    """

    message: Any
    version: str


class Node:
    """One node.

    Attributes:
        name, op, device: as they stand in the file.
        inputs: pairs of a node's name and the number of its output.
        controls: names of nodes that run before.
        late: of a Merge, the inputs that come round a loop; they are not among `inputs`.
    """

    def __init__(
        self,
        name: str,
        op: str,
        inputs: Sequence[tuple[str, int]] = (),
        controls: Sequence[str] = (),
        device: str = "",
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.op, self.device = name, op, device
        self.inputs, self.controls = list(inputs), list(controls)
        self.late: list[tuple[str, int]] = []
        self._attrs = attrs or {}

    @classmethod
    def read(cls, message: Any) -> Node:
        """A node as it stands in the file."""
        inputs: list[tuple[str, int]] = []
        controls: list[str] = []
        for text in message.input:
            source, index = parse_input(text)
            if index is None:
                controls.append(source)
            else:
                inputs.append((source, index))
        return cls(message.name, message.op, inputs, controls, message.device, message.attr)

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute: a number, text as bytes, a type's name, a shape, an array, or
        a list of these; `default` where there is none.

        Raises:
            DataLossError: the value is damaged.
            UnimplementedError: it is a function, or of a type that laminar does not have.
        """
        if name not in self._attrs:
            return default
        value = self._attrs[name]
        if not hasattr(value, "WhichOneof"):
            return value  # of a node that no file has
        kind = value.WhichOneof("value")
        if kind is None:
            raise DataLossError(f"node {self.name!r}: the attribute {name!r} has no value")
        found = getattr(value, kind)
        if kind == "list":
            items = [(field.name, list(values)) for field, values in found.ListFields()]
            return [_plain(k, v) for k, values in items for v in values]
        return _plain(kind, found)

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is text."""
        found = self.attr(name)
        return found.decode(errors="replace") if isinstance(found, bytes) else default

    def functions(self, name: str) -> list[str]:
        """The functions that an attribute names.

        Raises:
            DataLossError: it names none.
        """
        value = self._attrs.get(name)
        found = [f.name for f in (value.func, *value.list.func) if f.name] if value else []
        if not found:
            raise DataLossError(f"node {self.name!r}: the attribute {name!r} names no function")
        return found

    @property
    def colocation(self) -> list[str]:
        """The nodes that it is placed with."""
        found = self.attr("_class", [])
        return [c.decode(errors="replace").removeprefix("loc:@") for c in found]


def _plain(kind: str, value: Any) -> Any:
    if kind == "type":
        return type_name(value)
    if kind == "shape":
        return shape_of(value)
    if kind == "tensor":
        return array_of(value)
    if kind in ("func", "placeholder"):
        raise UnimplementedError("functions of TensorFlow have no form here")
    return value


def type_name(number: int) -> str:
    """The name of a type, of a reference to it too."""
    found = _TYPES.get(number - _REF if number > _REF else number)
    if found is None:
        raise UnimplementedError(f"there are no tensors of TensorFlow's type {number} here")
    return str(found[0])


def shape_of(message: Any) -> TensorShape:
    """A TensorShapeProto."""
    if message.unknown_rank:
        return TensorShape(None)
    sizes = [d.size for d in message.dim]
    if any(size < -1 for size in sizes):
        raise DataLossError(f"a shape with the sizes {sizes}")
    return TensorShape([None if size == -1 else size for size in sizes])


def array_of(message: Any) -> np.ndarray[Any, Any]:
    """A TensorProto; one value, or none, stands for all that the shape asks for.

    Raises:
        DataLossError: there are more or fewer values than the shape has.
    """
    name, field = _TYPES.get(message.dtype, ("", ""))
    shape = shape_of(message.tensor_shape)
    if not field or not shape.is_fully_defined:
        raise DataLossError(f"a tensor of the type {message.dtype} and the shape {shape}")
    sizes = tuple(int(d or 0) for d in shape)
    size = math.prod(sizes)
    values = _values(message, name, field)
    if values.size > max(size, 1) or (message.tensor_content and values.size != size):
        raise DataLossError(f"a tensor of {shape} has {values.size} values")
    try:
        if values.size == size:
            return values.reshape(sizes)
        if values.size <= 1:
            one = values if values.size else _nothing(name)
            return np.broadcast_to(one.reshape(()), sizes)
        return np.concatenate([values, np.repeat(values[-1:], size - values.size)]).reshape(sizes)
    except (ValueError, MemoryError) as cause:
        raise DataLossError(f"a tensor of {shape}: {cause}") from cause


def _nothing(name: str) -> np.ndarray[Any, Any]:
    return np.array([b""], object) if name == "string" else np.zeros(1, _numpy(name))


def _numpy(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if name == "bfloat16" else name)


def field_of(number: int) -> str:
    """The field of a TensorProto that lists values of the type with a number."""
    return _TYPES[number][1]


def _values(message: Any, name: str, field: str) -> np.ndarray[Any, Any]:
    listed = list(getattr(message, field))
    if name == "string":
        found = np.empty(len(listed), object)
        found[:] = listed
        return found
    dtype = _numpy(name)
    if message.tensor_content:
        if len(message.tensor_content) % dtype.itemsize:
            raise DataLossError(f"{len(message.tensor_content)} bytes for a tensor of {name}")
        return np.frombuffer(message.tensor_content, dtype.newbyteorder("<")).astype(
            dtype, copy=False
        )
    if field == "half_val":
        return np.array(listed, "uint32").astype("uint16").view(dtype)
    if dtype.kind == "c":
        parts = np.array(listed, "float32" if dtype.itemsize == 8 else "float64")
        return parts[: parts.size // 2 * 2].view(dtype)
    return np.array(listed).astype(dtype) if listed else np.zeros(0, dtype)


def nodes_of(graph: TensorFlowGraph) -> Iterator[Node]:
    """The nodes.

    Raises:
        InvalidArgumentError: two have one name.
    """
    seen: set[str] = set()
    for message in graph.message.node:
        if message.name in seen:
            raise InvalidArgumentError(f"the GraphDef has two nodes {message.name!r}")
        seen.add(message.name)
        yield Node.read(message)
