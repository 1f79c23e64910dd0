"""The messages of an HDF5 object header: element type, shape, place and filters of an array.

The layout is that of "HDF5 File Format Specification Version 3.0", The HDF Group, sections IV.A.2.b
(dataspace), d (datatype), h (external files), i (layout), l (filters) and m (attribute), in the
versions that HDF5 writes by default since 1.6 and that h5py and Keras therefore write.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from .limits import refused

UNDEFINED = 0xFFFF_FFFF_FFFF_FFFF  # the address of what was never written

GZIP, SHUFFLE, FLETCHER32 = 1, 2, 3
_MAX_RANK = 31  # NumPy 1 holds 32 axes; one more is needed for the bytes of an element

# size in bytes -> sign location, exponent location, bits of exponent, location and bits of the
# mantissa, exponent bias (IEEE 754)
_IEEE = {
    2: (15, 10, 5, 0, 10, 15),
    4: (31, 23, 8, 0, 23, 127),
    8: (63, 52, 11, 0, 52, 1023),
}
_CLASSES = {
    2: "time",
    4: "bit field",
    6: "compound",
    7: "reference",
    8: "enumeration",
    9: "variable-length sequence",
    10: "array",
    11: "complex",
}

Attribute = str | int | float | bool | list[str] | npt.NDArray[np.generic]


class Kind(Enum):
    """How the stored bytes of an element become a value."""

    NUMBER = "number"
    BOOL = "bool"
    OPAQUE = "opaque"
    FIXED_STRING = "fixed-length string"
    STRING = "string"


@dataclass(frozen=True)
class ElementType:
    """The type of one stored element; `dtype` has its size and byte order."""

    kind: Kind
    dtype: np.dtype[np.generic]


@dataclass(frozen=True)
class Filter:
    """One step of what was done to a chunk before it was stored."""

    id: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Compact:
    """An array stored inside its header."""

    data: bytes


@dataclass(frozen=True)
class Contiguous:
    """An array stored in one piece."""

    address: int
    size: int


@dataclass(frozen=True)
class Chunked:
    """An array cut into chunks that a B-tree finds."""

    tree: int
    chunk: tuple[int, ...]
    itemsize: int


Layout = Compact | Contiguous | Chunked


class Fields:
    """Takes one field after another from `data`, which belongs to `owner`."""

    def __init__(self, data: bytes, owner: str) -> None:
        self.data = data
        self.owner = owner
        self.at = 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.data):
            self.refuse(f"a record ends after {len(self.data)} bytes, at least {end} were expected")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def unpack(self, form: str) -> tuple[int, ...]:
        """Take the little-endian integers of a struct format."""
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def padded(self, count: int) -> bytes:
        """Take `count` bytes and what fills them up to a multiple of 8."""
        piece = self.take(count)
        self.at += -count % 8
        return piece

    def refuse(self, what: str) -> NoReturn:
        raise refused(f"{self.owner}: {what}")


def text(data: bytes, owner: str) -> str:
    """The UTF-8 text of `data` up to its first NUL."""
    try:
        return data.split(b"\0", 1)[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(f"{owner}: a text is not UTF-8: {error}") from error


def decode_type(fields: Fields) -> ElementType:
    """Decode a datatype message: numbers, bools, opaque bytes and strings; nothing else."""
    head, *bits_bytes, size = fields.unpack("BBBBI")
    version, kind = head >> 4, head & 15
    bits = bits_bytes[0] | bits_bytes[1] << 8 | bits_bytes[2] << 16
    if version not in (1, 2, 3):
        fields.refuse(f"its element type is of the unknown version {version}")
    if kind == 0:
        return _integer(fields, bits, size)
    if kind == 1:
        return _float(fields, bits, size)
    if kind == 3 and size > 0 and bits & 15 in (0, 1):
        return ElementType(Kind.FIXED_STRING, np.dtype((np.bytes_, size)))
    if kind == 5 and 0 < size <= 8:
        return ElementType(Kind.OPAQUE, np.dtype((np.void, size)))
    if kind == 8 and _is_bool(fields, version, bits, size):
        return ElementType(Kind.BOOL, np.dtype(np.int8))
    if kind == 9 and bits & 15 == 1 and size == 16:
        return ElementType(Kind.STRING, np.dtype((np.void, 16)))
    return fields.refuse(
        f"its element type ({_CLASSES.get(kind, f'class {kind}')}, {size} bytes) is not one of "
        "integer, float, bool, bfloat16 or string"
    )


def _integer(fields: Fields, bits: int, size: int) -> ElementType:
    offset, precision = fields.unpack("HH")
    if size not in (1, 2, 4, 8) or offset != 0 or precision != 8 * size:
        fields.refuse(f"its element type is an integer of {precision} bits in {size} bytes")
    letter = "i" if bits & 8 else "u"
    return ElementType(Kind.NUMBER, np.dtype(f"{'>' if bits & 1 else '<'}{letter}{size}"))


def _float(fields: Fields, bits: int, size: int) -> ElementType:
    offset, precision, *layout, bias = fields.unpack("HHBBBBI")
    found = (bits >> 8 & 255, *layout, bias)
    # Bits 4 and 5: the leading 1 of the mantissa is implied (2). Bit 6: the VAX's byte order.
    if found != _IEEE.get(size) or (offset, precision) != (0, 8 * size) or bits & 0x70 != 0x20:
        fields.refuse(f"its element type is a float of {precision} bits that is not IEEE 754")
    return ElementType(Kind.NUMBER, np.dtype(f"{'>' if bits & 1 else '<'}f{size}"))


def _is_bool(fields: Fields, version: int, bits: int, size: int) -> bool:
    """Whether an enumeration is h5py's form of bool: int8 with FALSE = 0 and TRUE = 1."""
    base = decode_type(fields)
    if base.dtype != np.dtype(np.int8) or size != 1 or bits & 0xFFFF != 2:
        return False
    # Names end in NUL; before version 3 they are filled up to a multiple of 8.
    names = fields.take(11 if version == 3 else 16)
    if names.replace(b"\0", b"") != b"FALSETRUE":
        return False
    return fields.take(2) == b"\0\1"


