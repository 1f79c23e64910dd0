"""Checkpoints and their state files, where TensorFlow 1 has other arguments."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from laminar import engine
from laminar.engine.checkpoint import CheckpointState, remove_checkpoint, write_checkpoint_state

__all__ = ["remove_checkpoint"]


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """What the state file of a folder says: the newest checkpoint, and all, oldest first."""
    paths = list(all_model_checkpoint_paths or ())
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
    times = list(all_model_checkpoint_timestamps or ())
    return CheckpointState(
        model_checkpoint_path,
        paths,
        times if len(times) == len(paths) else [],
        last_preserved_timestamp or 0.0,
    )


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the state file of a folder."""
    state = generate_checkpoint_state_proto(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )
    write_checkpoint_state(save_dir, state, latest_filename=latest_filename)


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[str]) -> list[float]:
    """When the checkpoints were written; those that are not there are left out."""
    paths = [f"{prefix}.index" for prefix in checkpoint_prefixes]
    return [os.path.getmtime(path) for path in paths if os.path.exists(path)]


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """The newest checkpoint of a folder, and each one that comes to be the newest.

    Args:
        checkpoint_dir: the folder.
        min_interval_secs: from one to the next.
        timeout: after so many seconds without a new one it ends; None waits for ever.
        timeout_fn: asked then: whether it ends.
    """
    last: str | None = None
    while True:
        begin = time.monotonic()
        newest = engine.latest_checkpoint(checkpoint_dir)
        while newest is None or newest == last:
            if timeout is not None and time.monotonic() - begin >= timeout:
                if timeout_fn is None or timeout_fn():
                    return
                begin = time.monotonic()
            time.sleep(0.05)
            newest = engine.latest_checkpoint(checkpoint_dir)
        yield newest
        last = newest
        time.sleep(max(0.0, min_interval_secs - (time.monotonic() - begin)))
