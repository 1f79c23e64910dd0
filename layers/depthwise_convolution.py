"""Depthwise convolutions: each channel has windows of its own."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.regularizers import RegularizerLike
from laminar.typing import DataFormat, Padding, Shape

from .convolution import ConvBase, Ints
from .layer_options import CommonOptions
from .options import config_of, keep, make_weight, whole


class DepthwiseConv(ConvBase):
    """y = activation(each channel of x convolved with windows of its own + bias).

    Abstract in `rank`.

    Args:
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis.
        padding: "valid" or "same".
        depth_multiplier: windows for each channel.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each output channel.
        depthwise_initializer: of the kernel, (*kernel_size, channels, depth_multiplier).
        bias_initializer: of the bias, (channels * depth_multiplier,).
        depthwise_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        depthwise_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, *spatial, channels) -> y: (batch, *positions, channels * depth_multiplier); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.
    """

    padding: Padding
    _dilates_with_strides = True

    def __init__(
        self,
        kernel_size: Ints,
        strides: Ints = 1,
        padding: Padding = "valid",
        depth_multiplier: int = 1,
        data_format: DataFormat | None = None,
        dilation_rate: Ints = 1,
        activation: ActivationLike | None = None,
        use_bias: bool = True,
        depthwise_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        depthwise_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        depthwise_constraint: ConstraintLike | None = None,
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
        self.depth_multiplier = whole(self, "depth_multiplier", depth_multiplier)
        keep(
            self,
            depthwise_initializer=depthwise_initializer,
            depthwise_regularizer=depthwise_regularizer,
            depthwise_constraint=depthwise_constraint,
        )

    def build(self, input_shape: Shape) -> None:
        channels = self._input_channels(input_shape)
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        self.kernel = make_weight(self, "kernel", shape, "depthwise")
        self._make_bias(channels * self.depth_multiplier)

    def call(self, inputs: Tensor) -> Any:
        y = ops.depthwise_conv(
            inputs,
            self.kernel,
            strides=self.strides,
            padding=self.padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )
        return self._finish(y)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "depth_multiplier",
            "kernel_size",
            "strides",
            "padding",
            "data_format",
            "dilation_rate",
            "activation",
            "use_bias",
            "depthwise_initializer",
            "bias_initializer",
            "depthwise_regularizer",
            "bias_regularizer",
            "activity_regularizer",
            "depthwise_constraint",
            "bias_constraint",
        )


class DepthwiseConv1D(DepthwiseConv):
    """Depthwise convolution of sequences: each channel has windows of its own.

    y[n, p, c * depth_multiplier + m] = activation(bias + sum over k of x[n, p * strides + k *
    dilation_rate, c] * kernel[k, c, m]).

    Args:
        kernel_size: cells of the window along the steps.
        strides: step along the steps.
        padding: "valid" or "same".
        depth_multiplier: windows for each channel.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along the steps.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each output channel.
        depthwise_initializer: of the kernel, (kernel_size, channels, depth_multiplier).
        bias_initializer: of the bias, (channels * depth_multiplier,).
        depthwise_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        depthwise_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, steps, channels) -> y: (batch, positions, channels * depth_multiplier); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layer = layers.DepthwiseConv1D(2, depthwise_initializer="ones")
        >>> layer(np.array([[[1.0, 10.0], [2.0, 20.0]]]))  # each channel by itself
        Tensor([[[ 3., 30.]]], shape=(1, 1, 2), dtype=float32)
    """

    rank = 1


class DepthwiseConv2D(DepthwiseConv):
    """Depthwise convolution of images: each channel has windows of its own.

    y[n, p, c * depth_multiplier + m] = activation(bias + sum over k of x[n, p * strides + k *
    dilation_rate, c] * kernel[k, c, m]).

    Args:
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis.
        padding: "valid" or "same".
        depth_multiplier: windows for each channel.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each output channel.
        depthwise_initializer: of the kernel, (*kernel_size, channels, depth_multiplier).
        bias_initializer: of the bias, (channels * depth_multiplier,).
        depthwise_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        depthwise_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, rows, cols, channels * depth_multiplier);
        with "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layers.DepthwiseConv2D(3, depth_multiplier=2)(np.zeros((1, 8, 8, 3))).shape
        (1, 6, 6, 6)
    """

    rank = 2
