"""Things that are tried until the state allows them, where to wait is to leave a function.

State of `Attempts`, guarded by `_lock`, as is the state that the attempts are about:
    _waiting: those who could not yet do what they want, in order of arrival. Nobody is among them
        which the state allows to go on.
No lock is held while someone is notified.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import LaminarError
from .waiting import Done, tell

# Does something and gives its result, or gives None and changes nothing; may raise LaminarError.
Attempt: TypeAlias = Callable[[], tuple[Any] | None]


class _Waiter:
    __slots__ = ("_attempts", "attempt", "done")

    def __init__(self, attempts: Attempts, attempt: Attempt, done: Done) -> None:
        self._attempts = attempts
        self.attempt = attempt
        self.done = done

    def cancel(self, error: LaminarError) -> bool:
        """Give up waiting; False when it is over already."""
        return self._attempts.cancel(self, error)


class Attempts:
    """What is tried again whenever the state has changed. Abstract: the state is a subclass's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Waiter] = []

    @property
    def num_waiting(self) -> int:
        """How many wait."""
        with self._lock:
            return len(self._waiting)

    def begin(self, attempt: Attempt, done: Done) -> _Waiter | None:
        """Do something as soon as the state allows it; `done` gets its result, or its error."""
        waiter = _Waiter(self, attempt, done)
        with self._lock:
            self._waiting.append(waiter)
            ready = self._retry(waiter)
            waits = waiter in self._waiting
        tell(ready)
        return waiter if waits else None

    def change(self, action: Callable[[], Any]) -> Any:
        """The result of `action()`, which changes the state and need not wait."""
        with self._lock:
            result = action()
            ready = self._retry(None)
        tell(ready)
        return result

    def look(self, question: Callable[[], Any]) -> Any:
        """The result of `question()`, which leaves the state as it is."""
        with self._lock:
            return question()

    def _retry(self, first: _Waiter | None) -> list[tuple[Done, Any, LaminarError | None]]:
        """Let those go on that the state allows to, until none is left; gives whom to notify."""
        ready: list[tuple[Done, Any, LaminarError | None]] = []
        candidates = [*self._waiting] if first is None else [first]
        while candidates:
            moved = False
            for waiter in candidates:
                try:
                    found = waiter.attempt()
                except LaminarError as error:
                    self._waiting.remove(waiter)
                    ready.append((waiter.done, None, error))
                    continue
                if found is not None:
                    self._waiting.remove(waiter)
                    ready.append((waiter.done, found[0], None))
                    moved = True
            candidates = [*self._waiting] if moved else []
        return ready

    def cancel(self, waiter: _Waiter, error: LaminarError) -> bool:
        """Have one give up waiting; False when it is over already."""
        with self._lock:
            if waiter not in self._waiting:
                return False
            self._waiting.remove(waiter)
        tell([(waiter.done, None, error)])
        return True
