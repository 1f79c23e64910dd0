"""Barriers as ops. The handle is an object of `resources/barriers.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    INTEGER,
    STRING,
    Array,
    DType,
    TensorShape,
    TensorSpec,
    int32,
    int64,
    resource,
    string,
)
from ...resources.barriers import Barrier, Whole
from ...resources.batches import stack_batch
from ..core.effects import HANDLE, component_specs, held, plain_shape, wait
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient

Types = tuple[DType, ...]
Shapes = tuple[TensorShape, ...]


@define("KeyedBarrier", stateful=True)
def keyed_barrier(*, dtypes: Types, shapes: Shapes, container: str, shared_name: str) -> TensorSpec:
    """The handle of a barrier: elements are given their components one by one, under keys."""
    if not dtypes or len(dtypes) != len(shapes):
        raise InvalidArgumentError(
            f"KeyedBarrier: an element has at least one component, and a shape for each; "
            f"got {len(dtypes)} dtypes and {len(shapes)} shapes"
        )
    return TensorSpec((), resource)


@keyed_barrier.effect
def _barrier_kernel(
    context: KernelContext, *, dtypes: Types, shapes: Shapes, container: str, shared_name: str
) -> Barrier:
    declared = (tuple(map(str, dtypes)), tuple(map(str, shapes)))
    return held(
        context,
        container,
        shared_name,
        Barrier,
        declared,
        lambda: Barrier(shared_name, [plain_shape(s) for s in shapes]),
    )


@define("BarrierInsertMany", dtypes={"handle": HANDLE, "keys": STRING}, same_dtype=False)
def barrier_insert_many(
    handle: TensorSpec,
    keys: TensorSpec,
    values: TensorSpec,
    *,
    component: int,
    dtypes: Types,
    shapes: Shapes,
) -> tuple[TensorSpec, ...]:
    """Give the elements of some keys their component, which lies along the first axis of values."""
    if not 0 <= component < len(dtypes):
        raise InvalidArgumentError(
            f"BarrierInsertMany: an element has {len(dtypes)} components, there is no {component}"
        )
    if values.dtype != dtypes[component]:
        raise DTypeError(
            f"BarrierInsertMany: component {component} is {dtypes[component]}, got {values}",
            remedy="cast it first",
        )
    if keys.shape.rank not in (None, 1):
        raise ShapeError(f"BarrierInsertMany: keys are a vector, got {keys}")
    shape = shapes[component]
    count = None if keys.shape.rank is None else keys.shape[0]
    whole = TensorShape(None if shape.rank is None else [count, *shape])
    if values.shape.rank == 0 or not whole.is_compatible_with(values.shape):
        raise ShapeError(
            f"BarrierInsertMany: component {component} must have shape {whole}, got {values}"
        )
    return ()


@barrier_insert_many.effect
def _insert_kernel(
    context: KernelContext,
    handle: Barrier,
    keys: Array,
    values: Array,
    *,
    component: int,
    dtypes: Types,
    shapes: Shapes,
) -> Any:
    if keys.ndim != 1 or values.shape[:1] != keys.shape:
        raise ShapeError(
            f"BarrierInsertMany: {keys.size} keys, and values of shape {list(values.shape)}"
        )
    rows = [values[i, ...] for i in range(len(values))]
    handle.insert_many(component, keys.tolist(), rows)
    return ()


@define("BarrierTakeMany", dtypes={"handle": HANDLE, "n": INTEGER}, same_dtype=False)
def barrier_take_many(
    handle: TensorSpec,
    n: TensorSpec,
    *,
    dtypes: Types,
    shapes: Shapes,
    allow_small_batch: bool,
    batch: int | None,
) -> tuple[TensorSpec, ...]:
    """Take `n` whole elements, the oldest first: their indices, keys and components, stacked.

    `batch` is n where it is known, and there will be no fewer, else None.
    """
    if not n.shape.is_compatible_with(()):
        raise ShapeError(f"BarrierTakeMany: n is a scalar, got {n}")
    return (
        TensorSpec([batch], int64),
        TensorSpec([batch], string),
        *component_specs(dtypes, shapes, [batch]),
    )


@barrier_take_many.asynchronous
def _take_kernel(
    context: KernelContext,
    done: Any,
    handle: Barrier,
    n: Array,
    *,
    dtypes: Types,
    shapes: Shapes,
    allow_small_batch: bool,
    batch: int | None,
) -> None:
    def joined(elements: list[Whole]) -> Any:
        keys = np.empty(len(elements), object)
        keys[:] = [key for _, key, _ in elements]
        indices = np.asarray([index for index, _, _ in elements], np.int64)
        batches = stack_batch(handle.name, [tuple(found) for _, _, found in elements])
        return indices, keys, *batches

    count = int(n)
    wait(context, done, lambda tell: handle.take_many(count, allow_small_batch, tell), joined)


@define("BarrierClose", dtypes={"handle": HANDLE})
def barrier_close(handle: TensorSpec, *, cancel_pending_enqueues: bool) -> tuple[TensorSpec, ...]:
    """Accept no new keys; elements that are not whole may be dropped."""
    return ()


@barrier_close.effect
def _close_kernel(context: KernelContext, handle: Barrier, *, cancel_pending_enqueues: bool) -> Any:
    handle.close(cancel_pending_enqueues)
    return ()


@define("BarrierReadySize", dtypes={"handle": HANDLE}, read_only=True)
def barrier_ready_size(handle: TensorSpec) -> TensorSpec:
    """The number of whole elements, int32."""
    return TensorSpec((), int32)


@barrier_ready_size.effect
def _ready_size_kernel(context: KernelContext, handle: Barrier) -> Array:
    return np.asarray(handle.ready_size, np.int32)


@define("BarrierIncompleteSize", dtypes={"handle": HANDLE}, read_only=True)
def barrier_incomplete_size(handle: TensorSpec) -> TensorSpec:
    """The number of elements that are not whole, int32."""
    return TensorSpec((), int32)


@barrier_incomplete_size.effect
def _incomplete_size_kernel(context: KernelContext, handle: Barrier) -> Array:
    return np.asarray(handle.incomplete_size, np.int32)


for _op in (
    keyed_barrier,
    barrier_insert_many,
    barrier_take_many,
    barrier_close,
    barrier_ready_size,
    barrier_incomplete_size,
):
    _op.grad(no_gradient)
