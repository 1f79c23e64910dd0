"""Memory that tensors arrive in: counted before it is allocated, and used again.

Fresh memory costs a page fault for each 4 KiB, several times what the copy into it costs; so what
a dropped tensor had serves the next one. An array lies over a `Lease`, which every view of it keeps
alive; when the last has gone, the lease gives the memory back. That may happen in any thread and at
any moment, also while a lock is held here, so giving back appends to a deque and takes no lock.

State of a `Budget`: `_used` bytes, guarded by `_lock`; `_released` are sizes to take off it.
State of a `BufferPool`: `_free[size]`, blocks that nobody uses, and `_idle_bytes`, their sum,
guarded by `_lock`; `_returned` are blocks to be sorted into it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import ResourceExhaustedError

_ALIGNMENT = 64  # bytes: a line of the cache
_UNIT = 1 << 16  # sizes are rounded up to this, so that blocks serve tensors of about their size
_IDLE_BYTES = 256 << 20  # that are kept for later


class Budget:
    """How many bytes of tensors from elsewhere may be held.

    Args:
        limit_bytes: None for half of the machine's memory.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.limit_bytes = limit_bytes if limit_bytes is not None else _half_of_memory()
        self._lock = threading.Lock()
        self._used = 0
        self._released: deque[int] = deque()

    @property
    def used_bytes(self) -> int:
        """Bytes that are held now."""
        with self._lock:
            self._settle()
            return self._used

    def reserve(self, num_bytes: int, what: str) -> None:
        """Count bytes that are about to be allocated.

        Raises:
            ResourceExhaustedError: they are too many.
        """
        with self._lock:
            self._settle()
            if self._used + num_bytes > self.limit_bytes:
                raise ResourceExhaustedError(
                    f"{what}: {num_bytes} bytes are to come, {self._used} of the "
                    f"{self.limit_bytes} that tensors from other tasks may have are held",
                    remedy="let go of tensors, send fewer at once, or raise the limit",
                )
            self._used += num_bytes

    def release(self, num_bytes: int) -> None:
        """Take off bytes that are held no more; takes no lock."""
        self._released.append(num_bytes)

    def _settle(self) -> None:
        while self._released:
            self._used -= self._released.popleft()


def _half_of_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return 4 << 30


class Lease:
    """Memory that somebody uses, given back when nothing refers to this any more.

    `numpy.asarray(lease)` is the memory as bytes; its views hold the lease.

    Args:
        memory: uint8, at least `num_bytes`; read-only memory makes read-only arrays.
        num_bytes: that are used.
        give_back: called once, in any thread; takes no locks.
    """

    __slots__ = ("__array_interface__", "_give_back", "_memory")

    def __init__(self, memory: Any, num_bytes: int, give_back: Callable[[Any], object]) -> None:
        self._memory = memory
        self._give_back = give_back
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (num_bytes,),
            "data": (memory.ctypes.data, not memory.flags.writeable),
        }

    def __del__(self) -> None:
        self._give_back(self._memory)


class BufferPool:
    """Blocks of memory, handed out and taken back.

    Args:
        budget: of what is handed out.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._lock = threading.Lock()
        self._free: dict[int, list[Any]] = {}
        self._idle_bytes = 0
        self._returned: deque[Any] = deque()
        self._is_closed = False

    def take(self, num_bytes: int, what: str) -> Any:
        """An array uint8[num_bytes], with anything in it.

        Args:
            num_bytes: how many.
            what: comes, for errors.

        Raises:
            ResourceExhaustedError: the budget does not allow it.
        """
        size = -(-max(num_bytes, 1) // _UNIT) * _UNIT
        self.budget.reserve(size, what)
        with self._lock:
            self._settle()
            blocks = self._free.get(size)
            block = blocks.pop() if blocks else None
            if block is not None:
                self._idle_bytes -= size
        if block is None:
            try:
                raw = np.empty(size + _ALIGNMENT, np.uint8)
            except MemoryError:
                self.budget.release(size)
                raise ResourceExhaustedError(
                    f"{what}: there is no memory for {num_bytes} bytes"
                ) from None
            start = -raw.ctypes.data % _ALIGNMENT
            block = raw[start : start + size]
        return np.asarray(Lease(block, num_bytes, self._give_back))

    def close(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._is_closed = True
            self._free.clear()
            self._returned.clear()
            self._idle_bytes = 0

    def _give_back(self, block: Any) -> None:
        self.budget.release(block.nbytes)
        if not self._is_closed and len(self._returned) * _UNIT < _IDLE_BYTES:
            waiting = sum(b.nbytes for b in list(self._returned))
            if self._idle_bytes + waiting + block.nbytes <= _IDLE_BYTES:
                self._returned.append(block)

    def _settle(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._free.setdefault(block.nbytes, []).append(block)
            self._idle_bytes += block.nbytes
