"""Room on the disk for a file, before its bytes are written."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from typing import BinaryIO

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of fallocate(2)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FEW = 1 << 20  # bytes that are written as soon


def reserve(file: BinaryIO, size: int) -> None:
    """Have the file system keep `size` bytes for a file that is empty; its size stays 0.

    Writing into them takes half the time: no block has to be found for each page. A file system
    that cannot do it is no failure.

    Raises:
        OSError: there is no room.
    """
    fallocate = _fallocate()
    if size < _FEW or fallocate is None:
        return
    if fallocate(file.fileno(), _KEEP_SIZE, 0, size) and (code := ctypes.get_errno()) in _FULL:
        raise OSError(code, os.strerror(code))


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The system's call; not posix_fallocate, which writes zeros where a file system has none."""
    found = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return found
