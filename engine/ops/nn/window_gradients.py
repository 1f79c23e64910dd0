"""The gradients of a convolution and of its two gradients, which are gradients of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...graph import OpView, Tensor
from ..core.op_def import Grads, OpDef
from .windows import spatial_dims


def add_gradients(
    forward: OpDef, input_grad: OpDef, kernel_grad: OpDef, attributes: Sequence[str]
) -> None:
    """Give three ops their gradients.

    Args:
        forward: y of (x, kernel).
        input_grad: dx of (dy, kernel, *dims), with the sizes of x as `input_dims`.
        kernel_grad: the gradient of the kernel, of (x, dy, *dims), with its sizes as `window`.
        attributes: those that the three have in common.
    """

    def attrs_of(op: OpView) -> dict[str, Any]:
        return {name: op.attrs[name] for name in attributes}

    def for_input(dy: Tensor, kernel: Tensor, x: Tensor, attrs: dict[str, Any]) -> Tensor:
        input_dims, dims = spatial_dims(x, len(attrs["strides"]))
        return input_grad(dy, kernel, *dims, input_dims=input_dims, **attrs)

    def for_kernel(x: Tensor, dy: Tensor, kernel: Tensor, attrs: dict[str, Any]) -> Tensor:
        window, dims = spatial_dims(kernel, len(attrs["strides"]), first=0)
        return kernel_grad(x, dy, *dims, window=window, **attrs)

    @forward.grad
    def _forward(op: OpView, dy: Tensor) -> Grads:
        x, kernel = op.inputs
        attrs = attrs_of(op)
        return for_input(dy, kernel, x, attrs), for_kernel(x, dy, kernel, attrs)

    @input_grad.grad
    def _input_grad(op: OpView, ddx: Tensor) -> Grads:
        dy, kernel, *dims = op.inputs
        attrs = attrs_of(op)
        ddy = forward(ddx, kernel, **attrs)
        return ddy, for_kernel(ddx, dy, kernel, attrs), *(None for _ in dims)

    @kernel_grad.grad
    def _kernel_grad(op: OpView, ddkernel: Tensor) -> Grads:
        x, dy, *dims = op.inputs
        attrs = attrs_of(op)
        ddy = forward(x, ddkernel, **attrs)
        return for_input(dy, ddkernel, x, attrs), ddy, *(None for _ in dims)
