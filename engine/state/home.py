"""Which graph state belongs to that is made while a branch, a body or a function is being built.

Sessions hold the state of plain graphs, so what is made inside belongs to the plain graph around;
where there is none, to the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import Graph, GraphTensor, building
from ..ops.core.recording import paused


def home_of_state() -> Graph | None:
    """The plain graph that new state is operations of; None for state with a value at once."""
    graph = building()
    root = None if graph is None else graph.root
    return None if root is None or root.captures_values else root


@contextmanager
def outside_of_bodies(graph: Graph) -> Iterator[None]:
    """A block that builds `graph`, waiting for nothing, also where one inside of it is built."""
    if building() is graph:
        with graph.control_dependencies(None):
            yield
    else:
        with graph.as_default(), paused(), graph.control_dependencies(None):
            yield


def check_initial(name: str | None, initializer: Any) -> None:
    """Raise InvalidArgumentError for an initial value that is there only when the graph runs."""
    if isinstance(initializer, GraphTensor) and initializer.graph.root is not initializer.graph:
        raise InvalidArgumentError(
            f"Variable {name!r}: the initial value {initializer!r} belongs to a branch, a body or "
            f"a function, and the variable to the graph around it, which initialises it",
            remedy="pass a function, an array or a number as the initializer",
        )
