"""Variables of a graph as data, and found again in a graph that was read.

    VariableDef {string variable_name = 1, string initializer_name = 2, string snapshot_name = 3,
                 SaveSliceInfoDef save_slice_info_def = 4, bool is_resource = 5,
                 string initial_value_name = 6,
                 bool trainable = 7,
                 string synchronization = 100, string aggregation = 101, bool autocast = 102}
    SaveSliceInfoDef {string full_name = 1, repeated int64 full_shape = 2,
                      repeated int64 var_offset = 3, repeated int64 var_shape = 4}

the fields below 100 as in tensorflow/core/framework/variable.proto.
"""

from __future__ import annotations

from ..errors import InvalidArgumentError, NotFoundError
from ..graph import Graph, GraphTensor, TensorShape
from ..ops.state import variable as ops
from ..wire import BYTES, VARINT, Kind, Message, field, integer, text
from .variable import PartOf, Variable

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
            b"" if variable.part_of is None else field(4, _part_bytes(variable.part_of)),
            integer(5, 1),
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
    part = None
    for number, wire in message.fields():
        if wire == BYTES and number == 4:
            part = _read_part(message.span(), scope)
        elif wire == BYTES and number in (1, 2, 3, 6, 100, 101):
            names[number] = message.text()
        elif wire == VARINT and number in flags:
            flags[number] = bool(message.varint())
        else:
            message.skip(wire)
    try:
        handle, read = (graph.get_tensor_by_name(scope + names[n]) for n in (1, 3))
        initializer = graph.get_operation_by_name(scope + names[2])
        if 6 in names:
            initial = graph.get_tensor_by_name(scope + names[6])
        else:  # as in files of early versions
            initial = initializer.inputs[-1]
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
        part_of=part,
    )


def _part_bytes(part: PartOf) -> bytes:
    starts, sizes = zip(*part.extents, strict=True)
    numbers = ((2, part.shape), (3, starts), (4, sizes))
    return text(1, part.name) + b"".join(integer(n, d or 0) for n, ds in numbers for d in ds)


def _read_part(message: Message, scope: str) -> PartOf:
    name = ""
    numbers: dict[int, list[int]] = {2: [], 3: [], 4: []}
    for number, wire in message.fields():
        if number == 1 and wire == BYTES:
            name = message.text()
        elif number in numbers and wire == VARINT:
            numbers[number].append(message.signed())
        elif number in numbers and wire == BYTES:  # packed
            packed = message.span()
            while packed.position < packed.end:
                numbers[number].append(packed.signed())
        else:
            message.skip(wire)
    shape, starts, sizes = numbers.values()
    if not name or not 0 < len(shape) == len(starts) == len(sizes) or min(shape) < 0:
        raise message.damage("a part of a variable that fits nothing")
    return PartOf(scope + name, TensorShape(shape), tuple(zip(starts, sizes, strict=True)))
