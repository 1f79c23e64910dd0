"""Reverse mode over a list of applied ops: the one algorithm behind tapes and `gradients`.

`records` are in order of application, so inputs stand before what is computed from them. State:
    reached: ids of the tensors that depend on `xs`;
    partials[id]: contributions to the gradient of a tensor, summed when they are asked for;
    by_rows: ids of the variables' handles, and of what only hands on their values: where their
        gradients are those of rows that were looked up, they stay IndexedSlices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from ..errors import InternalError, InvalidArgumentError, NoGradientError
from ..graph import GraphTensor, Operation, OpView, Tensor, building, resource
from ..ops.array.indexed_slices import IndexedSlices, sum_slices
from ..ops.array.shape import reshape
from ..ops.core.basic import ones_like, zeros_like
from ..ops.core.convert import convert_to_tensor
from ..ops.core.gradient_pass import GradientPass
from ..ops.core.op_def import OpDef
from ..source import inside_layer, layer_path
from .named import named_gradient


class AppliedOp(OpView, Protocol):
    """An application of an op: an operation of a graph, or a record of a tape."""

    @property
    def definition(self) -> Any: ...


def backpropagate(
    records: Iterable[AppliedOp],
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    dys: Sequence[Tensor | None] | None = None,
    *,
    slices: bool | Collection[Tensor] = False,
) -> list[Any]:
    """The gradient of sum(ys * dys) with respect to each of `xs`, None where no y depends on it.

    Args:
        records: the applications between `xs` and `ys`, and any others, in order.
        ys: what is differentiated.
        xs: with respect to what. For a variable, its handle.
        dys: weights of `ys`; ones by default.
        slices: whether the gradient of a variable may be IndexedSlices, or the xs whose gradients
            may; else all are tensors.

    Raises:
        NoGradientError: an op on the way has no gradient.
        InvalidArgumentError: a y is neither real nor weighted, or a weight does not fit.
    """
    wanted = {id(x) for x in xs}
    reached = set(wanted)
    if isinstance(slices, bool):
        slices = [x for x in xs if x.dtype == resource] if slices else []
    kept_rows = {id(x) for x in slices}
    by_rows = set(kept_rows)
    path: list[AppliedOp] = []
    for record in records:
        if any(id(x) in reached for x in record.inputs):
            live = [y for y in record.outputs if y.dtype.is_differentiable or y.dtype == resource]
            if live:
                reached.update(id(y) for y in live)
                path.append(record)
                if by_rows and _goes_by_rows(record, by_rows):
                    by_rows.add(id(record.outputs[0]))
    partials: dict[int, list[Any]] = {}
    for i, y in enumerate(ys):
        dy = dys[i] if dys is not None else None
        if id(y) in reached:
            partials.setdefault(id(y), []).append(_seed(y, dy))
    with GradientPass():
        for record in reversed(path):
            douts = [_total(partials, y, keep=id(y) in wanted) for y in record.outputs]
            if all(d is None for d in douts):
                continue
            for x, dx in zip(record.inputs, _gradient_of(record, douts, by_rows), strict=True):
                if dx is not None and id(x) in reached:
                    partials.setdefault(id(x), []).append(dx)
    found: list[Any] = [_total(partials, x, keep=True) for x in xs]
    if not by_rows:
        return found
    return [dx if id(x) in kept_rows else _dense(dx) for x, dx in zip(xs, found, strict=True)]


def fill_unconnected(
    found: Sequence[Tensor | None], leaves: Sequence[Any], unconnected: str
) -> list[Tensor | None]:
    """The gradients for `leaves` (tensors or variables); what is missing is None or zeros.

    Raises:
        InvalidArgumentError: `unconnected` is neither "none" nor "zero".
    """
    if unconnected not in ("none", "zero"):
        raise InvalidArgumentError(
            f'unconnected gradients can be "none" or "zero", got {unconnected!r}'
        )
    if unconnected == "none":
        return list(found)
    return [
        zeros_like(convert_to_tensor(leaf)) if dx is None else dx
        for leaf, dx in zip(leaves, found, strict=True)
    ]


def weights_of(ys: Sequence[Tensor], weights: Sequence[Any]) -> list[Tensor | None]:
    """The weights given for `ys` as tensors; None stands for ones."""
    if len(weights) != len(ys):
        raise InvalidArgumentError(f"{len(ys)} results are weighted by {len(weights)} gradients")
    return [
        None if w is None else convert_to_tensor(w, None if isinstance(w, Tensor) else y.dtype)
        for y, w in zip(ys, weights, strict=True)
    ]


def _seed(y: Tensor, dy: Tensor | None) -> Tensor:
    if dy is None:
        if not y.dtype.is_floating:
            raise InvalidArgumentError(
                f"the gradient of {y!r} is not defined: it is {y.dtype}",
                remedy="differentiate a real floating tensor, or weight it with grad_ys",
            )
        return ones_like(y)
    if dy.dtype == y.dtype and _same_but_for_ones(dy, y):
        return reshape(dy, tuple(y.shape))
    if dy.dtype != y.dtype or not dy.shape.is_compatible_with(y.shape):
        raise InvalidArgumentError(
            f"the weight of {y.spec} in a gradient must have its shape and dtype, got {dy.spec}"
        )
    return dy


def _same_but_for_ones(dy: Tensor, y: Tensor) -> bool:
    """Whether the shapes are known, and differ in axes of size 1 alone: (1,) for a scalar, say."""
    if dy.shape == y.shape or not (dy.shape.is_fully_defined and y.shape.is_fully_defined):
        return False
    return [n for n in dy.shape if n != 1] == [n for n in y.shape if n != 1]


def _total(partials: dict[int, list[Any]], x: Tensor, *, keep: bool) -> Any:
    parts = partials.get(id(x)) if keep else partials.pop(id(x), None)
    if parts is None:
        return None
    total = sum_slices(parts)
    if keep:
        partials[id(x)] = [total]
    return total


def _beside(record: AppliedOp) -> AbstractContextManager[None]:
    """A block whose operations are made for the device that the record's operation is made for."""
    graph = building()
    where = record.outputs[0] if record.outputs else None
    if graph is None or not isinstance(where, GraphTensor) or not where.op.device:
        return nullcontext()
    return graph.device(where.op.device)


