"""CRC-32C (Castagnoli), the checksum of record files and checkpoints.

The checksum is linear: that of a block of n bytes is the exclusive or of one table entry per byte,
`_table()[n - 1 - i, byte_i]`, where the sum so far is mixed into the first four bytes. NumPy looks
up a block at a time.

Of many bytes most are folded away before. P, the polynomial of the checksum, divides
x^6777 + x^484 + x^100 + 1, and P(x)^n = P(x^n) where n is a power of two. So a unit of n bits has
the same rest as its three copies 6293, 6677 and 6777 units further on: it is added to these places
and left out. NumPy adds thousands of units in one call, first words, in the end bytes, of which
6777 are left: 7 GB a second where the table alone does 0.2.

Where the package google_crc32c is installed, its machine instructions serve.

Source: Castagnoli, Braeuer and Herrmann, "Optimization of cyclic redundancy-check codes with 24
    and 32 parity bits", 1993; the tables after Kounavis and Berry, "A systematic approach to
    building high performance software-based CRC generators", 2005. Koopman, "32-bit cyclic
    redundancy codes for internet applications", 2002, on multiples with few terms: from a degree
    of 5244 on there are such of four. Of those below 9000 this one's copies go furthest.
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
_COPIES = (6293, 6677, 6777)  # how many units further on the copies of one stand
_STEP, _LEFT = _COPIES[0], _COPIES[-1]  # units folded at a time, and those that stay
_FOLDED, _LONG = 1 << 14, 1 << 18  # bytes for which it pays to fold bytes, and words
_PIECE = 1 << 16  # words folded at a time: they stay in the second-level cache
_ONES = 0xFFFF_FFFF
_MASK_DELTA = 0xA282EAD8
_COMPILER = "laminar.engine.compiler.native"
_native: Checksum = later(f"{_COMPILER}.checksums", "crc32c")
_SEVERAL = 1 << 16  # bytes for which native code pays where the code generator is loaded
_MANY = 1 << 29  # and for which it pays to load it, one time after the other counted together


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
    powers = []  # x^32 and the powers after it, modulo the polynomial
    found = CRC32C
    for _ in range(8 * _BLOCK):
        powers.append(found)
        found = (found >> 1) ^ (CRC32C if found & 1 else 0)
    bits = np.array(powers, np.uint32).reshape(_BLOCK, 8)[::-1, ::-1]  # the lowest is the highest
    rows = np.zeros((_BLOCK, 256), np.uint32)
    for i in range(8):
        np.bitwise_xor(rows[:, : 1 << i], bits[:, i, None], out=rows[:, 1 << i : 2 << i])
    return rows.reshape(-1), np.arange(0, 256 * _BLOCK, 256)


def _few(crc: int, data: Bytes) -> int:
    row = _first_row()
    for byte in data:
        crc = (crc >> 8) ^ row[(crc ^ byte) & 0xFF]
    return crc


def portable_crc32c(data: Bytes, start: int = 0) -> int:
    """What `crc32c` gives, by NumPy."""
    size = len(data)
    if size < _FOLDED:
        return _by_table(data, start)
    if size < _LONG:
        units = np.array(np.frombuffer(data, np.uint8))
        units[:4] ^= np.frombuffer((start ^ _ONES).to_bytes(4, "little"), np.uint8)
        return _by_table(_folded(units).data, _ONES)
    folding = Folding(start)
    words = size // 8 * 8
    folding.add(memoryview(data)[:words])
    return folding.checksum(memoryview(data)[words:])


class Folding:
    """The CRC-32C of words, one stretch after the other, by NumPy.

    Args:
        start: that of the bytes before them.

    State: the first `_LEFT` words of `_buffer` are what all before are folded into; `_first` is
    still to be mixed into the word that comes next.
    """

    def __init__(self, start: int = 0) -> None:
        self._buffer = np.zeros(_LEFT + _PIECE, np.uint64)
        self._first = start ^ _ONES

    def add(self, data: Bytes) -> None:
        """Take in bytes, a multiple of eight."""
        words = np.frombuffer(data, np.uint64)
        for at in range(0, len(words), _PIECE):
            piece = words[at : at + _PIECE]
            units = self._buffer[: _LEFT + len(piece)]
            units[_LEFT:] = piece
            units[_LEFT] ^= np.uint64(self._first)
            self._first = 0
            self._buffer[:_LEFT] = _folded(units)

    def checksum(self, rest: Bytes = b"") -> int:
        """That of all words that were added, and of some bytes behind them."""
        left = _folded(self._buffer[:_LEFT].copy().view(np.uint8))
        # The sum of the words begins at 0: what stands before has been mixed into them.
        return _by_table(rest, self._first ^ _by_table(left.data, _ONES))


def _folded(units: Any) -> Any:
    """The last `_LEFT` units, to which all before are added, in place."""
    end = len(units) - _LEFT
    for start in range(0, end, _STEP):
        front = units[start : min(start + _STEP, end)]
        for copy in _COPIES:
            place = units[start + copy : start + copy + len(front)]
            np.bitwise_xor(place, front, out=place)
    return units[end:]


def _by_table(data: Bytes, start: int) -> int:
    """The checksum of a few thousand bytes."""
    size = len(data)
    crc = start ^ _ONES
    if size <= _SHORT:
        return _few(crc, data) ^ _ONES
    table, rows = _table()
    array = np.frombuffer(data, np.uint8)
    head = size % _BLOCK
    if head <= _SHORT:
        crc = _few(crc, memoryview(data)[:head])
    else:
        crc = _block(crc, array[:head], table, rows[_BLOCK - head :])
    for start in range(head, size, _BLOCK):
        crc = _block(crc, array[start : start + _BLOCK], table, rows)
    return crc ^ _ONES


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

    The bytes are going to be summed up by it.
    """
    return _native if size >= _SEVERAL and native_pays(size) else _implementation()


def native_pays(size: int) -> bool:
    """Whether native code is to take the next `size` bytes, if it is worth calling.

    It is where the code generator is loaded, or has been missed for so many bytes that loading it
    would have paid: so a program that only loads a model has it soon, and one that goes on loading
    takes at most twice the time.
    """
    if _COMPILER in sys.modules:
        return True
    _Missed.bytes += size
    return _Missed.bytes >= _MANY


class _Missed:
    """For how many bytes native code was not there."""

    bytes = 0


def masked(crc: int) -> int:
    """A checksum as files keep it: rotated by 15 bits, plus a constant.

    A file may hold checksums among its data; the mask keeps sums of sums from cancelling out.
    """
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def masked_crc32c(data: Bytes) -> int:
    """The checksum of `data` as record files keep it."""
    return masked(crc32c(data))
