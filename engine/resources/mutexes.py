"""A mutex that is waited for without a thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ..errors import LaminarError
from .waiting import Done, tell


class Lease:
    """The right to what a mutex guards, from its acquisition until it is released.

    `on_end` is called when it ends.
    """

    __slots__ = ("mutex", "on_end")

    def __init__(self, mutex: Mutex) -> None:
        self.mutex = mutex
        self.on_end: Callable[[], object] | None = None

    def release(self) -> bool:
        """Give it back; False when it was given back already."""
        return self.mutex.release(self)

    def __repr__(self) -> str:
        return f"lease of {self.mutex!r}"


class _Waiter:
    __slots__ = ("_mutex", "done")

    def __init__(self, mutex: Mutex, done: Done) -> None:
        self._mutex = mutex
        self.done = done

    def cancel(self, error: LaminarError) -> bool:
        """Give up waiting; False when the lease was given already."""
        return self._mutex.cancel(self, error)


class Mutex:
    """Held by one at a time; those who wait get it in order of arrival.

    `_holder` is the lease that is out, None when it is free; `_waiting` is empty then. Guarded by
    `_lock`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared: Any = None  # what graphs say of it
        self._lock = threading.Lock()
        self._holder: Lease | None = None
        self._waiting: deque[_Waiter] = deque()

    @property
    def is_held(self) -> bool:
        """Whether a lease is out."""
        return self._holder is not None

    def acquire(self, done: Done) -> _Waiter | None:
        """`done` gets a lease as soon as the mutex is free."""
        with self._lock:
            if self._holder is not None:
                waiter = _Waiter(self, done)
                self._waiting.append(waiter)
                return waiter
            lease = self._holder = Lease(self)
        done(lease, None)
        return None

    def release(self, lease: Lease) -> bool:
        """End a lease and give the next one out; False when it had ended already."""
        with self._lock:
            if self._holder is not lease:
                return False
            waiter = self._waiting.popleft() if self._waiting else None
            following = self._holder = None if waiter is None else Lease(self)
        if lease.on_end is not None:
            lease.on_end()
        if waiter is not None:
            tell([(waiter.done, following, None)])
        return True

    def cancel(self, waiter: _Waiter, error: LaminarError) -> bool:
        """Have one give up waiting; False when the lease was given already."""
        with self._lock:
            if waiter not in self._waiting:
                return False
            self._waiting.remove(waiter)
        tell([(waiter.done, None, error)])
        return True

    def __repr__(self) -> str:
        return f"mutex {self.name!r}"
