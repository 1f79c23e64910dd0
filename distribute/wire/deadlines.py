"""A thread that wakes when something has waited too long.

State of `Deadlines`: `_next` is when it wakes, guarded by `_changed`. A deadline is never taken
away: a thread that wakes for one that was met looks for the next.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable


class Deadlines:
    """Calls `expire` when the earliest deadline has come; there is no thread before the first.

    Args:
        expire: ends what has waited too long, and gives the next deadline; `inf` for none.
    """

    def __init__(self, expire: Callable[[], float]) -> None:
        self._expire = expire
        self._changed = threading.Condition()
        self._next = math.inf
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def add(self, end: float) -> None:
        """Wake at `end`, or before."""
        if end >= self._next:
            return
        with self._changed:
            self._next = min(end, self._next)
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(
                    target=self._run, name="laminar-deadlines", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and (left := self._next - time.monotonic()) > 0:
                    self._changed.wait(None if left == math.inf else left)
                if self._is_closed:
                    return
                self._next = math.inf
            found = self._expire()
            with self._changed:
                self._next = min(found, self._next)
