"""The gradient of a condition: a condition on the same index, of the gradients of the branches.

What a branch's gradient needs of its branch becomes a further output of the forward operation,
which the other branches do not have: only the gradient of the branch that was taken reads it.
"""

from __future__ import annotations

from typing import Any

from ..gradients.backprop import backpropagate
from ..graph import GraphTensor, OpView, Tensor, resource
from ..ops.control.structured import CASE, relaxed
from ..ops.core.basic import const_op, constant, zeros_like
from ..ops.core.dispatch import apply, as_input
from ..ops.core.recording import paused
from ..ops.core.registry import Grads
from ..ops.state.variable import read_variable
from .func_graph import FuncGraph
from .loop_gradients import extend, operation_of
from .subgraph import Subgraph


def condition_gradient(op: OpView, *douts: Tensor | None) -> Grads:
    """The gradients of a Case for its inputs: none for the index."""
    operation = operation_of(op)
    branches: tuple[Subgraph, ...] = operation.attrs["branches"]
    arriving = {
        i: dy for i, dy in enumerate(douts) if dy is not None and dy.dtype.is_differentiable
    }
    graphs, found = [], []
    for branch in branches:
        graph = FuncGraph(f"{branch.graph.name}_backward", outer=branch.graph)
        with graph.as_default(), paused():
            dys = [graph.add_argument(dy.spec, f"d_{i}") for i, dy in arriving.items()]
            pairs = [
                (y, dy)
                for i, dy in zip(arriving, dys, strict=True)
                if (y := branch.outputs[i]) is not None
            ]
            ys = [y for y, _ in pairs]
            found.append(
                backpropagate(branch.operations_for(ys), ys, branch.inputs, [dy for _, dy in pairs])
            )
        graphs.append(graph)
    wanted = [
        p for p, column in enumerate(zip(*found, strict=True)) if any(d is not None for d in column)
    ]
    if not wanted:
        return [None] * len(op.inputs)
    outputs = []
    for branch, graph, dxs in zip(branches, graphs, found, strict=True):
        with graph.as_default(), paused():
            outputs.append(
                [
                    as_input(graph, _zeros(branch, p, found) if (dx := dxs[p]) is None else dx)
                    for p in wanted
                ]
            )
    # What the backward branches take: (tensor outside, its placeholder in each branch). A tensor
    # stands here twice if a branch has two placeholders for it.
    used: list[tuple[Tensor, dict[int, GraphTensor]]] = []
    for k, graph in enumerate(graphs):
        for outer, inner in graph.captures.values():
            there = _outside(op, branches, k, outer)
            if there is None:
                branches = _keep(operation, branches, k, outer)
                there = operation.outputs[-1]
            row = next((r for t, r in used if t is there and k not in r), None)
            if row is None:
                row = {}
                used.append((there, row))
            row[k] = inner
    inputs: list[list[GraphTensor]] = [graph.arguments[: len(arriving)] for graph in graphs]
    for there, row in used:
        for k, graph in enumerate(graphs):
            inner = row[k] if k in row else graph.add_argument(there.spec, "unused")
            inputs[k] = [*inputs[k], inner]
    functions = tuple(
        Subgraph(graph, taken, ys, graph.effects)
        for graph, taken, ys in zip(graphs, inputs, outputs, strict=True)
    )
    given = [op.inputs[0], *arriving.values(), *(there for there, _ in used)]
    name = f"{operation.name.rpartition('/')[2]}_backward"
    results = apply(CASE[any(f.stateful for f in functions)], given, {"branches": functions}, name)
    by_input = dict(zip(wanted, results, strict=True))
    return [None, *(by_input.get(p) for p in range(len(op.inputs) - 1))]


def _zeros(branch: Subgraph, p: int, found: list[list[Tensor | None]]) -> Tensor:
    """The gradient of an input in a branch that does not use it."""
    x: Any = branch.inputs[p]
    if x.dtype != resource:
        return zeros_like(x)
    spec = next(dx.spec for dxs in found if (dx := dxs[p]) is not None)
    if spec.shape.is_fully_defined:
        return constant(0, spec.dtype, spec.shape)
    return zeros_like(read_variable(x, shape=spec.shape, dtype=spec.dtype))


def _outside(op: OpView, branches: tuple[Subgraph, ...], k: int, tensor: Tensor) -> Tensor | None:
    """The tensor outside of the operation for one of branch `k`, None if it is not given yet."""
    branch = branches[k]
    if not isinstance(tensor, GraphTensor) or tensor.graph is not branch.graph:
        return tensor
    for p, x in enumerate(branch.inputs):
        if x is tensor:
            return op.inputs[p + 1]
    if tensor.op.definition is const_op:
        value: Any = tensor.op.attrs
        return constant(value["value"], value["dtype"])
    operation = operation_of(op)
    for i, y in enumerate(branch.outputs):
        # An output that all branches have is not as precise as that of one branch.
        if y is tensor and i < len(operation.outputs):
            return operation.outputs[i]
    return None


def _keep(
    operation: Any, branches: tuple[Subgraph, ...], k: int, tensor: Tensor
) -> tuple[Subgraph, ...]:
    """Give an operation one more output, which branch `k` alone has."""
    assert isinstance(tensor, GraphTensor)
    extended = tuple(b.extended([tensor if j == k else None]) for j, b in enumerate(branches))
    column = [b.output_specs[-1] for b in extended]
    extend(operation, {"branches": extended}, [relaxed(column)])
    return extended
