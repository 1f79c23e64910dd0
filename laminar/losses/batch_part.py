"""Losses of a part of a batch, where others compute those of the rest.

The loss of the whole batch is the mean of theirs, each weighted with the part of the examples that
it is computed on. For a mean over examples that holds as it is. Where a loss is a sum, or divides
by something else that adds up over the examples (weights, what a mask keeps), the reduction asks
here for what makes it hold.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class BatchPart(Protocol):
    """A part of the examples of a batch."""

    def stands_for(self, total: Any) -> Any:
        """What has the sum `total` over these examples as its share of the mean."""

    def shared(self, total: Any) -> Any:
        """This part of the sum over the whole batch; `total` is that over these examples."""


class _Computing(threading.local):
    """On which part losses are computed; None, the whole batch."""

    part: BatchPart | None = None


_computing = _Computing()


@contextmanager
def computed_on(part: BatchPart | None) -> Iterator[None]:
    """A block in which losses are computed on a part of a batch."""
    before, _computing.part = _computing.part, part
    try:
        yield
    finally:
        _computing.part = before


def sum_of_part(total: Any) -> Any:
    """A sum over the examples at hand, as a loss."""
    part = _computing.part
    return total if part is None else part.stands_for(total)


def divisor(total: Any) -> Any:
    """What a loss divides by: a sum over the examples at hand."""
    part = _computing.part
    return total if part is None else part.shared(total)
