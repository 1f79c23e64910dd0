"""The threads that run native plans.

A pool is made when a plan is first worth it; a device that has a share of the cores has a pool of
its own (see `thread_share`). Its threads wait for work without Python's lock: they
look for some for a moment, then sleep. What a thread does not come to do, because other processes
use its core, the others do (codegen/shares.py). A plan that finds the pool in use runs on its
caller alone, with the same bits.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading

import numpy as np

from ...blas import set_blas_threads, share_cores
from ...errors import InvalidArgumentError
from ...ops.core.cluster import thread_share
from ..codegen import driver_words
from ..codegen.driver import POOL_FUNCTIONS, driver_code
from ..target.code_cache import addresses_of, native
from ..target.thread_count import available_cores, host_threads, num_threads, set_count

_START = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_WAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_WORKER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Pool:
    """`num_threads` threads, the caller's being one of them."""

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self.lock = threading.Lock()
        self._words = np.zeros(driver_words.pool_words(num_threads), np.int64)
        self._words[driver_words.THREADS] = num_threads
        self.address: int = self._words.ctypes.data
        start, wake, worker = addresses_of([native(driver_code(f)) for f in POOL_FUNCTIONS])
        self._start, self._wake, self._worker = _START(start), _WAKE(wake), _WORKER(worker)
        self._threads = [
            threading.Thread(target=self._live, args=(i,), name=f"native-{i}", daemon=True)
            for i in range(1, num_threads)
        ]
        for thread in self._threads:
            thread.start()
        # What is registered later is called earlier: before llvmlite frees the code.
        atexit.register(self.close)

    def _live(self, number: int) -> None:
        self._worker(self.address, number)

    def run(self, plan: int) -> None:
        """Run a plan on all threads; `lock` is held."""
        self._start(self.address, plan)

    def close(self) -> None:
        """End the threads; `lock` is kept, so whoever holds the pool runs without it."""
        atexit.unregister(self.close)
        self.lock.acquire()
        self._words[driver_words.QUIT] = 1
        self._wake(self.address)
        for thread in self._threads:
            thread.join(timeout=5)


# A thread has a stack and, while it waits for work, a share of a core: more are a mistake.
_MOST = 1024


class _Pools:
    """The pools, which are made anew where their number of threads is another one."""

    def __init__(self) -> None:
        self.by_owner: dict[str | None, Pool] = {}  # by the owner of a share, None for the host
        self.lock = threading.Lock()

    def forget(self) -> None:
        """In a forked child the pool's threads are gone."""
        for pool in self.by_owner.values():
            atexit.unregister(pool.close)  # its lock may be held for ever
        self.by_owner = {}
        self.lock = threading.Lock()


_pools = _Pools()


def set_threads(n: int | None) -> None:
    """Let native code use `n` threads; None: one for each core that the process may use.

    So many has NumPy's OpenBLAS, too; where native code has threads, or operations run side by
    side, for large products alone.
    What native code computes does not depend on it.

    Raises:
        InvalidArgumentError: n is not between 1 and 1024.

    Examples:
        >>> laminar.set_threads(2)
        >>> laminar.set_threads(None)
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= _MOST):
        raise InvalidArgumentError(
            f"set_threads: expected a positive number of threads, at most {_MOST}, got {n!r}",
            remedy="leave it out, or give None, for one for each core",
        )
    with _pools.lock:
        old, _pools.by_owner = _pools.by_owner, {}
        count = n or available_cores()
        set_count(count)
        set_blas_threads(count)
    for pool in old.values():
        pool.close()


def pool() -> Pool | None:
    """The pool for what this thread runs; None where there is one thread only."""
    owner = thread_share.owner
    found = _pools.by_owner.get(owner)
    if found is None:
        count = num_threads()
        if count == 1:
            return None
        with _pools.lock:
            found = _pools.by_owner.get(owner)
            if found is None:
                found = _pools.by_owner[owner] = Pool(count)
                set_blas_threads(host_threads())
                share_cores()
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.forget)
