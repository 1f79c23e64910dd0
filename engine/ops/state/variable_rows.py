"""AssignRows: new values of some rows of a variable, at a cost that depends on these alone."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...graph import ANY, INTEGER, Array, TensorShape, TensorSpec, as_dtype
from ..core.effects import HANDLE
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from .variable import VariableStore, one_lock


@define(
    "AssignRows",
    dtypes={"handle": HANDLE, "places": INTEGER, "rows": ANY},
    same_dtype=False,
)
def assign_rows(
    handle: TensorSpec, places: TensorSpec, rows: TensorSpec, *, shape: TensorShape, dtype: str
) -> TensorSpec:
    """variable[places[k]] = rows[k], where 0 <= places[k] < n; gives the variable's new value.

    The variable is (n, q...), `places` (k,), `rows` (k, q...). Of equal places the last one counts;
    those out of range name no row, so that it cannot fail.
    """
    if rows.dtype != dtype:
        raise DTypeError(f"AssignRows: the variable is {dtype}{shape}, the rows are {rows}")
    expected = TensorShape([*places.shape, *shape[1:]]) if shape.rank else None
    if places.shape.rank != 1 or expected is None or not rows.shape.is_compatible_with(expected):
        raise ShapeError(
            f"AssignRows: rows {rows} at places {places} do not fit into {dtype}{shape}"
        )
    return TensorSpec(shape, as_dtype(dtype))


@assign_rows.effect
def _assign_rows_kernel(
    context: KernelContext,
    handle: VariableStore,
    places: Array,
    rows: Array,
    *,
    shape: TensorShape,
    dtype: str,
) -> Array:
    handle.read()  # it must be initialised
    with one_lock((handle,)):
        if not _is_alone(handle):
            handle.value = handle.value.copy()  # type: ignore[union-attr]  # it is initialised
        into: Array = handle.value
        inside = (places >= 0) & (places < into.shape[0])
        into[places[inside]] = rows[inside]
        return into


assign_rows.grad(no_gradient)


def _references(store: Any) -> int:
    return sys.getrefcount(store.value)


class _Alone:
    def __init__(self) -> None:
        self.value = np.empty(1)


# For an array that only a store has: how many references a call has itself, Python knows.
_HELD_ONCE = _references(_Alone())


def _is_alone(store: VariableStore) -> bool:
    """Whether nobody else can see the array of a store, so that it may be written to.

    A variable's value never changes for those who have read it.
    """
    value: Any = store.value
    if type(value) is not np.ndarray or not value.flags.owndata or not value.flags.writeable:
        return False
    del value
    return _references(store) == _HELD_ONCE
