"""Transposed convolutions, also called deconvolutions."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import DataFormat, Padding, Shape

from .convolution import ConvBase, Ints
from .layer_options import CommonOptions
from .options import config_of, each_axis, keep, make_weight, whole


class ConvTranspose(ConvBase):
    """y = activation(transposed convolution of x + bias): the gradient of a `Conv` for its input.

    Abstract in `rank`.

    Args:
        filters: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: the factor by which each spatial axis grows.
        padding: "valid", or "same" (the output is `strides` times the input).
        output_padding: cells added to the end of each axis of the output, below its stride; by
            default what the other arguments ask for.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (*kernel_size, filters, channels).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, *spatial, channels) -> y: (batch, *positions, filters); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, an output padding that is
            not below the stride, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 4.
    """

    padding: Padding

    def __init__(
        self,
        filters: int,
        kernel_size: Ints,
        strides: Ints = 1,
        padding: Padding = "valid",
        output_padding: Ints | None = None,
        data_format: DataFormat | None = None,
        dilation_rate: Ints = 1,
        activation: ActivationLike | None = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        **kwargs: Unpack[CommonOptions],
    ) -> None:
        super().__init__(
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer,
            bias_regularizer,
            bias_constraint,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self.filters = whole(self, "filters", filters)
        self.output_padding = (
            None
            if output_padding is None
            else each_axis(self, "output_padding", output_padding, self.rank, least=0)
        )
        for extra, stride in zip(self.output_padding or (), self.strides, strict=False):
            if extra >= stride:
                raise InvalidArgumentError(
                    f"{who(self)}: output_padding {self.output_padding} must be below the strides "
                    f"{self.strides}",
                    remedy="leave it out for the default",
                )
        keep(
            self,
            kernel_initializer=kernel_initializer,
            kernel_regularizer=kernel_regularizer,
            kernel_constraint=kernel_constraint,
        )

    def build(self, input_shape: Shape) -> None:
        channels = self._input_channels(input_shape)
        self.kernel = make_weight(self, "kernel", (*self.kernel_size, self.filters, channels))
        self._make_bias(self.filters)

    def call(self, inputs: Tensor) -> Any:
        y = ops.conv_transpose(
            inputs,
            self.kernel,
            strides=self.strides,
            padding=self.padding,
            output_padding=self.output_padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )
        return self._finish(y)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "filters",
            "kernel_size",
            "strides",
            "padding",
            "output_padding",
            "data_format",
            "dilation_rate",
            "activation",
            "use_bias",
            "kernel_initializer",
            "bias_initializer",
            "kernel_regularizer",
            "bias_regularizer",
            "activity_regularizer",
            "kernel_constraint",
            "bias_constraint",
        )


class Conv1DTranspose(ConvTranspose):
    """Transposed convolution of sequences: the gradient of a convolution for its input.

    y[n, p * strides + k * dilation_rate, f] sums x[n, p, c] * kernel[k, f, c] over p, k and c,
    where p and k go over the spatial axes; then bias and activation. With e = dilation_rate *
    (kernel_size - 1) + 1, an axis has (size - 1) * strides + e + output_padding positions, with
    "same" 2 * floor(e / 2) less; without `output_padding` it has size * strides, with "valid" (size
    - 1) * strides + e if that is more.

    Args:
        filters: the channels of the output.
        kernel_size: cells of the window along the steps.
        strides: the factor by which their number grows.
        padding: "valid", or "same" (the output is `strides` times the input).
        output_padding: cells added to the end of the output, below its stride; by
            default what the other arguments ask for.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along the steps.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (kernel_size, filters, channels).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, steps, channels) -> y: (batch, positions, filters); with "channels_first" the
        channels stand second

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, an output padding that is
            not below the stride, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 4.

    Examples:
        >>> layer = layers.Conv1DTranspose(1, 2, strides=2, kernel_initializer="ones")
        >>> layer(np.array([[[1.0], [2.0]]]))[0, :, 0]
        Tensor([1., 1., 2., 2.], shape=(4,), dtype=float32)
    """

    rank = 1


class Conv2DTranspose(ConvTranspose):
    """Transposed convolution of images: the gradient of a convolution for its input.

    y[n, p * strides + k * dilation_rate, f] sums x[n, p, c] * kernel[k, f, c] over p, k and c,
    where p and k go over the spatial axes; then bias and activation. With e = dilation_rate *
    (kernel_size - 1) + 1, an axis has (size - 1) * strides + e + output_padding positions, with
    "same" 2 * floor(e / 2) less; without `output_padding` it has size * strides, with "valid" (size
    - 1) * strides + e if that is more.

    Args:
        filters: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: the factor by which each spatial axis grows.
        padding: "valid", or "same" (the output is `strides` times the input).
        output_padding: cells added to the end of each axis of the output, below its stride; by
            default what the other arguments ask for.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (*kernel_size, filters, channels).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, rows, cols, filters); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, an output padding that is
            not below the stride, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 4.

    Examples:
        >>> layers.Conv2DTranspose(8, 3, strides=2, padding="same")(np.zeros((2, 7, 7, 1))).shape
        (2, 14, 14, 8)
    """

    rank = 2


class Conv3DTranspose(ConvTranspose):
    """Transposed convolution of volumes: the gradient of a convolution for its input.

    As in Keras, `data_format` stands before `output_padding`.

    y[n, p * strides + k * dilation_rate, f] sums x[n, p, c] * kernel[k, f, c] over p, k and c,
    where p and k go over the spatial axes; then bias and activation. With e = dilation_rate *
    (kernel_size - 1) + 1, an axis has (size - 1) * strides + e + output_padding positions, with
    "same" 2 * floor(e / 2) less; without `output_padding` it has size * strides, with "valid" (size
    - 1) * strides + e if that is more.

    Args:
        filters: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: the factor by which each spatial axis grows.
        padding: "valid", or "same" (the output is `strides` times the input).
        output_padding: cells added to the end of each axis of the output, below its stride; by
            default what the other arguments ask for.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (*kernel_size, filters, channels).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, d1, d2, d3, channels) -> y: (batch, o1, o2, o3, filters); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, an output padding that is
            not below the stride, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 4.

    Examples:
        >>> layers.Conv3DTranspose(4, 2, strides=2)(np.zeros((1, 3, 3, 3, 2))).shape
        (1, 6, 6, 6, 4)
    """

    rank = 3

    def __init__(
        self,
        filters: int,
        kernel_size: Ints,
        strides: Ints = 1,
        padding: Padding = "valid",
        data_format: DataFormat | None = None,
        output_padding: Ints | None = None,
        dilation_rate: Ints = 1,
        activation: ActivationLike | None = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        **kwargs: Unpack[CommonOptions],
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            output_padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            **kwargs,
        )
