"""Runs of executables that tell when each thread ran each kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
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


class TracedKernels:
    """What stands for the kernels of an executable while it is recorded.

    In its table of kernels others stand for these, which run them and read the clock.
    """

    def __init__(self, executable: Executable) -> None:
        self._rows = executable.kernel_rows()[:, :2]
        self._own = self._rows.copy()
        count, threads = len(self._own), executable.num_threads
        self._times = np.zeros((count, threads, 2), np.int64)
        self._words = np.zeros((count, TRACE_WORDS), np.int64)
        self._words[:, KERNEL_CODE], self._words[:, KERNEL_WORDS] = self._own.T
        self._words[:, KERNEL_TIMES] = self._times.ctypes.data + np.arange(count) * 16 * threads
        self._others = np.empty_like(self._own)
        self._others[:, 0] = address_of(traced_kernel_code())
        self._others[:, 1] = self._words.ctypes.data + np.arange(count) * 8 * TRACE_WORDS

    @contextmanager
    def recorded(self, timeline: Timeline, cluster: Any, key: Any, name: str) -> Iterator[None]:
        """A block in which a run of the executable, which nobody else may run, is recorded."""
        self._times.fill(0)
        self._rows[:] = self._others
        start = now()
        try:
            yield
        finally:
            end = now()
            self._rows[:] = self._own
            run = NativeRun(cluster, key, name, get_ident(), start, end, self._times.copy())
            timeline.add_run(run)
