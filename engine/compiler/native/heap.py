"""Memory for results, from the C library's allocator."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..target import host

Array = np.ndarray[Any, Any]
Form = tuple[tuple[int, ...], np.dtype[Any]]

# From so many bytes on, writing a result beside lines of the cache takes longer than to place it.
_LARGE_BYTES = 1 << 14

# glibc goes by freed blocks of less than 32 MB.
_BYTES = (1 << 25) - (1 << 16)
# It keeps so much of what is free at the end of its heap: what some results of that size take.
_KEPT_BYTES = 1 << 28
_TRIM_THRESHOLD = -1  # its number among the parameters of mallopt
_CHOSEN = ("MALLOC_", "GLIBC_TUNABLES")


def keep_freed() -> None:
    """Have glibc keep what is freed for what is made next.

    Until a process has freed a large block, each that it frees goes back to the system at once, and
    results take a page fault for every 4 KB again, about as long as computing them. By the size of
    the largest one freed glibc chooses which it hands out from its heap; here is one that nobody
    has touched. Twice as much is kept at the end of the heap then, which is too little for four
    such results, so that is raised. Where MALLOC_TRIM_THRESHOLD_ or its like are set, these hold.

    What it buys: a function that gives four arrays of 1 MB takes 0.06 ms instead of 1.5, of 4 MB
    0.35 instead of 3.2, of 16 MB 5.3 instead of 13.

    Source: mallopt(3), M_MMAP_THRESHOLD: "the dynamic mmap threshold"; M_TRIM_THRESHOLD.
    """
    np.empty(_BYTES, np.uint8)
    if host.is_linux() and not any(name.startswith(_CHOSEN) for name in os.environ):
        library = ctypes.CDLL(None)
        if hasattr(library, "gnu_get_libc_version"):
            library.mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array that begins at a line of the cache, in memory that nothing else refers to."""
    num_bytes = math.prod(shape) * dtype.itemsize
    memory = np.empty(num_bytes + host.LINE, np.uint8)
    start = -memory.ctypes.data % host.LINE
    found: Array = memory[start : start + num_bytes].view(dtype).reshape(shape)
    return found


def copied(x: Array) -> Array:
    """A copy that begins so."""
    found = aligned(x.shape, x.dtype)
    found[...] = x
    return found


def is_large(form: Form) -> bool:
    """Whether an array is so large that it is to begin at a line of the cache.

    Elsewhere each vector of a kernel that writes whole lines is written to two of them, and threads
    write to the same lines where their shares meet.
    """
    shape, dtype = form
    return math.prod(shape) * dtype.itemsize >= _LARGE_BYTES


def made(forms: Sequence[Form]) -> list[Array]:
    """Arrays of these forms."""
    return [aligned(*form) if is_large(form) else np.empty(*form) for form in forms]
