"""Names that the user gives: `name=` of the functions that build operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...graph import Graph, GraphTensor, Literal, Operation, building
from ...tree import flatten
from .basic import const_op, identity


def call_named(name: str | None, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`fn(*args, **kwargs)`, under a name.

    The operation whose outputs are the result is called `name`, those made on the way `name/...`.
    A result that was there before is named by an Identity; where it comes of several operations,
    they all are `name/...`. A name that ends in "/" is that of a scope that is there.
    What computes at once has no name.
    """
    graph = None if name is None else building() or _graph_among((args, kwargs))
    if graph is None:
        return fn(*args, **kwargs)
    before = graph.version
    with graph.name_scope(name) as scope:
        result = fn(*args, **kwargs)
    if not scope:  # the root
        return result
    if isinstance(result, Literal):
        return const_op(name=scope, value=result.value, dtype=result.dtype)
    made = _maker(graph, flatten(result))
    if made is not None and made.id >= before:
        graph.rename(made, scope)
    elif isinstance(result, GraphTensor):
        return identity(result, name=scope)
    return result


def _graph_among(values: Any) -> Graph | None:
    """The graph of the first symbol in a structure."""
    found = (getattr(v, "graph", None) for v in flatten(values))
    return next((g for g in found if isinstance(g, Graph)), None)


def _maker(graph: Graph, results: Sequence[Any]) -> Operation | None:
    """The one operation of `graph` that made all that the graph has among `results`."""
    found = {r.op if isinstance(r, GraphTensor) else r for r in results}
    ops = [op for op in found if isinstance(op, Operation) and op.graph is graph]
    return ops[0] if len(ops) == 1 else None
