"""What nested calls of layers pass on to each other: `training`, and where the call began."""

from __future__ import annotations

import threading
from typing import Any


class CallContext:
    """One outermost call of a layer, and all calls inside it.

    Attributes:
        entry: the layer that was called first.
        training: the value that was passed to it, None when none was.
    """

    __slots__ = ("entry", "training")

    def __init__(self, entry: Any) -> None:
        self.entry = entry
        self.training: bool | None = None


class _Current(threading.local):
    """`added_losses`: what `add_loss` is given, where somebody collects it."""

    context: CallContext | None = None
    added_losses: list[Any] | None = None


current = _Current()
