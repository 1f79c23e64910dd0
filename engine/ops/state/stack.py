"""Stacks as ops. The handle, an object of `resources/stacks.py`, is made anew in each step."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError, ShapeError
from ...graph import ANY, INTEGER, Array, TensorShape, TensorSpec, as_dtype, resource
from ...resources.stacks import Stack
from ..core.effects import HANDLE
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient


@define("TensorStack", dtypes={"max_size": INTEGER}, stateful=True)
def stack(max_size: TensorSpec, *, stack_name: str) -> TensorSpec:
    """The handle of a new stack of at most `max_size` tensors, of any number if it is negative."""
    if not max_size.shape.is_compatible_with(()):
        raise ShapeError(f"TensorStack: max_size is a scalar, got {max_size}")
    return TensorSpec((), resource)


@stack.effect
def _stack_kernel(context: KernelContext, max_size: Array, *, stack_name: str) -> Stack:
    return Stack(stack_name, int(max_size))


@define("TensorStackPush", dtypes={"handle": HANDLE, "x": ANY}, same_dtype=False)
def stack_push(handle: TensorSpec, x: TensorSpec) -> TensorSpec:
    """`x` itself, once it is on top of the stack."""
    return x


@stack_push.effect
def _push_kernel(context: KernelContext, handle: Stack, x: Array) -> Array:
    handle.push(x)
    return x


@define("TensorStackPop", dtypes={"handle": HANDLE})
def stack_pop(handle: TensorSpec, *, dtype: str, shape: TensorShape) -> TensorSpec:
    """The tensor on top of the stack, which it leaves."""
    return TensorSpec(shape, as_dtype(dtype))


@stack_pop.effect
def _pop_kernel(context: KernelContext, handle: Stack, *, dtype: str, shape: TensorShape) -> Any:
    value = handle.pop()
    if as_dtype(dtype).numpy != value.dtype:
        raise DTypeError(f"{handle!r} holds {as_dtype(value.dtype)}, asked for {dtype}")
    if not shape.is_compatible_with(value.shape):
        raise ShapeError(f"{handle!r} holds a tensor of {TensorShape(value.shape)}, not of {shape}")
    return value


@define("TensorStackClose", dtypes={"handle": HANDLE})
def stack_close(handle: TensorSpec) -> tuple[TensorSpec, ...]:
    """Drop what is on the stack."""
    return ()


@stack_close.effect
def _close_kernel(context: KernelContext, handle: Stack) -> Any:
    handle.close()
    return ()


for _op in (stack, stack_push, stack_pop, stack_close):
    _op.grad(no_gradient)
