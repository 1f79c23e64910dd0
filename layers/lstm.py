"""LSTM: a recurrent layer with a memory that gates write, keep and read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from laminar import ops
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.regularizers import RegularizerLike

from .options import keep, make_weight
from .recurrent import CellRNN, RecurrentOptions, cell_options, check_use_cudnn
from .recurrent_cell import OPTIONS, CellOptions, RecurrentCell

_OPTIONS = (*OPTIONS[:2], "recurrent_activation", *OPTIONS[2:], "unit_forget_bias", "seed")


def forget_bias(layer: Any, size: int) -> Callable[..., Any]:
    """An initializer of biases of four gates, ones for the second."""

    def initial(shape: Any, dtype: Any = None) -> Any:
        del shape  # 4 * size
        first, ones = layer.bias_initializer, ops.ones((size,), dtype=dtype)
        rest = layer.bias_initializer((2 * size,), dtype=dtype)
        return ops.concatenate([first((size,), dtype=dtype), ones, rest])

    return initial


def lstm_step(cell: Any, gates: Any, c: Tensor, axis: int = -1) -> list[Any]:
    """The new states [h, c]: c' = f c + i activation(g), h' = o activation(c').

    Args:
        cell: with the activations.
        gates: i, f, g and o along `axis`, before their activations.
        c: the memory before.
        axis: of the gates.
    """
    i, f, g, o = ops.split(gates, 4, axis=axis)
    gate, activation = cell.recurrent_activation, cell.activation
    c = ops.add(ops.multiply(gate(f), c), ops.multiply(gate(i), activation(g)))
    return [ops.multiply(gate(o), activation(c)), c]


class LSTMCell(RecurrentCell):
    """A step of an LSTM.

    i, f, o = recurrent_activation(x @ kernel + h @ recurrent_kernel + bias) and
    g = activation(x @ kernel + h @ recurrent_kernel + bias), with a part of the weights for each;
    c' = f * c + i * g; h' = o * activation(c').

    Args:
        units: size of the state and of the output.
        activation: of what comes into the state.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (features, 4 * units).
        recurrent_initializer: of the recurrent kernel, (units, 4 * units).
        bias_initializer: of the biases.
        unit_forget_bias: whether the biases of the forget gate begin as 1.
        kernel_regularizer: penalty on the kernel.
        recurrent_regularizer: penalty on the recurrent kernel.
        bias_regularizer: penalty on the biases.
        kernel_constraint: projection of the kernel after each update.
        recurrent_constraint: likewise of the recurrent kernel.
        bias_constraint: likewise of the biases.
        dropout: probability of an input to be dropped, from 0 to 1.
        recurrent_dropout: probability of a number of the state to be dropped, from 0 to 1.
        seed: a whole number, which fixes what is dropped.

    Shapes:
        inputs: (batch, features), states: [h, c], (batch, units) each -> (output, new states)

    Raises:
        InvalidArgumentError: units below 1, or a probability outside of 0 to 1.

    Examples:
        >>> layers.RNN(layers.LSTMCell(4))(np.zeros((2, 5, 3))).shape
        (2, 4)
    """

    gates = 4
    config_names = _OPTIONS
    recurrent_activation: Callable[[Any], Any]

    def __init__(
        self,
        units: int,
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
        kernel_constraint: ConstraintLike | None = None,
        recurrent_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Unpack[CellOptions],
    ) -> None:
        super().__init__(
            units,
            activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            kernel_regularizer,
            recurrent_regularizer,
            bias_regularizer,
            kernel_constraint,
            recurrent_constraint,
            bias_constraint,
            dropout,
            recurrent_dropout,
            seed,
            **kwargs,
        )
        keep(self, recurrent_activation=recurrent_activation)
        self.unit_forget_bias = unit_forget_bias
        self.state_size = [self.units, self.units]

    def _make_bias(self, width: int) -> Variable:
        initializer = forget_bias(self, self.units) if self.unit_forget_bias else None
        return make_weight(self, "bias", (width,), initializer=initializer)

    def step(self, projected: Tensor, states: list[Any], training: bool) -> list[Any]:
        h, c = states
        return lstm_step(self, ops.add(projected, self._recurrent(h, training)), c)


class LSTM(CellRNN):
    """A recurrent layer with a memory c, which gates write, keep and read.

    i, f, o = gate(x(t) @ kernel + h(t-1) @ recurrent_kernel + bias), each with its own columns;
    g likewise, with `activation`; c(t) = f c(t-1) + i g; h(t) = o activation(c(t)), the output.
    The columns of the weights are those of i, f, g, o.

    Args:
        units: size of the output and of the memory.
        activation: of what is written, and of what is read.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (features, 4 * units).
        recurrent_initializer: of the recurrent kernel, (units, 4 * units).
        bias_initializer: of the biases, (4 * units,).
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
        unroll: whether a graph has each step written out.
        use_cudnn: accepted for its name.

    Shapes: see `RNN`.

    Source: Hochreiter and Schmidhuber, "Long short-term memory", 1997; with the forget gate of
        Gers, Schmidhuber and Cummins, "Learning to forget", 2000.

    Examples:
        >>> layers.LSTM(4)(np.zeros((2, 5, 3))).shape
        (2, 4)
    """

    cell_options = _OPTIONS

    def __init__(
        self,
        units: int,
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
        unroll: bool = False,
        use_cudnn: bool | str = "auto",
        **kwargs: Unpack[RecurrentOptions],
    ) -> None:
        cell = LSTMCell(
            units,
            activation,
            recurrent_activation,
            use_bias,
            kernel_initializer,
            recurrent_initializer,
            bias_initializer,
            unit_forget_bias,
            kernel_regularizer,
            recurrent_regularizer,
            bias_regularizer,
            kernel_constraint,
            recurrent_constraint,
            bias_constraint,
            dropout,
            recurrent_dropout,
            seed,
            **cell_options(kwargs, "lstm_cell"),
        )
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self.use_cudnn = check_use_cudnn(self, use_cudnn)
