"""Convolutions of sequences, images and volumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Unpack

from laminar import ops
from laminar.activations import ActivationLike
from laminar.config import standardize_data_format
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import CausalPadding, DataFormat, Shape, TensorLike

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import CommonOptions, LayerOptions
from .low_rank import LowRank
from .options import config_of, each_axis, keep, known_dim, make_weight, one_of, whole

Ints = int | Sequence[int]


class ConvBase(Layer):
    """What all convolutions have in common: window, layout, bias, activation. Abstract.

    Args:
        kernel_size: cells of the window along each spatial axis.
        strides: step along each spatial axis.
        padding: "valid" or "same"; "causal" where a class says so.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each output channel.
        bias_initializer: of the bias.
        bias_regularizer: penalty on the bias.
        bias_constraint: projection of the bias after each update.

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, or a stride and a dilation
            that are both above 1.
    """

    rank: ClassVar[int]
    paddings: ClassVar[tuple[CausalPadding, ...]] = ("valid", "same")
    # Whether strides and dilation may both be above 1.
    _dilates_with_strides: ClassVar[bool] = False
    activation: Callable[[Any], Any]
    bias: Variable | None

    def __init__(
        self,
        kernel_size: Ints,
        strides: Ints,
        padding: CausalPadding,
        data_format: DataFormat | None,
        dilation_rate: Ints,
        activation: ActivationLike | None,
        use_bias: bool,
        bias_initializer: InitializerLike,
        bias_regularizer: RegularizerLike | None,
        bias_constraint: ConstraintLike | None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.kernel_size = each_axis(self, "kernel_size", kernel_size, self.rank)
        self.strides = each_axis(self, "strides", strides, self.rank)
        self.dilation_rate = each_axis(self, "dilation_rate", dilation_rate, self.rank)
        self.padding: CausalPadding = one_of(self, "padding", padding, self.paddings)
        self.data_format = standardize_data_format(data_format)
        self.use_bias = use_bias
        keep(
            self,
            activation=activation,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            bias_constraint=bias_constraint,
        )
        if not self._dilates_with_strides and max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise InvalidArgumentError(
                f"{who(self)}: strides {self.strides} and dilation_rate {self.dilation_rate} are "
                f"both above 1",
                remedy="leave one of them at 1",
            )
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def _channel_axis(self) -> int:
        return -1 if self.data_format == "channels_last" else 1

    def _input_channels(self, input_shape: Shape) -> int:
        """The size of the channel axis, which from now on must hold."""
        axis = self._channel_axis
        channels = known_dim(self, input_shape, axis, "the number of channels")
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _make_bias(self, channels: int) -> None:
        self.bias = make_weight(self, "bias", (channels,)) if self.use_bias else None

    def _finish(self, y: Tensor) -> Any:
        """Bias and activation."""
        if self.bias is not None:
            bias = self.bias.value
            if self.data_format == "channels_first":
                bias = ops.reshape(bias, (1, -1) + (1,) * self.rank)
            y = ops.add(y, bias)
        return y if self.activation is None else self.activation(y)


class ConvOptions(CommonOptions, total=False):
    """The arguments of convolutions that are passed by name; see `Conv`."""

    lora_rank: int | None
    lora_alpha: float | None


class Conv(LowRank, ConvBase):
    """y = activation(convolution of x with `filters` windows + bias). Abstract in `rank`.

    The convolution is a cross-correlation, as is usual in this field.

    Args:
        filters: number of windows: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis.
        padding: "valid" (none) or "same" (zeros around, so that a stride of 1 keeps the size);
            Conv1D also has "causal" (zeros before alone).
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        groups: into how many groups the channels are divided that do not see each other.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (*kernel_size, channels / groups, filters).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.
        lora_rank: freezes the kernel and trains an update of this rank, see `enable_lora`.
        lora_alpha: the update is multiplied by lora_alpha / lora_rank.

    Shapes:
        x: (batch, *spatial, channels) -> y: (batch, *positions, filters); with "channels_first",
        (batch, channels, *spatial) -> (batch, filters, *positions)

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, groups that do not divide
            the filters or the channels, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 2.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Ints,
        strides: Ints = 1,
        padding: CausalPadding = "valid",
        data_format: DataFormat | None = None,
        dilation_rate: Ints = 1,
        groups: int = 1,
        activation: ActivationLike | None = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        **kwargs: Unpack[ConvOptions],
    ) -> None:
        rank, alpha = kwargs.pop("lora_rank", None), kwargs.pop("lora_alpha", None)
        options: CommonOptions = kwargs
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
            **options,
        )
        self.filters = whole(self, "filters", filters)
        self.groups = whole(self, "groups", groups)
        self._laminar_keep_low_rank(rank, alpha)
        if self.filters % self.groups:
            raise InvalidArgumentError(
                f"{who(self)}: {self.filters} filters cannot be divided into {self.groups} groups",
                remedy="choose a number of filters that is a multiple of groups",
            )
        keep(
            self,
            kernel_initializer=kernel_initializer,
            kernel_regularizer=kernel_regularizer,
            kernel_constraint=kernel_constraint,
        )

    def build(self, input_shape: Shape) -> None:
        channels = self._input_channels(input_shape)
        if channels % self.groups:
            raise InvalidArgumentError(
                f"{who(self)}: the {channels} channels of the input {tuple(input_shape)} cannot be "
                f"divided into {self.groups} groups",
                remedy="choose a number of groups that divides them",
            )
        shape = (*self.kernel_size, channels // self.groups, self.filters)
        self._kernel = make_weight(self, "kernel", shape)
        self._make_bias(self.filters)
        self._laminar_main_made()

    @property
    def kernel(self) -> Any:
        """(*kernel_size, channels / groups, filters), with its update of low rank."""
        return self._laminar_main_value()

    def call(self, inputs: Tensor) -> Any:
        return self._finish(self.convolution_op(inputs, self.kernel))

    def convolution_op(self, inputs: TensorLike, kernel: TensorLike) -> Any:
        """The convolution alone, without bias and activation: override it to convolve otherwise.

        Args:
            inputs: as those of the call.
            kernel: (*kernel_size, channels / groups, filters).
        """
        padding = self.padding
        if padding == "causal":
            inputs, padding = self._pad_before(inputs), "valid"
        return ops.conv(
            inputs,
            kernel,
            strides=self.strides,
            padding=padding,
            data_format=self.data_format,
            dilation_rate=self.dilation_rate,
        )

    def _pad_before(self, x: TensorLike) -> Any:
        """Zeros before the first position, so that an output sees nothing after its own."""
        widths = [(0, 0)] * (self.rank + 2)
        first = 1 if self.data_format == "channels_last" else 2
        for i, (size, step) in enumerate(zip(self.kernel_size, self.dilation_rate, strict=True)):
            widths[first + i] = ((size - 1) * step, 0)
        return ops.pad(x, widths)

    def get_config(self) -> dict[str, Any]:
        return (
            super().get_config()
            | config_of(
                self,
                "filters",
                "kernel_size",
                "strides",
                "padding",
                "data_format",
                "dilation_rate",
                "groups",
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
            | self._laminar_low_rank_config()
        )


class Conv1D(Conv):
    """Convolution of sequences.

    y[n, p, f] = activation(bias[f] + sum over k, c of x[n, p * strides + k * dilation_rate, c] *
    kernel[k, c, f]), where p and k go over the spatial axes: a cross-correlation, as is usual in
    this field. It has floor((size - dilation_rate * (kernel_size - 1) - 1) / strides) + 1 positions
    along an axis, with "same" and "causal" ceil(size / strides).

    Args:
        filters: number of windows: the channels of the output.
        kernel_size: cells of the window along the steps.
        strides: step along the steps.
        padding: "valid" (none), "same" (zeros around, so that a stride of 1 keeps the size),
            or "causal" (zeros before alone: an output sees nothing after its own step).
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along the steps.
        groups: into how many groups the channels are divided that do not see each other.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (kernel_size, channels / groups, filters).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.
        lora_rank: freezes the kernel and trains an update of this rank, see `enable_lora`.
        lora_alpha: the update is multiplied by lora_alpha / lora_rank.

    Shapes:
        x: (batch, steps, channels) -> y: (batch, positions, filters); with "channels_first" the
        channels stand second

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, groups that do not divide
            the filters or the channels, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 2.

    Examples:
        >>> layer = layers.Conv1D(1, 2, kernel_initializer="ones")
        >>> layer(np.arange(4.0).reshape(1, 4, 1))[0, :, 0]
        Tensor([1., 3., 5.], shape=(3,), dtype=float32)
    """

    rank = 1
    paddings = ("valid", "same", "causal")


class Conv2D(Conv):
    """Convolution of images.

    y[n, p, f] = activation(bias[f] + sum over k, c of x[n, p * strides + k * dilation_rate, c] *
    kernel[k, c, f]), where p and k go over the spatial axes: a cross-correlation, as is usual in
    this field. It has floor((size - dilation_rate * (kernel_size - 1) - 1) / strides) + 1 positions
    along an axis, with "same" and "causal" ceil(size / strides).

    Args:
        filters: number of windows: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis.
        padding: "valid" (none), or "same" (zeros around: a stride of 1 keeps the size).
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        groups: into how many groups the channels are divided that do not see each other.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (*kernel_size, channels / groups, filters).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.
        lora_rank: freezes the kernel and trains an update of this rank, see `enable_lora`.
        lora_alpha: the update is multiplied by lora_alpha / lora_rank.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, rows, cols, filters); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, groups that do not divide
            the filters or the channels, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 2.

    Examples:
        >>> layers.Conv2D(8, 3, padding="same", activation="relu")(np.zeros((2, 28, 28, 1))).shape
        (2, 28, 28, 8)
    """

    rank = 2


class Conv3D(Conv):
    """Convolution of volumes.

    y[n, p, f] = activation(bias[f] + sum over k, c of x[n, p * strides + k * dilation_rate, c] *
    kernel[k, c, f]), where p and k go over the spatial axes: a cross-correlation, as is usual in
    this field. It has floor((size - dilation_rate * (kernel_size - 1) - 1) / strides) + 1 positions
    along an axis, with "same" and "causal" ceil(size / strides).

    Args:
        filters: number of windows: the channels of the output.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis.
        padding: "valid" (none), or "same" (zeros around: a stride of 1 keeps the size).
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the window along each spatial axis.
        groups: into how many groups the channels are divided that do not see each other.
        activation: applied to each output; None leaves it linear.
        use_bias: whether there is a bias for each filter.
        kernel_initializer: of the kernel, (*kernel_size, channels / groups, filters).
        bias_initializer: of the bias, (filters,).
        kernel_regularizer: penalty on the kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        bias_constraint: likewise of the bias.
        lora_rank: freezes the kernel and trains an update of this rank, see `enable_lora`.
        lora_alpha: the update is multiplied by lora_alpha / lora_rank.

    Shapes:
        x: (batch, d1, d2, d3, channels) -> y: (batch, o1, o2, o3, filters); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, groups that do not divide
            the filters or the channels, or a stride and a dilation that are both above 1.

    Source: Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", 2016,
        arXiv:1603.07285, section 2.

    Examples:
        >>> layers.Conv3D(4, 3)(np.zeros((1, 8, 8, 8, 2))).shape
        (1, 6, 6, 6, 4)
    """

    rank = 3
