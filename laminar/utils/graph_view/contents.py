"""What a page shows of a graph: operations in groups by place, and the edges between these.

A tree of items: groups, and operations as leaves. An edge of the graph belongs to one group, the
smallest that has both of its ends, and joins two of its children there; so an open group shows the
edges between its children alone, and all edges are listed once. What has many neighbours in a group
is set aside there: its edges would hide the others.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from laminar.engine import Graph, RunMetadata
from laminar.engine.graph import Operation, resource
from laminar.engine.graph.operation import GraphBody
from laminar.engine.graph.text import spec_text

from .items import CONTROL, DATA, REFERENCE, Edge, Item, Link
from .places import places_of
from .structure import structures

ASIDE_DEGREE = 10  # so many neighbours in a group, at least, set an item aside
_ASIDE_SHARE = 0.15  # of the group's items, at least
_ASIDE_INSIDE = 0.25  # of the group's operations, at most
_MOST_CHILDREN = 200  # of a group; what has more is divided
_PART = 100  # items of a part
_SERIES = 8  # so many operations of one op and base name become a group where there are many
_LONGEST_ATTRIBUTE = 120  # characters


class _Named(NamedTuple):
    """An operation, by the name that it has in the page, with what leads to it."""

    name: str
    operation: Operation
    links: list[tuple[int, int, str]]


class GraphContents:
    """A graph as a tree of items; item 0 is the root.

    Args:
        graph: whose operations are shown, with the graphs inside of conditions and loops.
        run_metadata: what a traced run has told, for time and memory.

    Attributes:
        items: all, each after its group.
        links: by the number of an operation's item, the edges that lead to it.
    """

    def __init__(self, graph: Graph, run_metadata: RunMetadata | None = None) -> None:
        self.items = [Item("", -1, "")]
        self.links: dict[int, list[Link]] = {}
        named = _named(graph)
        self._costs = _costs(run_metadata)
        leaves = self._build(named)
        self._add_links(named, leaves)
        self._divide()
        self._add_edges()
        self._sum_up()

    # The tree

    def _build(self, named: Sequence[_Named]) -> list[int]:
        """Groups by scope; gives the item of each operation."""
        places = places_of([(n.name, n.operation, [i for i, _, _ in n.links]) for n in named])
        scopes = {
            "/".join(parts[:i])
            for parts in (place.split("/") for place in places)
            for i in range(1, len(parts))
        }
        groups = {"": 0}

        def group(path: str) -> int:
            found = groups.get(path)
            if found is None:
                above, _, label = path.rpartition("/")
                found = groups[path] = self._add(
                    Item(label or "/", group(above), path, is_scope=True)
                )
            return found

        leaves = []
        for entry, place in zip(named, places, strict=True):
            above, _, label = place.rpartition("/")
            if place in scopes:  # it stands with what is inside of its scope
                above, label = place, f"({label})"
            item = Item(label, group(above), entry.name, entry.operation, operations=1)
            cost = self._costs.get(entry.name)
            if cost is not None:
                item.seconds, item.output_bytes = cost
            leaves.append(self._add(item))
        return leaves

    def _add(self, item: Item) -> int:
        self.items.append(item)
        number = len(self.items) - 1
        self.items[item.parent].children.append(number)
        return number

    def _add_links(self, named: Sequence[_Named], leaves: Sequence[int]) -> None:
        for leaf, entry in zip(leaves, named, strict=True):
            self.links[leaf] = [Link(leaves[i], kind, label) for i, kind, label in entry.links]

    def _divide(self) -> None:
        """Put what is too many for one group into parts: series of one name, then stretches."""
        for number in range(len(self.items)):
            if len(self.items[number].children) > _MOST_CHILDREN:
                self._collect_series(number)
                self._cut(number)

    def _collect_series(self, number: int) -> None:
        series: dict[tuple[str, str], list[int]] = {}
        for child in self.items[number].children:
            found = self.items[child]
            if found.operation is not None:
                base = re.sub(r"_\d+$", "", found.label)
                series.setdefault((base, found.operation.type), []).append(child)
        for (base, _), members in series.items():
            if len(members) >= _SERIES:
                self._enclose(number, members, f"{base} \u00d7 {len(members)}")

    def _cut(self, number: int) -> None:
        children = self.items[number].children
        while len(children) > _MOST_CHILDREN:
            parts = [children[i : i + _PART] for i in range(0, len(children), _PART)]
            for part in parts:
                first, last = (self.items[part[i]].label for i in (0, -1))
                self._enclose(number, part, f"{first} \u2026 {last}")
            children = self.items[number].children

    def _enclose(self, number: int, members: Sequence[int], label: str) -> None:
        """A group of some children of a group, in the place of the first of them."""
        children = self.items[number].children
        place = children.index(members[0])
        new = self._add(Item(label, number, self.items[number].path))
        children.pop()
        gone = set(members)
        self.items[number].children = [
            *(c for c in children[:place] if c not in gone),
            new,
            *(c for c in children[place:] if c not in gone),
        ]
        self.items[new].children = list(members)
        for member in members:
            self.items[member].parent = new
        if len(members) > _MOST_CHILDREN:
            self._cut(new)

    # Edges

    def _add_edges(self) -> None:
        depth = {0: 0}
        for number in self.walk():
            for child in self.items[number].children:
                depth[child] = depth[number] + 1
        found: dict[tuple[int, int, int], tuple[int, int, str]] = {}
        for target, links in self.links.items():
            for source, kind, label in links:
                a, b = source, target
                while self.items[a].parent != self.items[b].parent:
                    if depth[a] >= depth[b]:
                        a = self.items[a].parent
                    else:
                        b = self.items[b].parent
                if a != b:
                    group, count, known = found.get((a, b, kind), (self.items[a].parent, 0, label))
                    found[a, b, kind] = group, count + 1, label if label == known else ""
        for (a, b, kind), (group, count, label) in found.items():
            self.items[group].edges.append(Edge(a, b, kind, count, label))

    def _sum_up(self) -> None:
        """What groups have inside, what is set aside, and what is alike."""
        order = list(self.walk())
        for number in reversed(order):
            item = self.items[number]
            for child in (self.items[c] for c in item.children):
                item.operations += child.operations
                if child.seconds is not None:
                    item.seconds = (item.seconds or 0.0) + child.seconds
                if child.output_bytes is not None:
                    item.output_bytes = (item.output_bytes or 0) + child.output_bytes
            item.aside = self._aside(item)
        for number, structure in structures(self.items, order).items():
            self.items[number].structure = structure

    def _aside(self, item: Item) -> list[int]:
        """The children of a group that have too many neighbours to be drawn among the others.

        Scopes that take from some and give to others are on the way of what is computed: they stay,
        as does what most of the group is inside of.
        """
        before: dict[int, set[int]] = {}
        after: dict[int, set[int]] = {}
        for edge in item.edges:
            after.setdefault(edge.source, set()).add(edge.target)
            before.setdefault(edge.target, set()).add(edge.source)
        least = max(ASIDE_DEGREE, _ASIDE_SHARE * len(item.children))
        most = max(1.0, _ASIDE_INSIDE * item.operations)
        return [
            child
            for child in item.children
            if len(before.get(child, set()) | after.get(child, set())) >= least
            and self.items[child].operations <= most
            and not (self.items[child].is_scope and child in before and child in after)
        ]

    # What is asked for

    def walk(self) -> Iterator[int]:
        """The numbers of all items, groups before what is inside."""
        waiting = [0]
        while waiting:
            number = waiting.pop()
            yield number
            waiting += self.items[number].children

    def children(self, path: str = "") -> list[Item]:
        """What a group has inside; "" is the root.

        Raises:
            KeyError: there is no group of that path.
        """
        for item in self.items:
            if item.operation is None and item.path == path:
                return [self.items[child] for child in item.children]
        raise KeyError(path)

    def tables(self) -> dict[str, Any]:
        """All as lists, to be written as JSON; texts that stand often are listed once."""
        texts = _Texts()
        devices = {i.operation.device for i in self.items if i.operation is not None}
        return {
            "items": [
                [
                    texts.add(item.label),
                    item.parent,
                    item.structure,
                    item.operations,
                    _micro(item.seconds),
                    item.output_bytes,
                    item.children,
                    item.aside,
                    [value for e in item.edges for value in (*e[:4], texts.add(e.label))],
                    None if item.operation is None else self._row(number, item, texts),
                ]
                for number, item in enumerate(self.items)
            ],
            "devices": sorted(devices),
            "texts": texts.listed,
        }

    def _row(self, number: int, item: Item, texts: _Texts) -> list[Any]:
        op = item.operation
        assert op is not None
        outputs = ", ".join(spec_text(y.spec) for y in op.outputs)
        line, code = "", ""
        if op.location is not None:
            line = str(op.location)
            code = linecache.getline(op.location.filename, op.location.line).strip()
        return [
            texts.add(item.path),
            texts.add(op.type),
            texts.add(op.device),
            texts.add(outputs),
            texts.add(op.layer),
            texts.add(line),
            texts.add(code),
            texts.add(_attributes(op)),
            [v for link in self.links[number] for v in (*link[:2], texts.add(link.label))],
        ]


class _Texts:
    """Texts by their numbers."""

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._numbers: dict[str, int] = {}

    def add(self, text: str) -> int:
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.listed)
            self.listed.append(text)
        return found


def _micro(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e6, 2)


def _costs(metadata: RunMetadata | None) -> Mapping[str, tuple[float, int]]:
    """Seconds and bytes by the names of operations, of all devices together."""
    found: dict[str, tuple[float, int]] = {}
    for device in metadata.step_stats if metadata is not None else ():
        for node in device.nodes:
            seconds, size = found.get(node.name, (0.0, 0))
            found[node.name] = seconds + node.duration_us * 1e-6, max(size, node.output_bytes)
    return found


def _attributes(op: Operation) -> str:
    shown = []
    for name, value in sorted(op.attrs.items()):
        text = "\u2026" if isinstance(value, GraphBody) else " ".join(repr(value).split())
        if len(text) > _LONGEST_ATTRIBUTE:
            text = text[:_LONGEST_ATTRIBUTE] + "\u2026"
        shown.append(f"{name} = {text}")
    return "\n".join(shown)


def _named(graph: Graph) -> list[_Named]:
    """The operations of a graph, and of those inside of it, by unique names."""
    found: list[_Named] = []
    _collect(graph.operations, "", found, {})
    return found


def _collect(
    operations: Iterable[Operation], scope: str, found: list[_Named], places: dict[int, int]
) -> None:
    for op in operations:
        links = [
            (
                places[id(x.op)],
                REFERENCE if x.dtype == resource else DATA,
                "" if x.dtype == resource else spec_text(x.spec),
            )
            for x in op.inputs
            if id(x.op) in places
        ]
        links += [(places[id(c)], CONTROL, "") for c in op.control_inputs if id(c) in places]
        places[id(op)] = len(found)
        found.append(_Named(scope + op.name, op, links))
        for name, body in _bodies(op):
            graphs = {id(t.graph): t.graph for t in (*body.inputs, *body.outputs) if t is not None}
            for inner in graphs.values():
                _collect(inner.operations, f"{scope}{op.name}/{name}/", found, places)


def _bodies(op: Operation) -> Iterator[tuple[str, GraphBody]]:
    """The graphs that are attributes of an operation, by names."""
    for name, value in sorted(op.attrs.items()):
        if isinstance(value, GraphBody):
            yield name, value
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, GraphBody):
                    yield f"{name}_{i}", item
