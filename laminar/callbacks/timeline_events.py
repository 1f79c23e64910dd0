"""TimelineEvents: the steps of loops, and the waiting for data between them, in a timeline."""

from __future__ import annotations

import threading
from typing import Any

from laminar.engine.timeline import Event, Recording, now

from .callback import Callback


class TimelineEvents(Callback):
    """Tells the timeline that is recorded, if one is, of the steps of `fit`, `evaluate`, `predict`.

    A step is from its batch to its end; what is between steps is that of data.
    """

    reads_logs_later = True

    def __init__(self) -> None:
        super().__init__()
        self._since = now()

    def note(self, name: str, category: str = "python", **arguments: Any) -> None:
        """What has happened since the last note."""
        moment = now()
        timeline = Recording.active
        if timeline is not None:
            since = max(self._since, timeline.start)
            thread = threading.get_ident()
            timeline.add(Event(name, category, since, moment, thread, "", arguments))
        self._since = moment

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.note("before the epoch")

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.note("next batch", "data")

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.note(f"step {batch}")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.note(f"end of epoch {epoch + 1}")

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.note("next batch", "data")

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.note(f"evaluation {batch}")

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.note("next batch", "data")

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self.note(f"prediction {batch}")
