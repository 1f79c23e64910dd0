"""Which graph state belongs to that is made while a branch, a body or a function is being built.

Sessions hold the state of plain graphs, so what is made inside belongs to the plain graph around;
where there is none, to the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..graph import Graph, building
from ..ops.core.recording import paused


def home_of_state() -> Graph | None:
    """The plain graph that new state is operations of; None for state with a value at once."""
    graph = building()
    root = None if graph is None else graph.root
    return None if root is None or root.captures_values else root


@contextmanager
def outside_of_bodies(graph: Graph) -> Iterator[None]:
    """A block that builds `graph`, also where one inside of it is being built."""
    if building() is graph:
        yield
    else:
        with graph.as_default(), paused():
            yield
