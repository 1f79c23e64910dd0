"""Waiting without a thread: who waits leaves a function to call, and may give up.

`done(result, error)` is called once, outside of all locks, by the thread that made the result
possible; one of the two is None. A `Ticket` stands for something that waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from ..errors import DeadlineExceededError, LaminarError

Done: TypeAlias = Callable[[Any, LaminarError | None], None]
# What became ready under a lock, to be reported when it is released: (done, result, error).
Ready: TypeAlias = Sequence[tuple[Done, Any, LaminarError | None]]


class Ticket(Protocol):
    """Something that waits."""

    def cancel(self, error: LaminarError) -> bool:
        """Give up: `done` gets `error`. False when it has been called already."""


def tell(ready: Ready) -> None:
    """Call each `done`; one that raises does not keep the others waiting."""
    failure: BaseException | None = None
    for done, result, error in ready:
        try:
            done(result, error)
        except BaseException as cause:  # raised below, after the others
            failure = failure or cause
    if failure is not None:
        raise failure


class Blocked:
    """A thread that waits for one `done`: what an eager call does.

    `done` may come from any thread; `wait` is called by one.
    """

    # `_gate` is held until `done` is called: a lock alone does for one waiter and one call.
    __slots__ = ("_error", "_gate", "_result")

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._result: Any = None
        self._error: LaminarError | None = None

    def wait(self, start: Callable[[Done], Ticket | None], timeout: float | None = None) -> Any:
        """Begin with `start(done)`, and give the result.

        An interrupt (control-C) cancels what waits, and so does the end of the time.

        Raises:
            DeadlineExceededError: `timeout` seconds have passed.
            LaminarError: what `done` was given.
        """
        gate = self._gate
        gate.acquire()
        ticket = start(self._done)
        if ticket is not None:
            try:
                if not gate.acquire(timeout=-1 if timeout is None else max(timeout, 0)):
                    ticket.cancel(
                        DeadlineExceededError(
                            f"waited for {timeout} seconds",
                            remedy="allow more time, or look why the other side is stuck",
                        )
                    )
                    gate.acquire()  # either the result or this error is on its way
            except BaseException:
                ticket.cancel(DeadlineExceededError("the wait was interrupted"))
                raise
        error = self._error
        if error is not None:
            # A new one: made here, it names the line of who waits, not of who closed the queue.
            raise type(error)(error.message, remedy=error.remedy)
        return self._result

    def _done(self, result: Any, error: LaminarError | None) -> None:
        self._result, self._error = result, error
        self._gate.release()


def blocking(start: Callable[[Done], Ticket | None], timeout: float | None = None) -> Any:
    """The result of what `start(done)` begins; see `Blocked.wait`."""
    return Blocked().wait(start, timeout)
