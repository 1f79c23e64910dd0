"""Carve a function out of a graph: no Python source is needed, only the graph.

The variables of a plain graph live in containers of its own, which all functions carved out of it
share.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import Graph, GraphTensor, Operation, resource
from ..runtime import SessionResources, StepContext
from ..tree import flatten, map_structure
from .concrete import ConcreteFunction

_contexts: weakref.WeakKeyDictionary[Graph, StepContext] = weakref.WeakKeyDictionary()


def graph_function(
    graph: Graph, inputs: Sequence[Any], outputs: Any, prune: bool = True
) -> ConcreteFunction:
    """The function of `inputs` that computes `outputs`, as the operations of `graph` do.

    Args:
        graph: any graph, such as that of a traced function or an imported one.
        inputs: the arguments: any tensors of the graph, or their names ("Square:0").
        outputs: tensors, operations (run, and given as None) or names, in any structure.
        prune: leave out operations with effects that the outputs do not need; else a call runs
            all of the graph's.

    Raises:
        NotFoundError: the graph has no such name.
        InvalidArgumentError: an input is no tensor, or is given twice.

    Source: "RFC: Functions, not sessions", 2018, section "Derived/Related Graphs".
    """
    feeds = [graph.as_graph_element(x) for x in inputs]
    tensors = [x for x in feeds if isinstance(x, GraphTensor)]
    if len(tensors) != len(feeds) or len({id(x) for x in tensors}) != len(tensors):
        raise InvalidArgumentError(
            f"graph_function: the inputs must be different tensors, got {list(inputs)}",
            remedy='name a tensor by its operation and output: "Square:0"',
        )
    elements = map_structure(graph.as_graph_element, outputs)
    targets = [e for e in flatten(elements) if isinstance(e, Operation)]
    if not prune:
        targets = list(dict.fromkeys([*targets, *filter(_has_effect, graph.operations)]))
    structure = map_structure(lambda e: e if isinstance(e, GraphTensor) else None, elements)
    context = _contexts.get(graph)
    if context is None:
        context = _contexts[graph] = StepContext(SessionResources().get)
    return ConcreteFunction(graph, "graph_function", tensors, structure, targets, context)


def _has_effect(op: Operation) -> bool:
    writes = any(x.dtype == resource for x in op.inputs) and not op.definition.read_only
    return writes or op.definition.stateful
