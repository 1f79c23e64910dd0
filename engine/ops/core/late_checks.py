"""Checks of values, at once on the host, and on other devices when somebody reads from them.

A kernel that looks at values makes the host wait for the device. So there a check stays on the
device, as one truth, and is looked at when the host waits anyway. State: `_pending` are the checks
of all devices, with the library of each; appending and taking from its left need no lock.
`_running.operation` is the operation of a graph whose kernel this thread runs on a device.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from ...graph import Array, Operation
from ...late import later
from .kernels import HOST

_located = later("laminar.engine.ops.core.failures", "located")
_MOST = 1000  # then the host looks, so that what checks refer to can go

_pending: deque[tuple[Any, Array, Callable[[], Exception]]] = deque()


class _Running(threading.local):
    operation: Operation | None = None


_running = _Running()


def named(op: Operation, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel on a device, whose checks tell the operation's name and line whenever they fail."""

    def run(*args: Any, **attrs: Any) -> Any:
        before, _running.operation = _running.operation, op
        try:
            return kernel(*args, **attrs)
        finally:
            _running.operation = before

    return run


def require(xp: Any, holds: Array, error: Callable[[], Exception]) -> None:
    """Raise what `error` gives unless `holds`, a truth of rank 0: at once, or from `settle`."""
    if xp is HOST:
        if not holds:
            raise error()
        return
    op = _running.operation
    _pending.append((xp, holds, error if op is None else lambda: _located(op, (), error())))
    if len(_pending) > _MOST:
        settle(xp)


def settle(xp: Any) -> None:
    """Look at the checks of a library's arrays that nobody has looked at; raise the first error."""
    if not _pending:
        return
    mine = [check for check in list(_pending) if check[0] is xp]
    for check in mine:
        _pending.remove(check)
    if mine and not bool(xp.stack([holds for _, holds, _ in mine]).all()):
        raise next(error() for _, holds, error in mine if not bool(holds))
