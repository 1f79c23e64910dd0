"""What the session of each worker of `SyncReplicas` needs: its step, its end, and its errors."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Final

import numpy as np

from laminar.engine import (
    Coordinator,
    QueueRunner,
    RunOptions,
    Session,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from laminar.engine.errors import DeadlineExceededError, FailedPreconditionError, LaminarError

from .sync_parts import Parts

_log = logging.getLogger("laminar")

_LOOK_SECONDS: Final = 0.05  # between two looks whether the others have ended
_ANSWER_SECONDS: Final = 10.0  # in which the servers must answer to that
_WATCH_SECONDS: Final = 0.5  # between two looks why a step does not end


class SyncReplicasHook(SessionRunHook):
    """Brings a session to the step of the others, and tells them when it ends.

    A thread looks why a step does not end: `_began` is when it began, None outside of steps, and
    `_error` what the thread has found, which ends the training.
    """

    def __init__(
        self, parts: Parts, runner: QueueRunner, is_chief: bool, timeout_seconds: float
    ) -> None:
        self._parts, self._runner, self._is_chief = parts, runner, is_chief
        self._timeout = timeout_seconds
        self._began: float | None = None
        self._error: LaminarError | None = None

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        parts = self._parts
        # A step of this worker's that a failure has left waiting takes one token. What is drained
        # has been said by steps before the one that this worker then begins at.
        session.run(parts.wake_own)
        session.run(parts.drain)
        self._began = None
        if self._is_chief:
            session.run(parts.chief_init)
            session.run(parts.wake_others)
            self._runner.create_threads(session, coord, daemon=True, start=True)
        else:
            self._check_agreement(session)
            session.run(parts.local_init)
        thread = threading.Thread(
            target=self._watch, args=(session, coord), name="sync_replicas watch", daemon=True
        )
        coord.register_thread(thread)
        thread.start()

    def _check_agreement(self, session: Session) -> None:
        parts = self._parts
        end = time.monotonic() + self._timeout
        while True:
            required, total, checksum, _ = np.asarray(session.run(parts.settings)).tolist()
            if required:
                break
            if time.monotonic() > end:
                raise DeadlineExceededError(
                    f"SyncReplicas: worker {parts.replica} has waited {self._timeout:g} s for the "
                    "chief to begin",
                    remedy="look whether the chief runs, with make_session_run_hook(is_chief=True)",
                )
            time.sleep(_LOOK_SECONDS)
        if [required, total, checksum] == parts.told:
            return
        session.run(parts.refuse)
        if [required, total] != parts.told[:2]:
            raise FailedPreconditionError(
                f"SyncReplicas: worker {parts.replica} waits for {parts.required} of "
                f"{parts.total} gradients, the chief for {required} of {total}",
                remedy="give all workers the same numbers",
            )
        raise FailedPreconditionError(
            f"SyncReplicas: worker {parts.replica} gives other gradients than the chief waits for; "
            f"its own are of {parts.described}",
            remedy="run the same version of the program everywhere",
        )

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._began = time.monotonic()
        # The thread ends a step that takes too long, and knows why; unless a server does not answer
        seconds = self._timeout + 2 * _WATCH_SECONDS + _ANSWER_SECONDS
        return SessionRunArgs(options=RunOptions(timeout_in_ms=int(seconds * 1000)))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._began = None
        if self._error is not None:
            raise self._error

    def _watch(self, session: Session, coord: Coordinator) -> None:
        answer = RunOptions(timeout_in_ms=int(_ANSWER_SECONDS * 1000))
        while not coord.wait_for_stop(_WATCH_SECONDS):
            began = self._began
            if began is None or time.monotonic() - began < _WATCH_SECONDS:
                continue
            try:
                found = session.run(self._parts.look, options=answer)
                error = self._why(time.monotonic() - began, *found)
                if error is not None:
                    self._error = error
                    coord.request_stop(error)
                    session.run(self._parts.wake_own, options=answer)
            except LaminarError:
                continue  # what has become of the session, its own step tells

    def _why(self, seconds: float, settings: Any, step: Any, count: Any) -> LaminarError | None:
        """Why the step will not end; None if it may."""
        if settings[3]:
            return FailedPreconditionError(
                f"SyncReplicas: worker {settings[3] - 1} does not agree with the chief about what "
                "is trained",
                remedy="see the error of that worker; run the same program everywhere",
            )
        if seconds < self._timeout:
            return None
        return DeadlineExceededError(
            f"SyncReplicas: worker {self._parts.replica} has waited {self._timeout:g} s for step "
            f"{step} to end: {count} of {settings[0]} gradients have come",
            remedy="look whether all workers, and the chief, run, and for errors of theirs",
        )

    def end(self, session: Session) -> None:
        left = int(session.run(self._parts.leave))
        if self._is_chief and left < self._parts.total:
            _log.info("the chief has ended; it applies the gradients of the others until they do")
            self._wait_for_others(session)

    def _wait_for_others(self, session: Session) -> None:
        parts = self._parts
        last, since = -1, time.monotonic()
        while int(session.run(parts.leave)) < parts.total:
            now = int(session.run(parts.step))
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > self._timeout:
                _log.warning(
                    "SyncReplicas: no step for %g s while workers are left; the chief ends",
                    self._timeout,
                )
                return
            time.sleep(_LOOK_SECONDS)
