"""`tf.nn`: convolutions, their transposes and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.nn import convolution as engine_conv
from laminar.engine.ops.nn import depthwise as engine_depthwise

from .adapting import v1
from .values import operands, static, tensor
from .windows import (
    as_given,
    channels_last,
    layout,
    padding_word,
    paddings,
    per_axis,
    sizes_as_last,
    spatial,
)


def _convolved(
    who: str, x: Any, kernel: Any, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Tensor:
    image, taps = operands(x, kernel)
    rank = len(image.shape)
    _, where = layout(data_format, rank)
    y = engine_conv.conv(
        channels_last(image, data_format),
        taps,
        strides=per_axis(who, strides, where, rank),
        padding=paddings(padding, where),
        dilations=per_axis(who, dilations, where, rank),
    )
    return as_given(y, data_format)


def _convolution(who: str) -> Callable[..., Any]:
    @v1(filters="filter")
    def convolution(
        input: Any,
        filter: Any = None,
        strides: Any = 1,
        padding: Any = "VALID",
        use_cudnn_on_gpu: bool = True,
        data_format: str | None = None,
        dilations: Any = 1,
    ) -> Any:
        return _convolved(who, input, filter, strides, padding, data_format, dilations)

    convolution.__doc__ = f"{who}: cross-correlation of images with a bank of kernels."
    return convolution


conv2d = _convolution("conv2d")
conv3d = _convolution("conv3d")


@v1(input="value")
def conv1d(
    value: Any,
    filters: Any,
    stride: Any = 1,
    padding: Any = "VALID",
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = None,
    dilations: Any = 1,
) -> Any:
    """Cross-correlation of sequences with a bank of kernels."""
    form = "NCW" if data_format == "NCHW" else data_format
    return _convolved("conv1d", value, filters, stride, padding, form, dilations)


@v1(filters="filter", dilations="dilation_rate")
def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
) -> Any:
    """Cross-correlation over one to three spatial axes."""
    once = 1 if strides is None else strides
    spread = 1 if dilation_rate is None else dilation_rate
    return _convolved("convolution", input, filter, once, padding, data_format, spread)


@v1()
def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any) -> Any:
    """`conv2d` with taps `rate` cells apart."""
    return _convolved("atrous_conv2d", value, filters, 1, padding, None, static(rate))


def _image_gradient(
    who: str, dy: Any, kernel: Any, shape: Any, strides: Any, padding: Any, form: Any, rates: Any
) -> Tensor:
    """The gradient of a convolution by its input, of the shape `shape`."""
    y, taps = operands(dy, kernel)
    rank = len(y.shape)
    _, where = layout(form, rank)
    sizes = sizes_as_last(_sizes(shape, rank), form)[1:-1]
    known = tuple(d if isinstance(d, int) else None for d in sizes)
    dx = engine_conv.conv_input_grad(
        channels_last(y, form),
        taps,
        *(cast(tensor(d), "int32") for d in sizes if not isinstance(d, int)),
        input_dims=known,
        strides=per_axis(who, strides, where, rank),
        padding=paddings(padding, where),
        dilations=per_axis(who, rates, where, rank),
        groups=1,
    )
    return as_given(dx, form)


def _sizes(shape: Any, rank: int) -> list[Any]:
    """The numbers of a shape, tensors for those that a run knows."""
    found = static(shape)
    return [found[i] for i in range(rank)]


def _kernel_gradient(
    who: str, x: Any, shape: Any, dy: Any, strides: Any, padding: Any, form: Any, rates: Any
) -> Tensor:
    """The gradient of a convolution by its kernel, of the shape `shape`."""
    image, y = operands(x, dy)
    rank = len(image.shape)
    _, where = layout(form, rank)
    window = _sizes(shape, rank)[:-2]
    return engine_conv.conv_kernel_grad(
        channels_last(image, form),
        channels_last(y, form),
        *(cast(tensor(d), "int32") for d in window if not isinstance(d, int)),
        window=tuple(d if isinstance(d, int) else None for d in window),
        strides=per_axis(who, strides, where, rank),
        padding=paddings(padding, where),
        dilations=per_axis(who, rates, where, rank),
        groups=1,
    )


def _transposed(who: str) -> Callable[..., Any]:
    @v1(filters="filter", input="value")
    def transposed(
        value: Any,
        filter: Any,
        output_shape: Any = None,
        strides: Any = 1,
        padding: Any = "SAME",
        data_format: str | None = None,
        name: str | None = None,
        dilations: Any = None,
    ) -> Any:
        """The gradient of the convolution by its input, which has the shape `output_shape`.

        Args:
            value: (batch, *spatial, channels).
            filter: (*window, channels of the result, channels of `value`).
            output_shape: of the result; its batch is that of `value`.
            strides: of the convolution.
            padding: of the convolution.
            data_format: such as "NHWC" or "NCHW".
            dilations: of the convolution.
        """
        return _image_gradient(
            who, value, filter, output_shape, strides, padding, data_format, dilations
        )

    return transposed


conv1d_transpose = _transposed("conv1d_transpose")
conv2d_transpose = _transposed("conv2d_transpose")
conv3d_transpose = _transposed("conv3d_transpose")


@v1()
def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """The gradient of a convolution over one to three axes by its input."""
    return _image_gradient(
        "conv_transpose", input, filters, output_shape, strides, padding, data_format, dilations
    )


@v1()
def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: Any, padding: Any
) -> Any:
    """The gradient of `atrous_conv2d` by its input."""
    return _image_gradient(
        "atrous_conv2d_transpose", value, filters, output_shape, 1, padding, None, static(rate)
    )


@v1(filters="filter")
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
) -> Any:
    """The gradient of `conv2d` by its input."""
    return _image_gradient(
        "conv2d_backprop_input",
        out_backprop,
        filter,
        input_sizes,
        strides,
        padding,
        data_format,
        dilations,
    )


@v1()
def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
) -> Any:
    """The gradient of `conv2d` by its kernel."""
    return _kernel_gradient(
        "conv2d_backprop_filter",
        input,
        filter_sizes,
        out_backprop,
        strides,
        padding,
        data_format,
        dilations,
    )


@v1()
def conv3d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = None,
) -> Any:
    """The gradient of `conv3d` by its kernel."""
    return _kernel_gradient(
        "conv3d_backprop_filter",
        input,
        filter_sizes,
        out_backprop,
        strides,
        padding,
        data_format,
        dilations,
    )


def _depthwise_rates(who: str, rate: Any, dilations: Any, where: slice, rank: int) -> Any:
    return per_axis(who, rate if dilations is None else dilations, where, rank)


@v1()
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """Each channel with kernels of its own."""
    x, kernel = operands(input, filter)
    _, where = layout(data_format, 4)
    y = engine_depthwise.depthwise_conv(
        channels_last(x, data_format),
        kernel,
        strides=per_axis("depthwise_conv2d", strides, where, 4),
        padding=paddings(padding, where),
        dilations=_depthwise_rates("depthwise_conv2d", rate, dilations, where, 4),
    )
    return as_given(y, data_format)


@v1()
def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
) -> Any:
    """`depthwise_conv2d`."""
    return depthwise_conv2d(
        input, filter, strides, padding, data_format=data_format, dilations=dilations
    )


@v1()
def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
) -> Any:
    """The gradient of `depthwise_conv2d` by its input."""
    who = "depthwise_conv2d_backprop_input"
    dy, kernel = operands(out_backprop, filter)
    _, where = layout(data_format, 4)
    sizes = sizes_as_last(_sizes(input_sizes, 4), data_format)[1:-1]
    dx = engine_depthwise.depthwise_input_grad(
        channels_last(dy, data_format),
        kernel,
        *(cast(tensor(d), "int32") for d in sizes if not isinstance(d, int)),
        input_dims=tuple(d if isinstance(d, int) else None for d in sizes),
        strides=per_axis(who, strides, where, 4),
        padding=paddings(padding, where),
        dilations=per_axis(who, dilations, where, 4),
    )
    return as_given(dx, data_format)


@v1()
def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
) -> Any:
    """The gradient of `depthwise_conv2d` by its kernel."""
    who = "depthwise_conv2d_backprop_filter"
    x, dy = operands(input, out_backprop)
    _, where = layout(data_format, 4)
    window = _sizes(filter_sizes, 4)[:2]
    return engine_depthwise.depthwise_kernel_grad(
        channels_last(x, data_format),
        channels_last(dy, data_format),
        *(cast(tensor(d), "int32") for d in window if not isinstance(d, int)),
        window=tuple(d if isinstance(d, int) else None for d in window),
        strides=per_axis(who, strides, where, 4),
        padding=paddings(padding, where),
        dilations=per_axis(who, dilations, where, 4),
    )


@v1(dilations="rate")
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
) -> Any:
    """`depthwise_conv2d`, then a convolution with a window of one."""
    word, where = layout(data_format, 4)
    x, first, second = operands(input, depthwise_filter, pointwise_filter)
    found: Tensor = ops.separable_conv(
        x,
        first,
        second,
        spatial("separable_conv2d", strides, where, 4),
        padding_word(padding),
        word,
        1 if rate is None else static(rate),
    )
    return found
