"""What a layer owns: its variables, sub-layers, metrics and random states.

Nothing is registered: the attributes of a layer are looked through when someone asks, so a list of
layers may be changed at any time. Variables made by `add_weight` are kept in order of creation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from laminar.engine.state import Variable
from laminar.random import SeedGenerator


@runtime_checkable
class MetricLike(Protocol):
    """What is taken for a metric among the attributes of a layer."""

    @property
    def variables(self) -> list[Variable]: ...
    def update_state(self, *args: Any, **kwargs: Any) -> Any: ...
    def reset_state(self) -> None: ...
    def result(self) -> Any: ...


class Tracked:
    """Base of layers: finds what the instance owns.

    `_own` holds the variables made with `add_weight` or assigned to an attribute, in order.
    `_untracked` names attributes that refer to others without owning them.
    """

    _untracked: frozenset[str] = frozenset({"inbound_nodes", "outbound_nodes", "optimizer"})

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Variable) and name not in self._untracked:
            own = self.__dict__.setdefault("_own", [])
            if not any(v is value for v in own):
                own.append(value)
        object.__setattr__(self, name, value)

    def _attributes(self) -> Iterator[Any]:
        for name, value in list(self.__dict__.items()):
            if name not in self._untracked and name != "_own":
                yield value

    def _find(self, kind: type[Any]) -> list[Any]:
        """The direct attributes of a kind, and those in lists, tuples and dicts, each once."""
        found: dict[int, Any] = {}
        for value in self._attributes():
            _collect(value, kind, found)
        return list(found.values())

    @property
    def _own_variables(self) -> list[Variable]:
        own = {id(v): v for v in self.__dict__.get("_own", ())}
        for v in self._find(Variable):
            own.setdefault(id(v), v)
        return list(own.values())

    @property
    def _own_seeds(self) -> list[SeedGenerator]:
        return self._find(SeedGenerator)

    @property
    def _own_metrics(self) -> list[Any]:
        # runtime_checkable protocols are slow to test: first rule out what is plainly not one
        return [m for m in self._find(object) if isinstance(m, MetricLike)]


def _collect(value: Any, kind: type[Any], found: dict[int, Any]) -> None:
    if isinstance(value, list | tuple | set):
        for item in value:
            _collect(item, kind, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, kind, found)
    elif isinstance(value, kind):
        found.setdefault(id(value), value)
