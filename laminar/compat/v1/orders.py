"""Sorting, sets of numbers and blocks of images, where TensorFlow 1 has other arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, as_dtype, string
from laminar.engine.ops.array import gather as gathering
from laminar.engine.ops.array import join, search
from laminar.engine.ops.array import shape as shapes
from laminar.engine.ops.array import sort as sorting
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.reduce import reduce_any

from .adapting import v1
from .values import dims_of, operands, static, symbol, tensor


def _descends(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"direction must be 'ASCENDING' or 'DESCENDING', got {direction!r}")
    return direction == "DESCENDING"


@v1()
def sort(values: Any, axis: int = -1, direction: str = "ASCENDING") -> Tensor:
    """The elements along an axis in order."""
    return sorting.sort(tensor(values), static(axis), _descends(direction))


@v1()
def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False
) -> Tensor:
    """Where the elements along an axis stand, in their order."""
    return sorting.argsort(tensor(values), static(axis), _descends(direction))


@v1()
def unravel_index(indices: Any, dims: Any) -> Tensor:
    """The coordinates of flat indices into an array of the sizes `dims`: (axes, ...)."""
    rest, sizes = operands(indices, dims)
    found: list[Tensor] = []
    for size in reversed(join.unstack(sizes)):
        found.insert(0, lookup("FloorMod")(rest, size))
        rest = lookup("FloorDiv")(rest, size)
    return join.stack(found)


@v1()
def setdiff1d(x: Any, y: Any, index_dtype: Any = "int32") -> tuple[Tensor, Tensor]:
    """The elements of `x` that are not in `y`, in their order, and where they stand."""
    own, other = operands(x, y)
    if own.dtype == string:
        among = reduce_any(lookup("Equal")(ops.expand_dims(own, 1), other), 1)
        (places,) = search.nonzero(lookup("LogicalNot")(among))
    else:
        at = search.find_sorted(sorting.sort(other), own)
        (places,) = search.nonzero(lookup("Less")(at, lookup("ZerosLike")(at)))
    return gathering.gather(own, places), cast(places, index_dtype)


@v1()
def saturate_cast(value: Any, dtype: Any) -> Tensor:
    """As another type, the values that do not fit being the nearest that do."""
    x, kind = tensor(value), as_dtype(dtype)
    limits = np.iinfo(kind.numpy) if kind.is_integer else np.finfo(kind.numpy)
    own = np.iinfo(x.dtype.numpy) if x.dtype.is_integer else np.finfo(x.dtype.numpy)
    if float(own.min) < float(limits.min):
        x = lookup("Maximum")(x, tensor(limits.min, x.dtype))
    if float(own.max) > float(limits.max):
        top = limits.max
        if not x.dtype.is_integer and float(np.asarray(top, x.dtype.numpy)) > float(top):
            top = float(np.nextafter(np.asarray(top, x.dtype.numpy), np.asarray(0, x.dtype.numpy)))
        x = lookup("Minimum")(x, tensor(top, x.dtype))
    return cast(x, kind)


@v1(block_size="block_shape")
def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any) -> Tensor:
    """Blocks of the padded axes 1, 2, ... as further examples.

    Args:
        input: (batch, s_1, ..., s_k, ...).
        block_shape: k numbers.
        paddings: (k, 2).

    Returns:
        (batch * prod(block_shape), (s_i + paddings) / block_shape[i], ...).
    """
    x, block, pads = symbol(input), _numbers(block_shape), _pairs(paddings)
    k, rank = len(block), len(x.shape)
    if len(pads) != k:
        raise InvalidArgumentError(f"space_to_batch_nd: {k} blocks and {len(pads)} paddings")
    x = ops.pad(x, [(0, 0), *pads, *[(0, 0)] * (rank - 1 - k)])
    sizes = dims_of(x)
    for size, own in zip(sizes[1:], block, strict=False):
        if isinstance(size, int) and size % own:
            raise InvalidArgumentError(f"space_to_batch_nd: {size} does not divide by {own}")
    split = [part for s, b in zip(sizes[1:], block, strict=False) for part in (_over(s, b), b)]
    y = shapes.reshape(x, [sizes[0], *split, *sizes[1 + k :]])
    blocks, rest = range(2, 2 * k + 1, 2), range(1, 2 * k, 2)
    y = ops.transpose(y, [*blocks, 0, *rest, *range(2 * k + 1, 2 * k + rank - k)])
    grown = [_over(s, b) for s, b in zip(sizes[1:], block, strict=False)]
    return shapes.reshape(y, [_times(sizes[0], math.prod(block)), *grown, *sizes[1 + k :]])


@v1(block_size="block_shape")
def batch_to_space_nd(input: Any, block_shape: Any, crops: Any) -> Tensor:
    """The inverse of `space_to_batch_nd`: examples as blocks of the axes 1, 2, ..., cropped."""
    x, block, cuts = symbol(input), _numbers(block_shape), _pairs(crops)
    k, rank = len(block), len(x.shape)
    if len(cuts) != k:
        raise InvalidArgumentError(f"batch_to_space_nd: {k} blocks and {len(cuts)} crops")
    sizes, total = dims_of(x), math.prod(block)
    if isinstance(sizes[0], int) and sizes[0] % total:
        raise InvalidArgumentError(f"batch_to_space_nd: {sizes[0]} does not divide by {total}")
    batch = _over(sizes[0], total)
    y = shapes.reshape(x, [*block, batch, *sizes[1:]])
    order = [k, *(axis for i in range(k) for axis in (k + 1 + i, i)), *range(2 * k + 1, k + rank)]
    y = ops.transpose(y, order)
    grown = [_times(s, b) for s, b in zip(sizes[1:], block, strict=False)]
    y = shapes.reshape(y, [batch, *grown, *sizes[1 + k :]])
    found: Tensor = y[(slice(None), *(slice(a, -b or None) for a, b in cuts))]
    return found


@v1()
def space_to_batch(input: Any, paddings: Any, block_size: int | None = None) -> Tensor:
    """`space_to_batch_nd` of square blocks of images."""
    found: Tensor = space_to_batch_nd(input, [block_size, block_size], paddings)
    return found


@v1()
def batch_to_space(input: Any, crops: Any, block_size: int | None = None) -> Tensor:
    """`batch_to_space_nd` of square blocks of images."""
    found: Tensor = batch_to_space_nd(input, [block_size, block_size], crops)
    return found


def _numbers(x: Any) -> list[int]:
    return [int(n) for n in np.ravel(static(x))]


def _pairs(x: Any) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in np.reshape(static(x), (-1, 2))]


def _over(size: Any, by: int) -> Any:
    return size // by if isinstance(size, int) else lookup("FloorDiv")(size, tensor(by, size.dtype))


def _times(size: Any, by: int) -> Any:
    return size * by if isinstance(size, int) else lookup("Mul")(size, tensor(by, size.dtype))


@v1()
def parallel_stack(values: Sequence[Any]) -> Tensor:
    """Tensors of one shape along a new first axis."""
    return join.stack(operands(*values))


@v1()
def batch_gather(params: Any, indices: Any) -> Tensor:
    """The slices at indices that share all but their last axis with `params`."""
    x, where = tensor(params), symbol(indices)
    if where.shape.rank is None:
        raise ValueError("batch_gather: the number of axes of the indices must be known")
    count = len(where.shape) - 1
    return gathering.gather(x, where, count, count)
