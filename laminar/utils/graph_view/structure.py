"""What is alike in a graph: groups with the same operations, joined in the same way, inside.

The number of a group is made of those of its children, in the order of the graph, and of the edges
between them. Names and sizes do not matter, nor what leads into the group: the layers of a network
are alike whatever their widths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from .items import Item


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
            parts: Any = item.operation.type
        else:
            place = {child: i for i, child in enumerate(item.children)}
            edges = sorted((place[e.source], place[e.target], e.kind, e.edges) for e in item.edges)
            parts = ([digests[child].hex() for child in item.children], edges)
        digests[number] = hashlib.sha256(repr(parts).encode()).digest()
    numbers: dict[bytes, int] = {}
    return {n: numbers.setdefault(digests[n], len(numbers)) for n in order}
