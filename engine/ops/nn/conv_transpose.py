"""Transposed convolution: the gradient of a convolution for its input, used to enlarge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import FLOATING, Array, Dim, OpView, Tensor, TensorSpec, tensor_like
from ..core.entries import whole
from ..core.op_def import Grads
from ..core.registry import define
from .convolution import conv, conv_kernel_grad, scatter_windows, spatial_axes
from .windows import (
    Geometry,
    Pair,
    check_rank,
    covered,
    dim_at,
    dims_at,
    per_axis,
)


def _pads(span: int, stride: int, padding: str, output_padding: int | None) -> Pair:
    """The padding, along one axis, of the convolution that the transposed one is the gradient of.

    n cells become (n - 1) * stride + span - before - after of them, so the sum of the padding
    follows from the size wanted; "same" halves it, the odd cell after.
    """
    if padding == "valid":
        total = min(span - stride, 0) if output_padding is None else -output_padding
    else:
        total = span - (stride if output_padding is None else span % 2 + output_padding)
    before = max(total // 2, 0)
    return before, total - before


def all_pads(
    window: Sequence[int],
    strides: Sequence[int],
    padding: str,
    output_padding: Sequence[int] | None,
    dilations: Sequence[int],
) -> tuple[Pair, ...]:
    """The padding, along each axis, of the convolution that this is the gradient of."""
    extras = (None,) * len(window) if output_padding is None else output_padding
    return tuple(
        _pads(covered(size, dilation), stride, padding, extra)
        for size, stride, extra, dilation in zip(window, strides, extras, dilations, strict=True)
    )


def out_dims(
    dims: Sequence[Dim],
    window: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[Pair],
    dilations: Sequence[int],
) -> tuple[Dim, ...]:
    """The size of the output along each spatial axis.

    Raises:
        ShapeError: there is none.
    """
    found = tuple(
        None if d is None else (d - 1) * s + covered(k, dilation) - sum(pair)
        for d, k, s, pair, dilation in zip(dims, window, strides, pads, dilations, strict=True)
    )
    if any(d is not None and d < 1 for d in found):
        raise ShapeError(
            f"ConvTranspose: the output would have the size {found} along the spatial axes, "
            f"from {tuple(dims)} with a window of {tuple(window)}",
            remedy='use padding="valid", a larger output_padding, or a larger input',
        )
    return found


def _known_window(kernel: TensorSpec, axes: int) -> tuple[int, ...]:
    window = dims_at(kernel, 0, axes)
    if None in window:
        raise ShapeError(
            f"ConvTranspose: the size of the window must be known, but the kernel is {kernel}",
            remedy="give the kernel a full shape",
        )
    return window  # type: ignore[return-value]  # no None in it


def _check_channels(x: TensorSpec, kernel: TensorSpec) -> None:
    channels, expected = dim_at(x, -1), dim_at(kernel, -1)
    if channels is not None and expected is not None and channels != expected:
        raise ShapeError(
            f"ConvTranspose: the input has {channels} channels, but the kernel {kernel} takes "
            f"{expected}",
            remedy="a transposed kernel is (*window, filters, channels): "
            f"its last axis must have size {channels}",
        )


@define("ConvTranspose", dtypes=FLOATING)
def conv_transpose_op(
    x: TensorSpec,
    kernel: TensorSpec,
    *,
    strides: tuple[int, ...],
    padding: str,
    output_padding: tuple[int, ...] | None,
    dilations: tuple[int, ...],
) -> TensorSpec:
    """y[b, j, f] = sum over i, t, c with j = i * strides + t * dilations - before
    of x[b, i, c] * kernel[t, f, c].

    With k the cells that the window covers, n cells give n * stride of them for "same", and
    (n - 1) * stride + max(k, stride) for "valid"; with an output_padding p it is
    (n - 1) * stride + k % 2 + p and (n - 1) * stride + k + p.
    """
    axes = len(strides)
    check_rank("ConvTranspose", "x", x, axes + 2)
    check_rank("ConvTranspose", "kernel", kernel, axes + 2)
    _check_channels(x, kernel)
    window = _known_window(kernel, axes)
    pads = all_pads(window, strides, padding, output_padding, dilations)
    out = out_dims(dims_at(x, 1, axes), window, strides, pads, dilations)
    return TensorSpec([dim_at(x, 0), *out, dim_at(kernel, -2)], x.dtype)


@conv_transpose_op.reference
def _conv_transpose_kernel(
    xp: Any,
    x: Array,
    kernel: Array,
    *,
    strides: tuple[int, ...],
    padding: str,
    output_padding: tuple[int, ...] | None,
    dilations: tuple[int, ...],
) -> Array:
    _check_channels(tensor_like(x), tensor_like(kernel))
    window = kernel.shape[:-2]
    pads = all_pads(window, strides, padding, output_padding, dilations)
    out: Any = out_dims(x.shape[1:-1], window, strides, pads, dilations)
    geometry = Geometry("ConvTranspose", out, window, strides, pads, dilations)
    return scatter_windows(xp, x, kernel, geometry, groups=1)


@conv_transpose_op.grad
def _conv_transpose_grad(op: OpView, dy: Tensor) -> Grads:
    x, kernel = op.inputs
    strides, dilations = op.attrs["strides"], op.attrs["dilations"]
    window = _known_window(kernel.spec, len(strides))
    pads = all_pads(window, strides, op.attrs["padding"], op.attrs["output_padding"], dilations)
    dx = conv(dy, kernel, strides=strides, padding=pads, dilations=dilations)
    dkernel = conv_kernel_grad(
        dy, x, window=window, strides=strides, padding=pads, dilations=dilations, groups=1
    )
    return dx, dkernel


def conv_transpose(
    x: Tensor,
    kernel: Tensor,
    *,
    strides: int | Sequence[int] = 1,
    padding: str = "valid",
    output_padding: int | Sequence[int] | None = None,
    dilations: int | Sequence[int] = 1,
) -> Tensor:
    """Transposed convolution, also called deconvolution.

    Args:
        x: (batch, *spatial, channels), one to three spatial axes.
        kernel: (*window, filters, channels), dtype of `x`.
        strides: the factor by which each spatial axis grows.
        padding: "valid" or "same": how much of the border is cut off.
        output_padding: sets the size of the output (see the sizes below); None for the default.
        dilations: distance of neighbouring taps along each spatial axis.

    Returns:
        (batch, *enlarged, filters). With k the cells that the window covers, n cells become
        n * stride ("same") or (n - 1) * stride + max(k, stride) ("valid") of them; with an
        output_padding p, (n - 1) * stride + k % 2 + p or (n - 1) * stride + k + p.

    Raises:
        ShapeError: channels do not fit, the window is unknown, or the output would be empty.
        InvalidArgumentError: strides, padding, dilations or output_padding are malformed.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 4.
    """
    axes = spatial_axes("ConvTranspose", x, kernel)
    if not isinstance(padding, str) or padding.lower() not in ("valid", "same"):
        raise InvalidArgumentError(
            f"ConvTranspose: padding must be 'valid' or 'same', got {padding!r}"
        )
    extras: tuple[int, ...] | None = None
    if output_padding is not None:
        given = output_padding if isinstance(output_padding, Sequence) else (output_padding,) * axes
        extras = tuple(whole("ConvTranspose", "output_padding", p) for p in given)
        if len(extras) != axes or any(p < 0 for p in extras):
            raise InvalidArgumentError(
                f"ConvTranspose: output_padding must be one whole number >= 0, or {axes} of them, "
                f"got {output_padding!r}"
            )
    return conv_transpose_op(
        x,
        kernel,
        strides=per_axis("ConvTranspose", "strides", strides, axes),
        padding=padding.lower(),
        output_padding=extras,
        dilations=per_axis("ConvTranspose", "dilations", dilations, axes),
    )
