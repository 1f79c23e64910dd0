"""Tensor arrays as ops. The handle is an object of `resources/tensor_arrays.py`.

What is done to an array is put in order by its `flow`, a float32 scalar: each change takes one and
gives the next, and what reads takes that of the change it is to see. The gradient of a flow is the
flow of the array of gradients: a read writes its gradient there, a write reads its own from there.
The handle is made anew each time its operation runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...graph import (
    ANY,
    INTEGER,
    Array,
    OpView,
    Tensor,
    TensorShape,
    TensorSpec,
    as_dtype,
    float32,
    int32,
    int64,
    resource,
)
from ...resources.batches import show_shape
from ...resources.tensor_arrays import TensorArray
from ..core.effects import HANDLE, plain_shape
from ..core.gradient_pass import pass_name
from ..core.op_def import Grads, KernelContext
from ..core.registry import define, no_gradient

_FLOW = TensorSpec((), float32)
_FLOWS = frozenset({float32})
_NO_FLOW = np.zeros((), np.float32)


def _scalar(who: str, what: str, x: TensorSpec) -> None:
    if not x.shape.is_compatible_with(()):
        raise ShapeError(f"{who}: {what} is a scalar, got {x}")


def _with_axis(shape: TensorShape, size: int | None) -> TensorShape:
    return TensorShape(None if shape.rank is None else [size, *shape])


@define("TensorArray", dtypes={"size": INTEGER}, stateful=True)
def tensor_array(
    size: TensorSpec,
    *,
    dtype: str,
    element_shape: TensorShape,
    dynamic_size: bool,
    clear_after_read: bool,
    identical_element_shapes: bool,
    tensor_array_name: str,
    overwrites: bool = False,
) -> tuple[TensorSpec, TensorSpec]:
    """The handle of a new array of tensors, and its first flow."""
    _scalar("TensorArray", "size", size)
    if as_dtype(dtype) == resource:
        raise DTypeError("TensorArray: handles cannot be kept")
    return TensorSpec((), resource), _FLOW


@tensor_array.effect
def _tensor_array_kernel(
    context: KernelContext,
    size: Array,
    *,
    dtype: str,
    element_shape: TensorShape,
    dynamic_size: bool,
    clear_after_read: bool,
    identical_element_shapes: bool,
    tensor_array_name: str,
    overwrites: bool,
) -> Any:
    made = TensorArray(
        tensor_array_name,
        int(size),
        as_dtype(dtype).numpy,
        plain_shape(element_shape),
        grows=dynamic_size,
        clears=clear_after_read,
        same_shapes=identical_element_shapes,
        overwrites=overwrites,
    )
    return made, _NO_FLOW


@define("TensorArrayGrad", dtypes={"handle": HANDLE, "flow": _FLOWS}, same_dtype=False)
def tensor_array_grad(
    handle: TensorSpec, flow: TensorSpec, *, source: str
) -> tuple[TensorSpec, TensorSpec]:
    """The handle of the array of the gradients of an array's elements, one for each `source`."""
    return TensorSpec((), resource), _FLOW


@tensor_array_grad.effect
def _tensor_array_grad_kernel(
    context: KernelContext, handle: TensorArray, flow: Array, *, source: str
) -> Any:
    return handle.gradient(source), _NO_FLOW


@tensor_array_grad.grad
def _tensor_array_grad_grad(op: OpView, dhandle: Tensor | None, dflow: Tensor | None) -> Grads:
    return None, dflow  # what the gradient owes to the changes before, for a second derivative


