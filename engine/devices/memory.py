"""Accounts of a device's memory: which arrays it holds now, and the most it has held.

State of an `Account`, guarded by `_lock` but for `_freed`:
    _live[id]: the weak reference to an array that owns memory, for each that is alive;
    _freed: references whose arrays have gone, not yet subtracted. An array can go at any moment,
        in any thread, also while this thread holds the lock: so its end is only noted here.
"""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import forks
from ..errors import ResourceExhaustedError


@dataclass(frozen=True)
class MemoryStats:
    """What a device holds.

    Attributes:
        bytes_in_use: of the arrays that are alive.
        peak_bytes: the most there has been in use since the start or the last reset.
        limit_bytes: what it may hold, None for no limit but the machine's.
        num_arrays: how many arrays have been counted so far.
    """

    bytes_in_use: int
    peak_bytes: int
    limit_bytes: int | None
    num_arrays: int


class _Held(weakref.ref[Any]):
    __slots__ = ("key", "nbytes")

    key: int
    nbytes: int


class Account:
    """Counts the bytes of host arrays from when they come until nobody holds them."""

    def __init__(self, device: str, limit_bytes: int | None) -> None:
        self._device = device
        self._limit = limit_bytes
        self._lock = forks.lock()
        self._live: dict[int, _Held] = {}
        self._freed: deque[_Held] = deque()
        self._in_use = 0
        self._peak = 0
        self._count = 0

    def add(self, array: np.ndarray[Any, Any]) -> None:
        """Count the memory behind `array`, once however many views of it come.

        Raises:
            ResourceExhaustedError: the device would hold more than its limit.
        """
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        self.add_owner(owner)

    def add_owner(self, owner: np.ndarray[Any, Any]) -> None:
        """Count `owner` itself, whoever it may be a view of."""
        key, nbytes = id(owner), owner.nbytes
        with self._lock:
            self._settle()
            if key in self._live:
                return
            if self._limit is not None and self._in_use + nbytes > self._limit:
                raise ResourceExhaustedError(
                    f"{self._device} is out of memory: {nbytes} bytes are needed, "
                    f"{self._in_use} of {self._limit} are in use",
                    remedy="use a smaller batch, another device, or a higher memory limit",
                )
            held = _Held(owner, self._freed.append)
            held.key, held.nbytes = key, nbytes
            self._live[key] = held
            self._in_use += nbytes
            self._peak = max(self._peak, self._in_use)
            self._count += 1

    def _settle(self) -> None:
        while self._freed:
            held = self._freed.popleft()
            del self._live[held.key]
            self._in_use -= held.nbytes

    def stats(self) -> MemoryStats:
        """The account now."""
        with self._lock:
            self._settle()
            return MemoryStats(self._in_use, self._peak, self._limit, self._count)

    def reset_peak(self) -> None:
        """Let the peak start from what is in use now."""
        with self._lock:
            self._settle()
            self._peak = self._in_use
