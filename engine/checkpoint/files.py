"""The names of a checkpoint's files, and how new ones take the place of older ones.

    PREFIX.index                 which tensors there are, and where
    PREFIX.data-00000-of-00001   their bytes, one file for each shard
    PREFIX.meta                  the graph, of checkpoints that a Saver writes

New files are written under names that end in ".next", the index last. From then on they are the
checkpoint, also if the process is killed before they have their own names: who reads takes files
with the ending in the place of those without, and the next who writes renames them first. So there
is no moment at which the prefix names neither the old checkpoint nor the new one.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..io.atomic import sync_folder
from ..io.places import path_of

NEXT = ".next"


def index_path(prefix: str) -> str:
    """The index of a checkpoint."""
    return f"{prefix}.index"


def meta_path(prefix: str) -> str:
    """The graph of a checkpoint."""
    return f"{prefix}.meta"


def data_path(prefix: str, shard: int, num_shards: int) -> str:
    """A data file of a checkpoint."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


def newest(path: str, is_next: bool) -> str:
    """The name under which a file stands now."""
    return path + NEXT if is_next and os.path.exists(path + NEXT) else path


def files_of(prefix: str) -> list[str]:
    """All files that a checkpoint has, its index first: without that it is none."""
    is_data = re.compile(re.escape(prefix) + r"\.data-\d{5}-of-\d{5}(\.next)?").fullmatch
    data = filter(is_data, glob.glob(glob.escape(prefix) + ".data-*"))
    whole = [index_path(prefix) + NEXT, index_path(prefix), meta_path(prefix)]
    return [path for path in whole if os.path.exists(path)] + sorted(data)


def checkpoint_exists(prefix: str | os.PathLike[str]) -> bool:
    """Whether there is a checkpoint of that prefix.

    Examples:
        >>> path = engine.Checkpoint(v=laminar.Variable(1.0)).save("run/ckpt")
        >>> engine.checkpoint_exists(path), engine.checkpoint_exists("run/other")
        (True, False)
    """
    path = index_path(path_of("checkpoint", prefix))
    return os.path.isfile(path) or os.path.isfile(path + NEXT)


def remove_checkpoint(prefix: str) -> None:
    """Remove the files of a checkpoint; those that are not there do not matter.

    Raises:
        OSError: a file cannot be removed.
    """
    for path in files_of(prefix):
        with suppress(FileNotFoundError):
            os.unlink(path)


@contextmanager
def folder_lock(folder: str) -> Iterator[None]:
    """Let nobody else rename files of checkpoints in a folder meanwhile."""
    descriptor = os.open(folder or ".", os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # A child that was forked meanwhile has the file open too: to close ours would not do.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def roll_forward(prefix: str, num_shards: int | None = None) -> None:
    """Give files that are complete their names; the caller holds the folder's lock.

    Args:
        prefix: of the checkpoint.
        num_shards: how many data files it has, to remove those of an older one that has another
            number; None if that is not known.
    """
    if not os.path.exists(index_path(prefix) + NEXT):
        return
    for path in files_of(prefix):
        if path.endswith(NEXT) and ".data-" in path:
            os.replace(path, path.removesuffix(NEXT))
    os.replace(index_path(prefix) + NEXT, index_path(prefix))
    if num_shards is not None:
        ending = f"-of-{num_shards:05d}"
        for path in files_of(prefix):
            if ".data-" in path[len(prefix) :] and not path.endswith(ending):
                os.unlink(path)
    sync_folder(os.path.dirname(prefix))
