"""How old the weights are that asynchronous replicas compute with, and the bound on that.

State of a `Staleness`, guarded by `_changed`:
    _version: how many updates have been applied;
    _begun[ticket]: the version that a replica read, for each computation that is under way;
    _seen: how often each staleness has occurred.

With a bound of s, at most s + 1 computations are under way, and however they are ordered, the one
that is k-th from the oldest can still wait for the k - 1 before it: its staleness is at most
s - (k - 1). An update that would break this waits. The oldest one never does (each of the others
comes one place nearer to the front when it gets one update older), so somebody can always go on.

Source: for the bound itself, Ho et al., "More Effective Distributed ML via a Stale Synchronous
    Parallel Parameter Server", 2013, section 3.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Staleness:
    """Counts, for each update, how many others came since its replica read the weights.

    Args:
        most: the bound, None for none.

    Examples:
        >>> staleness = laminar.distribute.Staleness()
        >>> staleness.most is None
        True
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._changed = threading.Condition()
        self._version = 0
        self._begun: dict[int, int] = {}
        self._seen: Counter[int] = Counter()
        self._tickets = itertools.count()

    @property
    def counts(self) -> dict[int, int]:
        """How many updates had each staleness."""
        with self._changed:
            return dict(sorted(self._seen.items()))

    @property
    def max(self) -> int:
        """The largest staleness so far, 0 before the first update."""
        return max(self.counts, default=0)

    @property
    def mean(self) -> float:
        """The mean staleness of all updates so far."""
        counts = self.counts
        total = sum(counts.values())
        return sum(k * n for k, n in counts.items()) / total if total else 0.0

    def begin(self) -> int:
        """A replica reads the weights, once that is allowed; gives its ticket."""
        with self._changed:
            self._changed.wait_for(lambda: self.most is None or len(self._begun) <= self.most)
            ticket = next(self._tickets)
            self._begun[ticket] = self._version
            return ticket

    def give_up(self, ticket: int) -> None:
        """What was begun will not become an update."""
        with self._changed:
            self._begun.pop(ticket, None)
            self._changed.notify_all()

    @contextmanager
    def applying(self, ticket: int) -> Iterator[int]:
        """A block in which this replica alone updates the weights; gives its staleness."""
        with self._changed:
            self._changed.wait_for(lambda: self._may_apply(ticket))
            stale = self._version - self._begun[ticket]
            try:
                yield stale
                self._version += 1
                self._seen[stale] += 1
            finally:
                del self._begun[ticket]
                self._changed.notify_all()

    def _may_apply(self, ticket: int) -> bool:
        if self.most is None:
            return True
        begun = sorted(version for other, version in self._begun.items() if other != ticket)
        return all(self._version + 1 - v <= self.most - k for k, v in enumerate(begun))
