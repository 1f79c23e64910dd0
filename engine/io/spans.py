"""Stretches of files read into memory, their checksums made while the bytes are in the cache."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from io import BufferedReader
from typing import NamedTuple

from ..late import later
from .crc32c import fastest_crc32c

_PIECE = 1 << 20  # bytes that are read and summed at a time: they stay in the cache
_COMPILER = "laminar.engine.compiler.native"
# Of native code: bytes for which it pays, where the code generator is loaded and where it is not.
_SEVERAL, _MANY = 1 << 20, 1 << 25


class Span(NamedTuple):
    """Where bytes stand, and where they go: as many as the memory has."""

    file: BufferedReader
    offset: int
    memory: memoryview  # of single bytes


_read_native: Callable[[Sequence[Span]], list[int | None]] = later(
    f"{_COMPILER}.span_reading", "read_spans"
)


def read_spans(spans: Sequence[Span]) -> list[int | None]:
    """Read all; gives the CRC-32C of each, None of one that its file ends in.

    Where there is enough to read, native code does it, by the threads of native code.

    Raises:
        OSError: a file cannot be read.
    """
    total = sum(len(span.memory) for span in spans)
    if total >= (_SEVERAL if _COMPILER in sys.modules else _MANY):
        return _read_native(spans)
    return [read_portably(span) for span in spans]


def read_portably(span: Span) -> int | None:
    """What `read_spans` does with one, by Python."""
    extend = fastest_crc32c(len(span.memory))
    checksum = 0
    span.file.seek(span.offset)
    for start in range(0, len(span.memory), _PIECE):
        piece = span.memory[start : start + _PIECE]
        if span.file.readinto(piece) != len(piece):
            return None
        checksum = extend(piece, checksum)
    return checksum
