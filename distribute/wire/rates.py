"""How often somebody may make a call.

State of a `RateLimit`, guarded by `_lock`: `_buckets[identity]` is how many calls are left, and
when that was counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from laminar.engine.errors import InvalidArgumentError, ResourceExhaustedError

_MOST_BUCKETS = 10_000


class RateLimit:
    """So many calls in so many seconds, for each identity by itself.

    Who has made none for a while may make `num` at once; then they come back one by one.

    Args:
        num: of calls.
        per_seconds: in which they come back.
        what: is limited, for errors.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        num: int,
        per_seconds: float,
        what: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (num >= 1 and per_seconds > 0):
            raise InvalidArgumentError(f"expected a rate above 0, got {num} in {per_seconds} s")
        self._num, self._rate, self._what, self._clock = num, num / per_seconds, what, clock
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def check(self, identity: str) -> None:
        """Count one call.

        Raises:
            ResourceExhaustedError: there were too many.
        """
        now = self._clock()
        with self._lock:
            left, when = self._buckets.get(identity, (float(self._num), now))
            left = min(self._num, left + (now - when) * self._rate)
            if left < 1:
                raise ResourceExhaustedError(
                    f"{identity}: more than {self._num} of {self._what} in "
                    f"{self._num / self._rate:g} s",
                    remedy=f"wait {(1 - left) / self._rate:.2g} s",
                )
            self._buckets[identity] = left - 1, now
            if len(self._buckets) > _MOST_BUCKETS:
                full = self._num / self._rate
                self._buckets = {i: b for i, b in self._buckets.items() if b[1] + full > now}
