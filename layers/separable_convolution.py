"""Separable convolutions: one within the channels, then one across them."""

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


class SeparableConv(ConvBase):
    """y = activation(a depthwise convolution of x, its channels mixed at each place, + bias).

    Abstract in `rank`.

    Args:
        filters: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        depth_multiplier: windows for each channel in the depthwise step.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        depthwise_initializer: of the first kernel, (*kernel_size, channels, depth_multiplier).
        pointwise_initializer: of the second, (1, ..., channels * depth_multiplier, filters).
        bias_initializer: of the bias, (filters,).
        depthwise_regularizer: penalty on the first kernel.
        pointwise_regularizer: penalty on the second kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        depthwise_constraint: projection of the first kernel after each update.
        pointwise_constraint: likewise of the second.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, *spatial, channels) -> y: (batch, *positions, filters); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Source: Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", 2017,
        arXiv:1610.02357, section 1.
    """

    padding: Padding
    _dilates_with_strides = True

    def __init__(
        self,
        filters: int,
        kernel_size: Ints,
        strides: Ints = 1,
        padding: Padding = "valid",
        data_format: DataFormat | None = None,
        dilation_rate: Ints = 1,
        depth_multiplier: int = 1,
        activation: ActivationLike | None = None,
        use_bias: bool = True,
        depthwise_initializer: InitializerLike = "glorot_uniform",
        pointwise_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        depthwise_regularizer: RegularizerLike | None = None,
        pointwise_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        depthwise_constraint: ConstraintLike | None = None,
        pointwise_constraint: ConstraintLike | None = None,
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
        self.depth_multiplier = whole(self, "depth_multiplier", depth_multiplier)
        keep(
            self,
            depthwise_initializer=depthwise_initializer,
            pointwise_initializer=pointwise_initializer,
            depthwise_regularizer=depthwise_regularizer,
            pointwise_regularizer=pointwise_regularizer,
            depthwise_constraint=depthwise_constraint,
            pointwise_constraint=pointwise_constraint,
        )

    def build(self, input_shape: Shape) -> None:
        channels = self._input_channels(input_shape)
        first = (*self.kernel_size, channels, self.depth_multiplier)
        second = ((1,) * self.rank) + (channels * self.depth_multiplier, self.filters)
        self.depthwise_kernel = make_weight(self, "depthwise_kernel", first, "depthwise")
        self.pointwise_kernel = make_weight(self, "pointwise_kernel", second, "pointwise")
        self._make_bias(self.filters)

    def call(self, inputs: Tensor) -> Any:
        y = ops.separable_conv(
            inputs,
            self.depthwise_kernel,
            self.pointwise_kernel,
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
            "filters",
            "kernel_size",
            "strides",
            "padding",
            "data_format",
            "dilation_rate",
            "activation",
            "use_bias",
            "depthwise_initializer",
            "pointwise_initializer",
            "bias_initializer",
            "depthwise_regularizer",
            "pointwise_regularizer",
            "bias_regularizer",
            "activity_regularizer",
            "depthwise_constraint",
            "pointwise_constraint",
            "bias_constraint",
        )


class SeparableConv1D(SeparableConv):
    """Separable convolution of sequences: each channel by itself, then all channels at each place.

    y = activation(z @ pointwise_kernel + bias), where z is the depthwise convolution of x.

    Args:
        filters: the channels of the output.
        kernel_size: cells of the window along the steps.
        strides: step along the steps.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along the steps.
        depth_multiplier: windows for each channel in the depthwise step.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        depthwise_initializer: of the first kernel, (kernel_size, channels, depth_multiplier).
        pointwise_initializer: of the second, (1, ..., channels * depth_multiplier, filters).
        bias_initializer: of the bias, (filters,).
        depthwise_regularizer: penalty on the first kernel.
        pointwise_regularizer: penalty on the second kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        depthwise_constraint: projection of the first kernel after each update.
        pointwise_constraint: likewise of the second.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, steps, channels) -> y: (batch, positions, filters); with "channels_first" the
        channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Source: Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", 2017,
        arXiv:1610.02357, section 1.

    Examples:
        >>> layers.SeparableConv1D(8, 3)(np.zeros((1, 10, 4))).shape
        (1, 8, 8)
    """

    rank = 1


class SeparableConv2D(SeparableConv):
    """Separable convolution of images: each channel by itself, then all channels at each place.

    y = activation(z @ pointwise_kernel + bias), where z is the depthwise convolution of x.

    Args:
        filters: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        depth_multiplier: windows for each channel in the depthwise step.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        depthwise_initializer: of the first kernel, (*kernel_size, channels, depth_multiplier).
        pointwise_initializer: of the second, (1, ..., channels * depth_multiplier, filters).
        bias_initializer: of the bias, (filters,).
        depthwise_regularizer: penalty on the first kernel.
        pointwise_regularizer: penalty on the second kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        depthwise_constraint: projection of the first kernel after each update.
        pointwise_constraint: likewise of the second.
        bias_constraint: likewise of the bias.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, rows, cols, filters); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Source: Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", 2017,
        arXiv:1610.02357, section 1.

    Examples:
        >>> layers.SeparableConv2D(8, 3)(np.zeros((1, 10, 10, 4))).shape
        (1, 8, 8, 8)
    """

    rank = 2
