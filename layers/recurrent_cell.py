"""What the cells with gates have in common: weights, and dropout that is the same at each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from laminar import ops, random
from laminar.activations import ActivationLike
from laminar.constraints import ConstraintLike
from laminar.engine.graph import GraphTensor, Tensor, building
from laminar.engine.state import Variable
from laminar.initializers import InitializerLike
from laminar.regularizers import RegularizerLike
from laminar.typing import Shape, TensorLike

from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, fraction, keep, known_dim, make_weight, whole

# The options of a cell, as in its config; layers made of one cell pass them on.
OPTIONS = (
    "units",
    "activation",
    "use_bias",
    "kernel_initializer",
    "recurrent_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "recurrent_regularizer",
    "bias_regularizer",
    "kernel_constraint",
    "recurrent_constraint",
    "bias_constraint",
    "dropout",
    "recurrent_dropout",
)


class CellOptions(LayerOptions, total=False):
    """The arguments of cells that are not their own; `implementation` changes nothing here."""

    implementation: int


class DroppingCell(Layer):
    """A cell that drops numbers of its inputs and of its state. Abstract.

    The same numbers are dropped at each step of a sequence: `held` are the masks, drawn when they
    are first needed, until they are reset.

    Source: Gal and Ghahramani, "A theoretically grounded application of dropout in recurrent neural
        networks", 2015, arXiv:1512.05287, section 4.
    """

    dropout: float
    recurrent_dropout: float

    def _begin_dropout(self, dropout: float, recurrent_dropout: float, seed: int | None) -> None:
        self.dropout = fraction(self, "dropout", dropout)
        self.recurrent_dropout = fraction(self, "recurrent_dropout", recurrent_dropout)
        self.seed = seed
        if self.dropout > 0 or self.recurrent_dropout > 0:
            self.seed_generator = random.SeedGenerator(seed)
        self._dropout_mask: Any = None
        self._recurrent_dropout_mask: Any = None

    @property
    def _mask_count(self) -> int | None:
        """How many masks there are, one for each gate; None for one for all."""
        raise NotImplementedError

    def get_dropout_mask(self, step_input: TensorLike) -> Any:
        """What inputs are multiplied by in training: of the shape of those of one step.

        With a mask for each gate, they are along a new first axis. None if nothing is dropped.
        """
        if 0 < self.dropout < 1 and not _is_usable(self._dropout_mask):
            self._dropout_mask = self._draw(ops.shape(step_input), self.dropout)
        return self._dropout_mask

    def get_recurrent_dropout_mask(self, state: TensorLike | None) -> Any:
        """Likewise of the state."""
        if 0 < self.recurrent_dropout < 1 and not _is_usable(self._recurrent_dropout_mask):
            self._recurrent_dropout_mask = self._draw(ops.shape(state), self.recurrent_dropout)
        return self._recurrent_dropout_mask

    def reset_dropout_mask(self) -> None:
        """Draw a new mask of inputs when one is next needed."""
        self._dropout_mask = None

    def reset_recurrent_dropout_mask(self) -> None:
        """Likewise of the state."""
        self._recurrent_dropout_mask = None

    def _draw(self, shape: tuple[Any, ...], rate: float) -> Any:
        count = self._mask_count
        full = shape if count is None else (count, *shape)
        ones = ops.ones(full, dtype=self.compute_dtype)
        return random.dropout(ones, rate, seed=self.seed_generator)


def _is_usable(mask: Any) -> bool:
    """Whether a mask was drawn where it can be seen from: not in another graph."""
    if not isinstance(mask, GraphTensor):
        return mask is not None
    graph: Any = building()
    while graph is not None and graph is not mask.graph:
        graph = getattr(graph, "outer", None)
    return graph is not None


class RecurrentCell(DroppingCell):
    """A cell: the state and output of a step from its inputs and the state before. Abstract.

    What the inputs of a step add to its gates does not depend on the state, so a layer computes it
    for all steps of a sequence at once, with `project`; `step` does the rest. The output of a step
    is its first state.

    Args:
        units: size of the state and of the output.
        activation: of what comes into the state.
        use_bias: whether there are biases.
        kernel_initializer: of the kernel, (features, gates * units).
        recurrent_initializer: of the recurrent kernel, (units, gates * units).
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
        inputs: (batch, features), states: a list of (batch, units) -> (output, new states)

    Raises:
        InvalidArgumentError: units below 1, or a probability outside of 0 to 1.
    """

    gates: ClassVar[int]
    config_names: ClassVar[tuple[str, ...]] = (*OPTIONS, "seed")
    activation: Callable[[Any], Any]
    bias: Variable | None
    state_size: Any

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
        kernel_constraint: ConstraintLike | None = None,
        recurrent_constraint: ConstraintLike | None = None,
        bias_constraint: ConstraintLike | None = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        implementation = kwargs.pop("implementation", 2)
        super().__init__(**kwargs)
        self.units = self.output_size = whole(self, "units", units)
        self.use_bias = use_bias
        keep(
            self,
            activation=activation,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint,
        )
        self._begin_dropout(dropout, recurrent_dropout, seed)
        self.implementation = 1 if self.recurrent_dropout else implementation
        self.state_size = self.units

    @property
    def _mask_count(self) -> int | None:
        return self.gates if self.implementation == 1 and self.gates > 1 else None

    def build(self, input_shape: Shape) -> None:
        features = known_dim(self, input_shape, -1, "the number of features")
        width = self.gates * self.units
        self.kernel = make_weight(self, "kernel", (features, width))
        self.recurrent_kernel = make_weight(
            self, "recurrent_kernel", (self.units, width), "recurrent"
        )
        self.bias = self._make_bias(width) if self.use_bias else None

    def _make_bias(self, width: int) -> Variable:
        return make_weight(self, "bias", (width,))

    def get_initial_state(self, batch_size: int | Tensor | None = None) -> list[Any]:
        """Zeros: the state before the first step."""
        sizes = self.state_size if isinstance(self.state_size, list) else [self.state_size]
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in sizes]

    # Steps

    def project(self, inputs: Any, training: bool = False) -> Any:
        """What inputs add to the gates: (..., features) -> (..., gates * units)."""
        one_step = inputs if len(inputs.shape) == 2 else inputs[0]
        mask = self.get_dropout_mask(one_step) if training else None
        if mask is None:
            y = ops.matmul(inputs, self.kernel.value)
        elif self._mask_count is None:
            y = ops.matmul(inputs * mask, self.kernel.value)
        else:
            y = self._each_gate(inputs, mask, self.kernel.value)
        bias = self._input_bias()
        return y if bias is None else y + bias

    def _input_bias(self) -> Any:
        return None if self.bias is None else self.bias.value

    def _recurrent(self, h: Tensor, training: bool) -> Any:
        """What the state adds to the gates: (batch, gates * units)."""
        mask = self.get_recurrent_dropout_mask(h) if training else None
        if mask is None:
            return ops.matmul(h, self.recurrent_kernel)
        if self._mask_count is None:
            return ops.matmul(h * mask, self.recurrent_kernel)
        return self._each_gate(h, mask, self.recurrent_kernel.value)

    def _each_gate(self, x: Tensor, masks: Any, kernel: Tensor) -> Any:
        """A product for each gate, of what its own mask leaves."""
        parts = ops.split(kernel, self.gates, axis=-1)
        return ops.concatenate(
            [ops.matmul(x * masks[i], part) for i, part in enumerate(parts)], axis=-1
        )

    def step(self, projected: Tensor, states: list[Any], training: bool) -> list[Any]:
        """The new states.

        Args:
            projected: what the inputs add to the gates, (batch, gates * units).
            states: before the step.
            training: whether numbers are dropped.
        """
        raise NotImplementedError

    def call(self, inputs: Tensor, states: Sequence[Tensor], training: bool = False) -> Any:
        several = isinstance(states, list | tuple)
        before = list(states) if several else [states]
        after = self.step(self.project(inputs, training), before, training)
        return after[0], after if several else after[0]

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, *self.config_names)
