"""Protobuf's wire format, for messages whose fields are known: no schema and no package is needed.

Reading is bounded by the bytes that are given: no recursion, no allocation by a length that the
message claims.
"""

from __future__ import annotations

import builtins
import struct
from collections.abc import Iterator
from typing import NamedTuple

from .errors import DataLossError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Kind(NamedTuple):
    """What a message is, and what to do when it is none: for errors."""

    name: str
    remedy: str


class Message:
    """Fields of one message, from `position` to `end` of `data`.

    Args:
        data: bytes that hold the message.
        kind: for errors.
        position, end: where it stands in `data`; by default it is all of them.

    Raises:
        DataLossError: by each method, when the bytes are no such message.
    """

    __slots__ = ("data", "end", "kind", "position")

    def __init__(self, data: bytes, kind: Kind, position: int = 0, end: int | None = None) -> None:
        self.data, self.kind, self.position = data, kind, position
        self.end = len(data) if end is None else end

    def damage(self, what: str) -> DataLossError:
        """The error that says what is wrong, and where."""
        return DataLossError(
            f"the bytes are not {self.kind.name}: {what} at byte {self.position} of "
            f"{len(self.data)}",
            remedy=self.kind.remedy,
        )

    def varint(self) -> int:
        """A number below 2**64."""
        data, position, end = self.data, self.position, self.end
        value = shift = 0
        while position < end and shift < 70:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.position = position
                return value & 0xFFFF_FFFF_FFFF_FFFF
            shift += 7
        raise self.damage("a number that does not end")

    def signed(self) -> int:
        """A number of 64 bits in two's complement."""
        value = self.varint()
        return value - (1 << 64) if value >> 63 else value

    def span(self) -> Message:
        """The inside of a field of bytes."""
        length = self.varint()
        start = self.position
        if length > self.end - start:
            raise self.damage(f"a field of {length} bytes, {self.end - start} are left")
        self.position = start + length
        return Message(self.data, self.kind, start, self.position)

    def bytes(self) -> bytes:
        """The field of bytes itself."""
        span = self.span()
        return self.data[span.position : span.end]

    def text(self) -> str:
        """The field of bytes as text."""
        try:
            return self.bytes().decode()
        except UnicodeDecodeError:
            raise self.damage("a name that is not text") from None

    def fixed32(self) -> int:
        """A number of four bytes."""
        start = self.position
        self.skip(FIXED32)
        return int.from_bytes(self.data[start : self.position], "little")

    def float32(self) -> float:
        """A number of four bytes, in floating point."""
        start = self.position
        self.skip(FIXED32)
        found: float = struct.unpack_from("<f", self.data, start)[0]
        return found

    def float64(self) -> float:
        """A number of eight bytes, in floating point."""
        start = self.position
        self.skip(FIXED64)
        found: float = struct.unpack_from("<d", self.data, start)[0]
        return found

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and wire type of each field; the caller reads or skips what it holds."""
        while self.position < self.end:
            tag = self.varint()
            if not tag >> 3:
                raise self.damage("a field without a number")
            yield tag >> 3, tag & 7

    def inside(self, wanted: int) -> Iterator[Message]:
        """The insides of the fields of bytes with a number; others are skipped."""
        for number, kind in self.fields():
            if number == wanted and kind == BYTES:
                yield self.span()
            else:
                self.skip(kind)

    def entry(self) -> tuple[str, builtins.bytes]:
        """A text, which is field 1, and bytes, field 2: an entry of a map."""
        key, value = "", b""
        for number, kind in self.fields():
            if number == 1 and kind == BYTES:
                key = self.text()
            elif number == 2 and kind == BYTES:
                value = self.bytes()
            else:
                self.skip(kind)
        return key, value

    def skip(self, wire: int) -> None:
        """Go over what a field of that wire type holds."""
        if wire == VARINT:
            self.varint()
        elif wire == BYTES:
            self.span()
        elif wire in (FIXED64, FIXED32):
            self.position += 8 if wire == FIXED64 else 4
            if self.position > self.end:
                raise self.damage("a field that is cut off")
        else:
            raise self.damage(f"a field of the unknown kind {wire}")


def varint(value: int) -> bytes:
    """A number, seven bits to a byte; a negative one as 64 bits of two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A field that holds a number."""
    return varint(number << 3 | VARINT) + varint(value)


def fixed32(number: int, value: int) -> bytes:
    """A field of four bytes."""
    return varint(number << 3 | FIXED32) + struct.pack("<I", value)


def float32(number: int, value: float) -> bytes:
    """A field of four bytes that holds a number in floating point."""
    return varint(number << 3 | FIXED32) + struct.pack("<f", value)


def float64(number: int, value: float) -> bytes:
    """A field of eight bytes that holds a number in floating point."""
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes: a string, or a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def text(number: int, content: str) -> bytes:
    """A field of text."""
    return field(number, content.encode())
