"""How many threads native code uses: a setting of the process, and the share of a device."""

from __future__ import annotations

import os

from ...ops.core.cluster import thread_share


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Setting:
    """The number of threads for all of the host."""

    count = available_cores()


def set_count(count: int) -> None:
    """Let plans use so many threads from now on."""
    _Setting.count = count


def num_threads() -> int:
    """How many threads a plan that this thread runs may use."""
    count = _Setting.count
    return count if thread_share.owner is None else min(count, thread_share.count)
