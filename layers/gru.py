"""GRU: a recurrent layer with gates that keep its state, or let go of it."""

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

_OPTIONS = (*OPTIONS[:2], "recurrent_activation", *OPTIONS[2:], "reset_after", "seed")


class GRUCell(RecurrentCell):
    """A step of a GRU.

    z, r = recurrent_activation(x @ kernel + h @ recurrent_kernel + bias), with a part of the
    weights for each; g = activation(x @ kernel + r * (h @ recurrent_kernel) + bias), without
    `reset_after` (r * h) @ recurrent_kernel; h' = z * h + (1 - z) * g.

    Args:
        units: size of the state and of the output.
        activation: of what comes into the state.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (features, 3 * units).
        recurrent_initializer: of the recurrent kernel, (units, 3 * units).
        bias_initializer: of the biases.
        reset_after: whether the reset gate is applied after the product, not before it.
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

    Examples:
        >>> layers.RNN(layers.GRUCell(4))(np.zeros((2, 5, 3))).shape
        (2, 4)
    """

    gates = 3
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
        kernel_regularizer: RegularizerLike | None = None,
        recurrent_regularizer: RegularizerLike | None = None,
        bias_regularizer: RegularizerLike | None = None,
        kernel_constraint: ConstraintLike | None = None,
        recurrent_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        reset_after: bool = True,
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
        self.reset_after = reset_after

    def _make_bias(self, width: int) -> Variable:
        return make_weight(self, "bias", (2, width) if self.reset_after else (width,))

    def _input_bias(self) -> Any:
        if self.bias is None or not self.reset_after:
            return super()._input_bias()
        return self.bias.value[0]

    def step(self, projected: Tensor, states: list[Any], training: bool) -> list[Any]:
        (h,) = states
        x_z, x_r, x_h = ops.split(projected, 3, axis=-1)
        gate = self.recurrent_activation
        if self.reset_after:
            inner = self._recurrent(h, training)
            if self.bias is not None:
                inner = inner + self.bias.value[1]
            z, r, new = ops.split(inner, 3, axis=-1)
            z, r = gate(ops.add(x_z, z)), gate(ops.add(x_r, r))
            new = ops.multiply(r, new)
        else:
            z, r, new = self._reset_before(h, x_z, x_r, training)
        new = self.activation(ops.add(x_h, new))
        return [ops.add(new, ops.multiply(z, ops.subtract(h, new)))]  # z h + (1 - z) new

    def _reset_before(
        self, h: Tensor, x_z: Tensor, x_r: Tensor, training: bool
    ) -> tuple[Any, Any, Any]:
        """Both gates, and the product of what the reset gate leaves of the state."""
        kernel = self.recurrent_kernel.value
        mask = self.get_recurrent_dropout_mask(h) if training else None
        of_gate = [h if mask is None else h * mask[k] for k in range(3)]
        if mask is None:
            z, r = ops.split(ops.matmul(h, kernel[:, : 2 * self.units]), 2, axis=-1)
        else:
            z = ops.matmul(of_gate[0], kernel[:, : self.units])
            r = ops.matmul(of_gate[1], kernel[:, self.units : 2 * self.units])
        gate = self.recurrent_activation
        z, r = gate(ops.add(x_z, z)), gate(ops.add(x_r, r))
        return z, r, ops.matmul(ops.multiply(r, of_gate[2]), kernel[:, 2 * self.units :])


class GRU(CellRNN):
    """A recurrent layer with gates that keep its state, or let go of it.

    z, r = gate(x(t) @ kernel + h(t-1) @ recurrent_kernel + bias), each with its own columns;
    n = activation(x(t) @ kernel + r (h(t-1) @ recurrent_kernel)), or, with reset_after=False,
    activation(x(t) @ kernel + (r h(t-1)) @ recurrent_kernel); h(t) = z h(t-1) + (1 - z) n, the
    output. The columns of the weights are those of z, r, n.

    Args:
        units: size of the output.
        activation: of n.
        recurrent_activation: of the gates.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (features, 3 * units).
        recurrent_initializer: of the recurrent kernel, (units, 3 * units).
        bias_initializer: of the biases: (2, 3 * units), those of the inputs and of the state, with
            reset_after; else (3 * units,).
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
        return_state: whether the state after the last step is given too.
        go_backwards: whether to go from the last step to the first; outputs are in that order.
        stateful: whether a batch begins with the state in which the one before ended.
        unroll: whether a graph has each step written out.
        reset_after: whether the reset gate is applied after the product, not before it.
        use_cudnn: accepted for its name.

    Shapes: see `RNN`.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
        machine translation", 2014, arXiv:1406.1078, section 2.3.

    Examples:
        >>> layers.GRU(4, return_sequences=True)(np.zeros((2, 5, 3))).shape
        (2, 5, 4)
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
        reset_after: bool = True,
        use_cudnn: bool | str = "auto",
        **kwargs: Unpack[RecurrentOptions],
    ) -> None:
        cell = GRUCell(
            units,
            activation,
            recurrent_activation,
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
            reset_after,
            seed,
            **cell_options(kwargs, "gru_cell"),
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
