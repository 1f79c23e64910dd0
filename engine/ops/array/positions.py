"""What the kernels of gather and scatter share: indices checked, made flat, and written through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph import Array
from ..core.arrays import computing_dtype
from ..core.kernels import HOST
from ..core.late_checks import require
from .runs import combined_by_row

_minimum: Any = np.minimum
_maximum: Any = np.maximum


def checked(xp: Any, who: str, indices: Array, size: int, axis: int) -> Array:
    """The indices, counted from the front, into an axis of `size`.

    Raises:
        InvalidArgumentError: one lies outside -size ... size - 1.
    """
    if indices.size == 0:
        return indices.astype(xp.int64)

    def out_of_range() -> InvalidArgumentError:
        bad = (indices < -size) | (indices >= size)
        position = tuple(int(i[0]) for i in xp.nonzero(bad.reshape((*bad.shape, 1))))[:-1]
        return InvalidArgumentError(
            f"{who}: index {int(indices[position])} at position {list(position)} is out of range "
            f"for axis {axis} of size {size}",
            remedy=f"use indices from {-size} to {size - 1}" if size else None,
        )

    if xp is HOST:  # numbers of Python's are compared in half the time
        low = int(_minimum.reduce(indices, axis=None))
        is_within = low >= -size and int(_maximum.reduce(indices, axis=None)) < size
    else:
        low = indices.min()
        is_within = (low >= -size) & (indices.max() < size)
    require(xp, is_within, out_of_range)
    places = indices.astype(xp.int64, copy=False)
    if xp is not HOST:  # where nobody has looked yet
        places = xp.clip(places, -size, size - 1)
    elif low >= 0:
        return places
    return xp.where(places < 0, places + size, places)


def rows_of(xp: Any, who: str, shape: Sequence[int], indices: Sequence[Array]) -> Array:
    """The row number that broadcast index arrays name in the leading axes of `shape`."""
    row: Any = 0
    for axis, index in enumerate(indices):
        row = row * shape[axis] + checked(xp, who, index, shape[axis], axis)
    return row


def cells_along(xp: Any, who: str, shape: Sequence[int], indices: Array, axis: int) -> Array:
    """The flat cell of an array of `shape` for each index along `axis`.

    The other axes of `indices` line up with those of the array; where the array has size 1 there,
    all of them name the one entry.
    """
    cell: Any = 0
    for i, size in enumerate(shape):
        if i == axis:
            here = checked(xp, who, indices, size, axis)
        elif size == 1:
            here = 0
        else:
            here = xp.arange(size).reshape((size,) + (1,) * (len(shape) - 1 - i))
        cell = cell * size + here
    return cell


def write(xp: Any, into: Array, rows: Array, updates: Array, mode: str) -> Array:
    """`into` (rows, width), changed in place at `rows` by `updates` (rows named, width).

    Args:
        xp: the array library.
        into: the array to change, whose memory is the kernel's own.
        rows: which row each update goes to.
        updates: the values.
        mode: "update", "add", "mul", "div", "max" or "min". Updates of one row are applied in their
            order.
    """
    if xp is not HOST:
        return _written(xp, into, rows, updates, mode)
    if mode == "update":
        into[rows] = updates
        return into
    if mode == "div":
        xp.divide.at(into, rows, updates)
        return into
    ufunc = {"add": xp.add, "mul": xp.multiply, "max": xp.maximum, "min": xp.minimum}[mode]
    wide = into.astype(computing_dtype(xp, into), copy=False) if mode in ("add", "mul") else into
    width = into.shape[1]
    # One flat index per element: `at` has a fast path for it, not for rows.
    flat = rows if width == 1 else (rows[:, None] * width + xp.arange(width)).reshape(-1)
    ufunc.at(wide.reshape(-1), flat, updates.astype(wide.dtype, copy=False).reshape(-1))
    return wide.astype(into.dtype, copy=False)


def _written(xp: Any, into: Array, rows: Array, updates: Array, mode: str) -> Array:
    """As `write`, without atomics, which apply updates of one row in any order."""
    dtype = computing_dtype(xp, into) if mode in ("add", "mul", "div") else into.dtype
    wide, updates = into.astype(dtype, copy=False), updates.astype(dtype, copy=False)
    combine = {
        "update": lambda first, second: second,
        "add": xp.add,
        "mul": xp.multiply,
        "div": xp.multiply,  # of the divisors
        "max": xp.maximum,
        "min": xp.minimum,
    }[mode]
    found, is_named = combined_by_row(xp, updates, rows, len(into), combine)
    changed = wide / found if mode == "div" else combine(wide, found)
    return xp.where(is_named[:, None], changed, wide).astype(into.dtype, copy=False)


def scatter_new(xp: Any, shape: Sequence[int], axes: int, rows: Array, updates: Array) -> Array:
    """Zeros of `shape` plus `updates`, each added to the row of the first `axes` axes it names."""
    count, width = math.prod(shape[:axes]), math.prod(shape[axes:])
    into = xp.zeros((count, width), updates.dtype)
    rows = rows.reshape(-1)
    return write(xp, into, rows, updates.reshape(rows.size, width), "add").reshape(shape)


def last_writes(xp: Any, rows: Array, count: int) -> Array:
    """For each of `rows`, in order, whether no later one is the same; they are below `count`."""
    order = xp.arange(rows.size)
    last = xp.zeros((count, 1), order.dtype)
    # "max" rather than "update": the order of plain writes is not defined on every device.
    last = write(xp, last, rows.reshape(-1), order[:, None], "max")
    return (last[rows.reshape(-1), 0] == order).reshape(rows.shape)
