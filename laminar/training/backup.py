"""Backup: when the state of a training is written, and how it goes on from there."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from laminar.callbacks import BackupAndRestore, CallbackList
from laminar.engine.errors import InvalidArgumentError, LaminarError
from laminar.engine.saving import BackgroundWriter
from laminar.engine.source import warn

from . import training_state
from .data import Epochs
from .state_files import StateFiles, tensors_of

_SECONDS = 60.0  # by itself, a state is written after so long inside an epoch
_SHARE = 20  # and, between epochs, so many times less often than writing takes


class Backup:
    """Writes the state of a training beside its steps, and reads it again.

    Args:
        folder: for the files.
        every: number of steps between two files; None for one after each epoch, where `_SHARE`
            allows, and one after every minute.
        each_epoch: whether one is written after each epoch, however short.
        keep: how many files stay.
        is_deleted: whether the files go when training has ended.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: int | None = None,
        each_epoch: bool = False,
        keep: int = 3,
        is_deleted: bool = False,
    ) -> None:
        self._files = StateFiles(folder, keep)
        self._every = every
        self._each_epoch = each_epoch
        self._is_deleted = is_deleted
        self._writer = BackgroundWriter()
        self._steps = 0  # of the whole training
        self._steps_written = 0
        self._written = time.monotonic()
        self._free = 0.0  # from when on the next one may be written without slowing training down

    def read(self) -> dict[str, Any] | None:
        """The newest state; None when training begins."""
        state = self._files.latest(training_state.check)
        if state is not None:
            self._steps = self._steps_written = int(state["steps"])
        return state

    def step_is_done(self) -> bool:
        """Count a step; says whether a state is to be written after it."""
        self._steps += 1
        if self._every is not None:
            return self._steps - self._steps_written >= self._every
        return not self._each_epoch and time.monotonic() - self._written >= _SECONDS

    def is_due_at_epoch_end(self) -> bool:
        """Whether a state is to be written between two epochs."""
        if self._every is not None:
            return self._steps - self._steps_written >= self._every
        is_free = not self._writer.is_busy and time.monotonic() >= self._free
        return self._each_epoch or is_free

    def write(
        self,
        model: Any,
        passes: Epochs,
        listeners: CallbackList,
        *,
        epoch: int,
        step: int,
        logs: Mapping[str, Any],
    ) -> None:
        """Begin to write the state after `step` steps of `epoch`; `logs` are of the last."""
        begin = time.monotonic()
        state = training_state.take(model, passes, listeners.callbacks)
        state |= {"epoch": epoch, "step": step, "steps": self._steps, "logs": dict(logs)}
        self._writer.submit(partial(self._store, self._steps, tensors_of(state), begin), "backup")
        self._steps_written = self._steps
        self._written = time.monotonic()

    def _store(self, number: int, tensors: Mapping[str, Any], begin: float) -> None:
        self._files.store(number, tensors)
        now = time.monotonic()
        self._free = now + _SHARE * (now - begin)

    def end(self) -> None:
        """Training has ended: what has begun is written to the end.

        Raises:
            PermissionDeniedError, ResourceExhaustedError: it cannot be written.
        """
        self._writer.wait()
        if self._is_deleted:
            self._files.delete()

    def interrupted(self) -> None:
        """An error ends training: what has begun is written; a failure is said, not raised."""
        try:
            self._writer.wait()
        except LaminarError as error:
            warn(f"fit: the last state was not written: {error.message}")


def make_backup(resume: Any, listeners: CallbackList, *, is_first: bool = True) -> Backup | None:
    """The backup that `fit` was told of: by `resume=`, or by a BackupAndRestore callback.

    Args:
        resume: as `fit` got it.
        listeners: the callbacks.
        is_first: whether this process writes it; for the others there is none.

    Raises:
        InvalidArgumentError: both, or several.
    """
    given = [c for c in listeners if isinstance(c, BackupAndRestore)]
    if len(given) + (resume is not None) > 1:
        raise InvalidArgumentError(
            "fit: give resume= or one BackupAndRestore, not several",
            remedy="leave the others out",
        )
    if not is_first:
        return None
    if given:
        (callback,) = given
        every = None if callback.save_freq == "epoch" else int(callback.save_freq)
        return Backup(
            callback.backup_dir,
            every=every,
            each_epoch=every is None,
            keep=2 if callback.double_checkpoint else 1,
            is_deleted=callback.delete_checkpoint,
        )
    if resume is None:
        return None
    if not isinstance(resume, str | os.PathLike):
        raise InvalidArgumentError(
            f"fit: resume must be the name of a folder, got {resume!r}",
            remedy='resume="training"',
        )
    return Backup(resume)
