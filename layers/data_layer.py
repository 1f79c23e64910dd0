"""What layers that prepare data have in common: their inputs, and the data they learn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.state import Variable
from laminar.naming import who

from .layer import Layer
from .operation import without_training
from .symbolic import any_symbolic
from .tf_graph import call_in_tf_graph, holds_tf_symbols


class DataLayer(Layer):
    """A layer that takes raw data: tensors and arrays, and also numbers, strings, lists of them.

    In a graph of TensorFlow, as in `tf.data.Dataset.map`, it is an operation that calls the layer.
    """

    # TensorFlow's AutoGraph calls what has this attribute as it is.
    autograph_info__: ClassVar[Mapping[str, Any]] = {}

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; see `Layer.__call__`."""
        if holds_tf_symbols(inputs):
            return call_in_tf_graph(
                lambda arrays: self(arrays, *args, **kwargs),
                lambda symbols: self.compute_output_spec(
                    symbols, *args, **without_training(kwargs, self)
                ),
                inputs,
            )
        return super().__call__(self._as_input(inputs), *args, **kwargs)

    def _as_input(self, inputs: Any) -> Any:
        return as_input(inputs)


def as_input(value: Any) -> Any:
    """`value` as what a layer can be called on: lists, numbers and strings become tensors."""
    if isinstance(value, Tensor | Variable | np.ndarray) or any_symbolic(value):
        return value
    return convert_to_tensor(value)


def is_array(data: Any) -> bool:
    """Whether `data` is one array, rather than an iterable of batches."""
    return isinstance(data, np.ndarray | np.generic | Tensor | Variable) or not hasattr(
        data, "__iter__"
    )


def as_array(data: Any) -> np.ndarray[Any, Any]:
    """Data as a host array; strings are bytes objects."""
    found: np.ndarray[Any, Any] = convert_to_tensor(data, copy=False).numpy()
    return found


def as_list(values: Any) -> Any:
    """An argument with several values as a list, for the config."""
    if values is None:
        return None
    if hasattr(values, "numpy"):
        values = values.numpy()
    found = values.tolist() if isinstance(values, np.ndarray | np.generic) else list(values)
    return [v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for v in found]


def batches(data: Any, steps: int | None) -> Iterator[Any]:
    """The batches of an iterable, at most `steps` of them, without their targets."""
    for batch in islice(data, steps):
        yield batch[0] if isinstance(batch, tuple) else batch


def refuse_sparse(layer: Layer, sparse: bool) -> None:
    """Refuse sparse outputs.

    Raises:
        InvalidArgumentError: `sparse` is true.
    """
    if sparse:
        raise InvalidArgumentError(
            f"{who(layer)}: sparse must be false, there are dense tensors only",
            remedy="leave it out",
        )
