"""Cells of recurrent networks that are made of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import engine
from laminar.engine.errors import ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state
from laminar.engine.tree import map_structure

from .adapting import in_graph
from .neural import dropout
from .recurrent import LSTMStateTuple, RNNCell, joined, map_sizes
from .values import as_kind, tensor
from .variables import variable_scope


class MultiRNNCell(RNNCell):
    """Cells one upon the other: the output of each is the input of the next.

    Its state is a tuple with the state of each; without `state_is_tuple`, one matrix of all.
    """

    _default_name = "multi_rnn_cell"

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, list | tuple) or not cells:
            raise ValueError(f"MultiRNNCell: expected a list of cells, got {cells!r}")
        if not state_is_tuple and any(not isinstance(c.state_size, int) for c in cells):
            raise ValueError("MultiRNNCell: a cell has a structured state: state_is_tuple=True")
        if len({id(c) for c in cells}) != len(cells):
            raise ValueError("MultiRNNCell: a cell stands twice, and would share its variables")
        self._cells, self._state_is_tuple = list(cells), state_is_tuple

    @property
    def state_size(self) -> Any:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    @property
    def weights(self) -> list[Any]:
        """Those of all cells."""
        return [w for cell in self._cells for w in cell.weights]

    variables = weights

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The states of zeros of all cells."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        states: list[Any] = []
        begin = 0
        for number, cell in enumerate(self._cells):
            if self._state_is_tuple:
                if not isinstance(state, tuple | list) or len(state) != len(self._cells):
                    raise ValueError(f"MultiRNNCell: {len(self._cells)} cells, got {state!r}")
                own = state[number]
            else:
                own = state[:, begin : begin + cell.state_size]
                begin += cell.state_size
            with variable_scope(f"cell_{number}"):
                inputs, new = cell(inputs, own)
            states.append(new)
        return inputs, tuple(states) if self._state_is_tuple else joined(*states)


class _Wrapper(RNNCell):
    """A cell that does more than the one that it holds."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        if not callable(cell) or not hasattr(cell, "output_size"):
            raise TypeError(f"{type(self).__name__}: expected a cell, got {cell!r}")
        self._cell = cell

    @property
    def wrapped_cell(self) -> Any:
        """The cell that is held."""
        return self._cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    @property
    def weights(self) -> list[Any]:
        """Those of the cell."""
        return list(self._cell.weights)

    variables = weights

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell."""
        return self._cell.zero_state(batch_size, dtype)


class DropoutWrapper(_Wrapper):
    """A cell with dropout of its inputs, outputs and state (of an LSTM, of h alone).

    Args:
        cell: the cell.
        input_keep_prob, output_keep_prob, state_keep_prob: how likely a number stays; it is then
            divided by this.
        variational_recurrent: whether the same numbers stay at all steps of a sequence.
        input_size: with that, the size of the inputs, a structure of TensorShapes.
        dtype: with that, of inputs, state and outputs.
        seed: of the draws.
        dropout_state_filter_visitor: says of a state, or a part of it, whether it is dropped.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Any = None,
    ) -> None:
        super().__init__(cell)
        for p in (input_keep_prob, output_keep_prob, state_keep_prob):
            if isinstance(p, int | float) and not 0 < p <= 1:
                raise ValueError(f"DropoutWrapper: a probability is above 0 and up to 1, got {p}")
        self._keep = input_keep_prob, state_keep_prob, output_keep_prob
        self._seed, self._filter = seed, dropout_state_filter_visitor
        self._noise: list[Any] = [None, None, None]
        if variational_recurrent:
            if dtype is None or (input_size is None and not _keeps_all(input_keep_prob)):
                raise ValueError("DropoutWrapper: variational_recurrent needs dtype and input_size")
            kind = as_kind(dtype)
            sizes = [input_size, cell.state_size, cell.output_size]
            with in_graph():
                self._noise = [
                    None if size is None else map_sizes(lambda d: self._drawn(d, kind), size)
                    for size in sizes
                ]

    def _drawn(self, dims: list[Any], kind: Any) -> Any:
        return cast(draws.random_uniform(draw_state(self._seed), [1, *dims]), kind)

    def _dropped(self, x: Any, noise: Any, keep: Any) -> Any:
        if _keeps_all(keep):
            return x
        if noise is None:
            return dropout(x, keep, seed=self._seed)
        part = tensor(keep, x.dtype)
        return x / part * lookup("Floor")(noise + part)

    def _dropped_all(self, xs: Any, noise: Any, keep: Any) -> Any:
        if noise is None:
            return map_structure(lambda x: self._dropped(x, None, keep), xs)
        return map_structure(lambda x, n: self._dropped(x, n, keep), xs, noise)

    def _dropped_state(self, state: Any, noise: Any, keep: Any) -> Any:
        if isinstance(state, LSTMStateTuple) and self._filter is None:
            own = None if noise is None else noise.h
            return LSTMStateTuple(state.c, self._dropped(state.h, own, keep))
        if isinstance(state, tuple | list):
            noises = [None] * len(state) if noise is None else noise
            parts = [self._dropped_state(s, n, keep) for s, n in zip(state, noises, strict=True)]
            return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
        drops = self._filter is None or self._filter(state)
        return self._dropped(state, noise, keep) if drops else state

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """(output, state) of the cell, with dropout."""
        with in_graph():
            (keep_in, keep_state, keep_out), (n_in, n_state, n_out) = self._keep, self._noise
            output, new = self._cell(self._dropped_all(inputs, n_in, keep_in), state, scope)
            new = self._dropped_state(new, n_state, keep_state)
            return self._dropped_all(output, n_out, keep_out), new


def _keeps_all(keep: Any) -> bool:
    return isinstance(keep, int | float) and keep >= 1


class ResidualWrapper(_Wrapper):
    """A cell whose outputs are added to its inputs, or what `residual_fn(inputs, outputs)` is."""

    def __init__(self, cell: Any, residual_fn: Any = None) -> None:
        super().__init__(cell)
        self._residual_fn = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """(output + inputs, state)."""
        with in_graph():
            output, new = self._cell(inputs, state, scope)
            if self._residual_fn is not None:
                return self._residual_fn(inputs, output), new
            return map_structure(_sum_of_equal, inputs, output), new


def _sum_of_equal(x: Tensor, y: Tensor) -> Tensor:
    if not x.shape.is_compatible_with(y.shape):
        raise ShapeError(f"ResidualWrapper: the inputs are {x.shape}, the outputs {y.shape}")
    return lookup("Add")(x, y)


class DeviceWrapper(_Wrapper):
    """A cell on a device."""

    def __init__(self, cell: Any, device: str) -> None:
        super().__init__(cell)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell, there."""
        with in_graph(), engine.device(self._device):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """(output, state), computed there."""
        with in_graph(), engine.device(self._device):
            found: tuple[Any, Any] = self._cell(inputs, state, scope)
            return found
