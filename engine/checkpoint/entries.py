"""What the index of a checkpoint says of a tensor: messages BundleHeaderProto, BundleEntryProto.

    BundleHeaderProto {int32 num_shards = 1, Endianness endianness = 2, VersionDef version = 3}
    VersionDef {int32 producer = 1, int32 min_consumer = 2}
    BundleEntryProto {DataType dtype = 1, TensorShapeProto shape = 2, int32 shard_id = 3,
                      int64 offset = 4, int64 size = 5, fixed32 crc32c = 6,
                      repeated TensorSliceProto slices = 7}
    TensorShapeProto {repeated Dim dim = 2, bool unknown_rank = 3}    Dim {int64 size = 1}
    TensorSliceProto {repeated Extent extent = 1}    Extent {int64 start = 1, int64 length = 2}

Source: tensorflow/core/protobuf/tensor_bundle.proto.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import InvalidArgumentError, UnimplementedError
from ..graph.dtypes import BY_NUMBER, NUMBERS, DType
from ..wire import BYTES, FIXED32, VARINT, Kind, Message, field, fixed32, integer

VERSION = 1
_MOST_SHARDS = 99_999  # as many as file names can count
_MOST_AXES = 254

# Where a part begins along each axis, and its length; -1 for all of the axis.
Extents: TypeAlias = tuple[tuple[int, int], ...]

_HEADER = Kind("the index of a checkpoint", "take another checkpoint, this one is damaged")


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor, or a part of one, of a checkpoint.

    Attributes:
        dtype: None for one that laminar does not have.
        shape: of the whole tensor, or of the part.
        shard: the number of the data file.
        offset, size: the place of the bytes in it.
        checksum: their masked CRC-32C.
        slices: the parts in which the tensor is stored; it has no bytes of its own then.
    """

    dtype: DType | None
    shape: tuple[int, ...]
    shard: int = 0
    offset: int = 0
    size: int = 0
    checksum: int = 0
    slices: tuple[Extents, ...] = ()


def header_bytes(num_shards: int) -> bytes:
    """The header of an index."""
    return integer(1, num_shards) + field(3, integer(1, VERSION))


def read_header(data: bytes, name: str) -> int:
    """The number of shards that a header states.

    Args:
        data: the header.
        name: of the file, for errors.

    Raises:
        DataLossError: it is damaged.
        UnimplementedError: the checkpoint is of a later version, or of a big-endian machine.
    """
    message = Message(data, _HEADER)
    shards = endianness = needed = 0
    refused: list[int] = []
    for number, wire in message.fields():
        if number == 1 and wire == VARINT:
            shards = message.varint()
        elif number == 2 and wire == VARINT:
            endianness = message.varint()
        elif number == 3 and wire == BYTES:
            version = message.span()
            for inner, inner_wire in version.fields():
                if inner == 2 and inner_wire == VARINT:
                    needed = version.varint()
                elif inner == 3 and inner_wire == VARINT:
                    refused.append(version.varint())
                elif inner == 3 and inner_wire == BYTES:
                    several = version.span()
                    while several.position < several.end:
                        refused.append(several.varint())
                else:
                    version.skip(inner_wire)
        else:
            message.skip(wire)
    if needed > VERSION:
        raise UnimplementedError(
            f"{name} is of a format that needs a reader of version {needed}, this one is of "
            f"version {VERSION}",
            remedy="read it with what wrote it, or with a later release",
        )
    if VERSION in refused:
        raise UnimplementedError(
            f"{name} says that readers of version {VERSION}, as this one is, read it wrongly",
            remedy="read it with what wrote it, or with a later release",
        )
    if endianness:
        raise UnimplementedError(f"{name} was written on a big-endian machine")
    if not 1 <= shards <= _MOST_SHARDS:
        raise message.damage(f"{shards} data files")
    return shards


def entry_bytes(entry: Entry) -> bytes:
    """An entry of the index."""
    dims = b"".join(field(2, integer(1, size) if size else b"") for size in entry.shape)
    parts = (
        integer(1, number_of(entry.dtype)),
        field(2, dims),
        integer(3, entry.shard) if entry.shard else b"",
        integer(4, entry.offset) if entry.offset else b"",
        integer(5, entry.size) if entry.size else b"",
        fixed32(6, entry.checksum) if entry.checksum else b"",
        *(field(7, _slice_bytes(extents)) for extents in entry.slices),
    )
    return b"".join(parts)


