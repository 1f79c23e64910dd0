"""Reading at a place: bytes in memory, or a stretch of a file, with every read checked."""

from __future__ import annotations

import os
from typing import BinaryIO, Protocol

from .limits import refused


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

    def _fill(self, offset: int, target: memoryview) -> None:
        # One system call reads at most 2 GiB, and a file may shrink while it is read.
        while target:
            count = os.preadv(self._file.fileno(), [target], self._start + offset)
            if count == 0:
                raise refused(f"{self.name}: the file ends at {offset} of {self.size} bytes")
            offset += count
            target = target[count:]
