"""Folders to write into, and errors for places that cannot be written to."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from ..errors import (
    InvalidArgumentError,
    LaminarError,
    PermissionDeniedError,
    ResourceExhaustedError,
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, the user's share, a file


def no_place(what: str, cause: Exception) -> LaminarError:
    """The error for a place that is full, or that the system does not let us write to."""
    reason = getattr(cause, "strerror", None) or cause
    if getattr(cause, "errno", None) in _FULL:
        return ResourceExhaustedError(f"{what}: {reason}", remedy="free some room there")
    return PermissionDeniedError(f"{what}: {reason}", remedy="choose a place that you may write to")


def make_folder(path: str | os.PathLike[str], who: str) -> Path:
    """Make a folder, and those above it, unless it is there.

    Args:
        path: of the folder.
        who: what writes into it, for errors.

    Raises:
        PermissionDeniedError: it cannot be made, or not be written to.
        ResourceExhaustedError: the disk is full.
    """
    folder = Path(local_path(path))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError("it may not be written to")
    except (OSError, ValueError) as cause:  # ValueError: a name that no file can have
        raise no_place(f"{who}: no files can be written into {os.fspath(path)!r}", cause) from cause
    return folder


_SCHEME = "file://"


def local_path(path: Any) -> str:
    """A path as a string; "file:///data/x" is "/data/x", as TensorFlow has it."""
    return os.fsdecode(path).removeprefix(_SCHEME)


def path_of(who: str, path: Any) -> str:
    """A path as a string; it may begin with file://.

    Raises:
        InvalidArgumentError: it is none.
    """
    try:
        return local_path(path)
    except TypeError as cause:
        raise InvalidArgumentError(
            f"{who}: expected a path, got {path!r:.80}", remedy="give a string or a Path"
        ) from cause
