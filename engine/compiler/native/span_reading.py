"""Stretches of files read by native code, as fast as memory takes the bytes.

A kernel folds the bytes into the checksum (see checksums.py) and writes them to their place past
the caches: nothing is read from memory twice, and no line is fetched only to be overwritten.
The bytes come from a map of the file, which saves the system's copy of them. Where a file that is
mapped is cut short, or its disk fails, who touches it is ended by a signal. So it is mapped only
where the system keeps others from opening it to write meanwhile (a lease, which wants a file of
one's own), and only pages are touched that the system has just said to be there. Elsewhere a piece
is read into a buffer that stays in the cache, and goes on from there.

Source: fcntl(2), "Leases"; madvise(2), MADV_POPULATE_READ.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np

from ...graph import uint64
from ...io.crc import CRC32C
from ...io.spans import Part, PartReader, Span, read_portably, read_side_by_side
from ..codegen.control import fold
from ..codegen.function import Module, Value
from ..kernels.addressing import function, load, place, store
from ..target import host
from ..target.code import Code
from ..target.thread_count import num_threads
from .checksums import VECTORS, folding, kernel_of, vector_bytes
from .heap import keep_freed

_SYMBOL = "crc32c_copy"
_PIECE = 1 << 19  # bytes, half of a second-level cache
_SMALL = 1 << 20  # bytes: what is shorter is read by Python
_POPULATE = 22  # MADV_POPULATE_READ, which Python 3.11 has no name for
_PAST_CACHES = "!7"
_ADD_WORD = "llvm.x86.sse42.crc32.64.64"  # every processor with products without carry has it


def read_spans(spans: Sequence[Span]) -> list[int | None]:
    """What `laminar.engine.io.spans.read_spans` does."""
    keep_freed()
    width = vector_bytes()
    copy = _kernel(width) if width and hasattr(os, "preadv") else None
    if copy is None:
        return [read_portably(span) for span in spans]
    found: list[int | None] = [None] * len(spans)
    long: list[int] = []
    ends: dict[int, int] = {}
    block = VECTORS * width
    for i, span in enumerate(spans):
        if len(span.memory) < _SMALL or _address(span.memory) % host.LINE:
            found[i] = read_portably(span)
            continue
        long.append(i)
        file, end = span.file.fileno(), span.offset + len(span.memory) // block * block
        ends[file] = max(ends.get(file, 0), end)
    with ExitStack() as stack:
        maps = {file: stack.enter_context(_mapped(file, end)) for file, end in ends.items()}
        sums = read_side_by_side(
            [spans[i] for i in long], block, num_threads(), lambda: _reader(copy, width, maps)
        )
    for i, checksum in zip(long, sums, strict=True):
        found[i] = checksum
    return found


def _address(memory: memoryview | mmap.mmap) -> int:
    return int(np.frombuffer(memory, np.uint8).ctypes.data)


@contextmanager
def _mapped(file: int, size: int) -> Iterator[mmap.mmap | None]:
    """The first bytes of a file, which nobody can open to write meanwhile; None where it cannot be.

    Who tries to waits until this ends. The signal that tells of it is one that does nothing.
    """
    try:
        import fcntl  # not on every system

        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except (ImportError, AttributeError, OSError):
        yield None
        return
    with ExitStack() as stack:
        stack.callback(fcntl.fcntl, file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        found = None
        with suppress(OSError, ValueError):  # ValueError: the file is shorter
            found = stack.enter_context(mmap.mmap(file, size, access=mmap.ACCESS_READ))
        yield found


def _reader(
    copy: Callable[[int, int, int, int], int], width: int, maps: Mapping[int, mmap.mmap | None]
) -> PartReader:
    """Reads parts by native code."""
    buffer = np.empty(_PIECE, np.uint8).data
    vectors = np.empty(VECTORS * width, np.uint8)
    state = vectors.ctypes.data

    def read(part: Part) -> int | None:
        vectors.fill(0)
        target, size = _address(part.memory), len(part.memory)
        source = _present(maps[part.file], part)
        if source is not None:
            return copy(source, size, target, state)
        found = None
        for done in range(0, size, _PIECE):
            piece = buffer[: min(_PIECE, size - done)]
            if os.preadv(part.file, [piece], part.offset + done) != len(piece):
                return None
            found = copy(_address(piece), len(piece), target + done, state)
        return found

    return read


def _present(found: mmap.mmap | None, part: Part) -> int | None:
    """Where a part is in memory; None where it is not."""
    if found is None:
        return None
    start = part.offset // mmap.PAGESIZE * mmap.PAGESIZE
    try:
        found.madvise(_POPULATE, start, part.offset + len(part.memory) - start)
    except OSError:  # a system that does not know it, or a disk that fails
        return None
    return _address(found) + part.offset


@functools.cache
def _kernel(width: int) -> Any | None:
    kind = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_int64] * 4)
    return kernel_of(Code(_SYMBOL, width, _text, (width,)), kind)


def _text(width: int) -> str:
    """`uint64 crc32c_copy(source, size, target, state)`: `size` bytes, whole blocks, to `target`,
    and folded into the vectors at `state`; gives the sum of all that are in these.
    """
    module = Module()
    fn, (source, size, target, state) = function(module, _SYMBOL, 4)
    lanes = width // uint64.size
    module.declarations[_PAST_CACHES] = f"{_PAST_CACHES} = !{{i32 1}}"
    module.declarations[_ADD_WORD] = f"declare i64 @{_ADD_WORD}(i64, i64)"
    fence = "llvm.x86.sse.sfence"
    module.declarations[fence] = f"declare void @{fence}()"
    take_in = folding(fn, width, CRC32C)

    def body(at: Value, carried: Sequence[Value]) -> list[Value]:
        found = [load(fn, source + at + i * width, uint64, lanes) for i in range(VECTORS)]
        for i, x in enumerate(found):
            pointer = place(fn, target + at + i * width)
            fn.line(f"store {x}, ptr {pointer}, align {width}, !nontemporal {_PAST_CACHES}")
        return take_in(carried, found)

    before = [load(fn, state + i * width, uint64, lanes) for i in range(VECTORS)]
    after = fold(fn, fn.number(0), size, VECTORS * width, before, body)
    for i, x in enumerate(after):
        store(fn, x, state + i * width)
    fn.line(f"call void @{fence}()")
    checksum = fn.number(0)
    for at in range(0, VECTORS * width, uint64.size):
        word = load(fn, state + at, uint64)
        checksum = fn.instruction(f"call i64 @{_ADD_WORD}({checksum}, {word})", uint64, 0)
    fn.result = str(checksum)
    return module.text()
