"""Backup: when the state of a training is written, and how it goes on from there."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from laminar.callbacks import BackupAndRestore, CallbackList
from laminar.engine.errors import InvalidArgumentError

from . import training_state
from .data import Epochs
from .state_files import StateFiles

_SECONDS = 60.0  # by itself, a state is written after so long inside an epoch
_SHARE = 20  # and, between epochs, so many times less often than writing takes


class Backup:
    """Writes the state of a training, and reads it again.

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
        return self._each_epoch or time.monotonic() >= self._free

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
        """Write the state after `step` steps of `epoch`, with the values of the last step."""
        begin = time.monotonic()
        state = training_state.take(model, passes, listeners.callbacks)
        state |= {"epoch": epoch, "step": step, "steps": self._steps, "logs": dict(logs)}
        self._files.write(self._steps, state)
        self._steps_written = self._steps
        self._written = time.monotonic()
        self._free = self._written + _SHARE * (self._written - begin)

    def end(self) -> None:
        """Training has ended."""
        if self._is_deleted:
            self._files.delete()


def make_backup(resume: Any, listeners: CallbackList) -> Backup | None:
    """The backup that `fit` was told of: by `resume=`, or by a BackupAndRestore callback.

    Raises:
        InvalidArgumentError: both, or several.
    """
    given = [c for c in listeners if isinstance(c, BackupAndRestore)]
    if len(given) + (resume is not None) > 1:
        raise InvalidArgumentError(
            "fit: give resume= or one BackupAndRestore, not several",
            remedy="leave the others out",
        )
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