def decode_shape(fields: Fields) -> tuple[int, ...]:
    """Decode a dataspace message to the shape of an array; () is a scalar."""
    version, rank, _flags, form = fields.unpack("BBBB")
    if version == 1:
        fields.take(4)
    elif version != 2:
        fields.refuse(f"its shape is of the unknown version {version}")
    elif form == 2:
        fields.refuse("it has no value (a null dataspace)")
    if rank > _MAX_RANK:
        fields.refuse(f"it has {rank} axes; at most {_MAX_RANK} can be held")
    shape = fields.unpack(f"{rank}Q")
    # The product of all but zeros: NumPy refuses a shape by that, even if it has no element.
    if math.prod(axis or 1 for axis in shape) >= 1 << 60:
        fields.refuse(f"its shape {shape} is beyond any memory")
    return shape


def decode_layout(fields: Fields) -> Layout:
    """Decode a data layout message."""
    version, form = fields.unpack("BB")
    if version == 4 and form == 3:
        fields.refuse("it is a virtual dataset, made of parts of other files")
    if version != 3:
        fields.refuse(f"its layout is of version {version}, and only version 3 is read")
    if form == 0:
        (size,) = fields.unpack("H")
        return Compact(fields.take(size))
    if form == 1:
        address, size = fields.unpack("QQ")
        return Contiguous(address, size)
    if form != 2:
        fields.refuse(f"its layout is of the unknown class {form}")
    (rank,) = fields.unpack("B")
    (tree,) = fields.unpack("Q")
    if not 1 < rank <= _MAX_RANK + 1:
        fields.refuse(f"its chunks have {rank} axes")
    *chunk, itemsize = fields.unpack(f"{rank}I")
    if 0 in chunk:
        fields.refuse(f"its chunks have the shape {tuple(chunk)}")
    return Chunked(tree, tuple(chunk), itemsize)


def decode_filters(fields: Fields) -> tuple[Filter, ...]:
    """Decode a filter pipeline message: gzip, shuffle and fletcher32; nothing else."""
    version, count = fields.unpack("BB")
    if version != 1:
        fields.refuse(f"its filters are of version {version}, and only version 1 is read")
    fields.take(6)
    filters = []
    for _ in range(count):
        id, name_size, _flags, num_values = fields.unpack("HHHH")
        name = fields.padded(name_size)
        values = fields.unpack(f"{num_values}I")
        fields.at += 4 * (num_values % 2)
        if id not in (GZIP, SHUFFLE, FLETCHER32):
            label = name.split(b"\0", 1)[0].decode("ascii", "replace")
            fields.refuse(
                f"it is stored through the filter {id} ({label!r}); "
                "only gzip, shuffle and fletcher32 are read"
            )
        filters.append(Filter(id, values))
    if len({step.id for step in filters}) != len(filters):
        fields.refuse("the same filter was used twice on it")
    return tuple(filters)


