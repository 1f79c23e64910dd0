"""Names of files that the user gives: checked before any work is done."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.io.places import local_path


def file_name(path: Any, who: str) -> str:
    """The name of a file as text.

    Raises:
        InvalidArgumentError: it is no name.
    """
    try:
        return local_path(path)
    except TypeError as cause:
        raise InvalidArgumentError(
            f"{who}: expected the name of a file, got {path!r}", remedy="give a string or a Path"
        ) from cause
