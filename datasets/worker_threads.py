"""Batches made by several threads, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from laminar.engine.errors import DeadlineExceededError

from .pool import Pool


class WorkerThreads(Iterator[Any]):
    """`make(index)` for each index, by threads that work ahead.

    Args:
        make: makes a batch.
        indices: of the batches, in the order in which they are wanted.
        workers: the number of threads.
        ahead: how many batches wait or are made at most.
        timeout: seconds that a batch is waited for; None for any time.
    """

    def __init__(
        self,
        make: Callable[[int], Any],
        indices: Iterator[int],
        workers: int,
        ahead: int,
        timeout: float | None,
    ) -> None:
        self._make = make
        self._indices = indices
        self._ahead = max(ahead, workers)
        self._timeout = timeout
        self._workers = workers
        self._pool: Pool | None = None
        self._running: deque[tuple[int, Future[Any]]] = deque()

    def __next__(self) -> Any:
        if self._pool is None:
            self._pool = Pool(self._workers, "laminar-data")
        while len(self._running) < self._ahead:
            index = next(self._indices, None)
            if index is None:
                break
            self._running.append((index, self._pool.submit(self._make, index)))
        if not self._running:
            self.close()
            raise StopIteration
        index, result = self._running.popleft()
        try:
            return result.result(self._timeout)
        except FutureTimeout as error:
            if result.done():  # raised by the batch itself
                raise
            raise DeadlineExceededError(
                f"batch {index} was not ready after {self._timeout:g} s",
                remedy="look for what it waits for, or give PyDataset a longer timeout",
            ) from error

    def close(self) -> None:
        """End the threads; those inside the user's code are waited for, but not for ever."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        self._running.clear()
