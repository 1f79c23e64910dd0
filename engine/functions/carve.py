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
from ..ops.state.variable import read_variable
from ..passes import StepGraph, other_reads
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
        inputs: the arguments: any tensors of the graph, their names ("Square:0"), or variables,
            which have the argument's value in all of the function.
        outputs: tensors, operations (run, and given as None) or names, in any structure; what a
            list of one names is given by itself.
        prune: leave out operations with effects that the outputs do not need; else a call runs
            all of the graph's.

    Raises:
        NotFoundError: the graph has no such name.
        InvalidArgumentError: an input is no tensor, or is given twice.

    Source: "RFC: Functions, not sessions", 2018, section "Derived/Related Graphs".

    Examples:
        >>> with engine.Graph().as_default() as graph:
        ...     x = engine.placeholder("float32", [])
        ...     y = x * x
        >>> engine.graph_function(graph, [x], [y])(engine.constant(3.0))
        Tensor(9., shape=(), dtype=float32)
    """
    feeds = [graph.as_graph_element(x) for x in inputs]
    tensors = [x for x in feeds if isinstance(x, GraphTensor)]
    if len(tensors) != len(feeds) or len({id(x) for x in tensors}) != len(tensors):
        raise InvalidArgumentError(
            f"graph_function: the inputs must be different tensors, got {list(inputs)}",
            remedy='name a tensor by its operation and output: "Square:0"',
        )
    if type(outputs) is list and len(outputs) == 1:
        (outputs,) = outputs
    elements = map_structure(graph.as_graph_element, outputs)
    targets = [e for e in flatten(elements) if isinstance(e, Operation)]
    if not prune:
        targets = list(dict.fromkeys([*targets, *filter(_has_effect, graph.operations)]))
    context = _contexts.get(graph)
    if context is None:
        context = _contexts[graph] = StepContext(SessionResources().get)
    ends = {id(e): e for e in flatten(elements) if isinstance(e, GraphTensor)}
    if any(x.op.definition is read_variable for x in tensors):
        step = _fed_everywhere(graph, list(ends.values()), tensors, targets)
        graph, tensors, targets = step.graph, step.feeds[: len(tensors)], step.targets
        ends = dict(zip(ends, step.fetches, strict=True))
    structure = map_structure(lambda e: ends.get(id(e)), elements)
    return ConcreteFunction(graph, "graph_function", tensors, structure, targets, context)


def _fed_everywhere(
    graph: Graph,
    outputs: Sequence[GraphTensor],
    inputs: Sequence[GraphTensor],
    targets: Sequence[Operation],
) -> StepGraph:
    """A copy of the function, in which all reads of a variable among the inputs give the input."""
    captured = [pair for pair in graph.captures.values() if id(pair[1]) not in map(id, inputs)]
    feeds = [*inputs, *(inner for _, inner in captured)]
    step = StepGraph.of(outputs, feeds, targets, other_reads(inputs))
    for (outer, _), inner in zip(captured, step.feeds[len(inputs) :], strict=True):
        step.graph.captures[id(outer)] = outer, inner
    return step


def _has_effect(op: Operation) -> bool:
    writes = any(x.dtype == resource for x in op.inputs) and not op.definition.read_only
    return writes or op.definition.stateful
