"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from ..errors import LaminarError, MissingFileError
from .places import local_path, no_place


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open a new file for writing and reading that takes the place of `path` at the end.

    The bytes go to a temporary file beside `path`; when the block ends without an error the file is
    renamed over `path` in one step. Where it takes the place of an older one, its bytes are forced
    to the disk before. Any error, in the block or in the last steps, leaves what stood at `path`
    untouched and removes the temporary file. What a save to the same path left that was killed is
    removed by the next.

    Args:
        path: where the file shall be; a link there is followed, and a file there keeps its mode.
        durable: whether the bytes are forced to the disk though nothing older is replaced.

    Raises:
        MissingFileError: its folder does not exist.
        PermissionDeniedError: no file can be made there.
        ResourceExhaustedError: the disk is full.
    """
    target = os.path.realpath(local_path(path))
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise MissingFileError(
            f"{os.fspath(path)}: there is no folder {folder!r} to write it to",
            remedy=f"make it first: os.makedirs({folder!r})",
        )
    what = f"{os.fspath(path)} cannot be written"
    # 32 + 16 random characters: a long name of the user's must not make the temporary one too long.
    prefix = f".{name[:32]}."
    try:
        _remove_abandoned(folder, prefix)
        temporary, file = _locked(folder, prefix)
    except OSError as cause:
        raise no_place(what, cause) from cause
    lock = os.dup(file.fileno())  # until the file has its name
    try:
        with file:
            yield file
            file.flush()
            if is_older := os.path.exists(target):
                with suppress(FileNotFoundError):
                    os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            if is_older or durable:
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as cause:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(cause, OSError) and not isinstance(cause, LaminarError):
            raise no_place(what, cause) from cause
        raise
    finally:
        os.close(lock)
    if is_older or durable:
        sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make what has been renamed in a folder durable.

    The files are in place: a file system that cannot force a folder to the disk is no failure.
    """
    descriptor = os.open(folder or ".", os.O_RDONLY)
    with suppress(OSError):
        os.fsync(descriptor)
    os.close(descriptor)


def _locked(folder: str, prefix: str) -> tuple[str, BinaryIO]:
    """A new temporary file, locked for as long as it is open: nobody takes it for abandoned."""
    while True:
        path = os.path.join(folder, f"{prefix}{secrets.token_hex(8)}.tmp")
        file = open(path, "x+b")  # noqa: SIM115 (closed before the rename, not after the block)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # else another save found it before it was locked
            return path, file
        file.close()


def _remove_abandoned(folder: str, prefix: str) -> None:
    """Remove the temporary files of saves that were killed: those that nobody has locked."""
    is_temporary = re.compile(re.escape(prefix) + r"[0-9a-f]{16}\.tmp").fullmatch
    for name in filter(is_temporary, os.listdir(folder)):
        path = os.path.join(folder, name)
        with suppress(OSError):  # it may be gone, or be another user's
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(descriptor) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
