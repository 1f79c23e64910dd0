"""Who watches the operations that this thread applies: the tapes of reverse mode."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Protocol

from ...graph import Tensor
from .op_def import OpDef


class Record(NamedTuple):
    """One application of an op: what a gradient function sees of it."""

    definition: OpDef
    inputs: tuple[Tensor, ...]
    attrs: Mapping[str, Any]
    outputs: tuple[Tensor, ...]


# `Record(...)` of its fields, in half the time.
_record = partial(tuple.__new__, Record)


class Recorder(Protocol):
    """Something that is notified of each application."""

    def is_tracking(self, tensors: Iterable[Tensor]) -> bool:
        """Whether applications to these tensors matter to it."""

    def record(self, record: Record) -> None:
        """Take note of one application."""

    def watched_variable(self, handle: Tensor, variable: Any = None) -> None:
        """Take note that a trainable variable, if it is at hand, is about to be read."""


class _Recorders(threading.local):
    def __init__(self) -> None:
        self.active: list[Recorder] = []


recorders = _Recorders()


@contextmanager
def paused() -> Iterator[None]:
    """Record nothing inside."""
    before, recorders.active = recorders.active, []
    try:
        yield
    finally:
        recorders.active = before


def notify(
    definition: OpDef, inputs: Sequence[Tensor], attrs: Mapping[str, Any], outputs: Sequence[Tensor]
) -> None:
    """Tell the recorders of this thread of an application."""
    record: Record = _record((definition, tuple(inputs), attrs, tuple(outputs)))
    for recorder in recorders.active:
        recorder.record(record)
