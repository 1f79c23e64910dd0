"""Memory for results, which the C library hands out."""

from __future__ import annotations

import numpy as np

# glibc goes by freed blocks of less than 32 MB.
_BYTES = (1 << 25) - (1 << 16)


def keep_freed() -> None:
    """Have glibc keep what is freed for what is made next.

    Until a process has freed a large block, each that it frees goes back to the system at once, and
    results take a page fault for every 4 KB again, about as long as computing them. By the size of
    the largest one freed glibc chooses what it keeps, up to twice as much; here is one that nobody
    has touched. Where MALLOC_TRIM_THRESHOLD_ or its like are set, these hold.

    Source: mallopt(3), M_MMAP_THRESHOLD: "the dynamic mmap threshold".
    """
    np.empty(_BYTES, np.uint8)
