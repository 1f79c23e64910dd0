"""Which checkpoints of a folder are kept, and the state file that names them.

A new one is named in the state file before older ones are removed: whenever the process is killed,
the file names checkpoints that are there, the newest among them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from ..checkpoint import CheckpointState, remove_checkpoint, write_checkpoint_state
from ..checkpoint.files import index_path, newest
from ..source import warn

_HOUR = 3600.0


class Retention:
    """Keeps the last checkpoints, and one of so many hours for ever.

    Args:
        max_to_keep: how many of the last are kept; None for all. With 0 all stay, and the state
            file names the newest alone, as it would grow for ever.
        keep_every_hours: of those that would be removed, one of so many hours stays; None for none.

    Attributes:
        kept: prefixes and times of writing of those that are kept for now, oldest first.
        last_preserved: when the last one was written that stays for ever, or when this began.
    """

    def __init__(
        self, max_to_keep: int | None, keep_every_hours: float | None, last_preserved: float = 0.0
    ) -> None:
        self.max_to_keep = max_to_keep
        self.keep_every_hours = keep_every_hours
        self.kept: list[tuple[str, float]] = []
        self.last_preserved = last_preserved or time.time()

    def add(
        self,
        prefix: str,
        *,
        folder: str | None = None,
        latest_filename: str | None = None,
        relative: bool = False,
    ) -> None:
        """Take in a checkpoint that has just been written, and remove those that are too many.

        Args:
            prefix: of the checkpoint.
            folder: where the state file is; None to write none.
            latest_filename: its name.
            relative: whether it has paths relative to it.

        Raises:
            PermissionDeniedError, ResourceExhaustedError: the state file cannot be written; nothing
                is removed then.
        """
        before = list(self.kept), self.last_preserved
        self.kept = [item for item in self.kept if item[0] != prefix]
        self.kept.append((prefix, time.time()))
        if self.max_to_keep == 0:
            self.kept = self.kept[-1:]
        dropped = self._too_many()
        if folder is not None:
            try:
                write_checkpoint_state(
                    folder, self.state(), latest_filename=latest_filename, relative=relative
                )
            except BaseException:
                self.kept, self.last_preserved = before
                raise
        for old in dropped:
            try:
                remove_checkpoint(old)
            except OSError as error:
                warn(f"the checkpoint {old} is not needed any more and cannot be removed: {error}")

    def _too_many(self) -> list[str]:
        dropped = []
        while self.max_to_keep and len(self.kept) > self.max_to_keep:
            prefix, written = self.kept.pop(0)
            hours = self.keep_every_hours
            if hours is not None and written - self.last_preserved > hours * _HOUR:
                self.last_preserved = written
            else:
                dropped.append(prefix)
        return dropped

    def state(self) -> CheckpointState:
        """What the state file is to say."""
        paths = [prefix for prefix, _ in self.kept]
        return CheckpointState(
            paths[-1] if paths else "",
            paths,
            [written for _, written in self.kept],
            self.last_preserved,
        )

    def recover(self, prefixes: Sequence[str]) -> None:
        """Take over checkpoints that an earlier process wrote; those that are gone are left out."""
        found = []
        for prefix in prefixes:
            try:
                found.append((prefix, os.stat(newest(index_path(prefix), is_next=True)).st_mtime))
            except OSError:
                continue
        self.kept = found
