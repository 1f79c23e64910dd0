"""Which session is the default of a thread: that of the innermost block.

`_defaults.blocks` is the stack of this thread's blocks, the innermost last. Each graph has a stack
of the sessions of its own.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from typing import Any

from ..graph.scopes import in_order


class _Defaults(threading.local):
    def __init__(self) -> None:
        self.blocks: list[AsDefault] = []


_defaults = _Defaults()


def innermost() -> Any:
    """The session of the innermost block of this thread, None outside of any."""
    return _defaults.blocks[-1].session if _defaults.blocks else None


class AsDefault(AbstractContextManager[Any]):
    """Pushes a session on the stack of its thread, and on that of its graph.

    Interactive sessions are not `nested`: they need not be closed in the order of opening.
    """

    def __init__(self, session: Any, nested: bool = True) -> None:
        self.session = session
        self.nested = nested

    def __enter__(self) -> Any:
        _defaults.blocks.append(self)
        self.session.graph.sessions.append(self.session)
        return self.session

    def __exit__(self, *error: Any) -> None:
        blocks, later = _defaults.blocks, list[AsDefault]()
        if self in blocks:  # an interactive session may be closed by another thread
            later = blocks[blocks.index(self) + 1 :]
            blocks.remove(self)
        remove_last(self.session.graph.sessions, self.session)
        if self.nested and error[:1] == (None,):
            in_order("Session", not any(block.nested for block in later))


def remove_last(stack: list[Any], item: Any) -> None:
    """Take the uppermost `item` off."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i] is item:
            del stack[i]
            return
