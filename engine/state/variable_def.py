"""Variables of a graph as data, and found again in a graph that was read.

    VariableDef {string variable_name = 1, string initializer_name = 2, string snapshot_name = 3,
                 string initial_value_name = 6, bool trainable = 7,
                 string synchronization = 100, string aggregation = 101, bool autocast = 102}

the fields below 100 as in tensorflow/core/framework/variable.proto.
"""

from __future__ import annotations

from ..errors import InvalidArgumentError, NotFoundError
from ..graph import Graph, GraphTensor
from ..io.wire import BYTES, VARINT, Kind, Message, integer, text
from ..ops.state import variable as ops
from .variable import Variable

_KIND = Kind("a VariableDef", "export the graph again")


def variable_bytes(variable: Variable) -> bytes:
    """A variable of a graph as data."""
    handle = variable.handle
    assert isinstance(handle, GraphTensor)
    return b"".join(
        (
            text(1, handle.name),
            text(2, variable.initializer.name),
            text(3, variable.graph_element(handle.graph).name),
            text(6, variable.initial_value.name),
            integer(7, int(variable.trainable)),
            text(100, variable.synchronization),
            text(101, variable.aggregation),
            integer(102, int(variable._autocast)),
        )
    )


def read_variable_bytes(data: bytes, graph: Graph, scope: str = "") -> Variable:
    """The variable that the data tell of, whose operations the graph has.

    Args:
        data: of `variable_bytes`.
        graph: that has the operations.
        scope: what stands before their names there, "" or with "/" at the end.

    Raises:
        DataLossError: the data are damaged.
        NotFoundError: the graph does not have the operations.
        InvalidArgumentError: it has others of these names.
    """
    message = Message(data, _KIND)
    names: dict[int, str] = {}
    flags = {7: True, 102: True}
    for number, wire in message.fields():
        if wire == BYTES and number in (1, 2, 3, 6, 100, 101):
            names[number] = message.text()
        elif wire == VARINT and number in flags:
            flags[number] = bool(message.varint())
        else:
            message.skip(wire)
    try:
        handle, read, initial = (graph.get_tensor_by_name(scope + names[n]) for n in (1, 3, 6))
        initializer = graph.get_operation_by_name(scope + names[2])
    except KeyError as cause:
        if isinstance(cause, NotFoundError):
            raise
        raise message.damage(f"field {cause} is missing") from cause
    if handle.op.definition is not ops.var_handle or read.op.definition is not ops.read_variable:
        raise InvalidArgumentError(f"{handle.name!r} and {read.name!r} are no variable")
    return Variable.of_operations(
        handle,
        read,
        initial,
        initializer,
        trainable=flags[7],
        autocast=flags[102],
        synchronization=names.get(100, "auto"),
        aggregation=names.get(101, "none"),
    )
