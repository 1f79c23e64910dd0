"""What was compiled, on disk, by the digest of what it was made of.

A file is the digest of its name and content, then the content. It is written under another name and
then renamed, so processes can share the folder. What does not match its digest is made anew. Files
are read only from a folder that nobody else can write to, since what is in them is going to run.
There are so many files and bytes at most; what has not been read for the longest time goes first.

`_counted` is what a process knows of folders: the files and bytes that were there when it last
looked, and what it has written since. It looks again where these are too many, so processes that
write at once may go beyond the bounds, until the next one looks.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_DIGEST_BYTES = 32
# In each of the 256 folders that the first figures of a digest tell apart: 1 GiB in all.
_MOST_FILES = 64
_MOST_BYTES = 1 << 22
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MODE = 0o700
_MODE_OF_FILE = 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_FAILURES = (OSError, RuntimeError)  # the second where nobody knows the user's home
_PLACE = re.compile("[0-9a-f]{2}")
_NAME = re.compile(r"[0-9a-f]{64}\.[a-z]+")
_numbers = itertools.count()  # of files that are being written
_counted: dict[Path, tuple[int, int]] = {}
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no pipe waited for


def folder() -> Path:
    """Where compiled code is kept: LAMINAR_CACHE, or a folder of the user's cache."""
    chosen = os.environ.get("LAMINAR_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "laminar" / "objects"


def read(name: str) -> bytes | None:
    """The content of a file; None where there is none, or none that can be trusted.

    Args:
        name: a digest in hexadecimal numbers and a suffix.
    """
    try:
        place = folder() / name[:2]
        content = _content(place, name)
    except _FAILURES:
        return None
    digest, found = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if _digest(name, found) != digest:
        return None
    with suppress(OSError):  # it may be somebody's who lets us only read
        os.utime(place / name)
    return found


def write(name: str, content: bytes) -> None:
    """Keep a content for `read`."""
    try:
        place = folder() / name[:2]
        temporary = place / f"{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
        try:
            handle = os.open(temporary, _NEW, _MODE_OF_FILE)
        except FileNotFoundError:
            place.parent.mkdir(mode=_MODE, parents=True, exist_ok=True)
            place.mkdir(mode=_MODE, exist_ok=True)
            handle = os.open(temporary, _NEW, _MODE_OF_FILE)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(name, content) + content)
            os.replace(temporary, place / name)
        except BaseException:
            with suppress(OSError):  # another process may have trimmed it
                os.unlink(temporary)
            raise
        _trim(place, _DIGEST_BYTES + len(content))
    except _FAILURES:
        return  # a cache that cannot be written costs time, not results


class Contents(NamedTuple):
    """What there is: files, and their bytes."""

    files: int
    num_bytes: int


def contents() -> Contents:
    """Count what is kept."""
    sizes = [status.st_size for _, status in _kept()]
    return Contents(len(sizes), sum(sizes))


def clear() -> Contents:
    """Remove all that is kept, and nothing else that may stand in the folder; gives what it was."""
    count = size = 0
    for file, status in _kept():
        with suppress(OSError):  # another process may have removed it, or it is somebody else's
            file.unlink()
            count, size = count + 1, size + status.st_size
    return Contents(count, size)


def _kept() -> list[tuple[Path, os.stat_result]]:
    """The files that `write` has written: a digest and a suffix, in a folder of its first two."""
    try:
        found = [
            (file, file.lstat())
            for place in folder().iterdir()
            if _PLACE.fullmatch(place.name) and place.is_dir() and not place.is_symlink()
            for file in place.iterdir()
            if file.name.startswith(place.name) and _NAME.fullmatch(file.name)
        ]
    except _FAILURES:
        return []
    return [(file, status) for file, status in found if stat.S_ISREG(status.st_mode)]


def _digest(name: str, content: bytes) -> bytes:
    """The digest of a content under its name: under another one it is something else."""
    return hashlib.sha256(name.encode() + content).digest()


def _content(place: Path, name: str) -> bytes:
    """What is in a file of a private folder, which is opened once: its path may change."""
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if not _is_private(os.fstat(opened)):
            raise PermissionError(f"{place} is not private")
        handle = os.open(name, os.O_RDONLY | _PLAIN, dir_fd=opened)
        with os.fdopen(handle, "rb") as file:
            return file.read()
    finally:
        os.close(opened)


def _trim(place: Path, added: int) -> None:
    """Where a folder has more than it may, remove the oldest files until it has half of that.

    Args:
        place: the folder.
        added: the bytes of the file that has come.
    """
    count, size = _counted.get(place, (_MOST_FILES, 0))  # what is not known is looked at
    count, size = count + 1, size + added
    if count > _MOST_FILES or size > _MOST_BYTES:
        with os.scandir(place) as found:
            files = [(entry.stat(follow_symlinks=False), entry.path) for entry in found]
        count, size = len(files), sum(status.st_size for status, _ in files)
        if count > _MOST_FILES or size > _MOST_BYTES:
            files.sort(key=lambda file: file[0].st_mtime_ns)
            for status, path in files[:-1]:
                if count <= _MOST_FILES // 2 and size <= _MOST_BYTES // 2:
                    break
                with suppress(FileNotFoundError):  # another process has removed it
                    os.unlink(path)
                count, size = count - 1, size - status.st_size
    _counted[place] = count, size


def _is_private(status: os.stat_result) -> bool:
    """Whether a folder belongs to this user, and no one else may write to it."""
    return status.st_uid == os.getuid() and not status.st_mode & _OTHERS_WRITE
