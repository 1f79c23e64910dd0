"""A model called once per device, on slices of a batch, as if it had been called on the whole.

The outputs are joined again, so that losses and metrics see the whole batch. What a call leaves
behind is put together as that of the whole batch would be: with the share of each slice as its
weight for losses and reports that layers add, and for floating state that layers update (all
replicas start from its value before the step); other state, such as that of random generators,
passes from one replica to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor, building, resource
from laminar.engine.graph.context import device
from laminar.engine.state import Variable
from laminar.layers.masking import get_mask, set_mask
from laminar.tree import flatten, map_structure


def replicated(model: Any, x: Any, devices: Sequence[str], *, training: bool) -> Any:
    """The outputs of `model` for the batch `x`; replica r computes its slice on `devices[r]`."""
    size = ops.shape(flatten(x)[0])[0]
    state = [v for v in model.non_trainable_variables if v.dtype.is_floating]
    before = [v.read_value() for v in state]
    after: list[list[Tensor]] = []
    outputs, shares, left = [], [], []
    written: set[int] = set()
    for r, name in enumerate(devices):
        begin, end = (size * r) // len(devices), (size * (r + 1)) // len(devices)
        # With fewer examples than devices some have none of their own. They compute one that is
        # then dropped: layers need not bear an empty batch.
        stop = ops.maximum(end, begin + 1)
        count = end - begin
        for v, value in zip(state, before, strict=True):
            if id(v) in written:
                v.assign(value)
        with device(name):
            mark = _mark()
            y = model(map_structure(lambda t: _rows(t, begin, stop), x), training=training)  # noqa: B023  # called now
            outputs.append(map_structure(lambda t: _rows(t, 0, count), y))  # noqa: B023  # called now
            written |= _written(state, mark)
        after.append(
            [v.read_value() if id(v) in written else b for v, b in zip(state, before, strict=True)]
        )
        shares.append(ops.cast(count, "float32") / ops.cast(size, "float32"))
        left.append(_take_losses(model))
    for i, v in enumerate(state):
        if id(v) in written:
            v.assign(_mean([values[i] for values in after], shares))
    _give_losses(model, left, shares)
    return map_structure(_joined, *outputs)


def _rows(t: Any, begin: Any, end: Any) -> Any:
    """Some rows of a tensor, with its mask."""
    if t is None:
        return None
    rows = t[begin:end]
    mask = get_mask(t)
    if mask is not None:
        set_mask(rows, mask[begin:end])
    return rows


def _joined(*parts: Any) -> Any:
    whole = ops.concatenate(parts, axis=0)
    masks = [get_mask(part) for part in parts]
    if all(mask is not None for mask in masks):
        set_mask(whole, ops.concatenate(masks, axis=0))
    return whole


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


def _take_losses(model: Any) -> _Left:
    return [(list(layer._losses), list(layer._reports)) for layer in model.flatten_layers()]


def _give_losses(model: Any, left: Sequence[_Left], shares: Sequence[Any]) -> None:
    """Leave with each layer what one call on the whole batch would have left."""
    for layer, *parts in zip(model.flatten_layers(), *left, strict=True):
        layer._losses[:] = [
            _mean(values, shares) for values in zip(*(losses for losses, _ in parts), strict=True)
        ]
        layer._reports[:] = [
            (rows[0][0], _mean([ops.mean(value) for _, value in rows], shares))
            for rows in zip(*(reports for _, reports in parts), strict=True)
        ]
