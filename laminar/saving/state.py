"""Which part of a model is stored under which path: the layout of Keras 3.

The layers of a functional or sequential model stand under "layers/<class>", everything else under
the names of the attributes that hold it. Names come from classes, not from instances, so that a
model made again finds its weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from laminar.layers.layer import Layer
from laminar.models.model import Model
from laminar.naming import to_snake_case
from laminar.optimizers import Optimizer

_SKIPPED = frozenset({"inbound_nodes", "outbound_nodes", "history"})


def stored_objects(
    root: Any, skipped: Iterable[Any] = (), *, are_nested: bool = True
) -> list[tuple[str, Any]]:
    """What of `root` has variables of its own, with its path; each object once.

    Args:
        root: a model.
        skipped: objects that are left out, with what is in them alone; paths stay as they are.
        are_nested: whether lists in lists are looked into; Keras before 3.15 did not.
    """
    walk = _Walk({id(obj) for obj in skipped}, are_nested)
    walk.visit(root, "")
    return walk.found


class _Walk:
    def __init__(self, visited: set[int], are_nested: bool) -> None:
        self.found: list[tuple[str, Any]] = []
        self._visited = visited
        self._are_nested = are_nested

    def visit(self, obj: Any, path: str) -> None:
        if id(obj) in self._visited:
            return
        self._visited.add(id(obj))
        self.found.append((path, obj))
        for name, child in _children(obj):
            self._enter(child, f"{path}/{name}" if path else name)

    def _enter(self, child: Any, path: str) -> None:
        if isinstance(child, Layer | Optimizer):
            self.visit(child, path)
        elif isinstance(child, list | tuple | dict):
            used: dict[str, int] = {}
            for item in child.values() if isinstance(child, dict) else child:
                if isinstance(item, Layer | Optimizer):
                    name = _numbered(to_snake_case(type(item).__name__), used)
                    self.visit(item, f"{path}/{name}")
                elif self._are_nested and isinstance(item, list | tuple | dict):
                    self._enter(item, f"{path}/{_numbered('container', used)}")


def _children(obj: Any) -> Iterator[tuple[str, Any]]:
    """The attributes to look into: public ones by name, then private ones by name."""
    attributes = {
        k: v for k, v in vars(obj).items() if k not in _SKIPPED and not k.startswith("_laminar_")
    }
    if isinstance(obj, Model):
        if obj._laminar_network is not None:  # the order of the network comes before all else
            yield "layers", obj.layers
        else:
            attributes["layers"] = obj.layers
    for name in sorted(attributes, key=lambda n: f"~{n}" if n.startswith("_") else n):
        yield name, attributes[name]


def _numbered(name: str, used: dict[str, int]) -> str:
    count = used.get(name, 0)
    used[name] = count + 1
    return f"{name}_{count}" if count else name
