"""What is alike in a graph: groups with the same operations, joined in the same way, inside.

The number of a group is made of those of its children, in the order of the graph, and of the edges
between them; names do not matter, nor what leads into the group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.graph import Operation
from laminar.engine.graph.operation import GraphBody
from laminar.engine.graph.text import spec_text

from .items import Item

# What tells an operation from another that does the same.
_OWN = frozenset({"container", "seed", "shared_name", "tag"})


def structures(items: Sequence[Item], order: Sequence[int]) -> Mapping[int, int]:
    """A number for each item; what is alike has the same one.

    Args:
        items: by number.
        order: numbers of all items, groups before what is inside.
    """
    digests: dict[int, bytes] = {}
    for number in reversed(order):
        item = items[number]
        if item.operation is not None:
            parts: Any = _operation(item.operation)
        else:
            place = {child: i for i, child in enumerate(item.children)}
            edges = sorted((place[e.source], place[e.target], e.kind, e.edges) for e in item.edges)
            parts = ([digests[child].hex() for child in item.children], edges)
        digests[number] = hashlib.sha256(repr(parts).encode()).digest()
    numbers: dict[bytes, int] = {}
    return {n: numbers.setdefault(digests[n], len(numbers)) for n in order}


def _operation(op: Operation) -> tuple[Any, ...]:
    attrs = [(name, _plain(value)) for name, value in sorted(op.attrs.items()) if name not in _OWN]
    return op.type, attrs, [spec_text(y.spec) for y in op.outputs]


def _plain(value: Any) -> Any:
    """What matters of an attribute: not which numbers a constant has, but how many."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape
    if isinstance(value, GraphBody) or callable(value):
        return type(value).__name__
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return repr(value)
