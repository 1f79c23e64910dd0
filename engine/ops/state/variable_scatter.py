"""Updates of parts of a variable, its count to a limit, and numbers in it that only rise."""

from __future__ import annotations

import math

import numpy as np

from ...errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
)
from ...graph import ANY, FLOATING, INTEGER, NUMERIC, Array, TensorShape, TensorSpec, as_dtype
from ..array.positions import rows_of, write
from ..core.effects import HANDLE
from ..core.kernels import HOST
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from .variable import VariableStore, one_lock

MODES = ("update", "add", "sub", "mul", "div", "min", "max")


@define(
    "VariableScatter",
    dtypes={"handle": HANDLE, "indices": INTEGER, "updates": ANY},
    same_dtype=False,
)
def variable_scatter(
    handle: TensorSpec,
    indices: TensorSpec,
    updates: TensorSpec,
    *,
    mode: str,
    axes: int | None,
    shape: TensorShape,
    dtype: str,
) -> TensorSpec:
    """Combine slices of the variable with `updates`, in order, and give its new value.

    The last axis of `indices` (i..., axes) names a place in the first `axes` axes; with `axes`
    None there is no such axis, and each index names a place in the first axis. `updates` is
    (i..., q...) where q are the variable's other axes, or a scalar. `mode` is "update", "add",
    "sub", "mul", "div", "min" or "max".
    """
    if mode not in MODES:
        raise InvalidArgumentError(
            f"VariableScatter: the mode must be one of {', '.join(MODES)}, got {mode!r}"
        )
    if updates.dtype != dtype:
        raise DTypeError(
            f"VariableScatter: the variable is {dtype}{shape}, the updates are {updates}",
            remedy=f'cast the updates to "{dtype}"',
        )
    kind = as_dtype(dtype)
    if mode != "update" and kind not in NUMERIC:
        raise DTypeError(f'VariableScatter: {dtype} values are replaced ("update") only')
    if mode == "div" and kind not in FLOATING:
        raise DTypeError(f"VariableScatter: {dtype} values cannot be divided in place")
    if shape.rank is None or indices.shape.rank is None:
        return TensorSpec(shape, kind)
    count = 1 if axes is None else axes
    if not 1 <= count <= len(shape):
        raise ShapeError(
            f"VariableScatter: {count} indices for a place in a variable of shape {shape}"
        )
    if axes is not None and (not indices.shape.rank or indices.shape[-1] not in (None, axes)):
        raise ShapeError(
            f"VariableScatter: the last axis of the indices must have length {axes}, got {indices}"
        )
    places = indices.shape if axes is None else indices.shape[:-1]
    whole = TensorShape([*places, *shape[count:]])
    if updates.shape.rank != 0 and not whole.is_compatible_with(updates.shape):
        raise ShapeError(
            f"VariableScatter: the updates of indices {indices} in {dtype}{shape} must be a "
            f"scalar or {whole}, got {updates}"
        )
    return TensorSpec(shape, kind)


@variable_scatter.effect
def _scatter_kernel(
    context: KernelContext,
    handle: VariableStore,
    indices: Array,
    updates: Array,
    *,
    mode: str,
    axes: int | None,
    shape: TensorShape,
    dtype: str,
) -> Array:
    where = [indices] if axes is None else [indices[..., i] for i in range(axes)]
    handle.read()  # it must be initialised
    with one_lock((handle,)):
        old: Array = handle.value
        xp = HOST if isinstance(old, np.ndarray) else context.xp
        rows = rows_of(xp, "VariableScatter", old.shape, where).reshape(-1)
        width = math.prod(old.shape[len(where) :])
        if updates.ndim == 0:
            updates = xp.broadcast_to(updates, (rows.size, width))
        elif updates.size != rows.size * width:
            raise ShapeError(
                f"VariableScatter: {rows.size} slices of {width} elements, "
                f"and {updates.size} updates"
            )
        into = old.copy().reshape(-1, width)
        flat = updates.reshape(rows.size, width)
        if mode == "sub":
            into = write(xp, into, rows, -flat, "add")
        else:
            into = write(xp, into, rows, flat, mode)
        handle.value = into.reshape(old.shape)
        return handle.value


variable_scatter.grad(no_gradient)


@define("CountUpTo", dtypes={"handle": HANDLE})
def count_up_to(handle: TensorSpec, *, limit: int, dtype: str) -> TensorSpec:
    """The variable's value, which rises by 1; OutOfRange, and no change, once it is `limit`."""
    if as_dtype(dtype) not in INTEGER:
        raise DTypeError(f"CountUpTo: the variable must count, it is {dtype}")
    return TensorSpec((), as_dtype(dtype))


@count_up_to.effect
def _count_kernel(
    context: KernelContext, handle: VariableStore, *, limit: int, dtype: str
) -> Array:
    handle.read()  # it must be initialised
    with one_lock((handle,)):
        value: Array = handle.value
        if value.ndim:
            raise ShapeError(f"CountUpTo: {handle!r} must be a scalar, it has shape {value.shape}")
        if int(value) >= limit:
            raise OutOfRangeError(f"CountUpTo: {handle!r} has reached its limit {limit}")
        handle.value = np.asarray(value + 1, value.dtype)
        return value


count_up_to.grad(no_gradient)


@define(
    "RaiseNumber",
    dtypes={"handle": HANDLE, "place": INTEGER, "number": INTEGER},
    same_dtype=False,
)
def raise_number(
    handle: TensorSpec, place: TensorSpec, number: TensorSpec, *, dtype: str
) -> TensorSpec:
    """Have a vector hold a higher `number` at `place`; AlreadyExists, and no change, if it is not.

    Of those who come with one number, in whatever order and however late, one goes on. So that
    this holds, a step that fails later does not take it back.
    """
    if as_dtype(dtype) not in INTEGER or number.dtype != dtype:
        raise DTypeError(
            f"RaiseNumber: the variable is {dtype}, the number {number}; expected one integer type"
        )
    for name, x in (("place", place), ("number", number)):
        if not x.shape.is_compatible_with(()):
            raise ShapeError(f"RaiseNumber: {name} must be a scalar, got {x}")
    return TensorSpec((), as_dtype(dtype))


@raise_number.effect
def _raise_kernel(
    context: KernelContext, handle: VariableStore, place: Array, number: Array, *, dtype: str
) -> Array:
    handle.read()  # it must be initialised
    with one_lock((handle,)):
        old: Array = handle.value
        if old.ndim != 1 or not 0 <= int(place) < len(old):
            raise ShapeError(f"RaiseNumber: {handle!r} of shape {old.shape} has no place {place}")
        if int(number) <= int(old[int(place)]):
            raise AlreadyExistsError(
                f"RaiseNumber: {handle!r} holds {old[int(place)]} at {place}, and got {number}"
            )
        new = old.copy()
        new[int(place)] = number
        handle.value = new
        return number


raise_number.grad(no_gradient)
