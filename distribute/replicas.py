"""A model called once per device, on shares of a batch, as if it had been called on the whole.

A model with layers that need the statistics of the whole batch (`synchronized`) is called once, and
its layers once per device; those that need the whole batch, and layers around them, are called on
that, on one device.

The outputs are joined again, so that losses and metrics see the whole batch. What a call leaves
behind is put together as that of the whole batch would be: with the share of each replica as its
weight for losses and reports that layers add, and for floating weights that layers update (all
replicas start from their values before the step); other state, such as that of random generators
and of metrics, passes from one replica to the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from laminar import ops
from laminar.engine.devices import device
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import FuncGraph
from laminar.engine.graph import Graph, GraphTensor, Tensor, building, resource
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.array.shares import join_shares, join_shares_op, share
from laminar.engine.ops.core.recording import paused
from laminar.engine.state import Variable
from laminar.layers.context import current
from laminar.layers.layer import Layer
from laminar.layers.masking import get_mask, set_mask
from laminar.tree import flatten, map_structure


class Sharers(Protocol):
    """Who share the calls of models among them.

    Attributes:
        least: how many examples there must be for each to have one.
    """

    least: int

    def call(
        self,
        layer: Any,
        first: GraphTensor,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The outputs of all for `call`, a call of `layer`; the rows of `first` are examples."""


class _Sharing(threading.local):
    """Among whom calls are shared that are made in `graph`; None, outside of steps.

    `by_layer` says that the calls of a model's parts are meant, inside a call of the model.
    """

    among: Sharers | None = None
    graph: Graph | None = None
    by_layer = False


_sharing = _Sharing()


@contextmanager
def sharing(among: Sharers | None, *, by_layer: bool = False) -> Iterator[None]:
    """Share the calls that are made in the graph being built."""
    before = _sharing.among, _sharing.graph, _sharing.by_layer
    _sharing.among, _sharing.graph, _sharing.by_layer = among, building(), by_layer
    try:
        yield
    finally:
        _sharing.among, _sharing.graph, _sharing.by_layer = before


def is_shared() -> bool:
    """Whether a call of a model that is made now, not by a layer, is to be shared."""
    is_outermost = current.context is None
    return _sharing.among is not None and is_outermost and _sharing.graph is building()


