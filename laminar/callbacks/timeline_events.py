"""TimelineEvents: the epochs of loops in a timeline, and what is between their steps."""

from __future__ import annotations

import threading
from typing import Any

from laminar.engine.timeline import Event, Recording, now

from .callback import Callback


class TimelineEvents(Callback):
    """Tells the timeline that is recorded, if one is, of the epochs of `fit`.

    Of steps, and the waiting for data between them, the loops themselves tell.
    """

    reads_logs_later = True

    def __init__(self) -> None:
        super().__init__()
        self._since = self._epoch = now()

    def note(self, name: str, category: str = "python") -> None:
        """What has happened since the last note, or since the last step."""
        moment, since = now(), self._since
        timeline = Recording.active
        if timeline is not None:
            since = max(since, timeline.start, timeline.last_step())
            timeline.add(Event(name, category, since, moment, threading.get_ident()))
        self._since = moment

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.note("before the epoch")
        self._epoch = self._since

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.note(f"end of epoch {epoch + 1}")
        timeline = Recording.active
        if timeline is not None:
            start, thread = max(self._epoch, timeline.start), threading.get_ident()
            timeline.add(Event(f"epoch {epoch + 1}", "epoch", start, self._since, thread))
