"""Tensors between processes of one host: in memory that both map, copied once.

The sender keeps memory files (memfd), which have no name, so nothing is left of them when both
sides have ended, however they end. A file is sealed before it is given away: nobody can make it
shorter, which would crash who reads it, and nobody but the sender, who has mapped it before, can
write to it. The receiver maps it, looks whether it is sealed and long enough, and computes on the
very memory; when the last array over it has gone, it says so, and the sender writes the next tensor
there. Each side maps a file once.

State of `SharedBuffers`, guarded by `_lock`: `_free[size]` are the buffers that nobody reads,
`_used[number]` those that the receiver has; `_bytes` is the sum of the sizes of both.
"""

from __future__ import annotations

import fcntl
import itertools
import mmap
import os
import threading
from typing import Any

import numpy as np

from laminar.engine.errors import DataLossError, ResourceExhaustedError

from .frames import Data

_UNIT = 1 << 16  # sizes are rounded up to this
_MOST_BYTES = 1 << 30  # of all buffers of a link; what is beyond goes another way
_SEAL_FUTURE_WRITE = 0x10  # linux/fcntl.h, since Linux 5.1
_WANTED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class _Buffer:
    """One memory file, mapped."""

    __slots__ = ("fd", "is_known", "memory", "number", "size")

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size = number, size
        self.is_known = False  # to the receiver
        self.fd = os.memfd_create("laminar", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, size)
            self.memory = np.frombuffer(mmap.mmap(self.fd, size), np.uint8)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _WANTED | _SEAL_FUTURE_WRITE)
            fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)
        except BaseException:
            os.close(self.fd)
            raise


class SharedBuffers:
    """The sender's side of one link."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._free: dict[int, list[_Buffer]] = {}
        self._used: dict[int, _Buffer] = {}
        self._bytes = 0
        self._is_closed = False

    def place(self, data: Data) -> int | None:
        """Copy bytes into a buffer, and give its number.

        None if there is no buffer for them: too much is in the receiver's hands, or the system
        gives none.
        """
        size = -(-len(data) // _UNIT) * _UNIT
        with self._lock:
            if self._is_closed:
                return None
            blocks = self._free.get(size)
            buffer = blocks.pop() if blocks else None
            if buffer is None:
                if not self._make_room(size):
                    return None
                try:
                    buffer = _Buffer(next(self._numbers), size)
                except (OSError, MemoryError, ValueError):
                    return None
                self._bytes += size
            self._used[buffer.number] = buffer
        np.copyto(buffer.memory[: len(data)], np.frombuffer(data, np.uint8))
        return buffer.number

    def new_file(self, number: int) -> int | None:
        """The file of a buffer, to be sent now; None if the receiver has it already."""
        with self._lock:
            buffer = self._used.get(number)
            if buffer is None or buffer.is_known:
                return None
            buffer.is_known = True
            return buffer.fd

    def take_back(self, number: int) -> None:
        """Use a buffer again: the receiver has let go of it, or never had it."""
        with self._lock:
            buffer = self._used.pop(number, None)
            if buffer is not None:
                self._free.setdefault(buffer.size, []).append(buffer)

    def close(self) -> None:
        """Give up all memory; what the receiver has mapped stays until it lets go."""
        with self._lock:
            self._is_closed = True
            buffers = [*self._used.values(), *(b for free in self._free.values() for b in free)]
            self._used, self._free, self._bytes = {}, {}, 0
        for buffer in buffers:
            os.close(buffer.fd)

    def _make_room(self, size: int) -> bool:
        """Drop buffers of other sizes that nobody uses, until there is room for one more."""
        for free in self._free.values():
            while free and self._bytes + size > _MOST_BYTES:
                buffer = free.pop()
                os.close(buffer.fd)
                self._bytes -= buffer.size
        return self._bytes + size <= _MOST_BYTES


class SharedFile:
    """The receiver's side of one buffer: a file that came, mapped when it is first read.

    Args:
        fd: of the file, which stays the caller's.

    Attributes:
        size: of its memory.

    Raises:
        DataLossError: it is not sealed, so reading it could crash.
    """

    def __init__(self, fd: int) -> None:
        self._memory: Any = None
        self._fd = -1
        try:
            if fcntl.fcntl(fd, fcntl.F_GET_SEALS) & _WANTED != _WANTED:
                raise ValueError("it is not sealed")
            self.size = os.fstat(fd).st_size
            self._fd = os.dup(fd)
        except (OSError, ValueError) as cause:
            raise DataLossError(f"a file came that is no memory to be shared: {cause}") from None

    def memory(self, num_bytes: int) -> Any:
        """Its memory: uint8, read-only.

        Args:
            num_bytes: that are to be read, for which there is room.

        Raises:
            DataLossError: it is shorter, or much longer than what was told of it.
        """
        if not num_bytes <= self.size < num_bytes + _UNIT:
            raise DataLossError(f"{num_bytes} bytes were told to be in {self.size} of memory")
        if self._memory is None:
            flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
            try:
                found = mmap.mmap(self._fd, self.size, flags=flags, prot=mmap.PROT_READ)
            except (OSError, ValueError) as cause:
                raise ResourceExhaustedError(
                    f"{self.size} bytes of another process cannot be mapped: {cause}"
                ) from None
            self._memory = np.frombuffer(found, np.uint8)
            self.close()
        return self._memory

    def close(self) -> None:
        """Give up the file; what was mapped stays as long as somebody has it."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
