"""Convolutions of sequences, images and volumes, in either layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor, canonical_axis
from laminar.engine.ops.array import axes
from laminar.engine.ops.nn import conv_transpose as engine_transpose
from laminar.engine.ops.nn import convolution as engine
from laminar.engine.ops.nn import depthwise
from laminar.settings import standardize_data_format

from ..typing import DataFormat, Padding, TensorLike
from .arguments import floating, known_rank, tensors
from .recording import public

__all__ = ["conv", "conv_transpose", "depthwise_conv", "separable_conv"]

Ints = int | Sequence[int]


def channels_last(
    x: Tensor, data_format: DataFormat | None, compute: Callable[[Tensor], Tensor]
) -> Tensor:
    """`compute` of `x` with its channels moved last; the result in the layout of `x`."""
    if x.shape.rank is not None:
        canonical_axis("conv", 1, x.ndim)  # there are a batch and channels
    if standardize_data_format(data_format) == "channels_last":
        return compute(x)
    return axes.moveaxis(compute(axes.moveaxis(x, 1, -1)), -1, 1)


def _operands(*xs: Any) -> tuple[Tensor, ...]:
    """Input and kernels in their common floating type."""
    return tuple(floating(x) for x in tensors(xs))


def _groups(x: Tensor, kernel: Tensor) -> int:
    """How many groups of channels a kernel sees apart: as many as its own channels fit into x's."""
    known_rank("conv", x)
    canonical_axis("conv", -2, known_rank("conv", kernel))
    channels, seen = x.shape[-1], kernel.shape[-2]
    if channels is None or not seen:
        return 1
    if channels % seen:
        raise ShapeError(
            f"conv: the kernel {kernel.spec} sees {seen} channels, the input {x.spec} has "
            f"{channels}",
            remedy="give the kernel (*window, channels / groups, filters)",
        )
    return channels // seen


@public
def conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Ints = 1,
    padding: Padding = "valid",
    data_format: DataFormat | None = None,
    dilation_rate: Ints = 1,
) -> Tensor:
    """Convolve with a bank of kernels (cross-correlation, as is usual in this field).

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial); one to three spatial
            axes.
        kernel: (*window, channels / groups, filters); the number of groups follows from it.
        strides: step along each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring taps along each spatial axis.

    Returns:
        (batch, *positions, filters), in the layout of the inputs.

    Raises:
        ShapeError: channels do not fit, or the window is larger than the input.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285.

    Examples:
        >>> ops.conv([[[1.0], [2.0], [4.0]]], kernel=[[[1.0]], [[-1.0]]])[0, :, 0]
        Tensor([-1., -2.], shape=(2,), dtype=float32)
    """
    x, weights = _operands(inputs, kernel)

    def compute(x: Tensor) -> Tensor:
        return engine.conv(
            x,
            weights,
            strides=strides,
            padding=padding,
            dilations=dilation_rate,
            groups=_groups(x, weights),
        )

    return channels_last(x, data_format, compute)


@public
def depthwise_conv(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Ints = 1,
    padding: Padding = "valid",
    data_format: DataFormat | None = None,
    dilation_rate: Ints = 1,
) -> Tensor:
    """Convolve each channel alone; arguments as in `conv`.

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial).
        kernel: (*window, channels, multiplier).
        strides: see `conv`.
        padding: see `conv`.
        data_format: see `conv`.
        dilation_rate: see `conv`.

    Returns:
        (batch, *positions, channels * multiplier), in the layout of the inputs.

    Examples:
        >>> x = np.array([[[1.0, 10.0], [2.0, 20.0]]])  # two channels
        >>> ops.depthwise_conv(x, kernel=[[[1.0], [1.0]], [[1.0], [2.0]]])
        Tensor([[[ 3., 50.]]], shape=(1, 1, 2), dtype=float64)
    """
    x, weights = _operands(inputs, kernel)
    return channels_last(
        x,
        data_format,
        lambda x: depthwise.depthwise_conv(
            x, weights, strides=strides, padding=padding, dilations=dilation_rate
        ),
    )


@public
def separable_conv(
    inputs: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: Ints = 1,
    padding: Padding = "valid",
    data_format: DataFormat | None = None,
    dilation_rate: Ints = 1,
) -> Tensor:
    """A depthwise convolution, then one with a window of one cell that mixes the channels.

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial).
        depthwise_kernel: (*window, channels, multiplier).
        pointwise_kernel: (1, ..., channels * multiplier, filters).
        strides: of the depthwise step, see `conv`.
        padding: of the depthwise step.
        data_format: see `conv`.
        dilation_rate: of the depthwise step.

    Returns:
        (batch, *positions, filters), in the layout of the inputs.

    Raises:
        ShapeError: channels do not fit, or the window is larger than the input.

    Source: Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", 2017,
        arXiv:1610.02357, section 1.

    Examples:
        >>> x = np.ones((1, 3, 1), "float32")
        >>> depthwise, pointwise = np.ones((2, 1, 1)), np.array([[[1.0, 10.0]]])
        >>> ops.separable_conv(x, depthwise, pointwise)[0]
        Tensor([[ 2., 20.],
                [ 2., 20.]], shape=(2, 2), dtype=float64)
    """
    x, depth, point = _operands(inputs, depthwise_kernel, pointwise_kernel)
    return channels_last(
        x,
        data_format,
        lambda x: depthwise.separable_conv(
            x, depth, point, strides=strides, padding=padding, dilations=dilation_rate
        ),
    )


@public
def conv_transpose(
    inputs: TensorLike,
    kernel: TensorLike,
    strides: Ints = 1,
    padding: Padding = "valid",
    output_padding: Ints | None = None,
    data_format: DataFormat | None = None,
    dilation_rate: Ints = 1,
) -> Tensor:
    """Transposed convolution, also called deconvolution: the gradient of `conv` for its input.

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial).
        kernel: (*window, filters, channels).
        strides: the factor by which each spatial axis grows.
        padding: "valid" or "same".
        output_padding: settles the size of the output where several fit; None for the default.
        data_format: see `conv`.
        dilation_rate: see `conv`.

    Returns:
        (batch, *positions, filters), in the layout of the inputs. By default n cells become s n of
        them with padding "same", and s (n - 1) + max(k, s) with "valid", for a stride s and a
        window of k cells.

    Raises:
        ShapeError: channels do not fit.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 4.

    Examples:
        >>> ops.conv_transpose([[[1.0], [2.0]]], kernel=[[[1.0]], [[10.0]]], strides=2)[0, :, 0]
        Tensor([ 1., 10.,  2., 20.], shape=(4,), dtype=float32)
    """
    x, weights = _operands(inputs, kernel)
    return channels_last(
        x,
        data_format,
        lambda x: engine_transpose.conv_transpose(
            x,
            weights,
            strides=strides,
            padding=padding,
            output_padding=output_padding,
            dilations=dilation_rate,
        ),
    )
