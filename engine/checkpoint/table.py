"""Sorted tables in files: keys and values, in blocks with checksums, as LevelDB writes them.

    block     entries | uint32 restart offsets | uint32 number of restarts
    entry     varint shared | varint unshared | varint value size | key's unshared part | value
    stored    block | uint8 compression (0: none) | uint32 masked CRC-32C of both
    file      data blocks | metaindex block | index block: last key -> place of a block | footer
    footer    place of the metaindex, of the index | zeros up to 40 bytes | uint64 magic number

A place is a varint offset and a varint size. Each key drops what it shares with the one before it,
except at a restart, of which there is one in 16.

Source: Ghemawat and Dean, LevelDB, doc/table_format.md, 2011.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import BinaryIO

from ..errors import DataLossError, UnimplementedError
from ..io.crc32c import masked_crc32c
from ..wire import Kind, Message, varint

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5
_RESTART = 16  # entries
_BLOCK = 256 * 1024  # bytes, about
# Prefixes make keys longer in memory than in the file: real ones by a factor of 10 or less.
_MOST_EXPANSION, _FREE = 64, 1 << 20

_TABLE = Kind("a table of a checkpoint", "the file is damaged; take another checkpoint")


def write_table(file: BinaryIO, items: Iterable[tuple[bytes, bytes]]) -> None:
    """Write keys, which increase, and their values."""
    index = []
    offset = 0
    block = _Block()
    key = b""
    for key, value in items:
        block.add(key, value)
        if block.size >= _BLOCK:
            index.append((key, _store(file, offset, block)))
            offset += block.stored
            block = _Block()
    if block.size:
        index.append((key, _store(file, offset, block)))
        offset += block.stored
    metaindex = _Block()
    footer = _store(file, offset, metaindex)
    offset += metaindex.stored
    last = _Block(restart=1)
    for key, place in index:
        last.add(key, place)
    footer += _store(file, offset, last)
    file.write(footer.ljust(_FOOTER - 8, b"\0") + struct.pack("<Q", _MAGIC))


class _Block:
    """A block that is being filled; `stored` is its size in the file, once it is there."""

    def __init__(self, restart: int = _RESTART) -> None:
        self._parts: list[bytes] = []
        self._restarts = [0]
        self._restart = restart
        self._count = 0
        self._last = b""
        self.size = self.stored = 0

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count == self._restart:
            self._restarts.append(self.size)
            self._count = 0
        elif self._count:
            most = min(len(key), len(self._last))
            while shared < most and key[shared] == self._last[shared]:
                shared += 1
        entry = varint(shared) + varint(len(key) - shared) + varint(len(value))
        entry += key[shared:] + value
        self._parts.append(entry)
        self.size += len(entry)
        self._count += 1
        self._last = key

    def content(self) -> bytes:
        restarts = struct.pack(f"<{len(self._restarts)}I", *self._restarts)
        return b"".join([*self._parts, restarts, struct.pack("<I", len(self._restarts))])


def _store(file: BinaryIO, offset: int, block: _Block) -> bytes:
    """Write a block; gives its place."""
    content = block.content()
    stored = content + b"\0"  # not compressed
    file.write(stored + struct.pack("<I", masked_crc32c(stored)))
    block.stored = len(content) + _TRAILER
    return varint(offset) + varint(len(content))


def read_table(data: bytes, name: str) -> list[tuple[bytes, bytes]]:
    """All keys and values of a table, in order.

    The memory that this takes is bounded by the size of the file.

    Args:
        data: the whole file.
        name: of the file, for errors.

    Raises:
        DataLossError: the bytes are no table, or some are missing or were changed.
        UnimplementedError: a block is compressed.
    """
    size = len(data)
    if size < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise DataLossError(
            f"{name} is not the index of a checkpoint, or not all of one: "
            f"its {size} bytes do not end as one does",
            remedy="take the prefix of a checkpoint, or another checkpoint if the file is damaged",
        )
    footer = Message(data, _TABLE, size - _FOOTER, size - 8)
    _place(footer, size)  # of the metaindex, in which we keep nothing
    free = _MOST_EXPANSION * size + _FREE
    found: list[tuple[bytes, bytes]] = []
    before = 0
    last = b""
    for key, value in _entries(data, _place(footer, size), name, free):
        place = _place(Message(value, _TABLE), size)
        if place[0] < before:
            raise _damaged(name, f"a block at byte {place[0]} stands in another")
        before = place[0] + place[1]
        block = list(_entries(data, place, name, free))
        if block and (block[0][0] <= last and found or block[-1][0] > key):
            raise _damaged(name, f"the block at byte {place[0]} has keys of another")
        free -= sum(len(k) for k, _ in block)
        if free < 0:
            raise _damaged(name, "its keys are longer than it can hold")
        found += block
        last = found[-1][0] if found else b""
    return found


def _place(message: Message, size: int) -> tuple[int, int]:
    offset, length = message.varint(), message.varint()
    if length > size or offset > size - _FOOTER - length:
        raise message.damage(f"a block of {length} bytes at {offset}")
    return offset, length


def _entries(
    data: bytes, place: tuple[int, int], name: str, free: int
) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block, whose checksum and order have been verified."""
    offset, length = place
    end = offset + length
    stored = data[offset : end + 1]
    if struct.unpack_from("<I", data, end + 1)[0] != masked_crc32c(stored):
        raise _damaged(name, f"the checksum of its bytes {offset} to {end} is another")
    if stored[-1]:
        raise UnimplementedError(
            f"{name}: its blocks are compressed, which checkpoints are not",
            remedy="write the checkpoint again, without compression of its index",
        )
    restarts = struct.unpack_from("<I", data, end - 4)[0] if length >= 4 else 0
    body = length - 4 - 4 * restarts
    if body < 0 or length < 4:
        raise _damaged(name, f"the block at byte {offset} has {restarts} restarts")
    entries = list(_parsed(Message(stored, _TABLE, 0, body), name, free))
    for (one, _), (other, _) in pairwise(entries):
        if one >= other:
            raise _damaged(name, f"the keys of the block at byte {offset} are not in order")
    yield from entries


def _parsed(message: Message, name: str, free: int) -> Iterator[tuple[bytes, bytes]]:
    key = b""
    while message.position < message.end:
        shared, unshared, size = message.varint(), message.varint(), message.varint()
        start = message.position
        if shared > len(key) or unshared + size > message.end - start:
            raise message.damage(f"an entry of {shared} + {unshared} + {size} bytes")
        key = key[:shared] + message.data[start : start + unshared]
        free -= len(key)
        if free < 0:
            raise _damaged(name, "its keys are longer than it can hold")
        message.position = start + unshared + size
        yield key, message.data[start + unshared : message.position]


def _damaged(name: str, what: str) -> DataLossError:
    return DataLossError(f"{name} is damaged: {what}", remedy=_TABLE.remedy)
