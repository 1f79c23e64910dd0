"""Background: items made by a thread, ahead of need."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

# How long the end of a thread is waited for that is inside the user's code.
GRACE_SECONDS: Final = 10.0


class _Shared:
    """What the thread and its consumer share; `change` guards all of it."""

    def __init__(self, capacity: int, allowed: int | None) -> None:
        self.capacity = capacity
        self.allowed = allowed
        self.change = threading.Condition()
        self.items: deque[Any] = deque()
        self.has_ended = False
        self.error: BaseException | None = None
        self.is_stopped = False


class Background:
    """Calls `take` in a thread of its own, and keeps up to `capacity` results.

    The thread ends when `take` raises, when `close` is called, when the object is dropped, and
    before the interpreter ends. What `take` raised is raised by `get`, after the items before it.

    Args:
        take: gives the next item; StopIteration ends.
        capacity: how many items are kept.
        allowed: how many items may be taken, until `allow` says more; None for any number.
    """

    def __init__(self, take: Callable[[], Any], capacity: int, allowed: int | None = None) -> None:
        self._shared = _Shared(capacity, allowed)
        self._thread = threading.Thread(
            target=_fill, args=(self._shared, take), name="laminar-prefetch", daemon=True
        )
        self._end = weakref.finalize(self, _stop, self._shared, self._thread)
        self._thread.start()

    def get(self) -> Any:
        """The next item, as soon as it is there; StopIteration at the end."""
        shared = self._shared
        with shared.change:
            while not shared.items:
                if shared.error is not None:
                    error, shared.error = shared.error, None
                    shared.has_ended = True
                    raise error
                if shared.has_ended or shared.is_stopped:
                    raise StopIteration
                shared.change.wait()
            item = shared.items.popleft()
            shared.change.notify_all()
            return item

    def allow(self, count: int) -> None:
        """Have the thread take so many more items."""
        with self._shared.change:
            self._shared.allowed = (self._shared.allowed or 0) + count
            self._shared.change.notify_all()

    def close(self) -> None:
        """End the thread, and wait for it."""
        self._end()


def _fill(shared: _Shared, take: Callable[[], Any]) -> None:
    """The work of the thread; it holds no reference to the Background, which may be dropped."""
    taken = 0
    while True:
        with shared.change:
            while not shared.is_stopped and (
                taken == shared.allowed or len(shared.items) >= shared.capacity
            ):
                shared.change.wait()
            if shared.is_stopped:
                return
        try:
            item = take()
        except StopIteration:
            break
        except BaseException as error:
            with shared.change:
                shared.error = error
                shared.change.notify_all()
            return
        taken += 1
        with shared.change:
            shared.items.append(item)
            shared.change.notify_all()
        del item  # the consumer may want its memory again
    with shared.change:
        shared.has_ended = True
        shared.change.notify_all()


def _stop(shared: _Shared, thread: threading.Thread) -> None:
    with shared.change:
        shared.is_stopped = True
        shared.items.clear()
        shared.change.notify_all()
    if thread is not threading.current_thread():
        thread.join(GRACE_SECONDS)
