"""Tensors kept between the steps of a session: handles of `resources/kept_tensors.py`, as ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError
from ...graph import ANY, Array, TensorSpec, as_dtype, resource, unknown_shape
from ...resources.kept_tensors import TensorHandle
from ..core.effects import HANDLE
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient


@define("GetSessionHandle", dtypes={"x": ANY}, stateful=True)
def get_session_handle(x: TensorSpec) -> TensorSpec:
    """The handle of the value of `x` in this step."""
    return TensorSpec((), resource)


@get_session_handle.effect
def _handle_kernel(context: KernelContext, x: Array) -> TensorHandle:
    return TensorHandle(np.array(x))  # a copy: a variable may come to hold other numbers there


@define("GetSessionTensor", dtypes={"handle": HANDLE}, stateful=True)
def get_session_tensor(handle: TensorSpec, *, dtype: str) -> TensorSpec:
    """The value that a handle stands for."""
    return TensorSpec(unknown_shape(), as_dtype(dtype))


@get_session_tensor.effect
def _tensor_kernel(context: KernelContext, handle: Any, *, dtype: str) -> Array:
    value = _checked(handle).eval()
    if value.dtype != as_dtype(dtype).numpy:
        raise DTypeError(f"{handle!r} stands for another type than {dtype}")
    return value


@define("DeleteSessionTensor", dtypes={"handle": HANDLE}, stateful=True)
def delete_session_tensor(handle: TensorSpec) -> tuple[TensorSpec, ...]:
    """Drop the value that a handle stands for."""
    return ()


@delete_session_tensor.effect
def _delete_kernel(context: KernelContext, handle: Any) -> tuple[Array, ...]:
    _checked(handle).delete()
    return ()


def _checked(handle: Any) -> TensorHandle:
    if not isinstance(handle, TensorHandle):
        raise InvalidArgumentError(f"expected the handle of a kept tensor, got {handle!r}")
    return handle


for _op in (get_session_handle, get_session_tensor, delete_session_tensor):
    _op.grad(no_gradient)
