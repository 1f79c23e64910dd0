"""Sessions that have ended because nothing was heard of who made them: what they are told later.

State of `SilentSessions`: `_leases[handle]` is the lease of a session that has ended, of the last
ones; guarded by `_lock`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from laminar.engine.errors import AbortedError

_REMEMBERED = 1000


def lease_ran_out(who: str, seconds: float) -> AbortedError:
    """The error of a session of whose client or master nothing was heard for its lease."""
    return AbortedError(
        f"the session has ended: nothing was heard of its {who} for {seconds:g} s, which is its "
        f"lease",
        remedy="make another session, whose variables are those of before; where processes are "
        "stopped or cut off for longer, give the servers a longer lease: Server(..., "
        "lease_seconds=...)",
    )


class SilentSessions:
    """Those of a server.

    Args:
        who: was silent: "client" or "master".
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._lock = threading.Lock()
        self._leases: OrderedDict[str, float] = OrderedDict()

    def add(self, handle: str, lease_seconds: float) -> None:
        """A session has ended."""
        with self._lock:
            self._leases[handle] = lease_seconds
            while len(self._leases) > _REMEMBERED:
                self._leases.popitem(last=False)

    def error(self, handle: str) -> AbortedError | None:
        """What is said to who goes on with it; None where it did not end so."""
        with self._lock:
            lease = self._leases.get(handle)
        return None if lease is None else lease_ran_out(self._who, lease)
