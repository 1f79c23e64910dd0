"""CheckpointManager: the checkpoints of a folder, of which the last are kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..checkpoint import get_checkpoint_state
from ..checkpoint.state import newest_first
from ..errors import DataLossError, InvalidArgumentError
from ..graph.scopes import Runner as Session
from ..io.places import no_place, path_of
from ..source import warn
from .background import BackgroundWriter
from .checkpoint import Checkpoint
from .retention import Retention


class CheckpointManager:
    """Writes checkpoints into a folder, and removes those that are too many.

    Args:
        checkpoint: what is saved.
        directory: the folder, made if it is not there. What an earlier process wrote into it is
            taken over.
        max_to_keep: how many of the last are kept; None for all.
        keep_checkpoint_every_n_hours: of those that would be removed, one of so many hours stays.
        checkpoint_name: the first part of the names.
        step_counter: a variable that counts steps, for `checkpoint_interval`.
        checkpoint_interval: `save` does nothing until so many steps after the last one.
        init_fn: what `restore_or_initialize` calls where there is no checkpoint.

    Raises:
        InvalidArgumentError: `max_to_keep` below 1, or an interval without a counter.
        DataLossError: the state file of the folder is damaged.

    Examples:
        >>> manager = engine.CheckpointManager(engine.Checkpoint(v=laminar.Variable(1.0)), "run", 2)
        >>> for _ in range(3):
        ...     path = manager.save()
        >>> manager.checkpoints
        ['run/ckpt-2', 'run/ckpt-3']
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise InvalidArgumentError(
                f"CheckpointManager: max_to_keep is at least 1, got {max_to_keep}",
                remedy="give None to keep all",
            )
        if checkpoint_interval is not None and step_counter is None:
            raise InvalidArgumentError(
                "CheckpointManager: checkpoint_interval needs a step_counter"
            )
        self._checkpoint = checkpoint
        self._directory = path_of("CheckpointManager", directory)
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step: int | None = None
        try:
            os.makedirs(self._directory, exist_ok=True)
        except OSError as cause:
            raise no_place(f"CheckpointManager: {directory} cannot be made", cause) from cause
        state = get_checkpoint_state(self._directory)
        preserved = 0.0 if state is None else state.last_preserved_timestamp
        self._retention = Retention(max_to_keep, keep_checkpoint_every_n_hours, preserved)
        if state is not None:
            self._retention.recover(state.all_model_checkpoint_paths)

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint(self) -> Checkpoint:
        """What is saved."""
        return self._checkpoint

    @property
    def checkpoint_interval(self) -> int | None:
        """The least number of steps between two checkpoints."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of those that are kept, oldest first."""
        return [prefix for prefix, _ in self._retention.kept]

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the newest, None if there is none."""
        return self.checkpoints[-1] if self._retention.kept else None

    def save(
        self,
        checkpoint_number: Any = None,
        check_interval: bool = True,
        session: Session | None = None,
        *,
        background: BackgroundWriter | None = None,
    ) -> str | None:
        """Write a checkpoint.

        Args:
            checkpoint_number: stands behind its prefix; by default that of `save_counter`.
            check_interval: whether to do nothing when the last one is too few steps ago.
            session: has the values of variables that belong to a graph.
            background: writes the files beside what follows; the values are those of now.

        Returns:
            its prefix; None when nothing was done.

        Raises:
            PermissionDeniedError, ResourceExhaustedError: the files cannot be written; those that
                are there stay.
        """
        step = None if self._step_counter is None else int(self._step_counter)
        if check_interval and self._interval is not None and self._last_step is not None:
            assert step is not None
            if step < self._last_step + self._interval:
                return None
        count = self._checkpoint.counted(1) + 1
        try:
            number = count if checkpoint_number is None else int(checkpoint_number)
            prefix = f"{self._prefix}-{number}"
            self._checkpoint.write(
                prefix,
                session,
                background=background,
                then=lambda: self._retention.add(prefix, folder=self._directory),
            )
        except BaseException:
            self._checkpoint.counted(-1)
            raise
        self._last_step = step
        return prefix

    def restore_or_initialize(self) -> str | None:
        """Restore the newest checkpoint; without one, call `init_fn`.

        One that is damaged is passed over, with a warning, for the one before it.

        Returns:
            the prefix of what was restored; None if nothing was.

        Raises:
            DataLossError: all of them are damaged.
            ShapeError, DTypeError: the objects do not fit the checkpoint.
        """
        state = get_checkpoint_state(self._directory)
        damage: DataLossError | None = None
        for prefix in newest_first(state) if state is not None else []:
            try:
                self._checkpoint.restore(prefix)
            except DataLossError as error:
                warn(f"the checkpoint {prefix} is passed over: {error.message}")
                damage = error
                continue
            if self._step_counter is not None:
                self._last_step = int(self._step_counter)
            return prefix
        if damage is not None:
            raise damage
        if self._init_fn is not None:
            self._init_fn()
        return None
