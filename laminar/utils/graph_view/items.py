"""Groups, operations and the edges between them, as a page has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from laminar.engine.graph import Operation

DATA, CONTROL, REFERENCE = 0, 1, 2  # kinds of edges


class Edge(NamedTuple):
    """What leads from one child of a group to another.

    Attributes:
        source, target: numbers of items.
        kind: DATA, CONTROL, or REFERENCE for handles of variables, queues, ...
        edges: how many of the graph it stands for.
        label: type and shape of the tensor, "" where there are several.
    """

    source: int
    target: int
    kind: int
    edges: int
    label: str


class Link(NamedTuple):
    """One edge of the graph: what the operation `source` gives, and of what kind and size."""

    source: int
    kind: int
    label: str


@dataclass
class Item:
    """A group or an operation.

    Attributes:
        label: what it is called in its group.
        parent: the number of its group, -1 for the root.
        path: the scope, or the name of the operation.
        operation: None for a group.
        is_scope: whether it is a group that the graph's names tell of.
        children: of a group, in the order of the graph.
        edges: of a group, between its children.
        aside: of a group, the children that are set aside.
        operations: how many there are inside.
        structure: what is alike has the same number.
        seconds, output_bytes: what the traced step spent inside, None where nothing was traced.
    """

    label: str
    parent: int
    path: str
    operation: Operation | None = None
    is_scope: bool = False
    children: list[int] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    aside: list[int] = field(default_factory=list)
    operations: int = 0
    structure: int = 0
    seconds: float | None = None
    output_bytes: int | None = None
