"""Reading at a place: bytes in memory, or a stretch of a file, with every read checked."""

from __future__ import annotations

import mmap
import os
from typing import BinaryIO, Protocol

from .limits import refused

# Where arrays begin in files, in bytes: once mapped they are at the beginning of a cache line, as
# native code takes them.
ALIGNMENT = 64


class Window(Protocol):
    """`size` bytes that can be read anywhere, from several threads at once."""

    name: str  # for messages
    size: int

    def read(self, offset: int, count: int) -> bytes:
        """The `count` bytes at `offset`; DataLossError where they are not all there."""
        ...

    def read_into(self, offset: int, target: memoryview) -> None:
        """Fill `target` (contiguous bytes) from `offset` on; DataLossError as above."""
        ...

    def mapped(self, offset: int, count: int) -> memoryview | None:
        """The `count` bytes at `offset` themselves, where the file is mapped; DataLossError as
        above."""
        ...


def check_range(window: Window, offset: int, count: int) -> None:
    """DataLossError unless `count` bytes stand at `offset`."""
    if offset < 0 or count < 0 or offset + count > window.size:
        raise refused(
            f"{window.name}: {count} bytes are said to stand at {offset}, "
            f"but there are only {window.size}"
        )


class BytesWindow:
    """A window over bytes in memory."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self.size = len(data)
        self._data = memoryview(data)

    def read(self, offset: int, count: int) -> bytes:
        check_range(self, offset, count)
        return bytes(self._data[offset : offset + count])

    def read_into(self, offset: int, target: memoryview) -> None:
        check_range(self, offset, len(target))
        target[:] = self._data[offset : offset + len(target)]

    def mapped(self, offset: int, count: int) -> None:
        """None: memory is not kept for a part of it."""


class FileWindow:
    """A window over `size` bytes of an open file, from `start` on; the file stays the caller's."""

    def __init__(self, file: BinaryIO, start: int, size: int, name: str) -> None:
        self.name = name
        self.size = size
        self._file = file
        self._start = start

    def read(self, offset: int, count: int) -> bytes:
        check_range(self, offset, count)
        data = bytearray(count)
        self._fill(offset, memoryview(data))
        return bytes(data)

    def read_into(self, offset: int, target: memoryview) -> None:
        check_range(self, offset, len(target))
        self._fill(offset, target)

    def mapped(self, offset: int, count: int) -> memoryview | None:
        """None: the file is read."""
        return None

    def _fill(self, offset: int, target: memoryview) -> None:
        # One system call reads at most 2 GiB, and a file may shrink while it is read.
        while target:
            count = os.preadv(self._file.fileno(), [target], self._start + offset)
            if count == 0:
                raise refused(f"{self.name}: the file ends at {offset} of {self.size} bytes")
            offset += count
            target = target[count:]


class MappedWindow(FileWindow):
    """A window whose bytes can be used where the system has them, without a copy.

    What `mapped` gives stays valid when the file is closed, or replaced by another. A file that is
    cut short while it is mapped ends the process that reads what is gone.
    """

    def __init__(self, file: BinaryIO, start: int, size: int, name: str) -> None:
        super().__init__(file, start, size, name)
        self._map: memoryview | None = None

    def mapped(self, offset: int, count: int) -> memoryview:
        """The `count` bytes at `offset`, read-only."""
        check_range(self, offset, count)
        if self._map is None:
            try:
                whole = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:  # ValueError: an empty file
                raise refused(f"{self.name}: it cannot be mapped: {error}") from error
            self._map = memoryview(whole)
        first = self._start + offset
        if first + count > len(self._map):
            raise refused(f"{self.name}: the file ends before byte {first + count}")
        return self._map[first : first + count]
