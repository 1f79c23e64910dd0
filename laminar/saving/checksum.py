"""The CRC-32 of a stretch of a file, computed by threads while its content is used.

State: `_next` and `_last` are the first and the last segment that nobody has taken yet; they, and
`_found`, the sums of those that are done, change under `_lock` alone.
"""

from __future__ import annotations

import threading
import zlib

from .limits import refused
from .window import Window

_SEGMENT = 1 << 23  # bytes that one thread takes at a time
_PIECE = 1 << 20  # and reads at a time
_POLYNOMIAL = 0xEDB88320  # of CRC-32 (ISO 3309), the lowest power in the highest bit
_ONE = 1 << 31  # the polynomial 1


class Checksum:
    """Computes the CRC-32 of a window in a thread of its own; `finish` helps it.

    Args:
        window: what is summed.
        expected: what the sum should be.
    """

    def __init__(self, window: Window, expected: int) -> None:
        self._window = window
        self._expected = expected
        self._lock = threading.Lock()
        self._found: dict[int, int] = {}
        self._next, self._last = 0, -(-window.size // _SEGMENT) - 1
        self._stopped = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="laminar-checksum", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait, and help meanwhile.

        Raises:
            DataLossError: the sum is not the expected one, or the file has changed.
        """
        self._work(from_front=False)
        self._thread.join()
        if self._error is not None:
            raise self._error
        total = 0
        for index in sorted(self._found):
            total = combined(total, self._found[index], self._size(index))
        if total != self._expected:
            raise refused(f"{self._window.name}: it does not have the checksum stored with it")

    def stop(self) -> None:
        """Give up, and wait for the thread to end."""
        self._stopped = True
        self._thread.join()

    def _run(self) -> None:
        try:
            self._work(from_front=True)
        except Exception as error:  # it is raised where `finish` is called
            self._error = error

    def _work(self, *, from_front: bool) -> None:
        piece = memoryview(bytearray(_PIECE))
        while (index := self._take(from_front)) is not None:
            begin = index * _SEGMENT
            end = begin + self._size(index)
            found = 0
            for offset in range(begin, end, _PIECE):
                part = piece[: min(_PIECE, end - offset)]
                self._window.read_into(offset, part)
                found = zlib.crc32(part, found)
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
        return min(_SEGMENT, self._window.size - index * _SEGMENT)


def combined(first: int, second: int, length: int) -> int:
    """The CRC-32 of two stretches of bytes from those of each; the second has `length` bytes.

    A CRC is the rest of a polynomial over GF(2); to put `length` bytes after it is to multiply it
    by x ** (8 * length).
    """
    power, square, bits = _ONE, _ONE >> 1, 8 * length
    while bits:
        if bits & 1:
            power = _product(power, square)
        square = _product(square, square)
        bits >>= 1
    return _product(power, first) ^ second


def _product(a: int, b: int) -> int:
    """a * b modulo the polynomial."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product
