"""`gradients`: extend a graph with the operations that compute derivatives."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import Any

from ..errors import ArgumentTypeError
from ..graph import Graph, GraphTensor, Operation, Tensor, building
from ..ops.core.basic import identity
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import as_input, encloses
from ..ops.core.recording import Record
from .backprop import AppliedOp, backpropagate, fill_unconnected, weights_of


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    *,
    stop_gradients: Any = (),
    unconnected: str = "none",
    name: str = "gradients",
) -> list[Tensor | None]:
    """d sum(ys) / dx for each x in `xs`, as tensors added to the graph of `ys`.

    Contributions over several paths are summed; an x that no y depends on gives None (zeros with
    `unconnected="zero"`). The results are ordinary tensors: differentiate them again for higher
    order. The gradient of a variable of which rows alone are looked up (`gather`, an Embedding) is
    an IndexedSlices, which stands for a tensor everywhere.

    Inside of a branch, a loop body or a function, what `ys` owe to tensors from outside counts: the
    path goes on in the graphs around it. What a caller passes as an argument, or a loop carries, is
    a variable of its own.

    Args:
        ys: a graph tensor or a variable, or a list of them.
        xs: tensors or variables of the graph, or from outside of it.
        grad_ys: a weight for each y, ones by default (and for None).
        stop_gradients: tensors to be taken as constants.
        unconnected: what an x that no y depends on gives: "none" or "zero".
        name: scope of the operations that are added.

    Raises:
        InvalidArgumentError: a y belongs to no graph, or a weight does not fit.
        NoGradientError: an op on the way has no gradient.

    Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
        arXiv:1603.04467, section 4.1.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     x = engine.constant(3.0)
        ...     session.run(engine.gradients(x * x, [x]))
        [np.float32(6.0)]
    """
    ys = [_target(y) for y in _as_list(ys)]
    xs = _as_list(xs)
    if not ys:
        return [None] * len(xs)
    graph: Graph = max((y.graph for y in ys), key=_depth)  # the others are around it
    for weight in () if grad_ys is None else _as_list(grad_ys):
        # In a gradient function of the user's, weights are arguments of a graph inside theirs.
        if isinstance(weight, GraphTensor) and encloses(graph, weight.graph):
            graph = weight.graph
    scope = nullcontext() if building() is graph else graph.as_default()
    with scope, graph.name_scope(name):
        inside = [_source(graph, x) for x in xs]
        stopped = {id(_source(graph, t)) for t in _as_list(stop_gradients)}
        dys = None if grad_ys is None else weights_of(ys, _as_list(grad_ys))
        if dys is not None:  # a weight may itself be a result, and results belong to the graph
            dys = [dy if dy is None else as_input(graph, dy) for dy in dys]
        found = backpropagate(path_to(ys, stopped), ys, inside, dys, slices=True)
        return fill_unconnected(found, xs, unconnected)


def _target(y: Any) -> GraphTensor:
    """A y as a tensor of a graph: a variable's value, read in the graph that is being built."""
    tensor = convert_to_tensor(y) if hasattr(y, "handle") else y
    if not isinstance(tensor, GraphTensor):
        raise ArgumentTypeError(
            f"gradients() extends a graph, and {y!r} belongs to none",
            remedy="use GradientTape or laminar.grad for values that are computed at once",
        )
    return tensor


def _source(graph: Graph, x: Any) -> Tensor:
    """The tensor that carries the gradient of `x`, in `graph` or outside of it."""
    tensor = carrier(x)
    if isinstance(tensor, GraphTensor) and not encloses(tensor.graph, graph):
        as_input(graph, tensor)  # tells what is wrong
    return tensor


def source_tensor(graph: Graph | None, x: Any) -> Tensor:
    """The tensor of `graph` that carries the gradient of `x`."""
    return carrier(x) if graph is None else as_input(graph, carrier(x))


def carrier(x: Any) -> Tensor:
    """The tensor that carries the gradient of `x`: a variable's handle, else `x` itself."""
    handle = getattr(x, "handle", None)
    tensor: Tensor = x if handle is None else handle
    return tensor


def path_to(
    ys: Sequence[GraphTensor], stopped: Collection[int] = (), home: Graph | None = None
) -> list[AppliedOp]:
    """What computes `ys`, in order, from the outermost graph (or `home`, without it) to theirs.

    What a graph has taken from outside is there as an Identity of the tensor outside. Operations
    with an output in `stopped` (ids) are left out.
    """
    outside: dict[Graph, dict[int, Tensor]] = {}  # what the placeholders of a graph stand for
    needed: dict[Operation, Tensor | None] = {}
    stack = [y.op for y in ys]
    while stack:
        op = stack.pop()
        if op in needed or op.graph is home:
            continue
        if op.graph not in outside:
            outside[op.graph] = op.graph.taken_from_outside()
        taken = outside[op.graph].get(id(op.outputs[0])) if op.outputs else None
        if home is not None and taken is not None:
            taken = home.standing_for(taken)
        needed[op] = taken
        stack.extend(x.op for x in (*op.inputs, taken) if isinstance(x, GraphTensor))
    return [
        op if taken is None else Record(identity, (taken,), {}, op.outputs)
        for op, taken in sorted(
            needed.items(), key=lambda item: (_depth(item[0].graph), item[0].id)
        )
        if not any(id(t) in stopped for t in op.outputs)
    ]


def _depth(graph: Graph) -> int:
    """How many graphs are around it."""
    return 0 if graph.outer is None else 1 + _depth(graph.outer)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
