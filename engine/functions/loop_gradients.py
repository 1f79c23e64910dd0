"""Gradients of loops: the values of each iteration are kept, and a Scan takes them in reverse.

For body(carry, x, constants) -> (carry, y) the backward body takes the gradient of the carry, that
of this iteration's y, and what it needs of this iteration's values; it gives the gradient of the
carry before, that of x, and adds to those of the constants. What it needs becomes a further output
of the forward operation: the values of all iterations, stacked.

Source: Yu et al., "Dynamic Control Flow in Large-Scale Machine Learning", 2018, arXiv:1805.01772,
    section 5.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import InternalError, UnimplementedError
from ..gradients.backprop import backpropagate
from ..graph import GraphTensor, Operation, OpView, Tensor, TensorShape, TensorSpec, resource
from ..ops.array.indexed_slices import IndexedSlices
from ..ops.control.iterations import join_iterations
from ..ops.control.structured import SCAN, stacked_spec
from ..ops.core.basic import const_op, constant, zeros_like
from ..ops.core.dispatch import apply, as_input
from ..ops.core.op_def import Grads
from ..ops.core.recording import notify, paused, recorders
from ..ops.core.registry import no_gradient
from ..ops.math.arithmetic import add
from ..ops.state.variable import read_variable
from .func_graph import FuncGraph
from .subgraph import Subgraph


class _Loop(NamedTuple):
    """A loop as its gradient sees it.

    The inputs of the operation are the one that tells the number of iterations, `carries` first
    values, `slices` sequences, and constants; its outputs the carries, `shift` other things, and
    the stacked outputs of the body after the carries.
    """

    operation: Operation
    body: Subgraph
    carries: int
    slices: int
    shift: int
    reverse: bool
    size: int | None
    steps: Tensor

    @staticmethod
    def of(op: OpView) -> _Loop:
        operation = operation_of(op)
        attrs = operation.attrs
        if operation.definition in SCAN:
            how = (attrs["carries"], attrs["slices"], 0, attrs["reverse"], attrs["size"])
            return _Loop(operation, attrs["body"], *how, op.inputs[0])
        carries = attrs["variables"]
        return _Loop(operation, attrs["body"], carries, 0, 1, False, None, op.outputs[carries])

    def stacked(self, tensor: GraphTensor) -> GraphTensor | None:
        """The values of a tensor of the body in all iterations, if the operation gives them."""
        for i, y in enumerate(self.body.outputs):
            if i >= self.carries and y is tensor:
                return self.operation.outputs[i + self.shift]
        return None


def operation_of(op: OpView) -> Operation:
    """The operation of a graph that a record is about."""
    first = op.outputs[0]
    if not isinstance(first, GraphTensor):
        raise UnimplementedError(
            "control flow that was applied to eager values has no gradient",
            remedy="call it inside a function, or use while_loop, scan and cond",
        )
    return first.op


def extend(operation: Operation, attrs: dict[str, Any], specs: Sequence[TensorSpec]) -> None:
    """Give an operation further outputs. Plans made before keep computing those they know."""
    first = len(operation.outputs)
    more = tuple(GraphTensor(operation, first + i, spec) for i, spec in enumerate(specs))
    operation.attrs = {**operation.attrs, **attrs}
    operation._outputs = (*operation.outputs, *more)
    if recorders.active:  # gradients of higher order flow through what is kept too
        definition: Any = operation.definition
        notify(definition, operation.inputs, operation.attrs, operation.outputs)


class _Backward(NamedTuple):
    """The traced backward body: gradients of the carries `live`, of slices, of constants."""

    graph: FuncGraph
    live: list[int]
    dys: list[int]
    carried: list[GraphTensor]  # the gradients of the carries before this iteration
    sliced: dict[int, GraphTensor]  # of the slices, by number of the body's input
    summed: dict[int, GraphTensor]  # of the constants up to this iteration, likewise
    rows: dict[int, _Rows]  # of constants of which rows are looked up, in this iteration, likewise
    arguments: list[GraphTensor]  # gradients of carries, sums, gradients of ys
    sums: list[TensorSpec]


class _Rows(NamedTuple):
    """IndexedSlices of one iteration."""

    values: GraphTensor
    indices: GraphTensor
    shape: TensorShape

    @staticmethod
    def of(graph: FuncGraph, slices: IndexedSlices) -> _Rows:
        values, indices = (as_input(graph, x) for x in (slices.values, slices.indices))
        return _Rows(values, indices, slices.shape)

    def joined(self, results: Iterator[Tensor]) -> IndexedSlices:
        """Those of all iterations, whose parts come next among the outputs of the loop."""
        values, indices = next(results), next(results)
        return IndexedSlices(join_iterations(values), join_iterations(indices), self.shape)


def loop_gradient(op: OpView, *douts: Tensor | None) -> Grads:
    """The gradients of a While or Scan for its inputs."""
    found: Grads = loop_rows(op, (), *douts)
    return found


def loop_rows(op: OpView, by_rows: Collection[int], *douts: Tensor | None) -> Any:
    """The same, where those of some inputs may be IndexedSlices: of constants of the loop."""
    loop = _Loop.of(op)
    body, carries = loop.body, loop.carries
    dcarry = douts[:carries]
    dys = {
        i - loop.shift: dy
        for i, dy in enumerate(douts)
        if i >= carries + loop.shift and dy is not None
    }
    live = [
        i
        for i, dy in enumerate(dcarry)
        if dy is not None and body.inputs[i].dtype.is_differentiable
    ]
    while True:  # a carry that another one's gradient flows into has one too
        back = _trace_backward(loop, live, list(dys), {p - 1 for p in by_rows})
        if back.live == live:
            break
        live = back.live
    for_body, for_constants = _connect(loop, op, back)
    initial = [zeros_like(op.outputs[i]) if (dy := dcarry[i]) is None else dy for i in live]
    zeros = [_zeros(op.inputs[p + 1], spec) for p, spec in zip(back.summed, back.sums, strict=True)]
    inner_slices = [inner for inner, _ in for_body]
    inner_constants = [inner for inner, _ in for_constants]
    function = Subgraph(
        back.graph,
        [*back.arguments, *inner_slices, *inner_constants],
        [
            *back.carried,
            *back.summed.values(),
            *back.sliced.values(),
            *(part for rows in back.rows.values() for part in rows[:2]),
        ],
        back.graph.effects,
    )
    attrs = {
        "body": function,
        "carries": len(live) + len(zeros),
        "slices": len(dys) + len(for_body),
        "reverse": not loop.reverse,
        "size": loop.size,
    }
    inputs = [
        loop.steps,
        *initial,
        *zeros,
        *dys.values(),
        *(outer for _, outer in for_body),
        *(outer for _, outer in for_constants),
    ]
    found = apply(
        SCAN[function.stateful], inputs, attrs, f"{loop.operation.name.rpartition('/')[2]}_backward"
    )
    places = [*live, *back.summed, *back.sliced]
    left = iter(found)
    by_input: dict[int, Any] = {p: next(left) for p in places}
    by_input |= {p: rows.joined(left) for p, rows in back.rows.items()}
    for p in _with_zeros(loop):
        by_input.setdefault(p, zeros_like(op.inputs[p + 1]))
    return [None, *(by_input.get(p) for p in range(len(op.inputs) - 1))]


def _with_zeros(loop: _Loop) -> Iterator[int]:
    """The inputs of the body, by number, whose gradient is 0 where none comes from the results.

    A first value is the result of a loop without iterations, so results depend on each; and what
    flows into any of the results of the body has a part in the loop, if not in what is asked for.
    """
    body = loop.body
    operations = body.operations_for([y for y in body.outputs if y is not None])
    results = {id(y) for y in body.outputs if y is not None}
    for p, x in enumerate(body.inputs):
        if not x.dtype.is_differentiable or x.dtype == resource:
            continue
        reached = {id(x)}
        for op in operations:
            if _passes_gradients(op) and any(id(y) in reached for y in op.inputs):
                reached.update(id(y) for y in op.outputs if y.dtype.is_differentiable)
        if p < loop.carries or reached & results:
            yield p


def _passes_gradients(op: Operation) -> bool:
    return getattr(op.definition, "gradient", None) not in (None, no_gradient)


def _trace_backward(
    loop: _Loop, live: list[int], dys: list[int], by_rows: Collection[int]
) -> _Backward:
    body = loop.body
    ys = [y for i in (*live, *dys) if (y := body.outputs[i]) is not None]
    operations = body.operations_for(ys)
    graph = FuncGraph(f"{body.graph.name}_backward", outer=body.graph)
    xs = [p for p, x in enumerate(body.inputs) if x.dtype.is_differentiable or x.dtype == resource]
    first_constant = loop.carries + loop.slices
    with graph.as_default(), paused():
        carried = [graph.add_argument(body.inputs[i].spec, f"d_carry_{i}") for i in live]
        # The sums of the constants' gradients: their specs are known after the walk, but the walk
        # does not need them, so their placeholders are made then and put in order.
        arriving = [
            graph.add_argument(y.spec, f"d_y_{i}")
            for i, y in zip(dys, ys[len(live) :], strict=True)
        ]
        inputs = [body.inputs[p] for p in xs]
        some = [body.inputs[p] for p in by_rows if p >= first_constant]
        dxs = backpropagate(operations, ys, inputs, [*carried, *arriving], slices=some)
        found = dict(zip(xs, dxs, strict=True))
        grown = sorted({*live, *(p for p in xs if p < loop.carries and found[p] is not None)})
        new_carries, sliced, summed, sums, totals = [], {}, {}, [], []
        rows: dict[int, _Rows] = {}
        for p in live:
            dx = found[p]
            new_carries.append(_no_gradient(carried, live, body, p) if dx is None else dx)
        for p in xs:
            dx = found[p]
            if dx is None or p < loop.carries:
                continue
            if isinstance(dx, IndexedSlices):
                rows[p] = _Rows.of(graph, dx)
            elif p < first_constant:
                sliced[p] = as_input(graph, dx)
            else:
                total = graph.add_argument(dx.spec, f"d_constant_{p}")
                totals.append(total)
                sums.append(dx.spec)
                summed[p] = as_input(graph, add(total, dx))
        carries = [as_input(graph, dx) for dx in new_carries]
    arguments = [*carried, *totals, *arriving]
    return _Backward(graph, grown, dys, carries, sliced, summed, rows, arguments, sums)


def _no_gradient(
    carried: Sequence[GraphTensor], live: Sequence[int], body: Subgraph, p: int
) -> Tensor:
    """Zeros for a carry that the next one does not depend on."""
    own = carried[live.index(p)]
    return zeros_like(own if own.shape.is_fully_defined else body.inputs[p])


def _zeros(outer: Tensor, spec: TensorSpec) -> Tensor:
    """Where the sum of a constant's gradients starts; for a variable's handle, like its value."""
    if outer.dtype != resource:
        return zeros_like(outer)
    if spec.shape.is_fully_defined:
        return constant(0, spec.dtype, spec.shape)
    return zeros_like(read_variable(outer, shape=spec.shape, dtype=spec.dtype))


def _connect(
    loop: _Loop, op: OpView, back: _Backward
) -> tuple[list[tuple[GraphTensor, Tensor]], list[tuple[GraphTensor, Tensor]]]:
    """What the backward body uses of the forward one, as (its placeholder, tensor outside).

    Returns the pairs whose tensors are sliced, and those that stay as they are. The forward
    operation gets further outputs for what it does not give yet.
    """
    body = loop.body
    place = {id(x): p for p, x in enumerate(body.inputs)}
    missing: dict[int, GraphTensor] = {}
    uses: list[tuple[GraphTensor, GraphTensor]] = []
    sliced: list[tuple[GraphTensor, Tensor]] = []
    constants: list[tuple[GraphTensor, Tensor]] = []
    for outer, inner in back.graph.captures.values():
        if not isinstance(outer, GraphTensor) or outer.graph is not body.graph:
            constants.append((inner, outer))
            continue
        p = place.get(id(outer))
        if p is not None and p >= loop.carries:
            pairs = constants if p >= loop.carries + loop.slices else sliced
            pairs.append((inner, op.inputs[p + 1]))
        elif outer.op.definition is const_op:
            value: Any = outer.op.attrs
            constants.append((inner, constant(value["value"], value["dtype"])))
        elif outer.dtype == resource:
            raise InternalError(f"the gradient of a loop needs the handle {outer.name}")
        else:
            uses.append((inner, outer))
            if loop.stacked(outer) is None:
                missing[id(outer)] = outer
    if missing:
        more = list(missing.values())
        body = body.extended(more)
        specs = [stacked_spec(t.spec, loop.size) for t in more]
        extend(loop.operation, {"body": body}, specs)
        loop = loop._replace(body=body)
    for inner, used in uses:
        stack = loop.stacked(used)
        assert stack is not None
        sliced.append((inner, stack))
    return sliced, constants
