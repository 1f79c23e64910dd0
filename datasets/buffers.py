"""Buffers: memory for batches, used again once nobody holds the batch."""

from __future__ import annotations

import sys
from typing import Any, Final

import numpy as np

# Small arrays are as quickly made as found.
_WORTH_BYTES: Final = 1 << 14
_MOST: Final = 4
_MOST_SHAPES: Final = 8


def _references(buffers: list[Any]) -> list[int]:
    return [sys.getrefcount(buffer) for buffer in buffers]


# What is counted for a buffer that nobody else holds.
_OWN: Final = _references([np.empty(1)])[0]


class Buffers:
    """Selections of rows in memory that is used again.

    A batch that somebody still holds, or a view of it, is left alone: CPython counts the
    references to its array. Fresh memory costs more than filling it, as each page of it has to be
    cleared and mapped first.
    """

    def __init__(self) -> None:
        self._held: dict[Any, list[Any]] = {}

    def take(self, array: Any, rows: Any) -> Any:
        """`array[rows]`."""
        size = len(rows)
        if array.dtype == object or array.nbytes * size < _WORTH_BYTES * len(array):
            return array.take(rows, 0)
        # mode "clip" alone writes to `out` directly; the indices are in range.
        return array.take(rows, 0, self._free((size, *array.shape[1:]), array.dtype), "clip")

    def _free(self, shape: tuple[int, ...], dtype: Any) -> Any:
        if len(self._held) > _MOST_SHAPES:
            self._held.clear()
        held = self._held.setdefault((shape, dtype), [])
        for buffer, count in zip(held, _references(held), strict=True):
            if count == _OWN:
                return buffer
        fresh = np.empty(shape, dtype)
        if len(held) < _MOST:
            held.append(fresh)
        return fresh
