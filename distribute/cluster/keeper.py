"""Tells masters that the clients of their sessions live.

`_sessions` maps a session to when its master is to be told next; guarded by `_changed`. One thread
for all sessions of the process tells, and ends when there is none left.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import Protocol


class Kept(Protocol):
    """A session that a master keeps for a while only."""

    def keep(self) -> None:
        """Tell the master; does not wait for it."""


class Keeper:
    """See the head of this file."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sessions: weakref.WeakKeyDictionary[Kept, tuple[float, float]] = (
            weakref.WeakKeyDictionary()
        )
        self._thread: threading.Thread | None = None

    def add(self, session: Kept, lease_seconds: float) -> None:
        """Keep a session that its master gives so long."""
        pause = lease_seconds / 4
        with self._changed:
            self._sessions[session] = time.monotonic() + pause, pause
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="laminar-session-keeper", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def remove(self, session: Kept) -> None:
        """Keep it no longer."""
        with self._changed:
            self._sessions.pop(session, None)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._sessions:
                    self._thread = None
                    return
                now = time.monotonic()
                due = [s for s, (when, _) in self._sessions.items() if when <= now]
                for i in range(len(due)):
                    pause = self._sessions[due[i]][1]
                    self._sessions[due[i]] = now + pause, pause
                if not due:
                    first = min(when for when, _ in self._sessions.values())
                    self._changed.wait(first - now)
            while due:
                due.pop().keep()


KEEPER = Keeper()
