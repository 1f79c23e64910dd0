"""What a layer owns: its variables, sub-layers, metrics and random states.

Nothing is registered: the attributes of a layer are looked through when someone asks, so a list of
layers may be changed at any time. Variables made by `add_weight` are kept in order of creation.
"""

from __future__ import annotations

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

    What laminar keeps in an instance, and what it calls there, begins with `_laminar_`, so that a
    class derived from it may have attributes and methods of any other name (those of the documented
    interface apart). `_laminar_own` holds the variables made with `add_weight` or assigned to an
    attribute, in order. `_laminar_holders` are the names of the attributes that may own something,
    in the order in which they got it. `_laminar_untracked` names attributes that refer to others
    without owning them, as those that begin with `_laminar_` do.
    """

    _laminar_untracked: frozenset[str] = frozenset({"inbound_nodes", "outbound_nodes", "optimizer"})

    _laminar_version = 0  # another one after each change of an attribute
    _laminar_own: list[Variable]
    _laminar_holders: dict[str, None]

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self.__dict__["_laminar_version"] = self._laminar_version + 1
        if name.startswith("_laminar_") or name in self._laminar_untracked:
            return
        holders = self.__dict__.setdefault("_laminar_holders", {})
        if not _may_own(value):
            holders.pop(name, None)
            return
        holders.setdefault(name)
        if isinstance(value, Variable):
            own = self.__dict__.setdefault("_laminar_own", [])
            if not any(v is value for v in own):
                own.append(value)

    def __delattr__(self, name: str) -> None:
        value = self.__dict__.get(name)
        object.__delattr__(self, name)
        self.__dict__["_laminar_version"] = self._laminar_version + 1
        if isinstance(value, Variable) and "_laminar_own" in self.__dict__:
            self._laminar_own = [v for v in self._laminar_own if v is not value]

    def _laminar_find(self, kind: type[Any]) -> list[Any]:
        """The direct attributes of a kind, and those in lists, tuples and dicts, each once."""
        found: dict[int, Any] = {}
        attributes = self.__dict__
        for name in list(attributes.get("_laminar_holders", ())):
            value = attributes.get(name)
            if isinstance(value, list | tuple | set | dict):
                if value:
                    _collect(value, kind, found)
            elif isinstance(value, kind) and name in attributes:
                found.setdefault(id(value), value)
        return list(found.values())

    def _laminar_checkpoint_children(self) -> dict[str, Any]:
        """The parts that a checkpoint of attributes saves; variables without one by their names."""
        attributes = self.__dict__
        names = attributes.get("_laminar_holders", ())
        found = {name: attributes[name] for name in names if name in attributes}
        held = {id(v) for v in self._laminar_find(Variable)}
        for v in attributes.get("_laminar_own", ()):
            if id(v) not in held:
                name, count = v.name, 0
                while name in found:
                    count += 1
                    name = f"{v.name}_{count}"
                found[name] = v
        return found

    @property
    def _laminar_own_variables(self) -> list[Variable]:
        own = {id(v): v for v in self.__dict__.get("_laminar_own", ())}
        for v in self._laminar_find(Variable):
            own.setdefault(id(v), v)
        return list(own.values())

    @property
    def _laminar_own_seeds(self) -> list[SeedGenerator]:
        return self._laminar_find(SeedGenerator)

    @property
    def _laminar_own_metrics(self) -> list[Any]:
        # runtime_checkable protocols are slow to test: first rule out what is plainly not one
        found = [m for m in self._laminar_find(object) if hasattr(type(m), "update_state")]
        return [m for m in found if isinstance(m, MetricLike)]


def _may_own(value: Any) -> bool:
    """Whether `value` is something that is looked for, or holds such things."""
    if isinstance(value, tuple):
        return any(map(_may_own, value))
    return isinstance(value, Tracked | Variable | SeedGenerator | list | dict | set) or hasattr(
        type(value), "update_state"
    )


def _collect(value: Any, kind: type[Any], found: dict[int, Any]) -> None:
    if isinstance(value, list | tuple | set):
        for item in value:
            _collect(item, kind, found)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, kind, found)
    elif isinstance(value, kind):
        found.setdefault(id(value), value)
