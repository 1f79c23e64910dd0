"""The graphs of a function by trace key, which keep no object of a key alive, nor outlive it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .concrete import ConcreteFunction


class Identity:
    """Equal for one object while it lives; keeps nothing alive that can be referred to weakly."""

    __slots__ = ("held", "key")

    def __init__(self, value: Any) -> None:
        self.key = id(value)
        try:
            self.held: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.held = lambda: value

    def watch(self, callback: Callable[[Any], None]) -> None:
        """Have `callback` called when the object goes."""
        if isinstance(self.held, weakref.ref):
            self.held = weakref.ref(self.held(), callback)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity) or self.key != other.key:
            return False
        held = self.held()
        return held is not None and held is other.held()

    def __hash__(self) -> int:
        return self.key


class Traces(dict[Any, ConcreteFunction]):
    """Graphs by trace key (see signature.py); one goes with the objects that its key refers to."""

    __slots__ = ("__weakref__",)

    def keep(self, key: Any, concrete: ConcreteFunction) -> None:
        """Keep a graph as long as a call can have the key."""
        mine = weakref.ref(self)
        for part in key[1]:
            if isinstance(part, Identity):
                part.watch(lambda _: _forget_dead(mine()))
        self[key] = concrete


def _forget_dead(traces: Traces | None) -> None:
    """Drop graphs that no call can ask for again.

    The garbage collector calls it at any time, so it takes no lock: each step is whole by itself.
    """
    if traces is None:
        return
    for key in list(traces):
        if any(isinstance(part, Identity) and part.held() is None for part in key[1]):
            traces.pop(key, None)
