"""`tf.gfile`: files and folders of this machine, as the script itself could open them."""

from __future__ import annotations

import glob
import os
import shutil
from typing import Any, NamedTuple

from laminar.engine.closing import Closing
from laminar.engine.errors import AlreadyExistsError, MissingFileError


class GFile(Closing):
    """A file: reads and writes text, or bytes where the mode has a "b"."""

    def __init__(self, name: str, mode: str = "r") -> None:
        self.name = name
        try:
            self._file: Any = open(name, mode)  # noqa: SIM115  # closed by `close`
        except FileNotFoundError as cause:
            raise MissingFileError(f"GFile: there is no file {name!r}") from cause

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Any:
        return iter(self._file)

    def size(self) -> int:
        """Its length in bytes."""
        return os.path.getsize(self.name)

    def close(self) -> None:
        """Close it."""
        self._file.close()


def exists(filename: str) -> bool:
    """Whether there is a file or folder."""
    return os.path.exists(filename)


def is_directory(dirname: str) -> bool:
    """Whether it is a folder."""
    return os.path.isdir(dirname)


def list_directory(dirname: str) -> list[str]:
    """The names in a folder."""
    if not os.path.isdir(dirname):
        raise MissingFileError(f"ListDirectory: there is no folder {dirname!r}")
    return os.listdir(dirname)


def make_dirs(dirname: str) -> None:
    """Make a folder, and those around it."""
    os.makedirs(dirname, exist_ok=True)


def make_dir(dirname: str) -> None:
    """Make a folder."""
    os.mkdir(dirname)


def remove(filename: str) -> None:
    """Remove a file."""
    if not os.path.exists(filename):
        raise MissingFileError(f"Remove: there is no file {filename!r}")
    os.remove(filename)


def delete_recursively(dirname: str) -> None:
    """Remove a folder and all that is in it."""
    if not os.path.isdir(dirname):
        raise MissingFileError(f"DeleteRecursively: there is no folder {dirname!r}")
    shutil.rmtree(dirname)


def matching(filename: str) -> list[str]:
    """The files that a pattern names."""
    return sorted(glob.glob(filename))


def copy(oldpath: str, newpath: str, overwrite: bool = False) -> None:
    """Copy a file."""
    if os.path.exists(newpath) and not overwrite:
        raise AlreadyExistsError(f"Copy: there is a file {newpath!r}", remedy="overwrite=True")
    shutil.copyfile(oldpath, newpath)


def rename(oldname: str, newname: str, overwrite: bool = False) -> None:
    """Move a file."""
    if os.path.exists(newname) and not overwrite:
        raise AlreadyExistsError(f"Rename: there is a file {newname!r}", remedy="overwrite=True")
    os.replace(oldname, newname)


class FileStatistics(NamedTuple):
    """What the file system knows of a file.

    Attributes:
        length: in bytes.
        mtime_nsec: when it was last written, in nanoseconds since 1970.
        is_directory: whether it is a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(filename: str) -> FileStatistics:
    """What the file system knows of a file or folder."""
    try:
        found = os.stat(filename)
    except FileNotFoundError as cause:
        raise MissingFileError(f"Stat: there is no file {filename!r}") from cause
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(filename))


def walk(top: str, in_order: bool = True) -> Any:
    """(folder, folders in it, files in it) of a tree."""
    return os.walk(top, topdown=in_order)
