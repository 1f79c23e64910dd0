"""A function called while a graph is built: its operations are copied into that graph."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph import Graph, GraphTensor, Operation, Tensor
from ..ops.core.basic import identity
from ..ops.core.dispatch import as_input
from ..ops.core.recording import notify, recorders
from .captures import watch_variables


def inlined(
    graph: Graph,
    name: str,
    inputs: Sequence[GraphTensor],
    arguments: Sequence[Tensor],
    captured: Sequence[Tensor],
    operations: Sequence[Operation],
    outputs: Sequence[GraphTensor],
    effects: Sequence[Operation],
) -> list[Tensor]:
    """Copies of `outputs` in another graph.

    Args:
        graph: that graph.
        name: of the scope of the copies.
        inputs: the placeholders of arguments and captures.
        arguments: what stands for the first of them.
        captured: what stands for the others.
        operations: what is copied, inputs first.
        outputs: see above.
        effects: those among the operations that run although no output needs them.
    """
    inside: dict[int, GraphTensor] = {}
    copies: dict[str, Operation] = {}
    for x, value in zip(inputs, [*arguments, *captured], strict=True):
        inside[id(x)] = as_input(graph, value)
    watch_variables(captured, [inside[id(x)] for x in inputs[len(arguments) :]])
    for x in inputs:
        copies[x.op.name] = inside[id(x)].op  # something may wait for it
    with graph.name_scope(name):
        for op in operations:
            taken = [inside[id(x)] for x in op.inputs]
            controls = [copies[c.name] for c in op.control_inputs if c.name in copies]
            with graph.control_dependencies(controls), graph.device(op.device):
                copy = graph.add(op.definition, taken, op.attrs, name=op.name)
            copy.location, copy.layer = op.location, op.layer
            copy.colocation += tuple(copies[n].name for n in op.colocation if n in copies)
            copies[op.name] = copy
            for y, twin in zip(op.outputs, copy.outputs, strict=True):
                twin.set_shape(y.shape)
                inside.setdefault(id(y), twin)
            if recorders.active:
                notify(op.definition, taken, copy.attrs, copy.outputs)  # type: ignore[arg-type]  # the table's only kind
        found = [inside[id(y)] for y in outputs]
        last = [copies[op.name] for op in effects]
        if not last or graph.captures_values:  # the graph of a function runs them by itself
            return list(found)
        with graph.control_dependencies(last):
            return [identity(y) for y in found]
