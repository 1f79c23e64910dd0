"""The backup of a training by several processes: worker 0 writes and reads, for all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from laminar.callbacks import CallbackList
from laminar.distribute import MultiWorker
from laminar.engine.graph import as_dtype

from .backup import Backup
from .data import Epochs
from .state_files import decode, encode


class WorkerBackup:
    """A `Backup` that worker 0 has, to all workers.

    Args:
        backup: that of worker 0; None in the others.
        strategy: the workers.
    """

    def __init__(self, backup: Backup | None, strategy: MultiWorker) -> None:
        self._backup = backup
        self._strategy = strategy

    def read(self) -> dict[str, Any] | None:
        """The newest state, as worker 0 finds it; None when training begins."""
        state = None if self._backup is None else self._backup.read()
        arrays: list[Any] = []
        text = json.dumps(encode(state, arrays), allow_nan=False)
        specs = [[str(a.dtype), list(a.shape)] for a in arrays]
        message = json.dumps([text, specs]).encode()
        given = json.loads(self._strategy.message_of_first(message))
        if self._backup is None:
            arrays = [np.empty(shape, as_dtype(dtype).numpy) for dtype, shape in given[1]]
        self._strategy.group.broadcast(arrays)
        if self._backup is not None:
            return state
        found: dict[str, Any] | None = decode(json.loads(given[0]), arrays)
        if found is not None and not self._strategy.has_same_data:
            # It stood elsewhere in data of its own: it counts the batches up to there.
            found["data"]["position"]["place"] = None
        return found

    def step_is_done(self) -> bool:
        """Count a step; says whether a state is to be written after it."""
        return self._agreed(self._backup is not None and self._backup.step_is_done())

    def is_due_at_epoch_end(self) -> bool:
        """Whether a state is to be written between two epochs."""
        return self._agreed(self._backup is not None and self._backup.is_due_at_epoch_end())

    def _agreed(self, is_due: bool) -> bool:
        """Whether to write, where it takes all workers to have whole values."""
        strategy = self._strategy
        return bool(strategy.of_first(int(is_due))) if strategy.keeps_pieces else is_due

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
        """As that of `Backup`."""
        if self._backup is not None:
            self._backup.write(model, passes, listeners, epoch=epoch, step=step, logs=logs)

    def end(self) -> None:
        """As that of `Backup`."""
        if self._backup is not None:
            self._backup.end()

    def interrupted(self) -> None:
        """As that of `Backup`."""
        if self._backup is not None:
            self._backup.interrupted()
