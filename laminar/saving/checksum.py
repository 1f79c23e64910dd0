"""The CRC-32 of many bytes, computed by threads while their owner writes or uses them.

State: `_next` and `_last` are the first and the last segment that nobody has taken yet; they, and
`_found`, the sums of those that are done, change under `_lock` alone.
"""

from __future__ import annotations

import sys
import threading
import zlib
from collections.abc import Callable, Iterator

from laminar.engine.late import later

from .window import Window

Pieces = Callable[[int, int], Iterator[memoryview]]

# Heavy: it brings the code generator, of which all is loaded before this part of it.
_native = later("laminar.engine.compiler.native.checksums", "crc32")
_combined = later("laminar.engine.io.crc", "combined")
_CRC32 = 0xEDB88320  # the polynomial of ISO 3309
_SEGMENT = 1 << 22  # bytes that one thread takes at a time
_PIECE = 1 << 20  # and reads at a time from a file
_MANY = 1 << 29  # bytes for which it pays to load the code generator


class Checksum:
    """Computes the CRC-32 of `size` bytes in a thread of its own; `result` helps it.

    Args:
        size: how many bytes there are.
        pieces: gives those from one place to another, one stretch after the other; it is called by
            several threads at once.
    """

    def __init__(self, size: int, pieces: Pieces) -> None:
        self._total = size
        self._pieces = pieces
        self._add = _fastest(size)
        self._lock = threading.Lock()
        self._found: dict[int, int] = {}
        self._next, self._last = 0, -(-size // _SEGMENT) - 1
        self._stopped = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        if size > _SEGMENT:
            self._thread = threading.Thread(target=self._run, name="laminar-checksum", daemon=True)
            self._thread.start()

    def result(self) -> int:
        """The sum; waits for it, and helps meanwhile. Errors of `pieces` are raised here."""
        self._work(from_front=False)
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        first, *rest = sorted(self._found) or [0]
        total = self._found.get(first, 0)
        for index in rest:
            total = _combined(total, self._found[index], self._size(index), _CRC32)
        return total

    def stop(self) -> None:
        """Give up, and wait for the thread to end."""
        self._stopped = True
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._work(from_front=True)
        except Exception as error:  # it is raised where `result` is called
            self._error = error

    def _work(self, *, from_front: bool) -> None:
        while (index := self._take(from_front)) is not None:
            begin = index * _SEGMENT
            found = 0
            for piece in self._pieces(begin, begin + self._size(index)):
                found = self._add(piece, found)
            with self._lock:
                self._found[index] = found

    def _take(self, from_front: bool) -> int | None:
        """A segment that nobody has taken yet."""
        with self._lock:
            if self._stopped or self._next > self._last:
                return None
            if from_front:
                self._next += 1
                return self._next - 1
            self._last -= 1
            return self._last + 1

    def _size(self, index: int) -> int:
        return min(_SEGMENT, self._total - index * _SEGMENT)


def pieces_of(window: Window) -> Pieces:
    """The bytes of a window, read into one buffer piece by piece."""

    def pieces(begin: int, end: int) -> Iterator[memoryview]:
        buffer = memoryview(bytearray(min(_PIECE, end - begin)))
        for offset in range(begin, end, _PIECE):
            piece = buffer[: min(_PIECE, end - offset)]
            window.read_into(offset, piece)
            yield piece

    return pieces


def _fastest(size: int) -> Callable[[memoryview, int], int]:
    """Native code where the code generator is loaded, or there is enough to do to load it."""
    if size < _SEGMENT or (size < _MANY and "laminar.engine.compiler" not in sys.modules):
        return zlib.crc32
    return _native
