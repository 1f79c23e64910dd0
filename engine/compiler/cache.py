"""Object code on disk, by the hash of what it was made of.

A file is a digest followed by the code; it is written under another name and then renamed, so
processes can share the folder. What does not match its digest is made anew. Code is read only from
a folder that nobody else can write to, since it is going to run.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

_DIGEST_BYTES = 32
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> Path:
    """Where object code is kept: LAMINAR_CACHE, or a folder of the user's cache."""
    chosen = os.environ.get("LAMINAR_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "laminar" / "objects"


def cached(identity: str, text: str, make: Callable[[str], bytes]) -> bytes:
    """The object code of IR `text`: from disk, or made and put there.

    Args:
        identity: what the code depends on besides the text: compiler, processor.
        text: the IR.
        make: compiles the text.
    """
    key = hashlib.sha256(f"{identity}\n{text}".encode()).hexdigest()
    path = folder() / key[:2] / f"{key}.o"
    found = _read(path)
    if found is None:
        found = make(text)
        _write(path, found)
    return found


def _is_private(place: Path) -> bool:
    """Whether a folder belongs to this user, and no one else may write to it."""
    status = place.stat()
    return status.st_uid == os.getuid() and not status.st_mode & _OTHERS_WRITE


def _read(path: Path) -> bytes | None:
    try:
        if not _is_private(path.parent):
            return None
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write(path: Path, code: bytes) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(name, path)
    except OSError:
        return  # a cache that cannot be written costs time, not results
