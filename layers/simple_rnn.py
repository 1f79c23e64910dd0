"""SimpleRNN: a network whose output is part of its next input."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.graph import Tensor
from laminar.initializers import InitializerLike
from laminar.regularizers import RegularizerLike

from .recurrent import CellRNN, RecurrentOptions, cell_options
from .recurrent_cell import OPTIONS, RecurrentCell


class SimpleRNNCell(RecurrentCell):
    """h' = activation(x @ kernel + h @ recurrent_kernel + bias).

    Args:
        units: size of the state and of the output.
        activation: of what comes into the state.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (features, units).
        recurrent_initializer: of the recurrent kernel, (units, units).
        bias_initializer: of the biases.
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
        inputs: (batch, features), states: [(batch, units)] -> (output, new states)

    Raises:
        InvalidArgumentError: units below 1, or a probability outside of 0 to 1.

    Source: Elman, "Finding structure in time", 1990.

    Examples:
        >>> layers.RNN(layers.SimpleRNNCell(4))(np.zeros((2, 5, 3))).shape
        (2, 4)
    """

    gates = 1

    def step(self, projected: Tensor, states: list[Any], training: bool) -> list[Any]:
        return [self.activation(ops.add(projected, self._recurrent(states[0], training)))]


class SimpleRNN(CellRNN):
    """h(t) = activation(x(t) @ kernel + h(t - 1) @ recurrent_kernel + bias), the outputs.

    Args:
        units: size of the output.
        activation: of the sum.
        use_bias: whether there is a bias.
        kernel_initializer: of the kernel, (features, units).
        recurrent_initializer: of the recurrent kernel, (units, units).
        bias_initializer: of the bias.
        kernel_regularizer: penalty on the kernel.
        recurrent_regularizer: penalty on the recurrent kernel.
        bias_regularizer: penalty on the bias.
        activity_regularizer: penalty on the output.
        kernel_constraint: projection of the kernel after each update.
        recurrent_constraint: likewise of the recurrent kernel.
        bias_constraint: likewise of the bias.
        dropout: probability of an input to be dropped in training, from 0 to 1.
        recurrent_dropout: probability of a number of the state to be dropped in training.
        return_sequences: whether the output of each step is given, not the last one alone.
        return_state: whether the state after the last step is given too.
        go_backwards: whether to go from the last step to the first; outputs are in that order.
        stateful: whether a batch begins with the state in which the one before ended.
        unroll: whether a graph has each step written out.
        seed: a whole number, which fixes what is dropped.

    Shapes: see `RNN`.

    Examples:
        >>> layers.SimpleRNN(4)(np.zeros((2, 5, 3))).shape
        (2, 4)
    """

    cell_options = OPTIONS

    def __init__(
        self,
        units: int,
        activation: ActivationLike = "tanh",
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        recurrent_initializer: InitializerLike = "orthogonal",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike | None = None,
        recurrent_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        activity_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        recurrent_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        seed: int | None = None,
        **kwargs: Unpack[RecurrentOptions],
    ) -> None:
        cell = SimpleRNNCell(
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
            **cell_options(kwargs, "simple_rnn_cell"),
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

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if self.cell.seed is not None:  # Keras leaves it out
            config["seed"] = self.cell.seed
        return config
