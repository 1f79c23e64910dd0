"""The record of the calls that a server answers: off until somebody turns it on."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .messages import messages
from .peers import Call, Reply

_MOST = 10_000  # the last calls


class CallLog:
    """Calls with their times, by a server's own clock. `_entries` is None while nobody records."""

    def __init__(self) -> None:
        self._entries: deque[Any] | None = None

    def recorded(
        self, name: str, method: Callable[[Any, Sequence[Any], Call], Reply]
    ) -> Callable[[Any, Sequence[Any], Call], Reply]:
        """The method, which is recorded while somebody wants it."""

        def run(message: Any, values: Sequence[Any], call: Call) -> Reply:
            entries = self._entries
            if entries is None:
                return method(message, values, call)
            start, step_id = time.time_ns(), getattr(message, "step_id", 0)
            error = ""
            try:
                return method(message, values, call)
            except Exception as cause:
                error = f"{type(cause).__name__}: {cause}"
                raise
            finally:
                entries.append(
                    messages().LoggingResponse.Call(
                        method=name,
                        start_us=start * 1e-3,
                        duration_us=(time.time_ns() - start) * 1e-3,
                        step_id=step_id if isinstance(step_id, int) else 0,
                        error=error,
                    )
                )

        return run

    def record(self, wanted: bool, *, clear: bool = True) -> list[Any]:
        """Turn the record on or off; gives what it has, and begins anew unless told otherwise."""
        found = list(self._entries or ())
        if not wanted:
            self._entries = None
        elif self._entries is None or clear:
            self._entries = deque(maxlen=_MOST)
        return found

    def logging(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        """The method of the service."""
        found = self.record(message.record, clear=message.clear)
        return Reply(messages().LoggingResponse(call=found))
