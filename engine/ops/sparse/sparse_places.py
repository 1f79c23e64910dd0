"""What the kernels of sparse arrays share: places checked, in order, and as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph import Array


def check_places(who: str, indices: Array, shape: Array, *, ordered: bool = False) -> None:
    """Raise InvalidArgumentError for a place outside of `shape`.

    Args:
        ordered: whether the places must be in row-major order, each of them once.
    """
    if indices.ndim != 2 or shape.ndim != 1 or indices.shape[1] != len(shape):
        raise InvalidArgumentError(
            f"{who}: indices {list(indices.shape)} do not fit a dense shape of {len(shape)} sizes"
        )
    outside = ((indices < 0) | (indices >= shape)).any(axis=1)
    if outside.any():
        k = int(np.argmax(outside))
        raise InvalidArgumentError(
            f"{who}: indices[{k}] = {indices[k].tolist()} is out of bounds: the dense shape is "
            f"{shape.tolist()}"
        )
    if not ordered or len(indices) < 2:
        return
    before = row_major(indices) != np.arange(len(indices))
    if before.any():
        k = int(np.argmax(before))
        raise InvalidArgumentError(
            f"{who}: indices[{k}] = {indices[k].tolist()} is out of order",
            remedy="order them with sparse_reorder first",
        )
    again = (indices[1:] == indices[:-1]).all(axis=1)
    if again.any():
        k = int(np.argmax(again)) + 1
        raise InvalidArgumentError(f"{who}: indices[{k}] = {indices[k].tolist()} is repeated")


def row_major(indices: Array) -> Array:
    """The order that brings places into row-major order; equal ones keep theirs."""
    if indices.shape[1] == 0:
        return np.arange(len(indices))
    return np.lexsort(indices.T[::-1])


def groups_of(indices: Array) -> tuple[Array, Array]:
    """The places without repeats in row-major order, and the number of each place among them."""
    order = row_major(indices)
    ordered = indices[order]
    new = np.ones(len(ordered), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.empty(len(ordered), np.int64)
    numbers[order] = np.cumsum(new) - 1
    return ordered[new], numbers


def canonical(who: str, axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"{who}: axis {axis} does not exist, there are {rank} axes")
    return axis % rank


def kept_axes(who: str, axes: Any, rank: int) -> tuple[list[int], list[int]]:
    """The axes that a reduction over `axes` (all, if None) leaves, and those that it takes."""
    gone = range(rank) if axes is None else sorted({canonical(who, a, rank) for a in axes})
    return [a for a in range(rank) if a not in gone], list(gone)
