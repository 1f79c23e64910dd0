"""`tf.nn.rnn_cell`: cells of recurrent networks, which keep their variables in a variable scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from laminar import ops
from laminar.engine.errors import ShapeError
from laminar.engine.graph import TensorShape
from laminar.engine.ops.array import creation
from laminar.engine.ops.core.registry import lookup
from laminar.engine.state.variable_scope import VariableScope
from laminar.engine.tree import flatten

from .adapting import in_graph
from .init_ops import Constant, Zeros
from .neural import bias_add
from .values import as_kind, dims_of, static, symbol, tensor
from .variables import get_variable, variable_scope


def map_sizes(fn: Callable[[list[Any]], Any], size: Any) -> Any:
    """`fn` of the dimensions of each part of a size, in its structure."""
    if isinstance(size, TensorShape | int):
        return fn(list(TensorShape(size)))
    if hasattr(size, "_fields"):
        return type(size)(*(map_sizes(fn, s) for s in size))
    if isinstance(size, dict):
        return {key: map_sizes(fn, s) for key, s in size.items()}
    return type(size)(map_sizes(fn, s) for s in size)


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM: what it keeps, and its last output."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The type of both."""
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"the parts of the state differ: {self.c.dtype} and {self.h.dtype}")
        return self.c.dtype


class RNNCell:
    """(output, state) = cell(input, state).

    Own cells derive from it: they define `state_size`, `output_size`, `call(inputs, state)`, and
    `build(inputs_shape)` where they make variables there.
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **more: Any
    ) -> None:
        words = "".join(f"_{c}" if c.isupper() else c for c in type(self).__name__).strip("_")
        self.name = name or self._default_name or words.lower().replace("__", "_")
        self.trainable, self.dtype = trainable, dtype
        self.built = False
        self._scope: VariableScope | None = None
        self._weights: list[Any] = []

    _default_name = ""

    @property
    def state_size(self) -> Any:
        """The sizes of the parts of the state, without the batch."""
        raise NotImplementedError(f"{type(self).__name__} does not define state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output, without the batch."""
        raise NotImplementedError(f"{type(self).__name__} does not define output_size")

    def build(self, inputs_shape: Any) -> None:
        """Make variables; called once, before the first `call`."""
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """(output, state)."""
        raise NotImplementedError(f"{type(self).__name__} does not define call()")

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """(output, state), with variables of `scope`, by default one of the cell's name."""
        with in_graph():
            first = self._scope is None
            place = scope if first else self._scope
            name = self.name if place is None else None
            with variable_scope(place, name, reuse=None if first else True) as entered:
                self._scope = entered
                if not self.built:
                    if self.dtype is None and (leaves := flatten(inputs)):
                        self.dtype = tensor(leaves[0]).dtype
                    self.build(getattr(inputs, "shape", None))
                    self.built = True
                found: tuple[Any, Any] = self.call(inputs, state)
                return found

    def add_variable(self, name: str, shape: Any, initializer: Any = None, **more: Any) -> Any:
        """A variable of the cell."""
        kind = as_kind(more.pop("dtype", None) or self.dtype)
        made = get_variable(name, shape, kind, initializer, trainable=self.trainable, **more)
        self._weights.append(made)
        return made

    add_weight = add_variable

    @property
    def weights(self) -> list[Any]:
        """Its variables, once it was called."""
        return list(self._weights)

    variables = weights

    @property
    def trainable_weights(self) -> list[Any]:
        """Those that are trained."""
        return self.weights if self.trainable else []

    trainable_variables = trainable_weights

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with in_graph():
            kind = as_kind(dtype)
            return map_sizes(lambda dims: _zeros([batch_size, *dims], kind), self.state_size)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """`zero_state`, with the batch and type of `inputs` where they are given."""
        if inputs is not None:
            x = tensor(inputs)
            batch_size, dtype = dims_of(x)[0], x.dtype
        if batch_size is None or dtype is None:
            raise ValueError("get_initial_state: give the inputs, or batch_size and dtype")
        return self.zero_state(batch_size, dtype)


LayerRNNCell = RNNCell


def _zeros(dims: Sequence[Any], kind: Any) -> Any:
    return symbol(creation.zeros([static(d) for d in dims], kind))


def _depth(who: str, shape: Any) -> int:
    if shape is None or TensorShape(shape).rank is None or TensorShape(shape)[-1] is None:
        raise ShapeError(
            f"{who}: the last axis of the inputs sizes its variables, but it is unknown: {shape}",
            remedy="use set_shape, or reshape to a known size",
        )
    return int(TensorShape(shape)[-1] or 0)


def _units(who: str, num_units: Any) -> int:
    if num_units < 1:
        raise ValueError(f"{who}: num_units must be at least 1, got {num_units}")
    return int(num_units)


def joined(*xs: Any) -> Any:
    """Matrices side by side."""
    return lookup("Concat")(*xs, axis=1)


