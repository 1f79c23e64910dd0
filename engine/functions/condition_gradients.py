"""The gradient of a condition: a condition on the same index, of the gradients of the branches.

What a branch's gradient needs of its branch becomes a further output of the forward operation,
which the other branches do not have: only the gradient of the branch that was taken reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..gradients.backprop import backpropagate
from ..graph import DType, GraphTensor, OpView, Tensor, TensorShape, int64, resource
from ..ops.array.indexed_slices import IndexedSlices
from ..ops.control.structured import CASE, relaxed
from ..ops.core.basic import const_op, constant, zeros_like
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply, as_input
from ..ops.core.op_def import Grads
from ..ops.core.recording import paused
from ..ops.math.cast import cast
from ..ops.state.variable import read_variable
from .func_graph import FuncGraph
from .loop_gradients import extend, operation_of
from .subgraph import Subgraph


def condition_gradient(op: OpView, *douts: Tensor | None) -> Grads:
    """The gradients of a Case for its inputs: none for the index."""
    found: Grads = condition_rows(op, (), *douts)
    return found


def condition_rows(op: OpView, rows: Collection[int], *douts: Tensor | None) -> Any:
    """The same, where those of some inputs may be IndexedSlices: if no branch gives a tensor."""
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
            by_rows = [branch.inputs[p - 1] for p in rows]
            records, weights = branch.operations_for(ys), [dy for _, dy in pairs]
            found.append(backpropagate(records, ys, branch.inputs, weights, slices=by_rows))
        graphs.append(graph)
    wanted = [
        p for p, column in enumerate(zip(*found, strict=True)) if any(d is not None for d in column)
    ]
    if not wanted:
        return [None] * len(op.inputs)
    parts = {p: _parts_of([dxs[p] for dxs in found]) for p in wanted}
    outputs = []
    for branch, graph, dxs in zip(branches, graphs, found, strict=True):
        with graph.as_default(), paused():
            given_back: list[Tensor] = []
            for p in wanted:
                dx, kind = dxs[p], parts[p]
                if kind is not None:
                    given_back += kind.of(dx)
                else:
                    given_back.append(
                        _zeros(branch, p, found) if dx is None else convert_to_tensor(dx)
                    )
            outputs.append([as_input(graph, y) for y in given_back])
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
    left = iter(results)
    by_input = {p: next(left) if (r := parts[p]) is None else r.joined(left) for p in wanted}
    return [None, *(by_input.get(p) for p in range(len(op.inputs) - 1))]


class _Rows(NamedTuple):
    """What is known of IndexedSlices of which each branch gives some, or none."""

    shape: TensorShape
    dtype: DType

    def of(self, rows: IndexedSlices | None) -> list[Tensor]:
        """The values and the indices that a branch gives."""
        if rows is None:
            none = constant(0, self.dtype, [0, *self.shape[1:]])
            return [none, constant(0, int64, [0])]
        return [rows.values, cast(rows.indices, int64)]

    def joined(self, results: Iterator[Tensor]) -> IndexedSlices:
        """Those of the branch that was taken."""
        return IndexedSlices(next(results), next(results), self.shape)


def _parts_of(column: Sequence[Any]) -> _Rows | None:
    """The gradients of an input in all branches as IndexedSlices; None if one is a tensor."""
    rows = [dx for dx in column if dx is not None]
    if not all(isinstance(dx, IndexedSlices) for dx in rows):
        return None
    first = rows[0]
    return _Rows(first.shape, first.dtype)


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
