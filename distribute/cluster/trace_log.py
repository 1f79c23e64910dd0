"""The record of what the steps of a worker do: off until somebody turns it on.

A session traces a step of its own, on all tasks (`RunOptions`). This is the other side: what a task
does for whatever session, as who looks after the task wants to see it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from laminar.engine.runtime import RunMetadata

from .messages import messages, write_metadata
from .peers import Call, Reply

_MOST = 1000  # the last steps


class TraceLog:
    """Steps with the times of their operations. `_steps` is None while nobody records."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, RunMetadata]] | None = None

    @property
    def is_on(self) -> bool:
        """Whether steps are to be recorded."""
        return self._steps is not None

    def take(self, step_id: int, metadata: RunMetadata) -> None:
        """A step has ended that was recorded."""
        steps = self._steps
        if steps is not None:
            steps.append((step_id, metadata))

    def tracing(self, message: Any, values: Sequence[Any], call: Call) -> Reply:
        """The method of the service."""
        found, self._steps = self._steps, deque(maxlen=_MOST) if message.record else None
        reply = messages().TracingResponse()
        for step_id, metadata in found or ():
            written = messages().Metadata()
            write_metadata(written, metadata)
            reply.step.add(step_id=step_id, step_stats=written.step_stats)
        return Reply(reply)
