"""Stretches of files read into memory, their checksums made while the bytes are in the cache.

Threads take parts of long stretches, whose sums are combined.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader
from typing import NamedTuple, TypeAlias

from ..late import later
from .crc import CRC32C, combined
from .crc32c import Folding, fastest_crc32c, native_pays, portable_crc32c

_PIECE = 1 << 20  # bytes that are read and summed at a time: they stay in the cache
_PART = 1 << 23  # bytes that a thread takes at a time
_ONES = 0xFFFF_FFFF
_SEVERAL = 1 << 20  # bytes for which threads, and native code, pay
_MOST_THREADS = 4  # more do not read faster where Python starts each piece
_WORD = 8


class Span(NamedTuple):
    """Where bytes stand, and where they go: as many as the memory has."""

    file: BufferedReader
    offset: int
    memory: memoryview  # of single bytes


class Part(NamedTuple):
    """A part of a span: whole blocks, which one thread reads."""

    span: int
    file: int
    offset: int
    memory: memoryview


# Reads a part; gives the sum of it, without the ones before and after, None if the file ends in it.
PartReader: TypeAlias = Callable[[Part], int | None]

_read_native: Callable[[Sequence[Span]], list[int | None]] = later(
    "laminar.engine.compiler.native.span_reading", "read_spans"
)


def read_spans(spans: Sequence[Span]) -> list[int | None]:
    """Read all; gives the CRC-32C of each, None of one that its file ends in.

    Native code does it, by its threads, where there is enough to read.

    Raises:
        OSError: a file cannot be read.
    """
    total = sum(len(span.memory) for span in spans)
    if total >= _SEVERAL and native_pays(total):
        return _read_native(spans)
    found: list[int | None] = [None] * len(spans)
    long: list[int] = []
    for i, span in enumerate(spans):
        if len(span.memory) < _SEVERAL or not hasattr(os, "preadv"):
            found[i] = read_portably(span)
        else:
            long.append(i)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = min(_MOST_THREADS, cores or 1)
    sums = read_side_by_side([spans[i] for i in long], _WORD, threads, lambda: _read_part)
    for i, checksum in zip(long, sums, strict=True):
        found[i] = checksum
    return found


def read_portably(span: Span) -> int | None:
    """What `read_spans` does with one, by this thread."""
    extend = fastest_crc32c(len(span.memory))
    checksum = 0
    span.file.seek(span.offset)
    for start in range(0, len(span.memory), _PIECE):
        piece = span.memory[start : start + _PIECE]
        if span.file.readinto(piece) != len(piece):
            return None
        checksum = extend(piece, checksum)
    return checksum


def _read_part(part: Part) -> int | None:
    """A `PartReader` in Python and NumPy, which let other threads go on meanwhile."""
    folding = Folding(_ONES)
    for start in range(0, len(part.memory), _PIECE):
        piece = part.memory[start : start + _PIECE]
        if os.preadv(part.file, [piece], part.offset + start) != len(piece):
            return None
        folding.add(piece)
    return folding.checksum() ^ _ONES


def read_side_by_side(
    spans: Sequence[Span], block: int, threads: int, reader: Callable[[], PartReader]
) -> list[int | None]:
    """What `read_spans` does, by threads.

    Args:
        spans: of at least a block each.
        block: bytes of which a part has a multiple.
        threads: how many, this one included.
        reader: makes what reads the parts of one thread.
    """
    parts: list[Part] = []
    for i, (file, offset, memory) in enumerate(spans):
        whole = len(memory) // block * block
        step = _PART if threads > 1 else whole
        for at in range(0, whole, step):
            piece = memory[at : min(at + step, whole)]
            parts.append(Part(i, file.fileno(), offset + at, piece))
    sums: list[list[tuple[int, int | None]]] = [[] for _ in spans]
    for part, checksum in zip(parts, _by_threads(parts, threads, reader), strict=True):
        sums[part.span].append((len(part.memory), checksum))
    return [_finished(span, own) for span, own in zip(spans, sums, strict=True)]


def _by_threads(
    parts: Sequence[Part], threads: int, reader: Callable[[], PartReader]
) -> list[int | None]:
    """What a reader gives for each part."""
    found: list[int | None] = [None] * len(parts)
    waiting: Iterator[tuple[int, Part]] = iter(enumerate(parts))
    lock = threading.Lock()
    errors: list[OSError] = []

    def work() -> None:
        read = reader()
        while not errors:
            with lock:
                taken = next(waiting, None)
            if taken is None:
                return
            try:
                found[taken[0]] = read(taken[1])
            except OSError as error:
                errors.append(error)

    others = [
        threading.Thread(target=work, name="laminar-reader")
        for _ in range(min(threads, len(parts)) - 1)
    ]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]
    return found


def _finished(span: Span, parts: Sequence[tuple[int, int | None]]) -> int | None:
    """The checksum of a span from those of its parts, which are without the ones before and after;
    the bytes after its last block are read.
    """
    total, done = _ONES, 0
    for size, part in parts:
        if part is None:
            return None
        total = combined(total, part, size, CRC32C)
        done += size
    rest = span.memory[done:]
    if os.preadv(span.file.fileno(), [rest], span.offset + done) != len(rest):
        return None
    return portable_crc32c(rest, total ^ _ONES)
