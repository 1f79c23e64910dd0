"""ConcatOffset: where each of several tensors begins in what Concat makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, Array, TensorSpec
from ..core.registry import define, no_gradient


@define("ConcatOffset", dtypes={"axis": INTEGER, "shapes": INTEGER}, same_dtype=False)
def concat_offsets(axis: TensorSpec, *shapes: TensorSpec) -> tuple[TensorSpec, ...]:
    """For each of the shapes the place of its tensor: the sizes along `axis` before it, else 0."""
    if axis.shape.rank not in (0, None):
        raise ShapeError(f"ConcatOffset: the axis is a scalar, got {axis}")
    return shapes


@concat_offsets.reference
def _concat_offset_kernel(xp: Any, axis: Array, *shapes: Array) -> tuple[Array, ...] | Array:
    # On the host: they are numbers of a few axes.
    given = [np.asarray(x.tolist(), str(x.dtype)) for x in shapes]
    if any(x.ndim != 1 for x in given):
        raise ShapeError("ConcatOffset: each shape should be a vector")
    rank, place = len(given[0]), int(axis)
    if not -rank <= place < rank:
        raise InvalidArgumentError(f"ConcatOffset: Concat dim is out of range: {place} vs. {rank}")
    place %= rank
    found, behind = [], 0
    for number, x in enumerate(given):
        if len(x) != rank:
            raise InvalidArgumentError(
                f"ConcatOffset: input {number} should contain {rank} elements"
            )
        others = np.arange(rank) != place
        if (x[others] != given[0][others]).any():
            raise InvalidArgumentError(
                f"ConcatOffset: all dimensions except {place} must match. Input {number} has shape "
                f"{x.tolist()} and doesn't match input 0 with shape {given[0].tolist()}"
            )
        offset = np.zeros_like(x)
        offset[place] = behind
        behind += int(x[place])
        found.append(xp.asarray(offset))
    return tuple(found) if len(found) > 1 else found[0]


concat_offsets.grad(no_gradient)