def decode_attribute(fields: Fields) -> tuple[str, ElementType, tuple[int, ...], bytes]:
    """Decode an attribute message to its name, element type, shape and stored bytes."""
    version, flags, name_size, type_size, shape_size = fields.unpack("BBHHH")
    if version == 3:
        fields.take(1)  # the character set of the name: ASCII is UTF-8 too
    elif version not in (1, 2):
        fields.refuse(f"an attribute is of the unknown version {version}")
    if version > 1 and flags & 3:
        fields.refuse("an attribute's type or shape stands elsewhere in the file (committed type)")
    take = fields.padded if version == 1 else fields.take
    owner = fields.owner
    name = text(take(name_size), owner)
    owner = f"{owner}: attribute {name[:100]!r}"
    element = decode_type(Fields(take(type_size), owner))
    shape = decode_shape(Fields(take(shape_size), owner))
    data = fields.take(math.prod(shape) * element.dtype.itemsize)
    return name, element, shape, data


def plain_attribute(kind: Kind, values: npt.NDArray[np.generic], owner: str) -> Attribute:
    """An attribute as Python data: a scalar, a list of texts, or an array of numbers."""
    if kind is Kind.OPAQUE:
        raise refused(f"{owner}: an attribute is opaque bytes")
    if kind is Kind.FIXED_STRING:
        texts = [text(bytes(item), owner) for item in values.ravel().tolist()]
        return texts[0] if values.ndim == 0 else texts
    if values.ndim == 0:
        scalar: Attribute = values.item()
        return scalar
    return values.tolist() if kind is Kind.STRING else values


def undo_filters(
    data: bytes, filters: tuple[Filter, ...], skipped: int, size: int, owner: str
) -> npt.NDArray[np.uint8]:
    """The `size` bytes of a chunk from the bytes it is stored as.

    Args:
        data: what is stored.
        filters: what was done to the chunk, in this order.
        skipped: bit i is set if filter i was left out for this chunk.
        size: bytes of the chunk itself.
        owner: for messages.
    """
    for index in reversed(range(len(filters))):
        if skipped >> index & 1:
            continue
        step = filters[index]
        if step.id == FLETCHER32:
            data = _check_fletcher32(data, owner)
        elif step.id == GZIP:
            data = _inflate(data, size + 4, owner)  # 4: a checksum may have been added before
        else:
            data = _unshuffle(data, step.values, owner)
    if len(data) != size:
        raise refused(f"{owner}: a chunk holds {len(data)} bytes, {size} were expected")
    return np.frombuffer(data, np.uint8)


def _inflate(data: bytes, most: int, owner: str) -> bytes:
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(data, most)
    except zlib.error as error:
        raise refused(f"{owner}: a compressed chunk is damaged: {error}") from error
    if not stream.eof:
        raise refused(f"{owner}: a compressed chunk is cut short or larger than it says")
    return plain


def _unshuffle(data: bytes, values: tuple[int, ...], owner: str) -> bytes:
    """All first bytes of the elements stand before all second bytes, and so on: put them back."""
    itemsize = values[0] if values else 0
    if itemsize < 1 or len(data) % itemsize:
        raise refused(f"{owner}: a shuffled chunk of {len(data)} bytes has elements of {itemsize}")
    return np.frombuffer(data, np.uint8).reshape(itemsize, -1).T.tobytes()


def _check_fletcher32(data: bytes, owner: str) -> bytes:
    """Check and take off the checksum: sums modulo 65535 of the big-endian 16-bit words.

    Source: J. Fletcher, "An arithmetic checksum for serial transmissions", 1982.
    """
    if len(data) < 4:
        raise refused(f"{owner}: a chunk with a checksum has only {len(data)} bytes")
    body, (stored,) = data[:-4], struct.unpack("<I", data[-4:])
    words = np.frombuffer(body + b"\0" * (len(body) % 2), ">u2").astype(np.uint64)
    weights = np.arange(len(words), 0, -1, dtype=np.uint64) % 65535
    first, second = int(words.sum()), int((words * weights).sum())
    if (first - (stored & 0xFFFF)) % 65535 or (second - (stored >> 16)) % 65535:
        raise refused(f"{owner}: a chunk does not have the checksum that is stored with it")
    return body
