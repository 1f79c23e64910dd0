"""Locks that a forked child finds open.

A fork copies the locks as they are: one that another thread of the parent held is held in the child
for ever, for that thread is not there. State: `_made` refers to the locks made here.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_made: set[weakref.ref[Any]] = set()


def lock() -> threading.Lock:
    """A lock that is open in a forked child."""
    made = threading.Lock()
    _made.add(weakref.ref(made, _made.discard))
    return made


def recursive_lock() -> threading.RLock:
    """A lock that its owner may take again; it is open in a forked child, but for a fork by it."""
    made = threading.RLock()
    _made.add(weakref.ref(made, _made.discard))
    return made


def _open() -> None:
    for reference in list(_made):
        found = reference()
        owned = getattr(found, "_is_owned", None)  # of those that have owners
        if found is not None and not (owned and owned()):
            found._at_fork_reinit()  # what the locks of `threading` and `logging` do


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open)