def _gradient_array(handle: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
    """Handle and flow of the array of gradients, for the pass that is under way."""
    own, first = tensor_array_grad.many(handle, flow, source=pass_name())
    return own, first


@define(
    "TensorArrayWrite",
    dtypes={"handle": HANDLE, "index": INTEGER, "value": ANY, "flow": _FLOWS},
    same_dtype=False,
)
def tensor_array_write(
    handle: TensorSpec, index: TensorSpec, value: TensorSpec, flow: TensorSpec
) -> TensorSpec:
    """Store `value` at an index; gives the next flow."""
    _scalar("TensorArrayWrite", "index", index)
    return _FLOW


def _check_type(array: TensorArray, value: Array) -> None:
    if value.dtype != array.dtype:
        raise DTypeError(
            f"TensorArray {array.name!r} holds {as_dtype(array.dtype)}, "
            f"got a value of {as_dtype(value.dtype)}"
        )


@tensor_array_write.effect
def _write_kernel(
    context: KernelContext, handle: TensorArray, index: Array, value: Array, flow: Array
) -> Array:
    _check_type(handle, value)
    handle.write(int(index), value)
    return flow


@tensor_array_write.grad
def _write_grad(op: OpView, dflow: Tensor) -> Grads:
    handle, index, value, _ = op.inputs
    own, flow = _gradient_array(handle, dflow)
    dx = tensor_array_read(own, index, flow, dtype=value.dtype, element_shape=value.shape)
    return None, None, dx if value.dtype.is_differentiable else None, dflow


@define(
    "TensorArrayRead",
    dtypes={"handle": HANDLE, "index": INTEGER, "flow": _FLOWS},
    same_dtype=False,
)
def tensor_array_read(
    handle: TensorSpec,
    index: TensorSpec,
    flow: TensorSpec,
    *,
    dtype: str,
    element_shape: TensorShape,
) -> TensorSpec:
    """The element at an index."""
    _scalar("TensorArrayRead", "index", index)
    return TensorSpec(element_shape, as_dtype(dtype))


def _check_dtype(array: TensorArray, dtype: str) -> None:
    if as_dtype(dtype).numpy != array.dtype:
        raise DTypeError(
            f"TensorArray {array.name!r} holds {as_dtype(array.dtype)}, asked for {dtype}"
        )


@tensor_array_read.effect
def _read_kernel(
    context: KernelContext,
    handle: TensorArray,
    index: Array,
    flow: Array,
    *,
    dtype: str,
    element_shape: TensorShape,
) -> Array:
    _check_dtype(handle, dtype)
    return handle.read(int(index))


@tensor_array_read.grad
def _read_grad(op: OpView, dy: Tensor) -> Grads:
    handle, index, flow = op.inputs
    own, first = _gradient_array(handle, flow)
    return None, None, tensor_array_write(own, index, dy, first)


def _check_vector(array: TensorArray, numbers: Array) -> None:
    if numbers.ndim != 1:
        raise ShapeError(
            f"TensorArray {array.name!r}: expected a vector of indices or lengths, "
            f"got shape {show_shape(numbers.shape)}"
        )


@define(
    "TensorArrayGather",
    dtypes={"handle": HANDLE, "indices": INTEGER, "flow": _FLOWS},
    same_dtype=False,
)
def tensor_array_gather(
    handle: TensorSpec,
    indices: TensorSpec,
    flow: TensorSpec,
    *,
    dtype: str,
    element_shape: TensorShape,
) -> TensorSpec:
    """The elements at some indices, stacked along a new first axis."""
    if indices.shape.rank not in (None, 1):
        raise ShapeError(f"TensorArrayGather: indices are a vector, got {indices}")
    count = None if indices.shape.rank is None else indices.shape[0]
    return TensorSpec(_with_axis(element_shape, count), as_dtype(dtype))


@tensor_array_gather.effect
def _gather_kernel(
    context: KernelContext,
    handle: TensorArray,
    indices: Array,
    flow: Array,
    *,
    dtype: str,
    element_shape: TensorShape,
) -> Array:
    _check_dtype(handle, dtype)
    _check_vector(handle, indices)
    return handle.gather(indices.tolist(), plain_shape(element_shape))


@tensor_array_gather.grad
def _gather_grad(op: OpView, dy: Tensor) -> Grads:
    handle, indices, flow = op.inputs
    own, first = _gradient_array(handle, flow)
    return None, None, tensor_array_scatter(own, indices, dy, first)


@define(
    "TensorArrayScatter",
    dtypes={"handle": HANDLE, "indices": INTEGER, "value": ANY, "flow": _FLOWS},
    same_dtype=False,
)
def tensor_array_scatter(
    handle: TensorSpec, indices: TensorSpec, value: TensorSpec, flow: TensorSpec
) -> TensorSpec:
    """Store the slices of `value` along its first axis at some indices; gives the next flow."""
    if indices.shape.rank not in (None, 1) or value.shape.rank == 0:
        raise ShapeError(
            f"TensorArrayScatter: expected a vector of indices and values along an axis, "
            f"got {indices} and {value}"
        )
    return _FLOW


@tensor_array_scatter.effect
def _scatter_kernel(
    context: KernelContext, handle: TensorArray, indices: Array, value: Array, flow: Array
) -> Array:
    _check_type(handle, value)
    _check_vector(handle, indices)
    if value.shape[:1] != indices.shape:
        raise ShapeError(
            f"TensorArray {handle.name!r}: {indices.size} indices, "
            f"and values of shape {show_shape(value.shape)} for them"
        )
    handle.scatter(indices.tolist(), [value[i, ...] for i in range(len(value))])
    return flow


@tensor_array_scatter.grad
def _scatter_grad(op: OpView, dflow: Tensor) -> Grads:
    handle, indices, value, _ = op.inputs
    own, flow = _gradient_array(handle, dflow)
    shape = TensorShape(None if value.shape.rank is None else value.shape[1:])
    dx = tensor_array_gather(own, indices, flow, dtype=value.dtype, element_shape=shape)
    return None, None, dx if value.dtype.is_differentiable else None, dflow


@define("TensorArrayConcat", dtypes={"handle": HANDLE, "flow": _FLOWS}, same_dtype=False)
def tensor_array_concat(
    handle: TensorSpec,
    flow: TensorSpec,
    *lengths: TensorSpec,
    dtype: str,
    element_shape: TensorShape,
) -> tuple[TensorSpec, TensorSpec]:
    """The elements joined along their first axis, and the length of each, int64.

    `element_shape` is that of an element without its first axis. Where a vector `lengths` is given,
    there are as many elements as it has.
    """
    return TensorSpec(_with_axis(element_shape, None), as_dtype(dtype)), TensorSpec([None], int64)


@tensor_array_concat.effect
def _concat_kernel(
    context: KernelContext,
    handle: TensorArray,
    flow: Array,
    *lengths: Array,
    dtype: str,
    element_shape: TensorShape,
) -> Any:
    _check_dtype(handle, dtype)
    count = lengths[0].size if lengths else None
    joined, found = handle.concat(plain_shape(element_shape), count)
    return joined, np.asarray(found, np.int64)


@tensor_array_concat.grad
def _concat_grad(op: OpView, dy: Tensor | None, dlengths: Tensor | None) -> Grads:
    if dy is None:
        return no_gradient(op)
    handle, flow = op.inputs[:2]
    own, first = _gradient_array(handle, flow)
    dflow = tensor_array_split(own, dy, op.outputs[1], first)
    return None, dflow, *(None for _ in op.inputs[2:])


@define(
    "TensorArraySplit",
    dtypes={"handle": HANDLE, "value": ANY, "lengths": INTEGER, "flow": _FLOWS},
    same_dtype=False,
)
def tensor_array_split(
    handle: TensorSpec, value: TensorSpec, lengths: TensorSpec, flow: TensorSpec
) -> TensorSpec:
    """Store the pieces of `value` along its first axis that have these lengths, from index 0."""
    if lengths.shape.rank not in (None, 1) or value.shape.rank == 0:
        raise ShapeError(
            f"TensorArraySplit: expected a value with an axis and a vector of lengths, "
            f"got {value} and {lengths}"
        )
    return _FLOW


@tensor_array_split.effect
def _split_kernel(
    context: KernelContext, handle: TensorArray, value: Array, lengths: Array, flow: Array
) -> Array:
    _check_type(handle, value)
    _check_vector(handle, lengths)
    handle.split(value, lengths.tolist())
    return flow


@tensor_array_split.grad
def _split_grad(op: OpView, dflow: Tensor) -> Grads:
    handle, value, lengths, _ = op.inputs
    own, flow = _gradient_array(handle, dflow)
    shape = TensorShape(None if value.shape.rank is None else value.shape[1:])
    dx, _ = tensor_array_concat.many(own, flow, lengths, dtype=value.dtype, element_shape=shape)
    return None, dx if value.dtype.is_differentiable else None, None, dflow


@define(
    "TensorArraySize",
    dtypes={"handle": HANDLE, "flow": _FLOWS},
    same_dtype=False,
    read_only=True,
)
def tensor_array_size(handle: TensorSpec, flow: TensorSpec) -> TensorSpec:
    """The number of elements, int32."""
    return TensorSpec((), int32)


@tensor_array_size.effect
def _size_kernel(context: KernelContext, handle: TensorArray, flow: Array) -> Array:
    return np.asarray(handle.size, np.int32)


@define("TensorArrayClose", dtypes={"handle": HANDLE})
def tensor_array_close(handle: TensorSpec) -> tuple[TensorSpec, ...]:
    """Drop the elements."""
    return ()


@tensor_array_close.effect
def _close_kernel(context: KernelContext, handle: TensorArray) -> Any:
    handle.close()
    return ()


for _op in (tensor_array, tensor_array_size, tensor_array_close):
    _op.grad(no_gradient)