def number_of(dtype: DType | None) -> int:
    """The number of an element type in files."""
    if dtype is None or dtype not in NUMBERS:
        raise InvalidArgumentError(f"tensors of {dtype} cannot be kept in a checkpoint")
    return NUMBERS[dtype]


def _slice_bytes(extents: Extents) -> bytes:
    found = b""
    for start, length in extents:
        inside = integer(1, start) if start else b""
        found += field(1, inside + integer(2, length) if length >= 0 else b"")
    return found


def read_entry(data: bytes) -> Entry:
    """An entry of the index; DataLossError if it is none."""
    message = Message(data, _HEADER)
    dtype = shard = offset = size = checksum = 0
    shape: tuple[int, ...] = ()
    slices: list[Extents] = []
    for number, wire in message.fields():
        if number == 1 and wire == VARINT:
            dtype = message.varint()
        elif number == 2 and wire == BYTES:
            shape = _read_shape(message.span())
        elif number == 3 and wire == VARINT:
            shard = message.varint()
        elif number == 4 and wire == VARINT:
            offset = message.varint()
        elif number == 5 and wire == VARINT:
            size = message.varint()
        elif number == 6 and wire == FIXED32:
            checksum = message.fixed32()
        elif number == 7 and wire == BYTES:
            slices.append(_read_slice(message.span()))
        else:
            message.skip(wire)
    if any(len(extents) != len(shape) for extents in slices):
        raise message.damage("a part with another number of axes")
    return Entry(BY_NUMBER.get(dtype), shape, shard, offset, size, checksum, tuple(slices))


def _read_shape(message: Message) -> tuple[int, ...]:
    sizes = []
    for number, wire in message.fields():
        if number != 2 or wire != BYTES:
            message.skip(wire)
            continue
        dim = message.span()
        size = 0
        for inner, inner_wire in dim.fields():
            if inner == 1 and inner_wire == VARINT:
                size = dim.signed()
            else:
                dim.skip(inner_wire)
        sizes.append(size)
    if len(sizes) > _MOST_AXES or any(n < 0 for n in sizes) or math.prod(sizes) >= 1 << 62:
        raise message.damage(f"the shape {tuple(sizes[:10])}")
    return tuple(sizes)


def _read_slice(message: Message) -> Extents:
    extents = []
    for number, wire in message.fields():
        if number != 1 or wire != BYTES:
            message.skip(wire)
            continue
        extent = message.span()
        start, length = 0, -1
        for inner, inner_wire in extent.fields():
            if inner == 1 and inner_wire == VARINT:
                start = extent.signed()
            elif inner == 2 and inner_wire == VARINT:
                length = extent.signed()
            else:
                extent.skip(inner_wire)
        extents.append((start, length))
    return tuple(extents)


def ranges(extents: Extents, shape: Sequence[int]) -> tuple[slice, ...]:
    """The part of an array of `shape`; InvalidArgumentError where it reaches beyond."""
    if len(extents) != len(shape):
        raise InvalidArgumentError(f"a part of {len(extents)} axes of a tensor of {len(shape)}")
    found = []
    for (start, length), size in zip(extents, shape, strict=True):
        stop = size if length < 0 else start + length
        if not 0 <= start <= stop <= size:
            raise InvalidArgumentError(
                f"a part from {start} to {stop} of an axis of {size} elements"
            )
        found.append(slice(start, stop))
    return tuple(found)


def parse_slice(text: str) -> tuple[tuple[int, ...], Extents] | None:
    """The shape and the part that "4 10 0,2:-" means: rows 0 and 1 of (4, 10); None for "".

    Raises:
        InvalidArgumentError: the text is of another form, or the part is not inside.
    """
    if not text:
        return None
    *sizes, spec = text.split(" ")
    try:
        shape = tuple(map(int, sizes))
        extents = []
        for part in spec.split(":"):
            start, _, length = part.partition(",")
            extents.append((0, -1) if part == "-" else (int(start), int(length)))
        ranges(tuple(extents), shape)
    except ValueError as cause:
        raise InvalidArgumentError(
            f"a part of a tensor is written as its shape and the start and length along each "
            f'axis, "4 10 0,2:-", got {text!r}: {cause}'
        ) from cause
    return shape, tuple(extents)


def format_slice(shape: Sequence[int], extents: Extents) -> str:
    """What `parse_slice` reads."""
    parts = ("-" if length < 0 else f"{start},{length}" for start, length in extents)
    return " ".join([*map(str, shape), ":".join(parts)])
