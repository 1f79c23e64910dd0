"""RNN: a cell applied to each step of a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable
from laminar.naming import who
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import flatten, map_structure, pack_sequence_as
from laminar.typing import Shape

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import CommonOptions, LayerOptions
from .options import config_of
from .recurrent_cell import DroppingCell
from .stacked_cells import StackedRNNCells, check_cell

_FLAGS = (
    "return_sequences",
    "return_state",
    "go_backwards",
    "stateful",
    "unroll",
    "zero_output_for_mask",
)


class RecurrentOptions(CommonOptions, total=False):
    """What layers with a cell of their own take besides the options that they name."""

    zero_output_for_mask: bool
    implementation: int


class RNN(Layer):
    """A cell applied to each step of a sequence, each time with the state of the step before.

    Where a mask is False, the state stays as it was, and the output is that of the step before;
    before the first step it is zeros, or, of cells whose output is their state, that state.

    Args:
        cell: a cell, or a list of cells, each of which takes the output of the one before. A cell
            has `state_size` (a number, or a list of them) and `call(inputs, states)`, which gives
            (output, new states); it may have `get_initial_state(batch_size)`.
        return_sequences: whether the output of each step is given, not the last one alone.
        return_state: whether the states after the last step are given too.
        go_backwards: whether to go from the last step to the first; outputs are in that order.
        stateful: whether a batch begins with the states in which the one before ended.
        unroll: whether a graph has each step written out.
        zero_output_for_mask: whether masked steps give zeros.

    Shapes:
        sequences: (batch, steps, features); initial_state: as many as the cell has, (batch, units)
        -> (batch, units), or (batch, steps, units) with return_sequences; with return_state also
        the states

    Raises:
        InvalidArgumentError: something that is no cell, an initial state of another form, or
            options that need a size which is unknown.

    Examples:
        >>> layers.RNN([layers.GRUCell(4), layers.GRUCell(2)])(np.zeros((2, 5, 3))).shape
        (2, 2)
    """

    # The states of a stateful layer are no weights: files do not hold them.
    _laminar_untracked = Layer._laminar_untracked | {"states"}

    def __init__(
        self,
        cell: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(cell, list | tuple):
            policies = [c.dtype_policy for c in cell if isinstance(c, Layer)]
            cell = StackedRNNCells(cell, dtype=policies[0] if policies else self.dtype_policy)
        check_cell(cell, who(self))
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.go_backwards = go_backwards
        self.stateful = stateful
        self.unroll = unroll
        self.zero_output_for_mask = zero_output_for_mask
        self.supports_masking = True
        self.states: Any = None

    @property
    def state_size(self) -> list[Any]:
        """The sizes of the states."""
        size = self.cell.state_size
        return list(size) if isinstance(size, list | tuple) else [size]

    def build(self, sequences_shape: Shape, initial_state_shape: Shape | None = None) -> None:
        if isinstance(self.cell, Layer) and not self.cell.built:
            self.cell.build((sequences_shape[0], *sequences_shape[2:]))
        if self.stateful and self.states is None:
            batch = sequences_shape[0]
            if batch is None:
                raise InvalidArgumentError(
                    f"{who(self)}: with stateful=True the size of the batch must be known, "
                    f"got the input shape {tuple(sequences_shape)}",
                    remedy="give Input a batch_shape, as batch_shape=(32, None, 8)",
                )
            self.states = map_structure(
                lambda s: Variable(s, trainable=False, dtype=self.variable_dtype, name="rnn_state"),
                self.get_initial_state(batch),
            )

    # States

    def get_initial_state(self, batch_size: int | Tensor) -> list[Any]:
        """The states before the first step: those of the cell, or zeros."""
        if hasattr(self.cell, "get_initial_state"):
            found = self.cell.get_initial_state(batch_size=batch_size)
            return list(found) if isinstance(found, list | tuple) else [found]
        return [ops.zeros((batch_size, n), dtype=self.compute_dtype) for n in self.state_size]

    def reset_state(self) -> None:
        """Begin the next batch with zeros, in a stateful layer."""
        for state in flatten(self.states or []):
            state.assign(ops.zeros_like(state.value))

    reset_states = reset_state

    def _begin(self, sequences: Any, given: Any) -> list[Any]:
        """The states before the first step, each in the compute dtype of its cell."""
        if given is None:
            if self.stateful:
                states = map_structure(lambda v: v.value, self.states)
            else:
                states = self.get_initial_state(ops.shape(sequences)[0])
        else:
            wanted, found = self.state_size, flatten(given)
            if len(flatten(wanted)) != len(found):
                raise InvalidArgumentError(
                    f"{who(self)}: the cell has {len(flatten(wanted))} states, "
                    f"initial_state has {len(found)}",
                    remedy="pass one tensor for each state, in a list",
                )
            states = pack_sequence_as(wanted, found)
        if isinstance(self.cell, StackedRNNCells):
            own = zip(self.cell.cells, states, strict=True)
            return [self._as_of(cell, given) for cell, given in own]
        return list(self._as_of(self.cell, states))

    def _as_of(self, cell: Any, states: Any) -> Any:
        """States in the compute dtype of a cell."""
        dtype = getattr(cell, "compute_dtype", self.compute_dtype)
        return map_structure(lambda s: ops.cast(s, dtype), states)

    # Calling

    def call(
        self,
        sequences: Tensor,
        initial_state: Sequence[Tensor] | None = None,
        mask: Tensor | None = None,
        training: bool = False,
    ) -> Any:
        if self.unroll and sequences.shape[1] is None:
            raise InvalidArgumentError(
                f"{who(self)}: with unroll=True the number of steps must be known, "
                f"got the input shape {sequences.shape}",
                remedy="give Input the number of steps, or leave unroll out",
            )
        states = self._begin(sequences, initial_state)
        marks = None if mask is None else _time_first(ops.cast(flatten(mask)[0], "bool"))
        with self._dropout(sequences, states, training):
            loop = self._over_projections if self._projects else self._over_inputs
            y, states = loop(_time_first(sequences), states, marks, training)
        y, states = map_structure(lambda t: ops.cast(t, self.compute_dtype), (y, states))
        if self.stateful:
            for variable, state in zip(flatten(self.states), flatten(states), strict=True):
                variable.assign(state)
        return (y, *states) if self.return_state else y

    @property
    def _projects(self) -> bool:
        """Whether the cell computes what inputs add for all steps at once."""
        return hasattr(self.cell, "project")

    @contextmanager
    def _dropout(self, sequences: Tensor, states: list[Any], training: bool) -> Iterator[None]:
        """Draw what the cells drop before the first step, and forget it after the last."""
        pairs = [(self.cell, states)]
        if isinstance(self.cell, StackedRNNCells):
            pairs = list(zip(self.cell.cells, states, strict=True))
        cells = [(cell, flatten(own)) for cell, own in pairs if isinstance(cell, DroppingCell)]
        try:
            for cell, own in cells if training else []:
                cell.reset_dropout_mask()
                cell.reset_recurrent_dropout_mask()
                cell.get_recurrent_dropout_mask(own[0])
                if cell is self.cell:
                    cell.get_dropout_mask(sequences[:, 0])
                else:
                    features = cell.kernel.shape[0]  # type: ignore[attr-defined]  # it is built
                    cell.get_dropout_mask(ops.zeros((ops.shape(sequences)[0], features)))
            yield
        finally:
            for cell, _ in cells if training else []:
                cell.reset_dropout_mask()
                cell.reset_recurrent_dropout_mask()

    def _scan(self, step: Any, states: list[Any], xs: Any) -> tuple[list[Any], Any]:
        """The states after the last step, and the outputs in the order in which they came."""
        states, ys = ops.scan(step, states, xs, reverse=self.go_backwards, unroll=self.unroll)
        if self.go_backwards and ys is not None:
            ys = map_structure(_flipped, ys)
        return states, ys

    def _over_projections(
        self, x: Tensor, states: list[Any], marks: Any, training: bool
    ) -> tuple[Any, list[Any]]:
        """The loop over a cell that projects all inputs at once, and whose output is its state."""
        keeps = self.return_sequences
        projected = self.cell.project(x, training)

        def step(before: list[Any], item: Any) -> tuple[list[Any], Any]:
            part, mark = item if marks is not None else (item, None)
            after = self.cell.step(part, before, training)
            if mark is not None:
                after = [_chosen(mark, a, b) for a, b in zip(after, before, strict=True)]
            return after, after[0] if keeps else None

        xs = projected if marks is None else (projected, marks)
        states, ys = self._scan(step, states, xs)
        y = ys if keeps else states[0]
        if marks is not None and self.zero_output_for_mask:
            order = _flipped(marks) if self.go_backwards else marks
            y = _chosen(order if keeps else order[-1], y, ops.zeros_like(y))
        return (_time_first(y) if keeps else y), states

    def _over_inputs(
        self, x: Tensor, states: list[Any], marks: Any, training: bool
    ) -> tuple[Any, list[Any]]:
        """The loop over any cell."""
        cell = self.cell
        options: dict[str, Any] = {}
        if isinstance(cell, Layer) and "training" in cell._laminar_call_parameters:
            options["training"] = training
        compute = cell if callable(cell) else cell.call

        def step(before: list[Any], item: Any) -> tuple[list[Any], Any]:
            part, mark = item if marks is not None else (item, None)
            y, after = compute(part, before, **options)
            after = pack_sequence_as(before, flatten(after))
            if mark is not None:
                after = map_structure(lambda a, b: _chosen(mark, a, b), after, before)
            return after, y

        states, ys = self._scan(step, states, x if marks is None else (x, marks))
        if marks is not None:
            order = _flipped(marks) if self.go_backwards else marks
            fill = _masked_to_zero if self.zero_output_for_mask else _masked_to_last
            ys = map_structure(lambda y: fill(y, order), ys)
        if self.return_sequences:
            return map_structure(_time_first, ys), states
        return map_structure(lambda y: y[-1], ys), states

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        """The mask of the sequences, where sequences are given."""
        steps = flatten(mask)[0] if self.return_sequences else None
        return [steps, *[None] * len(self.state_size)] if self.return_state else steps

    def get_config(self) -> dict[str, Any]:
        return (
            super().get_config()
            | config_of(self, *_FLAGS)
            | {"cell": serialize_keras_object(self.cell)}
        )

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make a layer from what `get_config` gave."""
        cell = deserialize_keras_object(config["cell"], custom_objects)
        return super().from_config({**config, "cell": cell})


