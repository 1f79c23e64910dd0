"""Memory for code is in one region, also in a process with gigabytes between its gaps."""

from __future__ import annotations

import ctypes
import mmap
import sys

import pytest

from laminar.engine.compiler.target import near

PAGES = [1, 20_000, 2, 1, 5]  # no gap between libraries has room for the second


def spread() -> int:
    """How far from each other regions of so many pages are put."""
    libc, found = near._libc(), []
    for n in PAGES:
        address = near._map(0, n * mmap.PAGESIZE, 0)
        assert address is not None
        found.append(address)
    for address, n in zip(found, PAGES, strict=True):
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(n * mmap.PAGESIZE))
    return max(found) - min(found)


@pytest.mark.skipif(sys.platform != "linux", reason="gaps are read from /proc")
def test_small_parts_are_put_beside_large_ones() -> None:
    """And anywhere again afterwards. LLVM's linker ends a process where they are too far apart."""
    lazy = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    above, gap, below = (mmap.mmap(-1, size, flags=lazy) for size in (3 << 30, 4096, 3 << 30))
    gap.close()
    try:
        assert spread() > 2 << 30
        with near.near_each_other(20_000 * mmap.PAGESIZE):
            assert spread() < 2 << 30
        assert spread() > 2 << 30
    finally:
        above.close()
        below.close()