def _for_layer(record: AppliedOp) -> AbstractContextManager[None]:
    """A block whose operations belong to the layer that the record's operation belongs to."""
    where = record.outputs[0] if record.outputs else None
    if not isinstance(where, GraphTensor) or not where.op.layer or layer_path():
        return nullcontext()
    return inside_layer(where.op.layer)


def _goes_by_rows(record: AppliedOp, by_rows: Collection[int]) -> bool:
    """Whether the gradient of what an application takes first may be IndexedSlices."""
    definition: OpDef = record.definition
    return definition.row_gradient is not None and id(record.inputs[0]) in by_rows


def _dense(dx: Any) -> Any:
    return convert_to_tensor(dx) if isinstance(dx, IndexedSlices) else dx


def _gradient_of(
    record: AppliedOp, douts: list[Any], by_rows: Collection[int]
) -> Sequence[Tensor | None]:
    definition: OpDef = record.definition
    own = record.graph.gradients.get(record.name) if isinstance(record, Operation) else None
    if own is not None:
        own = named_gradient(own) if isinstance(own, str) else own
        with _beside(record), _for_layer(record):
            return _one_for_each(record, own(record, *map(_dense, douts)))
    if by_rows and _goes_by_rows(record, by_rows):
        assert definition.row_gradient is not None
        with _beside(record), _for_layer(record):
            rows = definition.row_gradient(record, douts[0])
            if rows is not None:
                return rows, *(None for _ in record.inputs[1:])
            douts = [_dense(d) for d in douts]
    if definition.gradient is None:
        raise NoGradientError(
            f"{definition.type} has no gradient, and the result depends on its inputs through it",
            remedy="register one with .grad, or cut it off with stop_gradient",
            location=getattr(record, "location", None),
            layer=getattr(record, "layer", None),
        )
    inner, places = definition.inner_row_gradient, list[int]()
    if by_rows and inner is not None:
        places = [i for i, x in enumerate(record.inputs) if id(x) in by_rows]
    with _beside(record), _for_layer(record):
        if inner is not None and places:
            found = inner(record, places, *douts)
        else:
            found = definition.gradient(record, *douts)
    return _one_for_each(record, found)


def _one_for_each(record: AppliedOp, found: Any) -> Sequence[Tensor | None]:
    """What a gradient function gave, as one value for each input."""
    definition: OpDef = record.definition
    result: Sequence[Any] = (found,) if found is None or isinstance(found, Tensor) else found
    if len(result) != len(record.inputs):
        raise InternalError(
            f"the gradient of {definition.type} gives {len(result)} values "
            f"for {len(record.inputs)} inputs"
        )
    return result
