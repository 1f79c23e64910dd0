"""`gradients`: extend a graph with the operations that compute derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import Graph, GraphTensor, Operation, Tensor, building
from ..ops.core.dispatch import as_input
from .backprop import backpropagate, fill_unconnected, weights_of


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
    order.

    Args:
        ys: a graph tensor or a list of them.
        xs: tensors or variables of the graph.
        grad_ys: a weight for each y, ones by default (and for None).
        stop_gradients: tensors to be taken as constants.
        unconnected: what an x that no y depends on gives: "none" or "zero".
        name: scope of the operations that are added.

    Raises:
        InvalidArgumentError: a y belongs to no graph, or a weight does not fit.
        UnimplementedError: an op on the way has no gradient.

    Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
        arXiv:1603.04467, section 4.1.
    """
    ys = _as_list(ys)
    for y in ys:
        if not isinstance(y, GraphTensor):
            raise InvalidArgumentError(
                f"gradients() extends a graph, and {y!r} belongs to none",
                remedy="use GradientTape or laminar.grad for values that are computed at once",
            )
    xs = _as_list(xs)
    graph: Graph = ys[0].graph
    scope = nullcontext() if building() is graph else graph.as_default()
    with scope, graph.name_scope(name):
        inside = [source_tensor(graph, x) for x in xs]
        stopped = {id(source_tensor(graph, t)) for t in _as_list(stop_gradients)}
        dys = None if grad_ys is None else weights_of(ys, _as_list(grad_ys))
        if dys is not None:  # a weight may itself be a result, and results belong to the graph
            dys = [dy if dy is None else as_input(graph, dy) for dy in dys]
        found = backpropagate(_path_to(ys, stopped), ys, inside, dys)
        return fill_unconnected(found, xs, unconnected)


def source_tensor(graph: Graph | None, x: Any) -> Tensor:
    """The tensor that carries the gradient of `x`: a variable's handle, else `x` itself."""
    handle = getattr(x, "handle", None)
    tensor: Tensor = x if handle is None else handle
    return tensor if graph is None else as_input(graph, tensor)


def _path_to(ys: Sequence[GraphTensor], stopped: set[int]) -> list[Operation]:
    """The operations whose values some y needs, in order of creation, without those `stopped`."""
    needed: dict[int, Operation] = {}
    stack = [y.op for y in ys]
    while stack:
        op = stack.pop()
        if op.id not in needed:
            needed[op.id] = op
            stack.extend(x.op for x in op.inputs)
    return [op for _, op in sorted(needed.items()) if not any(id(t) in stopped for t in op.outputs)]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
