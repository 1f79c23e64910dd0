"""Steps that are over: their tasks are told, without a request of its own for each.

A step that went well is kept by its tasks until they are told so. The next request to a task tells
it; where none comes soon, one is made for that.

State of `EndedSteps`, guarded by `_lock`:
    _steps[task]: the steps that a task has not been told of;
    _is_waiting: whether a thread waits to tell them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from laminar.engine.errors import LaminarError
from laminar.engine.runtime.workers import WORKERS

_SOON_SECONDS = 0.01


class EndedSteps:
    """The steps of a session.

    Args:
        tell: tells the task of a name that steps are over.
    """

    def __init__(self, tell: Callable[[str, Sequence[int]], object]) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._steps: dict[str, list[int]] = {}
        self._is_waiting = False

    def add(self, task: str, step_id: int) -> None:
        """A step is over that a task has taken part in."""
        with self._lock:
            self._steps.setdefault(task, []).append(step_id)
            if self._is_waiting:
                return
            self._is_waiting = True
        WORKERS.start(self._run)

    def take(self, task: str) -> list[int]:
        """The steps that a task is to be told of, by who asks."""
        with self._lock:
            return self._steps.pop(task, [])

    def _run(self) -> None:
        """Tell what nobody has told, until there is nothing left."""
        seen: set[int] = set()
        while True:
            time.sleep(_SOON_SECONDS)
            with self._lock:
                if not self._steps:
                    self._is_waiting = False
                    return
                old = {t: s for t, s in self._steps.items() if seen.issuperset(s)}
                seen = {i for steps in self._steps.values() for i in steps}
                for task in old:
                    del self._steps[task]
            for task, steps in old.items():
                with contextlib.suppress(LaminarError):  # who has gone has no steps any more
                    self._tell(task, steps)
