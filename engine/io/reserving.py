"""What the system is told of a large file: how much room it needs, what it can write by now."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from typing import BinaryIO

_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of fallocate(2)
_WRITE = 2  # SYNC_FILE_RANGE_WRITE of sync_file_range(2)
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


def begin_writing(file: BinaryIO, offset: int, size: int) -> None:
    """Have the system write bytes of a file to the disk from now on, beside what else is done.

    Who has it all written at the end waits for less. Where that fails, it is said there.
    """
    sync_file_range = _sync_file_range()
    if sync_file_range is not None:
        sync_file_range(file.fileno(), offset, size, _WRITE)


@functools.cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    found = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return found


@functools.cache
def _fallocate() -> Callable[[int, int, int, int], int] | None:
    """The system's call; not posix_fallocate, which writes zeros where a file system has none."""
    found = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if found is not None:
        found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return found
