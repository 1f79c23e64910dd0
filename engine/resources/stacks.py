"""Stacks: what was pushed last is popped first."""

from __future__ import annotations

import threading

from ..errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from .batches import Array


class Stack:
    """Arrays, the last on top; `_arrays` is guarded by `_lock`.

    Args:
        name: for errors.
        max_size: how many arrays fit; negative for any number.
    """

    def __init__(self, name: str, max_size: int = -1) -> None:
        self.name = name
        self._max_size = max_size
        self._arrays: list[Array] = []
        self._closed = False
        self._lock = threading.Lock()

    def _check_open(self) -> None:
        if self._closed:
            raise FailedPreconditionError(f"stack {self.name!r} has been closed")

    def push(self, array: Array) -> None:
        """Put an array on top.

        Raises:
            ResourceExhaustedError: it is full.
        """
        with self._lock:
            self._check_open()
            if 0 <= self._max_size <= len(self._arrays):
                raise ResourceExhaustedError(
                    f"stack {self.name!r} is full: it has room for {self._max_size}"
                )
            self._arrays.append(array)

    def pop(self) -> Array:
        """Take the array on top.

        Raises:
            InvalidArgumentError: it is empty.
        """
        with self._lock:
            self._check_open()
            if not self._arrays:
                raise InvalidArgumentError(f"stack {self.name!r} is empty")
            return self._arrays.pop()

    def close(self) -> None:
        """Drop what is on it; nothing can be done with it any more."""
        with self._lock:
            self._closed = True
            self._arrays.clear()

    def __repr__(self) -> str:
        return f"stack {self.name!r}"
