"""Room for code whose parts lie near each other.

LLVM's linker asks the system for each section of an object by itself, and code refers to constants
by distances of 32 bits. The system takes the highest gap that is large enough, so in a process with
gigabytes in between (large arrays, memory that processes share) a small section can come to lie
too far from the others, which ends the process. Here such gaps are filled while code is linked.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_FAR: Final = 1 << 30  # half of what 32 bits reach
_FIXED_NO_REPLACE: Final = 0x100000  # MAP_FIXED_NOREPLACE of mmap(2): not over what is there
_FAILED: Final = ctypes.c_void_p(-1).value
_MAPS: Final = "/proc/self/maps"


@contextmanager
def near_each_other(num_bytes: int) -> Iterator[None]:
    """A block in which memory of so many bytes in all, asked for in parts, is in one region."""
    filled = _fill(num_bytes) if sys.platform == "linux" else []
    try:
        yield
    finally:
        for begin, size in filled:
            _libc().munmap(ctypes.c_void_p(begin), ctypes.c_size_t(size))


def _fill(num_bytes: int) -> list[tuple[int, int]]:
    """Fill the gaps that are far from the one that has room for all; gives what was filled."""
    size = -(-(2 * num_bytes + (1 << 20)) // mmap.PAGESIZE) * mmap.PAGESIZE
    found, highest = _given(size), _given(mmap.PAGESIZE)
    if found is None or highest is None or highest < found + _FAR:
        return []
    filled = []
    for begin, end in _gaps():
        # A larger one is not for the system to give, as that into which the stack grows.
        is_given = end - begin < size and begin > found + _FAR
        if is_given and _map(begin, end - begin, _FIXED_NO_REPLACE) is not None:
            filled.append((begin, end - begin))
    return filled


def _given(size: int) -> int | None:
    """Where the system gives so much memory now: in the highest gap that has room."""
    found = _map(0, size, 0)
    if found is not None:
        _libc().munmap(ctypes.c_void_p(found), ctypes.c_size_t(size))
    return found


def _gaps() -> Iterator[tuple[int, int]]:
    """The free regions between what is mapped."""
    try:
        with open(_MAPS, encoding="ascii", errors="replace") as file:
            lines = file.readlines()
    except OSError:
        return
    before = 0
    for line in lines:
        begin, _, rest = line.partition("-")
        start = int(begin, 16)
        if before and start > before:
            yield before, start
        before = int(rest.partition(" ")[0], 16)


def _map(address: int, size: int, flags: int) -> int | None:
    """Reserve a region, of no memory; gives where it is, None where that cannot be."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    none, no_file = 0, -1
    found = _libc().mmap(address, size, none, private | flags, no_file, 0)
    return None if found == _FAILED else int(found or 0)


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
    ]
    return libc
