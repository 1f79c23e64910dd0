"""How many threads NumPy's BLAS uses for products of matrices.

Threads of OpenBLAS go on looking for work for some milliseconds after a product, on cores that
others would run on, and callers of several threads wait for each other's products: on a busy
machine a step of an LSTM on four devices took 1.1 s of processor time, and takes 0.04 s with one
thread each. So where native code has threads, or operations run side by side, BLAS has one, but for
products that are worth more than that; and it never has more than `set_threads` says. Where the
environment says how many it has, that holds, and of another BLAS than OpenBLAS nothing is changed.
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
    """`many` threads for large products, 0: as BLAS was started; so many for all, unless shared."""

    many = 0
    is_shared = False
    lock = threading.Lock()  # for what the library has: it is one for all threads


def set_blas_threads(count: int) -> None:
    """Let products use so many threads; see `share_cores`."""
    if any(map(os.environ.get, _VARIABLES)):
        return
    with _Setting.lock:
        _Setting.many = count
        _put(1 if _Setting.is_shared else count)


def share_cores() -> None:
    """From now on others run beside products: only large ones have more than one thread."""
    if _Setting.is_shared or any(map(os.environ.get, _VARIABLES)):
        return
    with _Setting.lock:
        _Setting.is_shared = True
        _put(1)


@contextmanager
def many_threads() -> Iterator[None]:
    """A block for a large product. Where another thread is in one, this has what that leaves."""
    if not _Setting.is_shared or not _Setting.lock.acquire(blocking=False):
        yield
        return
    try:
        _put(_Setting.many)
        yield
    finally:
        _put(1)
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
