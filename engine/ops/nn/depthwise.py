"""Depthwise convolution: each channel is convolved alone, with `multiplier` windows of its own.

Layouts: x is (batch, *spatial, channels), a kernel (*window, channels, multiplier); output channel
c * multiplier + m comes from channel c. As in convolution.py, the three ops are gradients of each
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from ...errors import ShapeError
from ...graph import FLOATING, Array, Dim, Tensor, TensorSpec, tensor_like
from ..array.shape import runtime_shape
from ..core.arrays import computing_dtype
from ..core.registry import define
from .convolution import conv, spatial_axes
from .window_gradients import add_gradients
from .windows import (
    Geometry,
    Padding,
    as_padding,
    batches,
    check_rank,
    dim_at,
    dims_at,
    padded_blocks,
    per_axis,
    window_dims,
    without_padding,
)


def _check_channels(x: TensorSpec, kernel: TensorSpec) -> None:
    channels, expected = dim_at(x, -1), dim_at(kernel, -2)
    if channels is not None and expected is not None and channels != expected:
        raise ShapeError(
            f"DepthwiseConv: the input has {channels} channels, but the kernel {kernel} takes "
            f"{expected}",
            remedy="a depthwise kernel is (*window, channels, multiplier): "
            f"its second-to-last axis must have size {channels}",
        )


@define("DepthwiseConv", dtypes=FLOATING)
def depthwise_conv_op(
    x: TensorSpec,
    kernel: TensorSpec,
    *,
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
) -> TensorSpec:
    """y[b, i, c * multiplier + m]
    = sum over t of x[b, i * strides + t * dilations - before, c] * kernel[t, c, m].
    """
    axes = len(strides)
    check_rank("DepthwiseConv", "x", x, axes + 2)
    check_rank("DepthwiseConv", "kernel", kernel, axes + 2)
    _check_channels(x, kernel)
    window = dims_at(kernel, 0, axes)
    out = window_dims("DepthwiseConv", dims_at(x, 1, axes), window, strides, padding, dilations)
    channels, multiplier = dim_at(kernel, -2), dim_at(kernel, -1)
    known = None if channels is None or multiplier is None else channels * multiplier
    return TensorSpec([dim_at(x, 0), *out, known], x.dtype)


@define("DepthwiseInputGrad", dtypes={"dy": FLOATING, "kernel": FLOATING})
def depthwise_input_grad(
    dy: TensorSpec,
    kernel: TensorSpec,
    *dims: TensorSpec,
    input_dims: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
) -> TensorSpec:
    """The gradient of DepthwiseConv for its input, of spatial size `input_dims`, in which each
    None is given at run time by one of `dims`.
    """
    return TensorSpec([dim_at(dy, 0), *input_dims, dim_at(kernel, -2)], dy.dtype)


@define("DepthwiseKernelGrad", dtypes={"x": FLOATING, "dy": FLOATING})
def depthwise_kernel_grad(
    x: TensorSpec,
    dy: TensorSpec,
    *dims: TensorSpec,
    window: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
) -> TensorSpec:
    """The gradient of DepthwiseConv for its kernel, of spatial size `window`, in which each None
    is given at run time by one of `dims`.
    """
    channels, outputs = dim_at(x, -1), dim_at(dy, -1)
    multiplier = outputs // channels if channels and outputs is not None else None
    return TensorSpec([*window, channels, multiplier], x.dtype)


@depthwise_conv_op.reference
def _depthwise_kernel(
    xp: Any,
    x: Array,
    kernel: Array,
    *,
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
) -> Array:
    _check_channels(tensor_like(x), tensor_like(kernel))
    *window, channels, multiplier = kernel.shape
    geometry = Geometry("DepthwiseConv", x.shape[1:-1], window, strides, padding, dilations)
    dtype = computing_dtype(xp, x)
    weights = kernel.astype(dtype, copy=False)
    y = xp.zeros((x.shape[0], *geometry.out, channels, multiplier), dtype)
    for batch, block in padded_blocks(xp, x, geometry, dtype, channels * multiplier):
        for *tap, m in product(*map(range, (*window, multiplier))):
            cells = block[(slice(None), *geometry.tap_cells(tap))]
            y[batch, ..., m] += cells * weights[(*tap, slice(None), m)]
    return y.reshape(*y.shape[:-2], channels * multiplier).astype(x.dtype, copy=False)


@depthwise_input_grad.reference
def _input_grad_kernel(
    xp: Any,
    dy: Array,
    kernel: Array,
    *dims: Array,
    input_dims: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
) -> Array:
    *window, channels, multiplier = kernel.shape
    spatial = runtime_shape(input_dims, dims)
    geometry = Geometry("DepthwiseInputGrad", spatial, window, strides, padding, dilations)
    dtype = computing_dtype(xp, dy)
    weights = kernel.astype(dtype, copy=False)
    split = dy.reshape(*dy.shape[:-1], channels, multiplier)
    dx = xp.zeros((dy.shape[0], *geometry.padded, channels), dtype)
    for batch in batches(dy.shape[0], dy[:1].size):
        block = split[batch].astype(dtype, copy=False)
        for *tap, m in product(*map(range, (*window, multiplier))):
            part = block[..., m] * weights[(*tap, slice(None), m)]
            dx[(batch, *geometry.tap_cells(tap))] += part
    return without_padding(xp, dx, geometry).astype(dy.dtype, copy=False)


@depthwise_kernel_grad.reference
def _kernel_grad_kernel(
    xp: Any,
    x: Array,
    dy: Array,
    *dims: Array,
    window: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
) -> Array:
    taps = runtime_shape(window, dims)
    geometry = Geometry("DepthwiseKernelGrad", x.shape[1:-1], taps, strides, padding, dilations)
    dtype = computing_dtype(xp, x)
    channels = x.shape[-1]
    split = dy.reshape(*dy.shape[:-1], channels, dy.shape[-1] // max(channels, 1))
    dkernel = xp.zeros((*taps, channels, split.shape[-1]), dtype)
    positions = "bijk"[: x.ndim - 1]
    subscripts = f"{positions}c,{positions}cm->cm"
    for batch, block in padded_blocks(xp, x, geometry, dtype, dy.shape[-1]):
        part = split[batch].astype(dtype, copy=False)
        for tap in product(*map(range, taps)):
            cells = block[(slice(None), *geometry.tap_cells(tap))]
            dkernel[tap] += xp.einsum(subscripts, cells, part)
    return dkernel.astype(x.dtype, copy=False)


add_gradients(
    depthwise_conv_op,
    depthwise_input_grad,
    depthwise_kernel_grad,
    ("strides", "padding", "dilations"),
)


def depthwise_conv(
    x: Tensor,
    kernel: Tensor,
    *,
    strides: int | Sequence[int] = 1,
    padding: str | Sequence[Sequence[int]] = "valid",
    dilations: int | Sequence[int] = 1,
) -> Tensor:
    """Convolve each channel alone.

    Args:
        x: (batch, *spatial, channels), one to three spatial axes.
        kernel: (*window, channels, multiplier), dtype of `x`.
        strides: step along each spatial axis.
        padding: see `conv`.
        dilations: distance of neighbouring taps along each spatial axis.

    Returns:
        (batch, *positions, channels * multiplier).

    Raises:
        ShapeError: channels do not fit, or the window is larger than the padded input.
        InvalidArgumentError: strides, padding or dilations are malformed.
    """
    axes = spatial_axes("DepthwiseConv", x, kernel)
    return depthwise_conv_op(
        x,
        kernel,
        strides=per_axis("DepthwiseConv", "strides", strides, axes),
        padding=as_padding("DepthwiseConv", padding, axes),
        dilations=per_axis("DepthwiseConv", "dilations", dilations, axes),
    )


def separable_conv(
    x: Tensor,
    depthwise_kernel: Tensor,
    pointwise_kernel: Tensor,
    *,
    strides: int | Sequence[int] = 1,
    padding: str | Sequence[Sequence[int]] = "valid",
    dilations: int | Sequence[int] = 1,
) -> Tensor:
    """A depthwise convolution, then one with a window of a single cell that mixes the channels.

    Args:
        x: (batch, *spatial, channels).
        depthwise_kernel: (*window, channels, multiplier).
        pointwise_kernel: (1, ..., channels * multiplier, filters).
        strides: see `conv`; they apply to the depthwise step.
        padding: see `conv`; it applies to the depthwise step.
        dilations: see `conv`; they apply to the depthwise step.

    Source: Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", 2017,
        arXiv:1610.02357, section 1.
    """
    y = depthwise_conv(x, depthwise_kernel, strides=strides, padding=padding, dilations=dilations)
    return conv(y, pointwise_kernel)