class BasicRNNCell(RNNCell):
    """h' = activation([x, h] @ kernel + bias); the output is h'."""

    _default_name = "basic_rnn_cell"

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, **more: Any
    ) -> None:
        super().__init__(**more)
        self._num_units = _units(type(self).__name__, num_units)
        self._activation = activation or lookup("Tanh")

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        depth = _depth(self.name, inputs_shape)
        self._kernel = self.add_variable("kernel", [depth + self._num_units, self._num_units])
        self._bias = self.add_variable("bias", [self._num_units], Zeros())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        found = bias_add(joined(inputs, state) @ self._kernel, self._bias)
        output = self._activation(found)
        return output, output


class GRUCell(RNNCell):
    """h' = u * h + (1 - u) * c, with the gates r, u and the candidate c; the output is h'.

    r, u = sigmoid([x, h] @ kernel + bias), c = activation([x, r * h] @ kernel + bias).

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014,
        arXiv:1406.1078.
    """

    _default_name = "gru_cell"

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._num_units = _units("GRUCell", num_units)
        self._activation = activation or lookup("Tanh")
        self._initializers = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        depth, n = _depth(self.name, inputs_shape) + self._num_units, self._num_units
        kernel, bias = self._initializers
        self._gates = (
            self.add_variable("gates/kernel", [depth, 2 * n], kernel),
            self.add_variable("gates/bias", [2 * n], bias or Constant(1.0)),
        )
        self._candidate = (
            self.add_variable("candidate/kernel", [depth, n], kernel),
            self.add_variable("candidate/bias", [n], bias or Zeros()),
        )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = lookup("Sigmoid")(bias_add(joined(inputs, state) @ self._gates[0], self._gates[1]))
        r, u = ops.split(gates, 2, axis=1)
        kernel, bias = self._candidate
        c = self._activation(bias_add(joined(inputs, r * state) @ kernel, bias))
        output = u * state + (1 - u) * c
        return output, output


class LSTMCell(RNNCell):
    """c' = f * c + i * activation(j), h' = o * activation(c'); the output is h'.

    i, j, f, o are the parts of [x, h] @ kernel + bias, of which i, o and f, plus `forget_bias`, go
    through a sigmoid.

    Args:
        num_units: the size of c.
        use_peepholes: whether the gates see c, too: times a number for each unit.
        cell_clip: c' is kept within plus and minus this.
        initializer: of the kernels, by default that of the scope.
        num_proj: the size of h, which is then a product with a kernel of its own.
        proj_clip: h' is kept within plus and minus this.
        forget_bias: added to the forget gate before its sigmoid.
        state_is_tuple: whether the state is an `LSTMStateTuple`; else [c, h] side by side.
        activation: by default tanh.

    Source: Sak, Senior and Beaufays, "Long short-term memory recurrent neural network architectures
        for large scale acoustic modeling", 2014.
    """

    _default_name = "lstm_cell"

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: Any = None,
        num_proj_shards: Any = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)
        self._num_units = _units(type(self).__name__, num_units)
        self._num_proj, self._clips = num_proj, (cell_clip, proj_clip)
        self._use_peepholes, self._initializer = use_peepholes, initializer
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = activation or lookup("Tanh")

    @property
    def state_size(self) -> Any:
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        n = self._num_units
        depth = _depth(self.name, inputs_shape) + self.output_size
        self._kernel = self.add_variable("kernel", [depth, 4 * n], self._initializer)
        self._bias = self.add_variable("bias", [4 * n], Zeros())
        if self._use_peepholes:
            self._peepholes = {
                gate: self.add_variable(f"w_{gate}_diag", [n], self._initializer) for gate in "fio"
            }
        if self._num_proj:
            shape = [n, self._num_proj]
            self._projection = self.add_variable("projection/kernel", shape, self._initializer)

    def _parts(self, state: Any) -> tuple[Any, Any]:
        if self._state_is_tuple:
            if not isinstance(state, tuple | list) or len(state) != 2:
                raise TypeError(f"{self.name}: the state is (c, h), got {state!r}")
            return state[0], state[1]
        n = self._num_units
        return state[:, :n], state[:, n:]

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = self._parts(state)
        gates = bias_add(joined(inputs, h) @ self._kernel, self._bias)
        i, j, f, o = ops.split(gates, 4, axis=1)
        f = f + tensor(self._forget_bias, f.dtype)
        sigmoid = lookup("Sigmoid")
        if self._use_peepholes:
            f, i = f + self._peepholes["f"] * c, i + self._peepholes["i"] * c
        new_c = sigmoid(f) * c + sigmoid(i) * self._activation(j)
        new_c = _within(new_c, self._clips[0])
        if self._use_peepholes:
            o = o + self._peepholes["o"] * new_c
        new_h = sigmoid(o) * self._activation(new_c)
        if self._num_proj:
            new_h = _within(new_h @ self._projection, self._clips[1])
        return new_h, (
            LSTMStateTuple(new_c, new_h) if self._state_is_tuple else joined(new_c, new_h)
        )


def _within(x: Any, limit: float | None) -> Any:
    return x if limit is None else ops.clip(x, -limit, limit)


class BasicLSTMCell(LSTMCell):
    """`LSTMCell` without peepholes, limits and projection."""

    _default_name = "basic_lstm_cell"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            **more,
        )
