"""The default graph: a stack per thread, and one implicit graph of the process under it.

`stack.items` of a thread holds graphs and None; None (see `eager_scope`) computes at once again,
inside whatever is being traced. `stack.place` is where the thread computes what it computes at once
(see engine/devices/scope.py): None for the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import FailedPreconditionError
from .graph import Graph, stack

_implicit = [Graph()]


def building() -> Graph | None:
    """The graph that this thread builds, or None when operations compute at once."""
    items = stack.items
    return items[-1] if items else None


def get_default_graph() -> Graph:
    """The graph of the innermost `as_default`, else the implicit one of the process.

    Examples:
        >>> with engine.Graph().as_default() as graph:
        ...     engine.get_default_graph() is graph
        True
    """
    items = stack.items
    return (items[-1] if items else None) or _implicit[0]


def reset_default_graph() -> None:
    """Replace the implicit graph by an empty one.

    Raises:
        FailedPreconditionError: called inside a `with graph.as_default()`.

    Examples:
        >>> engine.reset_default_graph()
        >>> engine.get_default_graph().operations
        []
    """
    if stack.items:
        raise FailedPreconditionError("reset_default_graph() inside a graph's as_default()")
    _implicit[0] = Graph()


@contextmanager
def eager_scope() -> Iterator[None]:
    """Compute at once inside, whatever graph is being built around: state is made this way.

    Examples:
        >>> with engine.Graph().as_default(), engine.eager_scope():
        ...     (engine.constant(1) + 1).numpy()
        array(2, dtype=int32)
    """
    stack.push(None)
    try:
        yield
    finally:
        stack.pop(None)
