"""StackedRNNCells: several cells as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.typing import Shape

from .layer import Layer
from .layer_options import LayerOptions


def check_cell(cell: Any, who: str) -> None:
    """Check that something is a cell.

    Raises:
        InvalidArgumentError: it has no `call`, or no `state_size`.
    """

    def refuse(what: str) -> NoReturn:
        raise InvalidArgumentError(
            f"{who}: a cell has `call` and `state_size`, {what}: {cell!r}",
            remedy="pass LSTMCell(units), or a layer with call(inputs, states) and state_size",
        )

    if isinstance(cell, type):
        refuse("got a class")
    for name in ("call", "state_size"):
        if not hasattr(cell, name):
            refuse(f"this one has no `{name}`")


class StackedRNNCells(Layer):
    """Several cells as one: each takes the output of the one before.

    Args:
        cells: the cells, in order.

    Shapes:
        inputs: (batch, features), states: for each cell its own -> (output, new states)

    Raises:
        InvalidArgumentError: one is no cell.

    Examples:
        >>> cell = layers.StackedRNNCells([layers.LSTMCell(4), layers.LSTMCell(2)])
        >>> layers.RNN(cell)(np.zeros((2, 5, 3))).shape
        (2, 2)
    """

    def __init__(self, cells: Sequence[Any], **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        for cell in cells:
            check_cell(cell, who(self))
        self.cells = list(cells)

    @property
    def state_size(self) -> list[Any]:
        """The sizes of the states of each cell."""
        return [cell.state_size for cell in self.cells]

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        return _output_size(self.cells[-1])

    def build(self, input_shape: Shape) -> None:
        for cell in self.cells:
            if isinstance(cell, Layer) and not cell.built:
                cell.build(input_shape)
            input_shape = (input_shape[0], _output_size(cell))

    def get_initial_state(self, batch_size: int | Tensor | None = None) -> list[Any]:
        """The states of each cell before the first step."""
        return [_initial_state(cell, batch_size, self.compute_dtype) for cell in self.cells]

    def call(
        self, inputs: Tensor, states: Sequence[Any], training: bool = False, **kwargs: Any
    ) -> Any:
        new_states = []
        for cell, own in zip(self.cells, states, strict=True):
            several = isinstance(own, list | tuple)
            options = dict(kwargs)
            if isinstance(cell, Layer) and "training" in cell._laminar_call_parameters:
                options["training"] = training
            compute = cell if callable(cell) else cell.call
            inputs, found = compute(inputs, list(own) if several else [own], **options)
            new_states.append(found if several else found[0])
        return inputs, new_states

    def get_config(self) -> dict[str, Any]:
        cells = [serialize_keras_object(cell) for cell in self.cells]
        return super().get_config() | {"cells": cells}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make cells from what `get_config` gave."""
        cells = [deserialize_keras_object(cell, custom_objects) for cell in config["cells"]]
        return super().from_config({**config, "cells": cells})


def _output_size(cell: Any) -> Any:
    found = getattr(cell, "output_size", None)
    if found is None:
        size = cell.state_size
        found = size[0] if isinstance(size, list | tuple) else size
    return found


def _initial_state(cell: Any, batch_size: int | Tensor | None, dtype: str) -> Any:
    if hasattr(cell, "get_initial_state"):
        return cell.get_initial_state(batch_size=batch_size)
    if isinstance(cell.state_size, list | tuple):
        return [ops.zeros((batch_size, size), dtype=dtype) for size in cell.state_size]
    return ops.zeros((batch_size, cell.state_size), dtype=dtype)
