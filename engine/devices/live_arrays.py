"""Which arrays of a device are alive, for those who ask where its memory went.

State: `_live[id]` is a weak reference to each array, and what made it. An array may go at any time,
in any thread; a dictionary's own operations are the lock.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

_SHOWN = 5


class LiveArrays:
    """The arrays that are alive, each with a label."""

    def __init__(self) -> None:
        self._live: dict[int, tuple[weakref.ref[Any], str]] = {}

    def add(self, array: Any, label: str) -> None:
        """Know an array by what made it, from now until it goes."""
        key, live = id(array), self._live
        if key not in live:
            live[key] = weakref.ref(array, lambda _: live.pop(key, None)), label

    def largest(self, count: int = _SHOWN) -> list[str]:
        """The largest ones, in words: "float32[128, 64] of MatMul (32768 bytes)"."""
        found = []
        for reference, label in list(self._live.values()):
            array = reference()
            if array is not None and getattr(array, "base", None) is None:
                num_bytes = math.prod(array.shape) * array.dtype.itemsize
                found.append((num_bytes, _described(array, label)))
        found.sort(key=lambda x: -x[0])
        return [f"{what} ({num_bytes} bytes)" for num_bytes, what in found[:count]]


def _described(array: Any, label: str) -> str:
    shape = ", ".join(map(str, array.shape))
    return f"{array.dtype}[{shape}]" + (f" of {label}" if label else "")
