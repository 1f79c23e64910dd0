"""Rows that share a number, combined in their order, on devices where threads have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph import Array


def combined_by_row(
    xp: Any,
    updates: Array,
    rows: Array,
    count: int,
    combine: Callable[..., Array],
    *,
    is_sorted: bool = False,
) -> tuple[Array, Array]:
    """For each of `count` rows, all updates that name it combined; and whether any does.

    What is given for a row that none names is undefined; numbers outside of 0 ... count - 1 name
    none. No size depends on values, and the result does not depend on the order of threads.

    Args:
        xp: the array library.
        updates: (updates, ...).
        rows: (updates,) integers: the row that each is for.
        count: how many rows there are.
        combine: an associative function of two arrays; the first comes before the second.
        is_sorted: whether `rows` never fall.
    """
    if not len(updates) or not count:
        return xp.zeros((count, *updates.shape[1:]), updates.dtype), xp.zeros(count, bool)
    if not is_sorted:
        order = xp.argsort(rows, kind="stable")
        updates, rows = updates[order], rows[order]
    updates = _combine_runs(xp, updates, rows, combine)
    every = xp.arange(count, dtype=rows.dtype)
    last = xp.searchsorted(rows, every, side="right") - 1
    place = xp.maximum(last, 0)
    return updates[place], (last >= 0) & (rows[place] == every)


def _combine_runs(xp: Any, rows: Array, ids: Array, combine: Callable[..., Array]) -> Array:
    """In the last row of each run of equal ids, all rows of the run combined.

    A segmented scan in log2(rows) steps: Hillis and Steele, "Data parallel algorithms", CACM 29
    (1986). Ids are sorted, so two equal ones have only equal ones between them.
    """
    step = 1
    while step < len(ids):
        joined = (ids[step:] == ids[:-step]).reshape(-1, *[1] * (rows.ndim - 1))
        later = xp.where(joined, combine(rows[:-step], rows[step:]), rows[step:])
        rows = xp.concatenate([rows[:step], later])
        step *= 2
    return rows
