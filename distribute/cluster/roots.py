"""The folders that a server lets graphs read and write."""

from __future__ import annotations

import os
from collections.abc import Sequence

from laminar.engine.errors import InvalidArgumentError, PermissionDeniedError


class Roots:
    """Folders; what lies in none of them, wherever links lead, is out of bounds.

    Args:
        folders: existing ones; none: no file at all may be touched.
        task: whose they are, for errors.

    Raises:
        InvalidArgumentError: one is no folder.
    """

    def __init__(self, folders: Sequence[str | os.PathLike[str]], task: str) -> None:
        if isinstance(folders, str | bytes):
            raise InvalidArgumentError(f"roots is a list of folders, got {folders!r}")
        self._task = task
        self._folders = [os.path.realpath(folder) for folder in folders]
        for folder, found in zip(folders, self._folders, strict=True):
            if not os.path.isdir(found):
                raise InvalidArgumentError(f"{os.fspath(folder)!r} is no folder of {task}")

    def check(self, path: str) -> str:
        """The path of a file or folder in them.

        Raises:
            PermissionDeniedError: it is in none of them.
        """
        try:
            found = os.path.realpath(path)
        except ValueError as cause:  # a name that no file can have
            raise InvalidArgumentError(f"{path!r} is not the name of a file: {cause}") from cause
        if not any(os.path.commonpath([found, folder]) == folder for folder in self._folders):
            raise PermissionDeniedError(
                f"{self._task} lets graphs touch no file outside of its roots, and {path!r} is in "
                f"none of {self._folders}",
                remedy="start the server with this folder: Server(..., roots=[folder]), --root",
            )
        return found
