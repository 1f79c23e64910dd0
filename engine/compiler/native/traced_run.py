"""Executables whose runs are recorded: when each thread ran each kernel.

Another table of kernels is in the place of the executable's own, whose kernels run these and read
the clock, so the code that computes, and the results, are the same (codegen/traced_kernel.py).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph import Array
from ...timeline import NativeJournals, NativeRuns
from ..codegen import driver_words
from ..codegen import traced_kernel as trace
from ..plan.executable_plan import driver_codes
from ..target.code_cache import address_of, addresses_of
from .call_context import BoundExecutable
from .executable import Executable

_FIRST_BYTES, _MOST_BYTES = 1 << 14, 1 << 22  # of the records of a journal
_WORD = 8


class RecordedExecutable(Executable):
    """An executable that keeps a journal of its runs for a timeline.

    `_records` are arrays of (run, words). The last of them is written; the journal says where.

    Args:
        executable: the one that it is a copy of.
        memory: of its intermediate values.
        about: the cluster, the sizes and the name of what is run.
    """

    def __init__(self, executable: Executable, memory: Array, *about: Any) -> None:
        super().__init__(
            executable.executable_plan,
            memory,
            executable.num_threads,
            executable.given,
            executable.results,
        )
        self._about = about
        rows = self.kernel_rows()
        count, threads = len(rows), self.num_threads
        self._form = (count, threads, trace.ENTRY_WORDS)
        entry = _WORD * trace.ENTRY_WORDS
        self._words = trace.ENTRY_WORDS * (1 + count * threads)
        self._journal = np.zeros(trace.JOURNAL_WORDS, np.int64)
        self._journal[trace.STRIDE] = _WORD * self._words
        run, share, *_ = addresses_of(driver_codes(is_parallel=False))
        self._journal[trace.RUN], self._journal[trace.SHARE] = run, share
        self._plan[driver_words.JOURNAL] = self._journal.ctypes.data
        self._kernels = np.zeros((count, trace.KERNEL_TRACE_WORDS), np.int64)
        self._kernels[:, trace.KERNEL_CODE] = rows[:, 0]
        self._kernels[:, trace.KERNEL_WORDS] = rows[:, 1]
        self._kernels[:, trace.KERNEL_JOURNAL] = self._journal.ctypes.data
        self._kernels[:, trace.KERNEL_PLACE] = entry * (1 + np.arange(count) * threads)
        rows[:, 0] = address_of(trace.traced_code("traced_kernel"))
        step = _WORD * trace.KERNEL_TRACE_WORDS
        rows[:, 1] = self._kernels.ctypes.data + step * np.arange(count)
        self._records: list[Array] = []
        self._bytes = _FIRST_BYTES
        self.turn_page()

    @staticmethod
    def _driver() -> list[int]:
        return [address_of(trace.traced_code(f)) for f in ("traced_run", "traced_share")]

    def turn_page(self) -> None:
        """Have room for further runs."""
        room = max(1, self._bytes // (_WORD * self._words))
        self._bytes = min(2 * self._bytes, _MOST_BYTES)
        self._records.append(np.zeros((room, self._words), np.int64))
        start = self._records[-1].ctypes.data
        self._journal[trace.RECORD] = start
        self._journal[trace.END] = start + _WORD * self._words * room

    def runs(self, moments: Callable[[Array], Array]) -> NativeRuns:
        """All runs that have ended, their times as `moments` gives them."""
        words = np.concatenate(self._records)
        words = words[words[:, trace.ENDED] > 0]
        entries = words.reshape(len(words), -1, trace.ENTRY_WORDS).copy()
        ran = entries[:, :, trace.ENDED] > 0
        entries[ran, : trace.THREAD] = moments(entries[ran, : trace.THREAD])
        cluster, key, name = self._about
        kernels = entries[:, 1:].reshape(len(words), *self._form)
        return NativeRuns(cluster, key, name, entries[:, 0], kernels)


def bind_recorded(
    plain: BoundExecutable, memory: Array, journals: NativeJournals, *about: Any
) -> BoundExecutable:
    """What computes as `plain` does, and keeps a journal of it."""
    found = RecordedExecutable(plain.executable, memory, *about)
    journals.add(found, clocks)
    return BoundExecutable(found, plain.threads)


def clocks() -> tuple[int, int]:
    """What the clock of the journals and that of timelines show now."""
    words = np.zeros(2, np.int64)
    _clocks()(words.ctypes.data)
    return int(words[trace.COUNTER]), int(words[trace.NANOSECONDS])


@functools.cache
def _clocks() -> Callable[[int], None]:
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return kind(address_of(trace.traced_code("clocks")))
