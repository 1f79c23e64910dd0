"""Accumulators as ops: add gradients, and take their mean when enough have come."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    INEXACT,
    INTEGER,
    NUMERIC,
    Array,
    TensorShape,
    TensorSpec,
    as_dtype,
    bool_,
    int32,
    int64,
    resource,
)
from ...resources.accumulators import Accumulator, DenseAccumulator, SparseAccumulator
from ..core.effects import HANDLE, held, plain_shape, wait
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient


def _handle_spec(who: str, dtype: str, reduction: str) -> TensorSpec:
    allowed = NUMERIC if reduction == "SUM" else INEXACT
    if as_dtype(dtype) not in allowed:
        raise DTypeError(f"{who}: a {reduction.lower()} of {dtype} cannot be kept")
    return TensorSpec((), resource)


@define("ConditionalAccumulator", stateful=True)
def conditional_accumulator(
    *, dtype: str, shape: TensorShape, reduction: str, container: str, shared_name: str
) -> TensorSpec:
    """The handle of a sum of arrays; `reduction` is "MEAN", "SUM" or "MEAN_OF_ALL"."""
    return _handle_spec("ConditionalAccumulator", dtype, reduction)


@conditional_accumulator.effect
def _dense_kernel(context: KernelContext, **attrs: Any) -> Accumulator:
    return _accumulator(context, DenseAccumulator, **attrs)


@define("SparseConditionalAccumulator", stateful=True)
def sparse_conditional_accumulator(
    *, dtype: str, shape: TensorShape, reduction: str, container: str, shared_name: str
) -> TensorSpec:
    """The handle of a sum of arrays of which single rows are given."""
    return _handle_spec("SparseConditionalAccumulator", dtype, reduction)


@sparse_conditional_accumulator.effect
def _sparse_kernel(context: KernelContext, **attrs: Any) -> Accumulator:
    return _accumulator(context, SparseAccumulator, **attrs)


def _accumulator(
    context: KernelContext,
    kind: type[Accumulator],
    *,
    dtype: str,
    shape: TensorShape,
    reduction: str,
    container: str,
    shared_name: str,
) -> Accumulator:
    def make() -> Accumulator:
        return kind(shared_name, plain_shape(shape), reduction)

    declared = (str(dtype), str(shape), reduction)
    return held(context, container, shared_name, kind, declared, make)


def _check_gradient(who: str, dtype: str, gradient: TensorSpec, local_step: TensorSpec) -> None:
    if gradient.dtype != dtype:
        raise DTypeError(f"{who}: the accumulator is {dtype}, got {gradient}")
    if not local_step.shape.is_compatible_with(()):
        raise ShapeError(f"{who}: local_step is a scalar, got {local_step}")


@define(
    "AccumulatorApplyGradient",
    dtypes={"accumulator": HANDLE, "local_step": INTEGER, "gradient": NUMERIC},
    same_dtype=False,
)
def accumulator_apply_gradient(
    accumulator: TensorSpec,
    local_step: TensorSpec,
    gradient: TensorSpec,
    *,
    dtype: str,
    shape: TensorShape,
    replica: int = -1,
) -> TensorSpec:
    """Add a gradient computed at `local_step`; whether it was accepted, not stale.

    Of a `replica` from 0 on one is accepted in each step, and of that step alone; the sum goes by
    their numbers, in whatever order they come.
    """
    _check_gradient("AccumulatorApplyGradient", dtype, gradient, local_step)
    if not gradient.shape.is_compatible_with(shape):
        raise ShapeError(
            f"AccumulatorApplyGradient: the accumulator is {dtype}{shape}, got {gradient}"
        )
    return TensorSpec((), bool_)


@accumulator_apply_gradient.effect
def _apply_kernel(
    context: KernelContext,
    accumulator: DenseAccumulator,
    local_step: Array,
    gradient: Array,
    *,
    dtype: str,
    shape: TensorShape,
    replica: int,
) -> bool:
    return accumulator.apply(gradient, int(local_step), replica if replica >= 0 else None)


@define(
    "AccumulatorApplyRows",
    dtypes={
        "accumulator": HANDLE,
        "local_step": INTEGER,
        "indices": INTEGER,
        "values": NUMERIC,
    },
    same_dtype=False,
)
def accumulator_apply_rows(
    accumulator: TensorSpec,
    local_step: TensorSpec,
    indices: TensorSpec,
    values: TensorSpec,
    *,
    dtype: str,
    replica: int = -1,
) -> TensorSpec:
    """Add rows, values[i] to row indices[i]; whether they were accepted, not stale.

    `replica` is as that of AccumulatorApplyGradient.
    """
    _check_gradient("AccumulatorApplyRows", dtype, values, local_step)
    return TensorSpec((), bool_)


@accumulator_apply_rows.effect
def _apply_rows_kernel(
    context: KernelContext,
    accumulator: SparseAccumulator,
    local_step: Array,
    indices: Array,
    values: Array,
    *,
    dtype: str,
    replica: int,
) -> bool:
    rows = indices.astype(np.int64, copy=False), values
    return accumulator.apply(rows, int(local_step), replica if replica >= 0 else None)


@define(
    "AccumulatorTakeGradient",
    dtypes={"accumulator": HANDLE, "num_required": INTEGER},
    same_dtype=False,
)
def accumulator_take_gradient(
    accumulator: TensorSpec, num_required: TensorSpec, *, dtype: str, shape: TensorShape
) -> TensorSpec:
    """Wait for `num_required` gradients; their mean or sum, and counting starts anew."""
    return TensorSpec(shape, as_dtype(dtype))


@accumulator_take_gradient.asynchronous
def _take_kernel(
    context: KernelContext,
    done: Any,
    accumulator: Accumulator,
    num_required: Array,
    *,
    dtype: str,
    shape: TensorShape,
) -> None:
    required = int(num_required)
    wait(context, done, lambda tell: accumulator.take(required, tell), lambda result: result)


@define(
    "AccumulatorTakeRows",
    dtypes={"accumulator": HANDLE, "num_required": INTEGER},
    same_dtype=False,
)
def accumulator_take_rows(
    accumulator: TensorSpec, num_required: TensorSpec, *, dtype: str, shape: TensorShape
) -> tuple[TensorSpec, TensorSpec]:
    """As AccumulatorTakeGradient, for rows: their indices, int64 and sorted, and the rows."""
    if shape.rank == 0:
        raise InvalidArgumentError("AccumulatorTakeRows: a scalar has no rows")
    rows = None if shape.rank is None else [None, *shape[1:]]
    return TensorSpec([None], int64), TensorSpec(rows, as_dtype(dtype))


@accumulator_take_rows.asynchronous
def _take_rows_kernel(
    context: KernelContext,
    done: Any,
    accumulator: Accumulator,
    num_required: Array,
    *,
    dtype: str,
    shape: TensorShape,
) -> None:
    required = int(num_required)
    wait(context, done, lambda tell: accumulator.take(required, tell), lambda result: result)


@define("AccumulatorNumAccumulated", dtypes={"accumulator": HANDLE}, read_only=True)
def accumulator_num_accumulated(accumulator: TensorSpec) -> TensorSpec:
    """How many gradients are in the sum, int32."""
    return TensorSpec((), int32)


@accumulator_num_accumulated.effect
def _count_kernel(context: KernelContext, accumulator: Accumulator) -> Array:
    return np.asarray(accumulator.num_accumulated, np.int32)


@define(
    "AccumulatorSetGlobalStep",
    dtypes={"accumulator": HANDLE, "step": INTEGER},
    same_dtype=False,
)
def accumulator_set_global_step(
    accumulator: TensorSpec, step: TensorSpec
) -> tuple[TensorSpec, ...]:
    """Gradients computed before `step` are stale from now on."""
    return ()


@accumulator_set_global_step.effect
def _set_step_kernel(context: KernelContext, accumulator: Accumulator, step: Array) -> Any:
    accumulator.set_step(int(step))
    return ()


@define("AccumulatorReset", dtypes={"accumulator": HANDLE, "step": INTEGER}, same_dtype=False)
def accumulator_reset(accumulator: TensorSpec, step: TensorSpec) -> tuple[TensorSpec, ...]:
    """Drop what was added, have takes that wait fail, and set the step, also to a lower one."""
    return ()


@accumulator_reset.effect
def _reset_kernel(context: KernelContext, accumulator: Accumulator, step: Array) -> Any:
    accumulator.reset(int(step))
    return ()


@define("AccumulatorLeave", dtypes={"accumulator": HANDLE})
def accumulator_leave(accumulator: TensorSpec, *, replica: int, total: int) -> TensorSpec:
    """One of `total` replicas gives no more gradients: no take requires it; how many have left."""
    return TensorSpec((), int32)


@accumulator_leave.effect
def _leave_kernel(
    context: KernelContext, accumulator: Accumulator, *, replica: int, total: int
) -> Array:
    return np.asarray(accumulator.leave(replica, total), np.int32)


for _op in (
    accumulator_reset,
    accumulator_leave,
    conditional_accumulator,
    sparse_conditional_accumulator,
    accumulator_apply_gradient,
    accumulator_apply_rows,
    accumulator_take_gradient,
    accumulator_take_rows,
    accumulator_num_accumulated,
    accumulator_set_global_step,
):
    _op.grad(no_gradient)