class CellRNN(RNN):
    """A layer made of one cell of its own, whose options are its arguments. Abstract."""

    cell_options: ClassVar[tuple[str, ...]]  # of the config, found in the cell

    def __init__(self, cell: Any, rank: int = 3, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self.input_spec = InputSpec(ndim=rank)

    def __getattr__(self, name: str) -> Any:
        # only what the instance has not is looked for here
        if name in type(self).cell_options and "cell" in self.__dict__:
            return getattr(self.cell, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["cell"]
        return config | config_of(self, *self.cell_options, "activity_regularizer")

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make a layer from what `get_config` gave."""
        return super(RNN, cls).from_config(config)


def cell_options(kwargs: Any, name: str) -> dict[str, Any]:
    """The arguments of a layer that its cell takes too; `implementation` is the cell's alone."""
    found: dict[str, Any] = {"name": name}
    for key in ("dtype", "trainable"):
        if key in kwargs:
            found[key] = kwargs[key]
    if "implementation" in kwargs:
        found["implementation"] = kwargs.pop("implementation")
    return found


def check_use_cudnn(layer: Any, value: Any) -> Any:
    """Keras's argument `use_cudnn`, which is accepted: the loop is the same.

    Raises:
        InvalidArgumentError: it is not "auto", True or False.
    """
    if value not in ("auto", True, False):
        raise InvalidArgumentError(
            f"{who(layer)}: use_cudnn must be 'auto', True or False, got {value!r}"
        )
    return value


# Steps and masks


def _time_first(x: Tensor) -> Any:
    """(batch, steps, ...) as (steps, batch, ...), and back."""
    return ops.swapaxes(x, 0, 1)


def _flipped(x: Tensor) -> Any:
    return ops.flip(x, axis=0)


def _chosen(mark: Tensor, new: Any, old: Any) -> Any:
    """`new` where `mark` is True, else `old`; the mark has the first axes of both."""
    missing = len(new.shape) - len(mark.shape)
    return ops.where(ops.expand_dims(mark, list(range(-missing, 0))), new, old)


def _masked_to_zero(y: Tensor, order: Tensor) -> Any:
    return _chosen(order, y, ops.zeros_like(y))


def _masked_to_last(y: Tensor, order: Tensor) -> Any:
    """Outputs (steps, batch, ...) in which each masked one is that of the last step not masked."""
    steps = ops.expand_dims(ops.arange(ops.shape(order)[0]), 1)

    def later(last: Any, step: Any) -> tuple[Any, Any]:
        found = ops.maximum(last, step)
        return found, found

    places = ops.where(order, steps, -1)
    _, last = ops.scan(later, ops.zeros_like(places[0]) - 1, places)
    place = ops.maximum(ops.expand_dims(last, list(range(2, len(y.shape)))), 0)
    return _chosen(last >= 0, ops.take_along_axis(y, place, axis=0), ops.zeros_like(y))
