"""The counter of the steps of a training, in its graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, FailedPreconditionError, ShapeError
from ..graph import Graph, Operation, Tensor, get_default_graph
from ..ops.core.entries import whole
from ..state import Variable, assign_add, create_global_step, get_global_step


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """The step counter of a graph, made if it has none.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.get_or_create_global_step() is engine.get_or_create_global_step()
        True
    """
    graph = graph or get_default_graph()
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of a step counter in a session."""
    return int(np.asarray(sess.run(global_step_tensor)).item())


def assert_global_step(global_step_tensor: Any) -> None:
    """Raise unless something can be a step counter: a scalar of whole numbers.

    Raises:
        DTypeError: it is of another type.
        ShapeError: it is no scalar.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.assert_global_step(engine.get_or_create_global_step())
    """
    name = getattr(global_step_tensor, "name", global_step_tensor)
    if not global_step_tensor.dtype.is_integer:
        raise DTypeError(
            f"the global step {name} must be of whole numbers, got {global_step_tensor.dtype}"
        )
    if not global_step_tensor.shape.is_compatible_with(()):
        raise ShapeError(f"the global step {name} must be a scalar: {global_step_tensor.shape}")


def required_global_step(who: str) -> Variable:
    """The step counter of the default graph.

    Raises:
        FailedPreconditionError: there is none.
    """
    found = get_global_step()
    if found is None:
        raise FailedPreconditionError(
            f"{who}: the graph has no global step",
            remedy="call get_or_create_global_step() and have the optimizer count it",
        )
    return found


def increment_global_step(increment: int = 1, graph: Graph | None = None) -> Tensor | Operation:
    """An operation that adds to the step counter of a graph, and gives the new value.

    Args:
        increment: a whole number.
        graph: by default the default graph; a counter is made where it has none.

    Raises:
        DTypeError: the increment is no whole number.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     step = engine.get_or_create_global_step()
        ...     more = engine.increment_global_step(2)
        ...     session.run(engine.global_variables_initializer())
        ...     session.run(more)
        np.int64(2)
    """
    counter = get_or_create_global_step(graph)
    return assign_add(counter, np.int64(whole("increment_global_step", "increment", increment)))