def shared_call(
    model: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What `call` gives, a call of `model`; each of those that share it computes its share.

    The arguments that are shared out are the tensors with as many rows as the first one.

    Raises:
        InvalidArgumentError: an output has no axis for the examples.
    """
    among = _sharing.among
    assert among is not None, "is_shared() says so"
    first = _first(args, kwargs, among.least)
    if first is None:
        return alone(call, args, kwargs)
    if not model.built:
        _build(call, args, kwargs)
    if _needs_whole(model):
        with sharing(among, by_layer=True):
            return call(*args, **kwargs)
    return among.call(model, first, call, args, kwargs)


def part_call(part: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call of a layer or another operation by the model that it is a part of."""
    among = _sharing.among
    if among is None or not _sharing.by_layer or _sharing.graph is not building():
        return part(*args, **kwargs)
    first = None if _needs_whole(part) else _first(args, kwargs, among.least)
    if first is None or not isinstance(part, Layer):
        return part(*args, **kwargs)
    return among.call(part, first, part, tuple(args), dict(kwargs))


def alone(call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call in which nothing is shared."""
    with sharing(None):
        return call(*args, **kwargs)


def _needs_whole(part: Any) -> bool:
    """Whether layers of it are to see the whole batch."""
    return isinstance(part, Layer) and any(
        getattr(layer, "synchronized", False) for layer in part._laminar_flatten_layers()
    )


def _first(args: Any, kwargs: Any, count: int) -> GraphTensor | None:
    """The first tensor with rows, None if it has too few of them to share."""
    first = next((x for x in flatten((tuple(args), dict(kwargs))) if has_rows(x)), None)
    few = first is not None and first.shape[0] is not None and first.shape[0] < count
    return None if few else first


def has_rows(x: Any) -> bool:
    """Whether it is a tensor of the step with an axis."""
    return isinstance(x, GraphTensor) and bool(x.shape.rank)


def _build(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make the weights, by a call whose operations are dropped."""
    graph = FuncGraph("spec")

    def symbol(x: Any) -> Any:
        return graph.add_argument(x.spec, "data") if isinstance(x, GraphTensor) else x

    with graph.as_default(), paused(), sharing(None):
        given = map_structure(symbol, (args, kwargs))
        call(*given[0], **given[1])


class Replicas:
    """The devices of this process, each of which computes a share of the rows.

    Args:
        devices: their names.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = devices
        self.least = len(devices)

    def call(
        self,
        layer: Any,
        first: GraphTensor,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        count = len(self._devices)
        size = dim_of(first, axis=0)
        whole = ops.cast(size, "float32")
        shares = [
            ops.cast(dim_of(_share(first, r, count), axis=0), "float32") / whole
            for r in range(count)
        ]
        state = [v for v in layer.non_trainable_weights if v.dtype.is_floating]
        before = [v.read_value() for v in state]
        earlier = take_losses(layer)
        after: list[list[Tensor]] = []
        outputs, left = [], []
        written: set[int] = set()
        for r, name in enumerate(self._devices):
            given = with_rows_of(first, (args, kwargs), partial(_share, r=r, count=count))
            for v, value in zip(state, before, strict=True):
                if id(v) in written:
                    v.assign(value)
            with device(name):
                mark = _mark()
                outputs.append(alone(call, *given))
                written |= _written(state, mark)
            after.append(
                [
                    v.read_value() if id(v) in written else b
                    for v, b in zip(state, before, strict=True)
                ]
            )
            left.append(take_losses(layer))
        for i, v in enumerate(state):
            if id(v) in written:
                v.assign(_mean([values[i] for values in after], shares))
        give_losses(layer, earlier, left, lambda values: _mean(values, shares))
        return joined(layer, outputs, lambda parts: join_shares(parts, size))


def with_rows_of(first: GraphTensor, arguments: Any, rows: Callable[[Any], Any]) -> Any:
    """Arguments with `rows(x)` in the place of each x with as many rows as `first`, and masks.

    What has no rows of the batch stays as it is.
    """

    def own(x: Any) -> Any:
        if not has_rows(x) or x.shape[0] != first.shape[0]:
            return x
        found = rows(x)
        mask = get_mask(x)
        if mask is not None:
            set_mask(found, rows(mask))
        return found

    return map_structure(own, arguments)


def joined(layer: Any, outputs: Sequence[Any], join: Callable[[Sequence[Any]], Any]) -> Any:
    """The outputs for the whole batch.

    Args:
        layer: whose outputs they are, for errors.
        outputs: structures of tensors, one for each share that was computed here.
        join: makes of the shares of one tensor the whole.

    Raises:
        InvalidArgumentError: an output has no axis for the examples.
    """

    def whole(*parts: Any) -> Any:
        if parts[0] is None:
            return None
        if not has_rows(parts[0]):
            raise InvalidArgumentError(
                f"{layer.name}: to be computed by several devices, outputs must have the "
                f"examples along their first axis, got {parts[0]}",
                remedy="give one row for each example, and reduce them in the loss",
            )
        found = join(parts)
        masks = [get_mask(part) for part in parts]
        if all(mask is not None for mask in masks):
            set_mask(found, join(masks))
        return found

    return map_structure(whole, *outputs)


def _share(x: Any, r: int, count: int) -> Any:
    """Share `r` of the rows of `x`: what a replica has computed, if they were joined."""
    made = x.op
    if made.definition is join_shares_op and len(made.inputs) == count + 1:
        return made.inputs[r]
    return share(x, r, count)


def _mean(values: Sequence[Any], shares: Sequence[Any]) -> Any:
    """The mean of the replicas' values, each with its share of the batch."""
    parts = [v * ops.cast(s, v.dtype) for v, s in zip(values, shares, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _mark() -> int:
    graph = building()
    return 0 if graph is None else graph.version


def _written(state: Sequence[Variable], mark: int) -> set[int]:
    """Which variables (by id) the operations made since `mark` update."""
    graph = building()
    if graph is None:
        return set()
    handles = {
        id(x)
        for op in graph.operations[mark:]
        if not op.definition.read_only
        for x in op.inputs
        if x.dtype == resource
    }
    captured = graph.captures
    return {
        id(v)
        for v in state
        if id(v.handle) in captured and id(captured[id(v.handle)][1]) in handles
    }


# What layers add in a call: by the layer's place, losses and (name, value) reports.
_Left = list[tuple[list[Any], list[tuple[str, Any]]]]


def take_losses(layer: Any) -> _Left:
    """What the layers of `layer` have added in a call; they forget it."""
    layers = layer._laminar_flatten_layers()
    left = [(list(part._laminar_losses), list(part._laminar_reports)) for part in layers]
    for part in layers:
        part._laminar_losses.clear()
        part._laminar_reports.clear()
    return left


def give_losses(
    layer: Any, earlier: _Left, left: Sequence[_Left], mean: Callable[[Sequence[Any]], Any]
) -> None:
    """Leave with each layer what earlier calls have left, and one on the whole batch would have.

    Args:
        layer: what was called.
        earlier: what was taken before the call.
        left: for each share that was computed here, what was taken after.
        mean: makes of the values of the shares that of the whole.
    """
    for part, (losses, reports), *parts in zip(
        layer._laminar_flatten_layers(), earlier, *left, strict=True
    ):
        if current.context is None:  # an outermost call forgets those before it
            losses, reports = [], []
        part._laminar_losses[:] = losses + [
            mean(values) for values in zip(*(losses for losses, _ in parts), strict=True)
        ]
        part._laminar_reports[:] = reports + [
            (rows[0][0], mean([ops.mean(value) for _, value in rows]))
            for rows in zip(*(reports for _, reports in parts), strict=True)
        ]
