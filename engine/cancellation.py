"""Cancellation: who is notified when a step, or a session, gives up.

State of a `CancellationManager`, guarded by `_lock`:
    _callbacks[token]: what runs when it is cancelled, once, outside of the lock;
    _error: why it was cancelled, None before.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .errors import CancelledError, LaminarError


class CancellationManager:
    """A list of callbacks that run once, when something is cancelled.

    Managers nest: a step's manager is a child of its session's, and what cancels the parent cancels
    the child.

    Args:
        parents: the managers that this one is cancelled with; None for none.
    """

    def __init__(self, *parents: CancellationManager | None) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[LaminarError], object]] = {}
        self._error: LaminarError | None = None
        self._tokens = itertools.count()
        self._parents = [(p, p.register(self.cancel)) for p in parents if p is not None]
        for parent, token in self._parents:
            if token is None and self._error is None:
                self._error = parent.error

    @property
    def error(self) -> LaminarError | None:
        """Why it was cancelled, None while it is not."""
        return self._error

    def register(self, callback: Callable[[LaminarError], object]) -> int | None:
        """Have `callback(error)` called when this is cancelled.

        Returns:
            A token for `deregister`; None when it is cancelled already: the callback will not run.
        """
        with self._lock:
            if self._error is not None:
                return None
            token = next(self._tokens)
            self._callbacks[token] = callback
            return token

    def deregister(self, token: int | None) -> bool:
        """Forget a callback; False when it has run, is running, or was forgotten before."""
        with self._lock:
            return token is not None and self._callbacks.pop(token, None) is not None

    def cancel(self, error: LaminarError | None = None) -> bool:
        """Run all callbacks, once; a later call does nothing.

        Returns:
            Whether this call was the one that cancelled.
        """
        with self._lock:
            if self._error is not None:
                return False
            self._error = error if error is not None else CancelledError("the step was cancelled")
            callbacks, self._callbacks = list(self._callbacks.values()), {}
        for callback in callbacks:
            callback(self._error)
        return True

    def close(self) -> None:
        """Leave the parents: what this stood for has ended."""
        for parent, token in self._parents:
            parent.deregister(token)


class _Scope(threading.local):
    def __init__(self) -> None:
        self.manager: CancellationManager | None = None


_scope = _Scope()


@contextmanager
def cancelled_with(manager: CancellationManager) -> Iterator[None]:
    """A block whose steps, run by this thread, are cancelled when `manager` is."""
    before, _scope.manager = _scope.manager, manager
    try:
        yield
    finally:
        _scope.manager = before


def scope_manager() -> CancellationManager | None:
    """The manager of the block that this thread is in."""
    return _scope.manager
