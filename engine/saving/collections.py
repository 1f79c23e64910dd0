"""Collections of a graph as data: numbers, text, bytes, names of tensors and operations, and what
has a codec: variables, queue runners, savers.

    CollectionDef {NodeList node_list = 1, BytesList bytes_list = 2, Int64List int64_list = 3,
                   FloatList float_list = 4, AnyList any_list = 5}
    each of them {repeated value = 1};    Any {string type_url = 1, bytes value = 2}

Source: tensorflow/core/protobuf/meta_graph.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import AlreadyExistsError
from ..graph import Graph, GraphTensor, Operation
from ..source import warn
from ..state import QueueRunner, Variable
from ..state.queues import QueueBase
from ..state.variable_def import read_variable_bytes, variable_bytes
from ..wire import BYTES, FIXED32, VARINT, Kind, Message, field, text, varint

_NODES, _BYTES, _INTEGERS, _FLOATS, _ANY = 1, 2, 3, 4, 5
_KIND = Kind("a collection of a graph", "export the graph again")


class Codec(NamedTuple):
    """How objects of a class are kept in a file.

    Attributes:
        name: that marks them there.
        kind: the class.
        encode: gives an object's bytes.
        decode: of bytes, a graph that has the operations and the scope that stands before their
            names: makes the object.
    """

    name: str
    kind: type
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes, Graph, str], Any]


_codecs: dict[str, Codec] = {}


def register_collection_codec(
    name: str,
    kind: type,
    encode: Callable[[Any], bytes],
    decode: Callable[[bytes, Graph, str], Any],
) -> None:
    """Have objects of a class, in collections of graphs, written to MetaGraphs and read from them.

    Args:
        name: that marks them in files, such as "my_package.Schedule".
        kind: the class.
        encode: gives an object's bytes.
        decode: makes the object of these, the graph, and the scope that stands before the names of
            its operations, "" or with "/" at the end.

    Raises:
        AlreadyExistsError: the name is taken.

    Examples:
        >>> engine.register_collection_codec(
        ...     "numbers", int, lambda n: str(n).encode(), lambda data, graph, scope: int(data)
        ... )
    """
    if name in _codecs:
        raise AlreadyExistsError(f"there is a codec {name!r} for collections already")
    _codecs[name] = Codec(name, kind, encode, decode)


def codec(name: str) -> Codec:
    """The codec of that name."""
    return _codecs[name]


def _codec_of(value: Any) -> Codec | None:
    return next((c for c in _codecs.values() if isinstance(value, c.kind)), None)


def collection_bytes(key: str, values: Sequence[Any], is_foreign: bool = False) -> bytes | None:
    """The values of a collection as data; those that cannot be written are left out, aloud.

    For TensorFlow (`is_foreign`) objects are bytes, and the key says of what.
    """
    parts: dict[int, list[bytes]] = {}
    for value in values:
        own = _codec_of(value)
        if own is not None and is_foreign:
            parts.setdefault(_BYTES, []).append(field(1, own.encode(value)))
        elif own is not None:
            content = text(1, own.name) + field(2, own.encode(value))
            parts.setdefault(_ANY, []).append(field(1, content))
        elif isinstance(value, GraphTensor | Operation):
            parts.setdefault(_NODES, []).append(text(1, value.name))
        elif isinstance(value, bytes | str):
            data = value.encode() if isinstance(value, str) else value
            parts.setdefault(_BYTES, []).append(field(1, data))
        elif isinstance(value, bool | int | np.integer) and -(2**63) <= value < 2**63:
            parts.setdefault(_INTEGERS, []).append(varint(int(value)))
        elif isinstance(value, float | np.floating):
            parts.setdefault(_FLOATS, []).append(struct.pack("<f", value))
        else:
            warn(f"export_meta_graph: {value!r:.80} of the collection {key!r} cannot be written")
            return None
    if not parts:
        return b""
    if len(parts) > 1:
        warn(f"export_meta_graph: the values of the collection {key!r} are of several kinds")
        return None
    ((number, items),) = parts.items()
    content = b"".join(items)
    return field(number, field(1, content) if number in (_INTEGERS, _FLOATS) else content)


def read_collection(data: bytes, graph: Graph, scope: str, known: dict[bytes, Any]) -> list[Any]:
    """The values of a collection.

    Args:
        data: of `collection_bytes`.
        graph: that has the operations.
        scope: what stands before their names there, "" or with "/" at the end.
        known: objects by what was written of them; one that stands in several collections is made
            once.

    Raises:
        DataLossError: the data are damaged.
        NotFoundError: the graph does not have an operation.
    """
    found: list[Any] = []
    message = Message(data, _KIND)
    for number, wire in message.fields():
        if wire != BYTES or number not in (_NODES, _BYTES, _INTEGERS, _FLOATS, _ANY):
            message.skip(wire)
            continue
        for item in _items(message.span(), number):
            if number == _NODES:
                name = scope + item.text()
                found.append(graph.as_graph_element(name))
            elif number == _BYTES:
                found.append(item.bytes())
            elif number == _ANY:
                content = item.bytes()
                if content not in known:
                    known[content] = _object(content, graph, scope)
                if known[content] is not None:
                    found.append(known[content])
            else:
                found += _numbers(item, number)
    return found


def _items(values: Message, number: int) -> Iterator[Message]:
    for inner, wire in values.fields():
        packed = number in (_INTEGERS, _FLOATS)
        if inner == 1 and (wire == BYTES or packed and wire in (VARINT, FIXED32)):
            yield values.span() if packed and wire == BYTES else values
        else:
            values.skip(wire)


def _numbers(values: Message, number: int) -> Iterator[Any]:
    """All numbers of a packed list."""
    while values.position < values.end:
        if number == _INTEGERS:
            yield values.signed()
        else:
            yield values.float32()


def _object(content: bytes, graph: Graph, scope: str) -> Any:
    message = Message(content, _KIND)
    name, value = "", b""
    for number, wire in message.fields():
        if number == 1 and wire == BYTES:
            name = message.text()
        elif number == 2 and wire == BYTES:
            value = message.bytes()
        else:
            message.skip(wire)
    own = _codecs.get(name)
    if own is None:
        warn(f"import_meta_graph: an object of the unknown kind {name!r} is left out")
        return None
    return own.decode(value, graph, scope)


def _runner_bytes(runner: QueueRunner) -> bytes:
    """QueueRunnerDef: the names of queue (1), enqueues (2), close (3) and cancelling close (4)."""
    ops = b"".join(text(2, op.name) for op in runner.enqueue_ops)
    close, cancel = runner.close_op, runner.cancel_op
    assert isinstance(close, Operation)
    assert isinstance(cancel, Operation)
    assert isinstance(runner.queue.handle, GraphTensor)
    return text(1, runner.queue.handle.name) + ops + text(3, close.name) + text(4, cancel.name)


def read_runner(data: bytes, graph: Graph, scope: str) -> QueueRunner:
    """The queue runner that a QueueRunnerDef describes."""
    message = Message(data, _KIND)
    names: dict[int, list[str]] = {1: [], 2: [], 3: [], 4: []}
    for number, wire in message.fields():
        if number in names and wire == BYTES:
            names[number].append(scope + message.text())
        else:
            message.skip(wire)
    if not all(names.values()):
        raise message.damage("names of a queue runner are missing")
    return QueueRunner(
        QueueBase.of_handle(graph.get_tensor_by_name(names[1][0])),
        [graph.get_operation_by_name(name) for name in names[2]],
        graph.get_operation_by_name(names[3][0]),
        graph.get_operation_by_name(names[4][0]),
    )


register_collection_codec("laminar.Variable", Variable, variable_bytes, read_variable_bytes)
register_collection_codec("laminar.QueueRunner", QueueRunner, _runner_bytes, read_runner)
