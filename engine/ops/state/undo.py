"""What a step has stored in variables, so that it can be taken back if the step fails.

Most updates come last in a step, after all that may fail (`passes/updates.py`), and need none of
this. Others are read by what comes after them, or stand in a branch or in the body of a loop: their
kernels are `recorded`.

State of an `UndoLog`, guarded by `_lock`:
    _before[id(store)]: a store, and what it held before the step first wrote to it;
    _after[id(store)]: what the step has stored in it last.
Native code writes into an array only if nobody else has it in hand; the log has these.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .variable import VariableStore, one_lock


class UndoLog:
    """The variables that one step has written to."""

    __slots__ = ("_after", "_before", "_lock")

    def __init__(self) -> None:
        self._before: dict[int, tuple[VariableStore, Any]] = {}
        self._after: dict[int, Any] = {}
        self._lock = threading.Lock()

    def begins(self, stores: Sequence[VariableStore]) -> None:
        """An operation may write to these."""
        with self._lock, one_lock(stores):
            for store in stores:
                self._before.setdefault(id(store), (store, store.value))

    def ends(self, stores: Sequence[VariableStore]) -> None:
        """It has."""
        with self._lock, one_lock(stores):
            for store in stores:
                self._after[id(store)] = store.value

    def undo(self) -> None:
        """Have the variables hold what they held, but where another step has stored its own."""
        with self._lock:
            for key, (store, value) in self._before.items():
                with one_lock((store,)):
                    if store.value is self._after.get(key):
                        if value is None:
                            store.value = None
                        else:
                            store.store(value)


def recorded(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of `(context, *inputs)` whose step can take back what it stores."""
    return partial(_recorded, kernel)


def _recorded(kernel: Callable[..., Any], context: Any, *inputs: Any) -> Any:
    log: UndoLog | None = context.undo
    stores = [x for x in inputs if type(x) is VariableStore]
    if log is None or not stores:
        return kernel(context, *inputs)
    log.begins(stores)
    try:
        return kernel(context, *inputs)
    finally:
        log.ends(stores)
