"""Names of files and folders that the user gives: checked before any work is done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.io.places import no_place


def file_name(path: Any, who: str) -> str:
    """The name of a file as text.

    Raises:
        InvalidArgumentError: it is no name.
    """
    try:
        return os.fsdecode(path)
    except TypeError as cause:
        raise InvalidArgumentError(
            f"{who}: expected the name of a file, got {path!r}", remedy="give a string or a Path"
        ) from cause


def make_folder(path: str | os.PathLike[str], who: str) -> Path:
    """Make a folder, and those above it, unless it is there.

    Args:
        path: of the folder.
        who: what writes into it, for errors.

    Raises:
        PermissionDeniedError: it cannot be made, or not be written to.
        ResourceExhaustedError: the disk is full.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError("it may not be written to")
    except (OSError, ValueError) as cause:  # ValueError: a name that no file can have
        raise no_place(f"{who}: no files can be written into {os.fspath(path)!r}", cause) from cause
    return folder
