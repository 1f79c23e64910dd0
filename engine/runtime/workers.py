"""Threads that run the parts of steps: as many as are busy at a time, kept a while for the next.

A part may wait for another, and a step for another step, so no number of threads would be enough:
a task never waits for a thread. `_idle` holds the inboxes of threads that wait; guarded by `_lock`.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from ..late import later

_share_cores = later("laminar.engine.blas", "share_cores")

Task = Callable[[], None]
_KEEP_SECONDS = 10.0


class Workers:
    """Runs tasks, each at once in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[Task]] = []

    def start(self, task: Task) -> None:
        """Run `task`, which must not raise, in a thread that has nothing to do, or in a new one."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            _share_cores()
            threading.Thread(target=self._work, args=(task,), name="partition", daemon=True).start()
        else:
            inbox.put(task)

    def _work(self, task: Task) -> None:
        inbox: queue.SimpleQueue[Task] = queue.SimpleQueue()
        while True:
            task()
            del task  # and all that it holds
            with self._lock:
                self._idle.append(inbox)
            try:
                task = inbox.get(timeout=_KEEP_SECONDS)
            except queue.Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                task = inbox.get()  # it was given out in the last moment


WORKERS = Workers()
