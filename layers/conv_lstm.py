"""ConvLSTM: an LSTM whose products are convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from laminar import ops
from laminar.activations import ActivationLike
from laminar.config import standardize_data_format
from laminar.constraints import ConstraintLike
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.naming import who
from laminar.regularizers import RegularizerLike
from laminar.typing import DataFormat, Padding

from .lstm import forget_bias, lstm_step
from .options import each_axis, keep, known_dim, make_weight, one_of, whole
from .recurrent import CellRNN, cell_options
from .recurrent_cell import OPTIONS, DroppingCell

Ints = int | Sequence[int]

_OPTIONS = (
    "filters",
    "kernel_size",
    "strides",
    "padding",
    "data_format",
    "dilation_rate",
    "activation",
    "recurrent_activation",
    *OPTIONS[2:],
    "unit_forget_bias",
    "seed",
)


class ConvLSTMCell(DroppingCell):
    """A step of a `ConvLSTM`, see there.

    Args:
        rank: number of spatial axes.
        filters: channels of the state and of the output.
        kernel_size: cells of the window along each spatial axis.
        strides: step of the inputs' windows along each spatial axis.
        padding: "valid" or "same", of the inputs.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the inputs' windows.
        dropout: probability of an input to be dropped, from 0 to 1.
        recurrent_dropout: probability of a number of the state to be dropped, from 0 to 1.
        seed: a whole number, which fixes what is dropped.
        options: of weights and activations, see `LSTM`.

    Shapes:
        inputs: (batch, *spatial, channels), states: [h, c], (batch, *positions, filters) each ->
        (output, new states)
    """

    activation: Callable[[Any], Any]
    recurrent_activation: Callable[[Any], Any]
    bias: Variable | None

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Ints,
        strides: Ints,
        padding: Padding,
        data_format: DataFormat | None,
        dilation_rate: Ints,
        *,
        use_bias: bool,
        unit_forget_bias: bool,
        dropout: float,
        recurrent_dropout: float,
        seed: int | None,
        options: dict[str, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.rank = rank
        self.filters = self.output_size = whole(self, "filters", filters)
        self.kernel_size = each_axis(self, "kernel_size", kernel_size, rank)
        self.strides = each_axis(self, "strides", strides, rank)
        self.padding: Padding = one_of(self, "padding", padding, ("valid", "same"))
        self.data_format = standardize_data_format(data_format)
        self.dilation_rate = each_axis(self, "dilation_rate", dilation_rate, rank)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise InvalidArgumentError(
                f"{who(self)}: strides {self.strides} and dilation_rate {self.dilation_rate} are "
                f"both above 1",
                remedy="leave one of them at 1",
            )
        self.use_bias = use_bias
        self.unit_forget_bias = unit_forget_bias
        keep(self, **options)
        self._begin_dropout(dropout, recurrent_dropout, seed)
        self.state_size = [self.filters, self.filters]

    @property
    def _mask_count(self) -> int | None:
        return 4

    @property
    def _axis(self) -> int:
        return -1 if self.data_format == "channels_last" else 1

    def build(self, input_shape: Any) -> None:
        channels = known_dim(self, input_shape, self._axis, "the number of channels")
        spatial = input_shape[1:-1] if self._axis == -1 else input_shape[2:]
        if None in spatial:
            raise ShapeError(
                f"{who(self)}: the spatial axes size the state, but they are not all known in the "
                f"input shape {tuple(input_shape)}",
                remedy="give Input a full shape (batch and steps may be unknown)",
            )
        width = 4 * self.filters
        self.kernel = make_weight(self, "kernel", (*self.kernel_size, channels, width))
        self.recurrent_kernel = make_weight(
            self, "recurrent_kernel", (*self.kernel_size, self.filters, width), "recurrent"
        )
        initializer = forget_bias(self, self.filters) if self.unit_forget_bias else None
        self.bias = None
        if self.use_bias:
            self.bias = make_weight(self, "bias", (width,), initializer=initializer)
        self._positions = [
            _positions(size, cells, step, distance, self.padding)
            for size, cells, step, distance in zip(
                spatial, self.kernel_size, self.strides, self.dilation_rate, strict=True
            )
        ]

    def get_initial_state(self, batch_size: int | Tensor | None = None) -> list[Any]:
        """Zeros: the states before the first step."""
        last = self.data_format == "channels_last"
        places = [*self._positions, self.filters] if last else [self.filters, *self._positions]
        return [ops.zeros((batch_size, *places), dtype=self.compute_dtype) for _ in range(2)]

    def _each_gate(self, convolve: Any, x: Any, masks: Any, kernel: Tensor) -> Any:
        if masks is None:
            return convolve(x, kernel)
        parts = ops.split(kernel, 4, axis=-1)
        ys = [convolve(x * masks[i], part) for i, part in enumerate(parts)]
        return ops.concatenate(ys, axis=self._axis)

    def project(self, inputs: Tensor, training: bool = False) -> Any:
        """What inputs add to the gates, for one step or for (steps, batch, ...) at once."""
        several = len(inputs.shape) > self.rank + 2
        masks = self.get_dropout_mask(inputs[0] if several else inputs) if training else None
        if several and masks is not None:
            masks = ops.expand_dims(masks, 1)

        def convolve(x: Any, kernel: Tensor) -> Any:
            flat = ops.reshape(x, (-1, *x.shape[2:])) if several else x
            y = ops.conv(
                flat,
                kernel,
                strides=self.strides,
                padding=self.padding,
                data_format=self.data_format,
                dilation_rate=self.dilation_rate,
            )
            return ops.reshape(y, (*ops.shape(x)[:2], *ops.shape(y)[1:])) if several else y

        y = self._each_gate(convolve, inputs, masks, self.kernel.value)
        if self.bias is None:
            return y
        bias = self.bias.value
        if self.data_format == "channels_first":
            bias = ops.reshape(bias, (-1,) + (1,) * self.rank)
        return y + bias

    def step(self, projected: Tensor, states: list[Any], training: bool) -> list[Any]:
        """The new states, see `RecurrentCell.step`."""
        h, c = states
        masks = self.get_recurrent_dropout_mask(h) if training else None

        def convolve(x: Any, kernel: Tensor) -> Any:
            return ops.conv(x, kernel, padding="same", data_format=self.data_format)

        inner = self._each_gate(convolve, h, masks, self.recurrent_kernel.value)
        return lstm_step(self, ops.add(projected, inner), c, self._axis)

    def call(self, inputs: Tensor, states: Sequence[Tensor], training: bool = False) -> Any:
        after = self.step(self.project(inputs, training), list(states), training)
        return after[0], after


def _positions(size: int, cells: int, step: int, distance: int, padding: Padding) -> int:
    """How many positions a window has along an axis."""
    room = size if padding == "same" else size - (cells - 1) * distance
    return -(-room // step)


class ConvLSTM(CellRNN):
    """An LSTM whose products are convolutions. Abstract in `rank`.

    Args:
        filters: channels of the output and of the memory.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step of the inputs' windows along each spatial axis.
        padding: "valid" or "same", of the inputs; the state is padded so that it keeps its size.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the inputs' windows.
        activation: of what is written, and of what is read.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (*kernel_size, channels, 4 * filters).
        recurrent_initializer: of the recurrent kernel, (*kernel_size, filters, 4 * filters).
        bias_initializer: of the biases, (4 * filters,).
        unit_forget_bias: whether the biases of the forget gate begin as 1.
        kernel_regularizer: penalty on the kernel.
        recurrent_regularizer: penalty on the recurrent kernel.
        bias_regularizer: penalty on the biases.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        recurrent_constraint: likewise of the recurrent kernel.
        bias_constraint: likewise of the biases.
        dropout: probability of an input to be dropped in training, from 0 to 1.
        recurrent_dropout: probability of a number of the state to be dropped in training.
        seed: a whole number, which fixes what is dropped.
        return_sequences: whether the output of each step is given, not the last one alone.
        return_state: whether h and c after the last step are given too.
        go_backwards: whether to go from the last step to the first; outputs are in that order.
        stateful: whether a batch begins with the states in which the one before ended.

    Shapes:
        x: (batch, steps, *spatial, channels) -> (batch, *positions, filters), or
        (batch, steps, *positions, filters) with return_sequences

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, or a stride and a dilation
            that are both above 1.
        ShapeError: a spatial axis of unknown size.

    Source: Shi et al., "Convolutional LSTM network: a machine learning approach for precipitation
        nowcasting", 2015, arXiv:1506.04214, section 3.1, without the connections from c to gates.
    """

    rank: ClassVar[int]
    cell_options = _OPTIONS

    def __init__(
        self,
        filters: int,
        kernel_size: Ints,
        strides: Ints = 1,
        padding: Padding = "valid",
        data_format: DataFormat | None = None,
        dilation_rate: Ints = 1,
        activation: ActivationLike = "tanh",
        recurrent_activation: ActivationLike = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        recurrent_initializer: InitializerLike = "orthogonal",
        bias_initializer: InitializerLike = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: RegularizerLike | None = None,
        recurrent_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        recurrent_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        **kwargs: Any,
    ) -> None:
        cell = ConvLSTMCell(
            self.rank,
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            use_bias=use_bias,
            unit_forget_bias=unit_forget_bias,
            dropout=dropout,
            recurrent_dropout=recurrent_dropout,
            seed=seed,
            options={
                "activation": activation,
                "recurrent_activation": recurrent_activation,
                "kernel_initializer": kernel_initializer,
                "recurrent_initializer": recurrent_initializer,
                "bias_initializer": bias_initializer,
                "kernel_regularizer": kernel_regularizer,
                "recurrent_regularizer": recurrent_regularizer,
                "bias_regularizer": bias_regularizer,
                "kernel_constraint": kernel_constraint,
                "recurrent_constraint": recurrent_constraint,
                "bias_constraint": bias_constraint,
            },
            **cell_options(kwargs, "conv_lstm_cell"),
        )
        super().__init__(
            cell,
            self.rank + 3,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )


class ConvLSTM1D(ConvLSTM):
    """An LSTM over sequences of lines: its products are convolutions.

    i, f, o = recurrent_activation(W * x + U * h + b) for the gates, g = activation(W * x + U * h +
    b); c = f c + i g and h = o activation(c), where * is a convolution with kernels W and U for
    each. With `return_sequences` there is an output for each step.

    Args:
        filters: channels of the output and of the memory.
        kernel_size: cells of the window along the places.
        strides: step of the inputs' windows along the places.
        padding: "valid" or "same", of the inputs; the state is padded so that it keeps its size.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the inputs' windows.
        activation: of what is written, and of what is read.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (kernel_size, channels, 4 * filters).
        recurrent_initializer: of the recurrent kernel, (kernel_size, filters, 4 * filters).
        bias_initializer: of the biases, (4 * filters,).
        unit_forget_bias: whether the biases of the forget gate begin as 1.
        kernel_regularizer: penalty on the kernel.
        recurrent_regularizer: penalty on the recurrent kernel.
        bias_regularizer: penalty on the biases.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        recurrent_constraint: likewise of the recurrent kernel.
        bias_constraint: likewise of the biases.
        dropout: probability of an input to be dropped in training, from 0 to 1.
        recurrent_dropout: probability of a number of the state to be dropped in training.
        seed: a whole number, which fixes what is dropped.
        return_sequences: whether the output of each step is given, not the last one alone.
        return_state: whether h and c after the last step are given too.
        go_backwards: whether to go from the last step to the first; outputs are in that order.
        stateful: whether a batch begins with the states in which the one before ended.

    Shapes:
        x: (batch, steps, places, channels) -> y: (batch, positions, filters); with "channels_first"
        the channels stand before the spatial axes

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, or a stride and a dilation
            that are both above 1.
        ShapeError: a spatial axis of unknown size.

    Source: Shi et al., "Convolutional LSTM network: a machine learning approach for precipitation
        nowcasting", 2015, arXiv:1506.04214, section 3.1, without the connections from c to gates.

    Examples:
        >>> layers.ConvLSTM1D(2, 3, padding="same")(np.zeros((1, 4, 8, 1))).shape
        (1, 8, 2)
    """

    rank = 1


class ConvLSTM2D(ConvLSTM):
    """An LSTM over sequences of images: its products are convolutions.

    i, f, o = recurrent_activation(W * x + U * h + b) for the gates, g = activation(W * x + U * h +
    b); c = f c + i g and h = o activation(c), where * is a convolution with kernels W and U for
    each. With `return_sequences` there is an output for each step.

    Args:
        filters: channels of the output and of the memory.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step of the inputs' windows along each spatial axis.
        padding: "valid" or "same", of the inputs; the state is padded so that it keeps its size.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the inputs' windows.
        activation: of what is written, and of what is read.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (*kernel_size, channels, 4 * filters).
        recurrent_initializer: of the recurrent kernel, (*kernel_size, filters, 4 * filters).
        bias_initializer: of the biases, (4 * filters,).
        unit_forget_bias: whether the biases of the forget gate begin as 1.
        kernel_regularizer: penalty on the kernel.
        recurrent_regularizer: penalty on the recurrent kernel.
        bias_regularizer: penalty on the biases.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        recurrent_constraint: likewise of the recurrent kernel.
        bias_constraint: likewise of the biases.
        dropout: probability of an input to be dropped in training, from 0 to 1.
        recurrent_dropout: probability of a number of the state to be dropped in training.
        seed: a whole number, which fixes what is dropped.
        return_sequences: whether the output of each step is given, not the last one alone.
        return_state: whether h and c after the last step are given too.
        go_backwards: whether to go from the last step to the first; outputs are in that order.
        stateful: whether a batch begins with the states in which the one before ended.

    Shapes:
        x: (batch, steps, height, width, channels) -> y: (batch, rows, cols, filters); with
        "channels_first" the channels stand before the spatial axes

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, or a stride and a dilation
            that are both above 1.
        ShapeError: a spatial axis of unknown size.

    Source: Shi et al., "Convolutional LSTM network: a machine learning approach for precipitation
        nowcasting", 2015, arXiv:1506.04214, section 3.1, without the connections from c to gates.

    Examples:
        >>> layers.ConvLSTM2D(2, 3, padding="same")(np.zeros((1, 4, 8, 8, 1))).shape
        (1, 8, 8, 2)
    """

    rank = 2


class ConvLSTM3D(ConvLSTM):
    """An LSTM over sequences of volumes: its products are convolutions.

    i, f, o = recurrent_activation(W * x + U * h + b) for the gates, g = activation(W * x + U * h +
    b); c = f c + i g and h = o activation(c), where * is a convolution with kernels W and U for
    each. With `return_sequences` there is an output for each step.

    Args:
        filters: channels of the output and of the memory.
        kernel_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step of the inputs' windows along each spatial axis.
        padding: "valid" or "same", of the inputs; the state is padded so that it keeps its size.
        data_format: "channels_last" or "channels_first", by default the global one.
        dilation_rate: distance of neighbouring cells of the inputs' windows.
        activation: of what is written, and of what is read.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (*kernel_size, channels, 4 * filters).
        recurrent_initializer: of the recurrent kernel, (*kernel_size, filters, 4 * filters).
        bias_initializer: of the biases, (4 * filters,).
        unit_forget_bias: whether the biases of the forget gate begin as 1.
        kernel_regularizer: penalty on the kernel.
        recurrent_regularizer: penalty on the recurrent kernel.
        bias_regularizer: penalty on the biases.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        recurrent_constraint: likewise of the recurrent kernel.
        bias_constraint: likewise of the biases.
        dropout: probability of an input to be dropped in training, from 0 to 1.
        recurrent_dropout: probability of a number of the state to be dropped in training.
        seed: a whole number, which fixes what is dropped.
        return_sequences: whether the output of each step is given, not the last one alone.
        return_state: whether h and c after the last step are given too.
        go_backwards: whether to go from the last step to the first; outputs are in that order.
        stateful: whether a batch begins with the states in which the one before ended.

    Shapes:
        x: (batch, steps, d1, d2, d3, channels) -> y: (batch, o1, o2, o3, filters); with
        "channels_first" the channels stand before the spatial axes

    Raises:
        InvalidArgumentError: a size below 1, another padding or layout, or a stride and a dilation
            that are both above 1.
        ShapeError: a spatial axis of unknown size.

    Source: Shi et al., "Convolutional LSTM network: a machine learning approach for precipitation
        nowcasting", 2015, arXiv:1506.04214, section 3.1, without the connections from c to gates.

    Examples:
        >>> layers.ConvLSTM3D(2, 3, padding="same")(np.zeros((1, 2, 4, 4, 4, 1))).shape
        (1, 4, 4, 4, 2)
    """

    rank = 3
