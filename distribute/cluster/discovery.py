"""Which devices the tasks of a cluster have: each is asked, until all have answered."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    LaminarError,
    Origin,
    UnavailableError,
)

from ..wire import with_origin
from .messages import messages
from .peers import Peer, Reply
from .worker import check_version

_log = logging.getLogger("laminar.distribute")

_TELL_SECONDS = 10.0  # how often it is said who has not answered yet
_TRY_SECONDS = 10.0  # for one answer
_PAUSE_SECONDS = 0.25  # before a task that could not be reached is asked again


class Discovery:
    """Asks tasks for their devices.

    `_found[name]` is an answer, `_error` the first error that waiting does not mend; guarded by
    `_changed`.

    Args:
        peers: the workers by the names of their tasks.
    """

    def __init__(self, peers: Mapping[str, Peer]) -> None:
        self._peers = peers
        self._changed = threading.Condition()
        self._found: dict[str, Any] = {}
        self._error: LaminarError | None = None
        self._why: dict[str, LaminarError] = {}

    def wait(self, timeout_seconds: float) -> dict[str, Any]:
        """The GetStatusResponse of each task.

        Raises:
            UnavailableError: some have not answered in time; it names them.
            LaminarError: a task refused.
        """
        until = time.monotonic() + timeout_seconds
        tell = time.monotonic() + _TELL_SECONDS
        for name in self._peers:
            self._ask(name)
        with self._changed:
            while self._error is None and len(self._found) < len(self._peers):
                now = time.monotonic()
                if now >= until:
                    self._error = self._too_late(timeout_seconds)
                    break
                if now >= tell:
                    tell = now + _TELL_SECONDS
                    for name in self._missing():
                        _log.warning(
                            "CreateSession still waiting for response from worker: %s", name
                        )
                self._changed.wait(min(until, tell) - now)
            if self._error is not None:
                raise self._error
            return dict(self._found)

    def cancel(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._error = self._error or CancelledError("the session was given up")
            self._changed.notify_all()

    def _missing(self) -> list[str]:
        return [name for name in self._peers if name not in self._found]

    def _too_late(self, seconds: float) -> UnavailableError:
        missing = self._missing()
        reasons = {e.message for n, e in self._why.items() if n in missing}
        return UnavailableError(
            f"no answer in {seconds:g} s from {', '.join(missing)}"
            + (f": {'; '.join(sorted(reasons))}" if reasons else ""),
            remedy="start these tasks, or leave them out with SessionConfig(device_filters=...)",
        )

    def _ask(self, name: str) -> None:
        def done(reply: Reply | None, error: LaminarError | None) -> None:
            if reply is not None:
                try:
                    check_version(reply.message.wire_version, name)
                    _check_name(name, reply.message.task)
                except LaminarError as wrong:
                    error = wrong
            with self._changed:
                if self._error is not None:
                    return
                if error is None:
                    assert reply is not None
                    self._found[name] = reply.message
                elif isinstance(error, UnavailableError | DeadlineExceededError):
                    self._why[name] = error
                    timer = threading.Timer(_PAUSE_SECONDS, self._ask, [name])
                    timer.daemon = True
                    timer.start()
                    return
                else:
                    self._error = with_origin(error, Origin(name))
                self._changed.notify_all()

        with self._changed:
            if self._error is not None:
                return
        request = messages().GetStatusRequest()
        self._peers[name].begin("GetStatus", request, timeout_seconds=_TRY_SECONDS, done=done)


def _check_name(asked: str, found: str) -> None:
    if asked != found:
        raise AbortedError(
            f"who answers at the address of {asked} is {found}",
            remedy="give all servers the same cluster, each its own job and task",
        )
