"""clear_session: forget what the process has gathered."""

from __future__ import annotations

import gc

from laminar.engine.graph import reset_default_graph
from laminar.naming import reset_names


def clear_session(free_memory: bool = True) -> None:
    """Count layer names from the start again, and drop the default graph.

    For programs that make many models in a row: without it, names grow ("dense_1204"), and a graph
    that models were built in by hand keeps them alive.

    Args:
        free_memory: whether to collect garbage at once.

    Raises:
        FailedPreconditionError: called inside `with graph.as_default()`.

    Examples:
        >>> laminar.utils.clear_session()
        >>> layers.Dense(1).name, layers.Dense(1).name
        ('dense', 'dense_1')
    """
    reset_names()
    reset_default_graph()
    if free_memory:
        gc.collect()
