"""Stretches of files read by native code, as fast as memory takes the bytes.

A kernel folds the bytes into the checksum (see checksums.py) and writes them to their place past
the caches: nothing is read from memory twice, and no line is fetched only to be overwritten.
Threads take parts of the stretches, whose sums are combined.

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
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from ...graph import uint64
from ...io.crc import CRC32C, combined
from ...io.crc32c import portable_crc32c
from ...io.spans import Span, read_portably
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
_PART = 1 << 23  # bytes that a thread takes at a time
_SMALL = 1 << 20  # bytes: what is shorter is read by Python
_ONES = 0xFFFF_FFFF
_POPULATE = 22  # MADV_POPULATE_READ, which Python 3.11 has no name for
_PAST_CACHES = "!7"
_ADD_WORD = "llvm.x86.sse42.crc32.64.64"  # every processor with products without carry has it


class _Part(NamedTuple):
    """A part of a span that one thread reads."""

    span: int
    file: int
    offset: int
    address: int
    size: int


def read_spans(spans: Sequence[Span]) -> list[int | None]:
    """What `laminar.engine.io.spans.read_spans` does."""
    keep_freed()
    width = vector_bytes()
    copy = _kernel(width) if width and hasattr(os, "preadv") else None
    if copy is None:
        return [read_portably(span) for span in spans]
    found: list[int | None] = [None] * len(spans)
    parts: list[_Part] = []
    block = VECTORS * width
    for i, span in enumerate(spans):
        whole = len(span.memory) // block * block
        if whole < _SMALL or (address := _address(span.memory)) % host.LINE:
            found[i] = read_portably(span)
            continue
        step = _PART if num_threads() > 1 else whole
        for at in range(0, whole, step):
            size = min(step, whole - at)
            parts.append(_Part(i, span.file.fileno(), span.offset + at, address + at, size))
    ends = {part.file: part.offset + part.size for part in sorted(parts, key=lambda p: p.offset)}
    with ExitStack() as stack:
        maps = {file: stack.enter_context(_mapped(file, end)) for file, end in ends.items()}
        sums = _side_by_side(lambda: _reader(copy, width, maps), parts)
    for i, span in enumerate(spans):
        own = [(part.size, sums[j]) for j, part in enumerate(parts) if part.span == i]
        if own:
            found[i] = _finished(span, own)
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


def _side_by_side(
    reader: Callable[[], Callable[[_Part], int | None]], parts: Sequence[_Part]
) -> list[int | None]:
    """What a reader gives for each part; each thread has one of its own."""
    found: list[int | None] = [None] * len(parts)
    waiting: Iterator[tuple[int, _Part]] = iter(enumerate(parts))
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

    count = min(num_threads(), len(parts))
    threads = [threading.Thread(target=work, name="laminar-reader") for _ in range(count - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found


def _reader(
    copy: Callable[[int, int, int, int], int], width: int, maps: Mapping[int, mmap.mmap | None]
) -> Callable[[_Part], int | None]:
    """Reads parts; gives the sum of each, None of one that the file ends in."""
    buffer = np.empty(_PIECE, np.uint8).data
    vectors = np.empty(VECTORS * width, np.uint8)
    state = vectors.ctypes.data

    def read(part: _Part) -> int | None:
        vectors.fill(0)
        source = _present(maps[part.file], part)
        if source is not None:
            return copy(source, part.size, part.address, state)
        found = None
        for done in range(0, part.size, _PIECE):
            piece = buffer[: min(_PIECE, part.size - done)]
            if os.preadv(part.file, [piece], part.offset + done) != len(piece):
                return None
            found = copy(_address(piece), len(piece), part.address + done, state)
        return found

    return read


def _present(found: mmap.mmap | None, part: _Part) -> int | None:
    """Where a part is in memory; None where it is not."""
    if found is None:
        return None
    start = part.offset // mmap.PAGESIZE * mmap.PAGESIZE
    try:
        found.madvise(_POPULATE, start, part.offset + part.size - start)
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
