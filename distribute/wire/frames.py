"""A tensor as bytes: a frame, little-endian.

    magic "LMNR" | version u8 | flags u8 | dtype u8 | rank u8 | step u64 | incarnation u64
    | number of bytes u64 | checksum u32 | rank sizes u64 | length of the key u16 | key, UTF-8
    | the elements

The elements of numbers are those of a contiguous array; those of strings are their lengths, u32
each, then the strings themselves. A dead tensor has none. The checksum, CRC-32, is that of all
other bytes of the frame, header and elements: zlib's, since it is in Python and takes 0.4 us for
1 KB, where the CRC-32C of files takes native code that short messages do not load.
A header whose elements follow by themselves (`SEPARATE`) has the checksum of the header alone.

A header is read in an order in which nothing is believed before it has been checked: magic and
version, flags, dtype, rank, the product of the sizes against the number of bytes, that number
against the limit, and the lengths against the bytes that have come. Nothing is allocated for sizes
that are only claimed.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from laminar.engine.graph import DENSE, DType, TensorSpec, as_dtype, string
from laminar.engine.graph.dtypes import BY_NUMBER, NUMBERS

from .chunks import damage

WIRE_VERSION = 1
MAGIC = b"LMNR"
IS_DEAD, SEPARATE = 1, 2  # flags
MOST_AXES = 16
MOST_KEY_BYTES = 4096

_FIXED = struct.Struct("<4sBBBBQQQ")
_CRC = struct.Struct("<I")
_KEY = struct.Struct("<H")
_LENGTH = np.dtype("<u4")
_MOST_BYTES = 1 << 62
_COUNT = struct.Struct("<I")
_SIZE = struct.Struct("<Q")
_BOOL = as_dtype("bool")
# Looked up for each tensor that comes: bytes of an element, and how sizes are read.
_ELEMENT_BYTES = {dtype: dtype.size for dtype in NUMBERS}
_SHAPES = [struct.Struct(f"<{rank}Q") for rank in range(MOST_AXES + 1)]

Data = bytes | bytearray | memoryview


class Header(NamedTuple):
    """What stands before the elements.

    Attributes:
        checksum: that is stated.
        checksum_before: of the header itself, with which that of the elements begins.
        size: of the header itself, in bytes.
    """

    dtype: DType
    shape: tuple[int, ...]
    num_bytes: int
    is_dead: bool
    is_separate: bool
    step_id: int
    incarnation: int
    key: str
    checksum: int
    checksum_before: int
    size: int


class Frame(NamedTuple):
    """A tensor that has come: an array, or bytes where it is one string; None where it is dead."""

    value: Any
    is_dead: bool
    step_id: int
    incarnation: int
    key: str


class Payload(NamedTuple):
    """A value that can be sent: its type and shape, and its elements as bytes in order."""

    dtype: DType
    shape: tuple[int, ...]
    data: Data
    is_dead: bool = False


DEAD = Payload(as_dtype("uint8"), (), b"", True)


def payload_of(value: Any) -> Payload:
    """The type, shape and bytes of a value; numbers are not copied if they are contiguous.

    Args:
        value: an array of numbers or of byte strings, a NumPy scalar, a number, bytes or a str.

    Raises:
        InvalidArgumentError: it is none of these.
    """
    if isinstance(value, str | bytes):
        array = np.array(value.encode() if isinstance(value, str) else value, object)
    else:
        array = np.asarray(value)
    if len(array.shape) > MOST_AXES:
        raise InvalidArgumentError(
            f"a tensor that is sent has at most {MOST_AXES} axes, this one has {array.ndim}"
        )
    if array.dtype.kind in "OSU":
        return Payload(string, array.shape, _strings_bytes(array))
    dtype = as_dtype(array.dtype)
    if dtype not in NUMBERS:
        raise InvalidArgumentError(f"a tensor of {dtype} cannot be sent to another task")
    shape = array.shape
    array = np.ascontiguousarray(array, dtype.numpy.newbyteorder("<"))
    return Payload(dtype, shape, array.reshape(-1).view(np.uint8).data)


def _strings_bytes(array: Any) -> bytes:
    found = [s.encode() if isinstance(s, str) else s for s in array.ravel().tolist()]
    for s in found:
        if not isinstance(s, bytes):
            raise InvalidArgumentError(
                f"expected numbers or strings to send, got {type(s).__name__}",
                remedy="a handle to state stays on its device; send what it holds",
            )
    lengths = list(map(len, found))
    if max(lengths, default=0) >= 1 << 32:
        raise InvalidArgumentError("a string that is sent has less than 4 GiB")
    return np.array(lengths, _LENGTH).tobytes() + b"".join(found)


def pack_header(
    payload: Payload,
    *,
    step_id: int = 0,
    incarnation: int = 0,
    key: str = "",
    is_separate: bool = False,
) -> bytes:
    """The header of a frame, for elements that follow at once or separately."""
    name = key.encode()
    if len(name) > MOST_KEY_BYTES:
        raise InvalidArgumentError(f"a key has at most {MOST_KEY_BYTES} bytes, got {len(name)}")
    flags = (IS_DEAD if payload.is_dead else 0) | (SEPARATE if is_separate else 0)
    shape, data = payload.shape, payload.data
    fixed = _FIXED.pack(
        MAGIC,
        WIRE_VERSION,
        flags,
        NUMBERS[payload.dtype],
        len(shape),
        step_id,
        incarnation,
        len(data),
    )
    rest = b"".join([*map(_SIZE.pack, shape), _KEY.pack(len(name)), name])
    checksum = zlib.crc32(rest, zlib.crc32(fixed))
    if not is_separate:
        checksum = zlib.crc32(data, checksum)
    return b"".join((fixed, _CRC.pack(checksum), rest))


_damage = partial(damage, "the bytes that came are not a tensor")


def parse_header(data: Data, limit_bytes: int = _MOST_BYTES) -> Header:
    """The header that a frame begins with.

    Raises:
        DataLossError: there is none; of one that stands by itself, also the checksum is wrong.
        FailedPreconditionError: it is of another version.
        ResourceExhaustedError: it claims more than `limit_bytes`.
    """
    if len(data) < _FIXED.size + _CRC.size + _KEY.size:
        raise _damage(f"{len(data)} bytes are less than a header")
    magic, version, flags, number, rank, step, incarnation, num_bytes = _FIXED.unpack_from(data)
    if magic != MAGIC:
        raise _damage(f"it begins with {magic!r}")
    if version != WIRE_VERSION:
        raise FailedPreconditionError(
            f"a tensor came in version {version} of the wire format, this task has {WIRE_VERSION}",
            remedy="run the same release of laminar in all tasks",
        )
    if flags & ~(IS_DEAD | SEPARATE):
        raise _damage(f"the flags {flags:#x}")
    dtype = BY_NUMBER.get(number)
    if dtype is None:
        raise _damage(f"the element type {number}")
    if rank > MOST_AXES:
        raise _damage(f"{rank} axes")
    at = _FIXED.size + _CRC.size
    (checksum,) = _CRC.unpack_from(data, _FIXED.size)
    if len(data) < at + rank * _SIZE.size + _KEY.size:
        raise _damage("the header is cut off")
    shape = _SHAPES[rank].unpack_from(data, at)
    at += rank * _SIZE.size
    _check_sizes(dtype, shape, num_bytes, bool(flags & IS_DEAD))
    if num_bytes > limit_bytes:
        raise ResourceExhaustedError(
            f"a tensor of {num_bytes} bytes came, {limit_bytes} are allowed",
            remedy="send it in parts, or raise the limit of the session",
        )
    (length,) = _KEY.unpack_from(data, at)
    at += _KEY.size
    if length > MOST_KEY_BYTES or len(data) < at + length:
        raise _damage(f"a key of {length} bytes")
    try:
        key = str(data[at : at + length], "utf-8")
    except UnicodeDecodeError:
        raise _damage("a key that is not text") from None
    at += length
    start = _FIXED.size
    before = zlib.crc32(data[start + _CRC.size : at], zlib.crc32(data[:start]))
    is_separate = bool(flags & SEPARATE)
    if is_separate and before != checksum:
        raise _damage("the checksum of the header is another")
    is_dead = bool(flags & IS_DEAD)
    return Header(
        *(dtype, shape, num_bytes, is_dead, is_separate, step, incarnation, key),
        *(checksum, before, at),
    )


def _check_sizes(dtype: DType, shape: tuple[int, ...], num_bytes: int, is_dead: bool) -> None:
    if is_dead:
        if num_bytes or shape:
            raise _damage("a dead tensor with elements")
        return
    size = _ELEMENT_BYTES[dtype]
    count = math.prod(shape)
    # What NumPy can have at all: the product without the zeros.
    if (count or math.prod(filter(None, shape))) * max(size, 1) >= _MOST_BYTES:
        raise _damage(f"the shape {list(shape)}")
    if not size:
        if not count * _LENGTH.itemsize <= num_bytes or (not count and num_bytes):
            raise _damage(f"{num_bytes} bytes for {count} strings")
    elif count * size != num_bytes:
        raise _damage(f"{num_bytes} bytes for {dtype}{list(shape)}")


def check_spec(header: Header, spec: TensorSpec) -> None:
    """InvalidArgumentError if a tensor comes that is not of the type and shape that is expected."""
    if header.is_dead:
        return
    if header.dtype != spec.dtype or not spec.shape.is_compatible_with(header.shape):
        raise InvalidArgumentError(
            f"{header.key}: expected {spec}, but {TensorSpec(header.shape, header.dtype)} came"
        )


def array_of(header: Header, data: Any) -> Any:
    """The value whose elements are `data`: an array over them, or a copy if they are strings.

    Raises:
        DataLossError: the elements do not fit the header, or are none of their type.
    """
    if header.is_dead:
        return None
    if header.dtype == string:
        return _strings_of(header, data)
    if header.dtype not in DENSE:
        raise _damage(f"elements of {header.dtype}")
    array = np.asarray(data) if not isinstance(data, Data) else np.frombuffer(data, np.uint8)
    if header.dtype == _BOOL and array.size and array.max() > 1:
        raise _damage("truth values other than 0 and 1")
    return array.view(header.dtype.numpy).reshape(header.shape)


def _strings_of(header: Header, data: Data) -> Any:
    count = math.prod(header.shape)
    lengths = np.frombuffer(data, _LENGTH, count).tolist()
    start = count * _LENGTH.itemsize
    if start + sum(lengths) != header.num_bytes:
        raise _damage("the lengths of the strings do not add up")
    view = memoryview(data)
    found = np.empty(count, object)
    for i, length in enumerate(lengths):
        found[i] = bytes(view[start : start + length])
        start += length
    return found.reshape(header.shape) if header.shape else found[0]


def encode(
    value: Any, *, is_dead: bool = False, step_id: int = 0, incarnation: int = 0, key: str = ""
) -> bytes:
    """A tensor as one frame."""
    return frame_of(
        DEAD if is_dead else payload_of(value), step_id=step_id, incarnation=incarnation, key=key
    )


def frame_of(payload: Payload, *, step_id: int = 0, incarnation: int = 0, key: str = "") -> bytes:
    """The frame of what `payload_of` gave."""
    header = pack_header(payload, step_id=step_id, incarnation=incarnation, key=key)
    return b"".join((header, payload.data))


def decode(data: Data, limit_bytes: int = _MOST_BYTES, spec: TensorSpec | None = None) -> Frame:
    """The tensor of a frame; its array has memory of its own.

    Args:
        data: the frame, all of it.
        limit_bytes: that the elements may have.
        spec: what is expected; None for anything.

    Raises:
        DataLossError: the bytes are no frame, or damaged.
        FailedPreconditionError: they are of another version.
        InvalidArgumentError: it is not what is expected.
        ResourceExhaustedError: there are more than `limit_bytes`.
    """
    header = parse_header(data, limit_bytes)
    body = memoryview(data)[header.size :]
    if header.is_separate or len(body) != header.num_bytes:
        raise _damage(f"{len(body)} bytes of elements, {header.num_bytes} are stated")
    if zlib.crc32(body, header.checksum_before) != header.checksum:
        raise _damage("the checksum is another")
    if spec is not None:
        check_spec(header, spec)
    value = array_of(header, body)
    if isinstance(value, np.ndarray) and value.base is not None and header.dtype != string:
        value = value.copy()
    return Frame(value, header.is_dead, header.step_id, header.incarnation, header.key)


def encode_many(values: Sequence[tuple[str, Any]]) -> bytes:
    """Tensors by their keys, one after the other, each frame after its length."""
    parts = [_COUNT.pack(len(values))]
    for key, value in values:
        frame = encode(value, key=key)
        parts += [_SIZE.pack(len(frame)), frame]
    return b"".join(parts)


def decode_many(data: Data, limit_bytes: int = _MOST_BYTES) -> list[Frame]:
    """The frames that `encode_many` wrote.

    Raises:
        DataLossError: the bytes are none, or there are some too many.
        ResourceExhaustedError: a tensor has more than `limit_bytes`.
    """
    view = memoryview(data)
    if len(view) < _COUNT.size:
        raise _damage("there is no number of tensors")
    (count,) = _COUNT.unpack_from(view)
    at, frames = _COUNT.size, []
    for _ in range(count):  # a false number ends at the end of the bytes
        if len(view) < at + _SIZE.size:
            raise _damage("a tensor is missing")
        (size,) = _SIZE.unpack_from(view, at)
        at += _SIZE.size
        if size > len(view) - at:
            raise _damage(f"a tensor of {size} bytes, {len(view) - at} are left")
        frames.append(decode(view[at : at + size], limit_bytes))
        at += size
    if at != len(view):
        raise _damage(f"{len(view) - at} bytes too many")
    return frames
