"""`tf.queue`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "FIFOQueue": ".queues:FIFOQueue",
    "PaddingFIFOQueue": ".queues:PaddingFIFOQueue",
    "PriorityQueue": ".queues:PriorityQueue",
    "QueueBase": "engine:QueueBase",
    "RandomShuffleQueue": ".queues:RandomShuffleQueue",
}

__getattr__, __dir__ = face(__name__, NAMES)
