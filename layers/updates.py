"""What a layer updates in a call: statistics, counters.

Computed at once, and in a function, updates happen as the call is written. A session runs only what
its fetches need; so in a plain graph the outputs of a call need its updates.
"""

from __future__ import annotations

from typing import Any

from laminar.engine.graph import Graph, GraphTensor, building, resource
from laminar.engine.ops.core.basic import identity
from laminar.engine.state import GraphKeys
from laminar.tree import map_structure

from .masking import get_mask, set_mask


def plain_graph() -> Graph | None:
    """The graph that is being built, if it is one for sessions."""
    graph = building()
    return None if graph is None or graph.captures_values else graph


def with_updates(outputs: Any, graph: Graph, begin: int) -> Any:
    """`outputs`, which need the updates among the operations of `graph` made since `begin`."""
    initializers = {id(v.initializer) for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
    updates = [
        op
        for op in graph.operations[begin:]
        if any(x.dtype == resource for x in op.inputs)
        and not op.definition.read_only
        and id(op) not in initializers
    ]
    if not updates:
        return outputs

    def after(y: Any) -> Any:
        if not isinstance(y, GraphTensor):
            return y
        found = identity(y)
        set_mask(found, get_mask(y))
        return found

    with graph.control_dependencies(updates):
        return map_structure(after, outputs)
