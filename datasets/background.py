"""Background: items made by a thread, ahead of need, and kept in a queue of the engine."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from laminar.engine.errors import CancelledError, OutOfRangeError
from laminar.engine.resources.queues import FIFO
from laminar.engine.resources.waiting import blocking

# How long the end of a thread is waited for that is inside the user's code.
GRACE_SECONDS: Final = 10.0
# How often a thread that waits for room looks whether it was told to end. Mostly the queue tells
# it; not when the garbage collector finds, in that very thread, that nobody wants the items.
_LOOK_SECONDS: Final = 1.0


class _Shared:
    """What the thread and its consumer share.

    `may_take` guards `allowed`, how many items the thread may take still, and `is_stopped`; `error`
    is written before the queue is closed.
    """

    def __init__(self, capacity: int, allowed: int | None) -> None:
        self.queue = FIFO("items made ahead", capacity)
        self.may_take = threading.Condition()
        self.allowed = allowed
        self.is_stopped = False
        self.error: BaseException | None = None


class Background:
    """Calls `take` in a thread of its own; up to `capacity` results wait, and one in its hand.

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
        try:
            ((item,),) = blocking(shared.queue.dequeue)
        except OutOfRangeError:
            error, shared.error = shared.error, None
            raise StopIteration if error is None else error from None
        return item

    def allow(self, count: int) -> None:
        """Have the thread take so many more items."""
        with self._shared.may_take:
            self._shared.allowed = (self._shared.allowed or 0) + count
            self._shared.may_take.notify()

    def close(self) -> None:
        """End the thread, and wait for it."""
        self._end()


def _fill(shared: _Shared, take: Callable[[], Any]) -> None:
    """The work of the thread; it holds no reference to the Background, which may be dropped."""
    queue = shared.queue
    while _may_take(shared):
        try:
            item = take()
        except StopIteration:
            break
        except BaseException as error:  # raised by `get`
            shared.error = error
            break
        if not _stored(shared, item):
            return
        del item  # the consumer may want its memory again
    queue.close()


def _may_take(shared: _Shared) -> bool:
    """Wait until an item may be taken; False when the thread is to end."""
    if shared.allowed is not None:
        with shared.may_take:
            shared.may_take.wait_for(lambda: shared.allowed or shared.is_stopped)
            shared.allowed -= 1
    return not shared.is_stopped


def _stored(shared: _Shared, item: Any) -> bool:
    """Wait until the item is in the queue; False when the thread is to end."""
    gate = threading.Lock()  # held until the item is stored
    gate.acquire()
    failed: list[Any] = []

    def done(_: None, error: Any) -> None:
        failed.append(error)
        gate.release()

    waiting = shared.queue.enqueue((item,), done)
    while waiting is not None and not gate.acquire(timeout=_LOOK_SECONDS):
        if shared.is_stopped:
            waiting.cancel(CancelledError("nobody wants the item"))
    return failed[0] is None


def _stop(shared: _Shared, thread: threading.Thread) -> None:
    shared.is_stopped = True
    if thread is threading.current_thread():
        return  # it may be inside of the queue
    with shared.may_take:
        shared.may_take.notify()
    shared.queue.close(cancel_pending_enqueues=True)
    thread.join(GRACE_SECONDS)
    left = shared.queue.size
    if left:
        blocking(partial(shared.queue.dequeue_many, left))
