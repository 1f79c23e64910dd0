"""Which pairs of query and key may meet: bools, true where they may."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor


def causal_mask(query: Tensor, key: Tensor, *, axis: int = 1) -> Any:
    """Each query meets the keys up to its own place: (1, queries, keys), counted along `axis`."""
    rows, columns = _places(query, key, axis)
    return ops.greater_equal(rows, columns)


def window_mask(query: Tensor, key: Tensor, width: int, *, axis: int = 1) -> Any:
    """Each query meets the keys less than `width` places away: (1, queries, keys)."""
    rows, columns = _places(query, key, axis)
    return ops.less(ops.abs(rows - columns), width)


def _places(query: Tensor, key: Tensor, axis: int) -> tuple[Any, Any]:
    rows, columns = (ops.arange(ops.shape(x)[axis], dtype="int32") for x in (query, key))
    return ops.expand_dims(rows, (0, 2)), ops.expand_dims(columns, (0, 1))


def all_of(*masks: Any) -> Any:
    """Where all masks that are not None are true; None if there are none."""
    found = None
    for mask in masks:
        if mask is not None:
            mask = ops.cast(mask, "bool")
            found = mask if found is None else ops.logical_and(found, mask)
    return found


def of_queries(mask: Tensor | None) -> Any:
    """A mask of queries, (batch, queries), for pairs: (batch, queries, 1)."""
    return None if mask is None else ops.expand_dims(mask, -1)


def of_keys(mask: Tensor | None) -> Any:
    """A mask of keys, (batch, keys), for pairs: (batch, 1, keys)."""
    return None if mask is None else ops.expand_dims(mask, -2)
