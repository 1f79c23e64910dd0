"""How many threads NumPy's BLAS uses for products of matrices.

Threads of OpenBLAS go on looking for work for some milliseconds after a product, on cores that
native code would run on. So where native code has threads, BLAS has one, but for products that are
worth more than that; and it never has more than `set_threads` says. Where the environment says how
many it has, that holds, and of another BLAS than OpenBLAS nothing is changed.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

# What sets the number, under the names that it has in builds of OpenBLAS.
_NAMES = tuple(
    f"{first}openblas_set_num_threads{last}" for first in ("scipy_", "") for last in ("64_", "")
)
_VARIABLES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_MAPS = Path("/proc/self/maps")


class _Setting:
    """`few` threads for most products, `many` for large ones; 0: as BLAS was started."""

    few = many = 0
    lock = threading.Lock()  # for what the library has: it is one for all threads


def set_blas_threads(few: int, many: int) -> None:
    """Let products use `few` threads, and `many` those that ask for it (see `many_threads`)."""
    if any(map(os.environ.get, _VARIABLES)):
        return
    with _Setting.lock:
        _Setting.few, _Setting.many = few, many
        _put(few)


@contextmanager
def many_threads() -> Iterator[None]:
    """A block for a large product. Where another thread is in one, this has what that leaves."""
    if _Setting.few == _Setting.many or not _Setting.lock.acquire(blocking=False):
        yield
        return
    try:
        _put(_Setting.many)
        yield
    finally:
        _put(_Setting.few)
        _Setting.lock.release()


def _put(count: int) -> None:
    for put in _setters():
        put(count)


@functools.cache
def _setters() -> Sequence[Callable[[int], None]]:
    """What sets the number of threads of each OpenBLAS that is loaded."""
    found = []
    for path in _libraries():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        name = next((n for n in _NAMES if hasattr(library, n)), None)
        if name is not None:
            found.append(ctypes.CFUNCTYPE(None, ctypes.c_int)((name, library)))
    return found


def _libraries() -> list[str]:
    """The paths of the OpenBLAS libraries of this process; where it cannot tell, of NumPy's."""
    try:
        paths = {line.split(maxsplit=5)[-1] for line in _MAPS.read_text().splitlines()}
    except OSError:  # not Linux
        home = Path(np.__file__).parent
        folders = (home / ".dylibs", home.parent / "numpy.libs")
        paths = {str(path) for folder in folders for path in folder.glob("*")}
    return sorted(path for path in paths if "openblas" in Path(path).name.lower())
