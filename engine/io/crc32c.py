"""CRC-32C (Castagnoli), the checksum of record files and checkpoints.

The checksum is linear: that of a block of n bytes is the exclusive or of one table entry per byte,
`_table()[n - 1 - i, byte_i]`, where the sum so far is mixed into the first four bytes. NumPy looks
up a block at a time. Where the package google_crc32c is installed, its machine instructions serve.

Source: Castagnoli, Braeuer and Herrmann, "Optimization of cyclic redundancy-check codes with 24
    and 32 parity bits", 1993; the tables after Kounavis and Berry, "A systematic approach to
    building high performance software-based CRC generators", 2005.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from ..late import later
from .crc import CRC32C

Bytes: TypeAlias = bytes | bytearray | memoryview
Checksum: TypeAlias = Callable[[Bytes, int], int]  # of bytes, and of those before them

_BLOCK = 1024  # bytes looked up at a time: its table, 1 MiB, stays in the second-level cache
_SHORT = 32  # up to this many bytes, Python's own loop is quicker than NumPy's calls
_MASK_DELTA = 0xA282EAD8
_COMPILER = "laminar.engine.compiler.native"
_native: Checksum = later(f"{_COMPILER}.checksums", "crc32c")
_SEVERAL, _MANY = 1 << 16, 1 << 25  # bytes for which native code pays, loaded or not


@cache
def _first_row() -> list[int]:
    row = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (CRC32C if crc & 1 else 0)
        row.append(crc)
    return row


@cache
def _table() -> Any:
    """uint32[_BLOCK * 256]: entry 256 * k + b is the checksum of the byte b and k zeros.

    In reverse order of k, so that the last n rows serve a block of n bytes.
    """
    first = np.array(_first_row(), np.uint32)
    rows = np.empty((_BLOCK, 256), np.uint32)
    rows[-1] = first
    for k in range(_BLOCK - 2, -1, -1):
        rows[k] = (rows[k + 1] >> 8) ^ first[rows[k + 1] & 0xFF]
    return rows.reshape(-1), np.arange(0, 256 * _BLOCK, 256)


def _few(crc: int, data: Bytes) -> int:
    row = _first_row()
    for byte in data:
        crc = (crc >> 8) ^ row[(crc ^ byte) & 0xFF]
    return crc


def portable_crc32c(data: Bytes, start: int = 0) -> int:
    """What `crc32c` gives, by NumPy."""
    size = len(data)
    crc = start ^ 0xFFFFFFFF
    if size <= _SHORT:
        return _few(crc, data) ^ 0xFFFFFFFF
    table, rows = _table()
    array = np.frombuffer(data, np.uint8)
    head = size % _BLOCK
    if head <= _SHORT:
        crc = _few(crc, memoryview(data)[:head])
    else:
        crc = _block(crc, array[:head], table, rows[_BLOCK - head :])
    for start in range(head, size, _BLOCK):
        crc = _block(crc, array[start : start + _BLOCK], table, rows)
    return crc ^ 0xFFFFFFFF


def _block(crc: int, data: Any, table: Any, rows: Any) -> int:
    index = rows + data
    # The sum so far and the first four bytes are added bit by bit, lowest byte first.
    for i in range(4):
        index[i] = rows[i] + (int(data[i]) ^ (crc >> 8 * i & 0xFF))
    return int(np.bitwise_xor.reduce(table[index]))


@cache
def _implementation() -> Checksum:
    try:
        import google_crc32c  # optional; this module owns it
    except ImportError:
        return portable_crc32c
    if google_crc32c.implementation != "c":
        return portable_crc32c
    extend = google_crc32c.extend
    return lambda data, start: int(extend(start, data if isinstance(data, bytes) else bytes(data)))


def crc32c(data: Bytes, start: int = 0) -> int:
    """The CRC-32C of `data`, a number below 2**32; `start` is that of the bytes before them."""
    return _implementation()(data, start)


def fastest_crc32c(size: int) -> Checksum:
    """What makes the checksum of `size` bytes soonest, with the one of the bytes before them.

    That is native code, where the code generator is loaded, or it pays to load it.
    """
    found = _implementation()
    if size < (_SEVERAL if _COMPILER in sys.modules else _MANY):
        return found
    return _native


def masked(crc: int) -> int:
    """A checksum as files keep it: rotated by 15 bits, plus a constant.

    A file may hold checksums among its data; the mask keeps sums of sums from cancelling out.
    """
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def masked_crc32c(data: Bytes) -> int:
    """The checksum of `data` as record files keep it."""
    return masked(crc32c(data))
