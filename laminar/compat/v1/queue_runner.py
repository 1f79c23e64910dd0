"""`tf.train.queue_runner`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    name: f"engine:{name}" for name in ("QueueRunner", "add_queue_runner", "start_queue_runners")
}

__getattr__, __dir__ = face(__name__, NAMES)
