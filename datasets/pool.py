"""Pool: threads that run functions, and do not keep the program from ending."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from .background import GRACE_SECONDS

_Task: TypeAlias = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]


class Pool:
    """Runs functions in threads.

    Unlike with an executor, a thread that is stuck in the user's code is left behind after a
    while, and does not hold up the end of the program.

    Args:
        threads: how many.
        name: of the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=_work, args=(self._tasks,), name=f"{name}-{i}", daemon=True)
            for i in range(threads)
        ]
        self._end = weakref.finalize(self, _stop, self._tasks, self._threads)
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have `fn(*args)` run as soon as a thread is free."""
        future: Future[Any] = Future()
        self._tasks.put((future, fn, args))
        return future

    def finish(self) -> None:
        """Let the threads end when they have done what was submitted; nothing more may be."""
        if self._end.detach() is not None:  # else it is closed
            for _ in self._threads:
                self._tasks.put(None)

    def close(self) -> None:
        """Drop what has not begun, and wait for what has."""
        self._end()


def _work(tasks: SimpleQueue[_Task | None]) -> None:
    """The work of a thread; it holds no reference to the Pool, which may be dropped."""
    while True:
        task = tasks.get()
        if task is None:
            return
        future, fn, args = task
        if future.set_running_or_notify_cancel():
            try:
                result = fn(*args)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
                del result
        del task, future, fn, args


def _stop(tasks: SimpleQueue[_Task | None], threads: list[threading.Thread]) -> None:
    with contextlib.suppress(Empty):
        while (task := tasks.get_nowait()) is not None:
            task[0].cancel()
    for _ in threads:
        tasks.put(None)
    end = time.monotonic() + GRACE_SECONDS
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(max(0.0, end - time.monotonic()))
