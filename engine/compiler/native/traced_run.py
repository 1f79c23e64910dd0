"""Runs of executables that tell when each thread ran each kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...timeline import NativeRun, Timeline, now
from ..codegen.traced_kernel import (
    KERNEL_CODE,
    KERNEL_TIMES,
    KERNEL_WORDS,
    TRACE_WORDS,
    traced_kernel_code,
)
from ..target.code_cache import address_of
from .executable import Executable


@contextmanager
def traced(
    timeline: Timeline, executable: Executable, cluster: Any, key: Any, name: str
) -> Iterator[None]:
    """A block in which a run of an executable, which nobody else may run, is recorded.

    In its table of kernels others stand for these, which run them and read the clock.
    """
    rows = executable.kernel_rows()
    kept = rows[:, :2].copy()
    count, threads = len(rows), executable.num_threads
    times = np.zeros((count, threads, 2), np.int64)
    words = np.zeros((count, TRACE_WORDS), np.int64)
    words[:, KERNEL_CODE], words[:, KERNEL_WORDS] = kept.T
    words[:, KERNEL_TIMES] = times.ctypes.data + np.arange(count) * 16 * threads
    rows[:, 0] = address_of(traced_kernel_code())
    rows[:, 1] = words.ctypes.data + np.arange(count) * 8 * TRACE_WORDS
    start = now()
    try:
        yield
    finally:
        end = now()
        rows[:, :2] = kept
        thread = threading.get_ident()
        timeline.add_run(NativeRun(cluster, key, name, thread, start, end, times))
