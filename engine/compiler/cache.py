"""What was compiled, on disk, by the digest of what it was made of.

A file is the digest of its content, then the content; it is written under another name and then
renamed, so processes can share the folder. What does not match its digest is made anew. Files are
read only from a folder that nobody else can write to, since what is in them is going to run. There
are so many files at most; those that have not been read for the longest time go first.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_DIGEST_BYTES = 32
# In each of the 256 folders that the first figures of a digest tell apart.
_MOST_FILES = 64
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> Path:
    """Where compiled code is kept: LAMINAR_CACHE, or a folder of the user's cache."""
    chosen = os.environ.get("LAMINAR_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "laminar" / "objects"


def read(name: str) -> bytes | None:
    """The content of a file; None where there is none, or none that can be trusted.

    Args:
        name: a digest in hexadecimal numbers and a suffix.
    """
    path = folder() / name[:2] / name
    try:
        if not _is_private(path.parent):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    digest, found = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(found).digest() != digest:
        return None
    with suppress(OSError):  # it may be somebody's who lets us only read
        os.utime(path)
    return found


def write(name: str, content: bytes) -> None:
    """Keep a content for `read`."""
    path = folder() / name[:2] / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(temporary, path)
        _trim(path.parent)
    except OSError:
        return  # a cache that cannot be written costs time, not results


def _trim(place: Path) -> None:
    """Remove half of the files of a folder that has too many."""
    files = list(place.iterdir())
    if len(files) > _MOST_FILES:
        files.sort(key=lambda file: file.stat().st_mtime_ns)
        for file in files[: _MOST_FILES // 2]:
            file.unlink(missing_ok=True)


def _is_private(place: Path) -> bool:
    """Whether a folder belongs to this user, and no one else may write to it."""
    status = place.stat()
    return status.st_uid == os.getuid() and not status.st_mode & _OTHERS_WRITE
