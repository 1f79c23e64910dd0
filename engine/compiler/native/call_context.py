"""What calls run with: executables bound to variables, and the memory that they share."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ...graph import TensorSpec
from ...ops.state.variable import Sharing, VariableStore, one_lock
from ...timeline import NativeJournals
from .executable import Arena, Executable


class BoundExecutable:
    """An executable, and the variables of the last call, with their lock."""

    __slots__ = (
        "executable",
        "is_long",
        "is_plain",
        "lock",
        "places",
        "run",
        "sharing",
        "stores",
        "stores_of",
        "threads",
    )

    def __init__(self, executable: Executable, threads: int) -> None:
        self.executable = executable
        self.is_long = executable.executable_plan.is_long
        self.run = executable.run
        self.stores_of = picker(executable.executable_plan.variables)
        # For the results: the call makes them where there is None.
        self.places = (None,) * len(executable.results)
        # Whether a call is to do nothing besides.
        self.is_plain = not (executable.executable_plan.variables or self.is_long)
        self.threads = threads
        # The stores of the last call and the lock they have, as long as no store gets another.
        self.stores: tuple[VariableStore, ...] = ()
        self.lock = threading.Lock()
        self.sharing = -1

    def learn(self, stores: tuple[VariableStore, ...], specs: Sequence[TensorSpec]) -> None:
        """Note the stores of a call and their lock.

        Raises:
            ShapeError: one has another shape than the code is for.
        """
        with one_lock(stores):
            for store, spec in zip(stores, specs, strict=True):
                store.check_shape(spec.shape, spec.dtype)
            self.stores, self.lock = stores, stores[0].lock
            self.sharing = Sharing.count


class ReadyCalls:
    """Executables that are ready, by the sizes of a call.

    `last` is what has run last: as most calls are like the one before, they are tried on that.
    """

    def __init__(self) -> None:
        self.ready: dict[Any, BoundExecutable] = {}
        self.last: BoundExecutable | None = None

    def forget(self) -> None:
        """Nothing is ready any more."""
        self.ready.clear()
        self.last = None


class CallContext(ReadyCalls, Arena):
    """An arena, and the executables that are bound to it; no two calls have one at a time.

    `_recorded` are those that keep journals for a timeline, `_journals`.
    """

    def __init__(self) -> None:
        ReadyCalls.__init__(self)
        Arena.__init__(self)
        self._journals: NativeJournals | None = None
        self._recorded = ReadyCalls()

    def recorded(self, journals: NativeJournals) -> ReadyCalls:
        """The executables that keep journals for a timeline."""
        if self._journals is not journals:
            self._journals, self._recorded = journals, ReadyCalls()
            journals.calls.append(self._recorded)
        return self._recorded

    def settle(self) -> None:
        """The next call is to look what is ready."""
        self.last = self._recorded.last = None

    def forget(self) -> None:
        super().forget()
        self._recorded.forget()


def picker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes some items out of a tuple, as a tuple; `places` rise."""
    if not places:
        return operator.itemgetter(slice(0))
    first, last = places[0], places[-1]
    if last - first == len(places) - 1:
        return operator.itemgetter(slice(first, last + 1))
    return operator.itemgetter(*places)
