"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from laminar.engine.errors import MissingFileError
from laminar.paths import no_place


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file for writing and reading that takes the place of `path` at the end.

    The bytes go to a temporary file beside `path`; when the block ends without an error the file is
    renamed over `path` in one step. Where it takes the place of an older one, its bytes are forced
    to the disk before. Any error, in the block or in the last steps, leaves what stood at `path`
    untouched and removes the temporary file.

    Args:
        path: where the file shall be; a link there is followed, and a file there keeps its mode.

    Raises:
        MissingFileError: its folder does not exist.
        PermissionDeniedError: no file can be made there.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise MissingFileError(
            f"{os.fspath(path)}: there is no folder {folder!r} to write it to",
            remedy=f"make it first: os.makedirs({folder!r})",
        )
    # 32 + 16 random characters: a long name of the user's must not make the temporary one too long.
    temporary = os.path.join(folder, f".{name[:32]}.{secrets.token_hex(8)}.tmp")
    try:
        file = open(temporary, "x+b")  # noqa: SIM115 (closed before the rename, not after the block)
    except OSError as cause:
        raise no_place(f"{os.fspath(path)} cannot be written", cause) from cause
    try:
        with file:
            yield file
            file.flush()
            if is_older := os.path.exists(target):
                with suppress(FileNotFoundError):
                    os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if not is_older:
        return
    # The rename is durable once the folder is. The file is in place: a file system that cannot
    # force a folder to the disk is no failure.
    descriptor = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)
