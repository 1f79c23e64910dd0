"""Convolution over one to three spatial axes, and its two gradients.

Layouts: x is (batch, *spatial, channels), a kernel (*window, channels / groups, filters). The three
ops are the three faces of one trilinear form, so each is a gradient of the others:
    Conv            (x, kernel)  -> y
    ConvInputGrad   (dy, kernel) -> dx
    ConvKernelGrad  (x, dy)      -> dkernel
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import FLOATING, Array, Dim, Tensor, TensorSpec, tensor_like
from ..array.shape import runtime_shape
from ..core.arrays import computing_dtype
from ..core.registry import define
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


def _check_channels(channels: Dim, kernel: TensorSpec, groups: int) -> None:
    """Refuse a kernel that does not fit an input of so many channels."""
    inner, filters = (None, None) if kernel.shape.rank is None else kernel.shape[-2:]
    if filters is not None and filters % groups:
        raise ShapeError(
            f"Conv: {filters} filters cannot be divided into {groups} groups (kernel is {kernel})",
            remedy=f"make the number of filters a multiple of {groups}",
        )
    if channels is None or inner is None or channels == inner * groups:
        return
    split = f" in {groups} groups ({inner} * {groups} = {inner * groups})" if groups > 1 else ""
    raise ShapeError(
        f"Conv: the input has {channels} channels, but the kernel {kernel} takes {inner}{split}",
        remedy=f"the last axis of x must have size {inner * groups}, or the kernel's "
        f"second-to-last axis size {channels // groups}",
    )


@define("Conv", dtypes=FLOATING)
def conv_op(
    x: TensorSpec,
    kernel: TensorSpec,
    *,
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
    groups: int,
) -> TensorSpec:
    """y[b, i, f] = sum over t, c of x[b, j, c] * kernel[t, c, f], j = i * strides + t * dilations
    - before.

    i, j and t run over the spatial axes, c over the channels of the group of filter f; cells
    outside of x are 0.
    """
    axes = len(strides)
    check_rank("Conv", "x", x, axes + 2)
    check_rank("Conv", "kernel", kernel, axes + 2)
    _check_channels(dim_at(x, -1), kernel, groups)
    window = dims_at(kernel, 0, axes)
    out = window_dims("Conv", dims_at(x, 1, axes), window, strides, padding, dilations)
    return TensorSpec([dim_at(x, 0), *out, dim_at(kernel, -1)], x.dtype)


@define("ConvInputGrad", dtypes={"dy": FLOATING, "kernel": FLOATING})
def conv_input_grad(
    dy: TensorSpec,
    kernel: TensorSpec,
    *dims: TensorSpec,
    input_dims: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
    groups: int,
) -> TensorSpec:
    """dx[b, j, c] = sum over f, t, i of dy[b, i, f] * kernel[t, c, f], j as in Conv: its gradient
    for the input, of spatial size `input_dims`, in which each None is given at run time by one of
    `dims`.
    """
    inner = dim_at(kernel, -2)
    return TensorSpec(
        [dim_at(dy, 0), *input_dims, None if inner is None else inner * groups], dy.dtype
    )


@define("ConvKernelGrad", dtypes={"x": FLOATING, "dy": FLOATING})
def conv_kernel_grad(
    x: TensorSpec,
    dy: TensorSpec,
    *dims: TensorSpec,
    window: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
    groups: int,
) -> TensorSpec:
    """dkernel[t, c, f] = sum over b, i of x[b, j, c] * dy[b, i, f], j as in Conv: its gradient for
    the kernel, of spatial size `window`, in which each None is given at run time by one of `dims`.
    """
    channels = dim_at(x, -1)
    inner = None if channels is None else channels // groups
    return TensorSpec([*window, inner, dim_at(dy, -1)], x.dtype)


def _unfold(xp: Any, block: Array, geometry: Geometry, groups: int) -> Array:
    """(groups, positions, taps * channels / groups): what each position of the window sees."""
    batch, *spatial, channel = block.strides
    inner = block.shape[-1] // groups
    axes = len(spatial)
    view = xp.lib.stride_tricks.as_strided(
        block,
        (block.shape[0], *geometry.out, *geometry.window, groups, inner),
        (
            batch,
            *(n * s for n, s in zip(spatial, geometry.strides, strict=True)),
            *(n * d for n, d in zip(spatial, geometry.dilations, strict=True)),
            inner * channel,
            channel,
        ),
    )
    positions = block.shape[0] * math.prod(geometry.out)
    return xp.moveaxis(view, 2 * axes + 1, 0).reshape(groups, positions, geometry.taps * inner)


def _by_group(xp: Any, y: Array, groups: int) -> Array:
    """(batch, *spatial, channels) as a view (groups, positions, channels / groups)."""
    positions = math.prod(y.shape[:-1])
    return xp.swapaxes(y.reshape(positions, groups, y.shape[-1] // groups), 0, 1)


def _taps_by_group(xp: Any, kernel: Array, groups: int, dtype: Any) -> Array:
    """(*window, inner, filters) as (groups, taps, inner, filters / groups)."""
    *window, inner, filters = kernel.shape
    split = kernel.astype(dtype, copy=False).reshape(
        math.prod(window), inner, groups, filters // groups
    )
    return xp.moveaxis(split, 2, 0)


@conv_op.reference
def _conv_kernel(
    xp: Any,
    x: Array,
    kernel: Array,
    *,
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
    groups: int,
) -> Array:
    _check_channels(x.shape[-1], tensor_like(kernel), groups)
    geometry = Geometry("Conv", x.shape[1:-1], kernel.shape[:-2], strides, padding, dilations)
    dtype = computing_dtype(xp, x)
    *_, inner, filters = kernel.shape
    weights = _taps_by_group(xp, kernel, groups, dtype)
    weights = weights.reshape(groups, geometry.taps * inner, filters // groups)
    y = xp.empty((x.shape[0], *geometry.out, filters), dtype)
    for batch, block in padded_blocks(xp, x, geometry, dtype, geometry.taps * x.shape[-1]):
        columns = _unfold(xp, block, geometry, groups)
        xp.matmul(columns, weights, out=_by_group(xp, y[batch], groups))
    return y.astype(x.dtype, copy=False)


@conv_input_grad.reference
def _conv_input_grad_kernel(
    xp: Any,
    dy: Array,
    kernel: Array,
    *dims: Array,
    input_dims: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
    groups: int,
) -> Array:
    spatial = runtime_shape(input_dims, dims)
    geometry = Geometry("ConvInputGrad", spatial, kernel.shape[:-2], strides, padding, dilations)
    return scatter_windows(xp, dy, kernel, geometry, groups)


def scatter_windows(xp: Any, dy: Array, kernel: Array, geometry: Geometry, groups: int) -> Array:
    """Each position of the window adds kernel * dy to the cells it covers (see ConvInputGrad)."""
    if dy.shape[1:-1] != geometry.out:
        raise ShapeError(
            f"ConvInputGrad: an input of size {geometry.dims} gives {geometry.out} positions, "
            f"but dy has {dy.shape[1:-1]}"
        )
    dtype = computing_dtype(xp, dy)
    taps = xp.swapaxes(_taps_by_group(xp, kernel, groups, dtype), -1, -2)
    channels = kernel.shape[-2] * groups
    dx = xp.zeros((dy.shape[0], *geometry.padded, channels), dtype)
    for batch in batches(dy.shape[0], math.prod(geometry.out) * channels):
        block = dy[batch].astype(dtype, copy=False)
        grouped = _by_group(xp, block, groups)
        for index, tap in enumerate(product(*map(range, geometry.window))):
            part = xp.swapaxes(xp.matmul(grouped, taps[:, index]), 0, 1)
            dx[(batch, *geometry.tap_cells(tap))] += part.reshape(*block.shape[:-1], channels)
    return without_padding(xp, dx, geometry).astype(dy.dtype, copy=False)


@conv_kernel_grad.reference
def _conv_kernel_grad_kernel(
    xp: Any,
    x: Array,
    dy: Array,
    *dims: Array,
    window: tuple[Dim, ...],
    strides: tuple[int, ...],
    padding: Padding,
    dilations: tuple[int, ...],
    groups: int,
) -> Array:
    taps = runtime_shape(window, dims)
    geometry = Geometry("ConvKernelGrad", x.shape[1:-1], taps, strides, padding, dilations)
    dtype = computing_dtype(xp, x)
    inner, filters = x.shape[-1] // groups, dy.shape[-1]
    total = xp.zeros((groups, math.prod(taps) * inner, filters // groups), dtype)
    for batch, block in padded_blocks(xp, x, geometry, dtype, geometry.taps * x.shape[-1]):
        columns = _unfold(xp, block, geometry, groups)
        part = _by_group(xp, dy[batch].astype(dtype, copy=False), groups)
        total += xp.matmul(xp.swapaxes(columns, 1, 2), part)
    dkernel = xp.moveaxis(total, 0, 1).reshape(*taps, inner, filters)
    return dkernel.astype(x.dtype, copy=False)


add_gradients(
    conv_op, conv_input_grad, conv_kernel_grad, ("strides", "padding", "dilations", "groups")
)


def spatial_axes(who: str, x: Tensor, kernel: Tensor) -> int:
    """How many spatial axes a convolution of `x` with `kernel` has."""
    rank = kernel.shape.rank if x.shape.rank is None else x.shape.rank
    if rank is None:
        raise ShapeError(
            f"{who}: the number of axes of x or of the kernel must be known",
            remedy="give x a shape (set_shape, or a full TensorSpec)",
        )
    if not 3 <= rank <= 5:
        raise ShapeError(
            f"{who}: x must be (batch, *spatial, channels) with one to three spatial axes, "
            f"got x {x.spec} and kernel {kernel.spec}",
            remedy="add the missing axis, such as expand_dims(x, 0) for the batch",
        )
    return rank - 2


def conv(
    x: Tensor,
    kernel: Tensor,
    *,
    strides: int | Sequence[int] = 1,
    padding: str | Sequence[Sequence[int]] = "valid",
    dilations: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve with a bank of kernels (cross-correlation, as is usual in this field).

    Args:
        x: (batch, *spatial, channels), one to three spatial axes.
        kernel: (*window, channels / groups, filters), dtype of `x`.
        strides: step along each spatial axis.
        padding: "valid", "same" (ceil(size / stride) outputs; an odd cell of padding comes after),
            "causal" (all padding before), or a pair (before, after) for each spatial axis.
        dilations: distance of neighbouring taps along each spatial axis.
        groups: the channels and the filters are split into so many groups, convolved apart.

    Returns:
        (batch, *positions, filters), dtype of `x`; half types are summed in float32.

    Raises:
        ShapeError: channels do not fit, or the window is larger than the padded input.
        InvalidArgumentError: strides, padding, dilations or groups are malformed.
    """
    axes = spatial_axes("Conv", x, kernel)
    if groups < 1:
        raise InvalidArgumentError(f"Conv: groups must be at least 1, got {groups}")
    return conv_op(
        x,
        kernel,
        strides=per_axis("Conv", "strides", strides, axes),
        padding=as_padding("Conv", padding, axes),
        dilations=per_axis("Conv", "dilations", dilations, axes),
        groups=int(groups),
    )
