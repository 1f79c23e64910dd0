"""Layers that prepare data inside of a graph of TensorFlow, as in `tf.data.Dataset.map`.

TensorFlow is never imported here: where one of its tensors comes, the program has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.tree import flatten, map_structure, pack_sequence_as

from .symbolic import KerasTensor


def holds_tf_symbols(values: Any) -> bool:
    """Whether some of the values are symbolic tensors of TensorFlow."""
    tf = sys.modules.get("tensorflow")
    is_symbolic = getattr(tf, "is_symbolic_tensor", None)
    return is_symbolic is not None and any(is_symbolic(value) for value in flatten(values))


def call_in_tf_graph(call: Callable[[Any], Any], infer: Callable[[Any], Any], inputs: Any) -> Any:
    """An operation of TensorFlow that calls a layer when the graph runs.

    Args:
        call: the layer's, on arrays.
        infer: gives the specs of what it gives, from symbolic tensors of laminar.
        inputs: tensors of TensorFlow, or a structure of them.

    Returns:
        Tensors of TensorFlow, whose shapes are known as far as `infer` knows them.
    """
    tf: Any = sys.modules["tensorflow"]
    given = flatten(inputs)
    outputs = infer(map_structure(_symbol, inputs))
    specs = flatten(outputs)

    def compute(*arrays: Any) -> list[Any]:
        found = flatten(call(pack_sequence_as(inputs, arrays)))
        return [np.asarray(value.numpy()) for value in found]

    made = tf.numpy_function(compute, given, [tf.as_dtype(str(spec.dtype)) for spec in specs])
    for tensor, spec in zip(made, specs, strict=True):
        tensor.set_shape(tuple(spec.shape))
    return pack_sequence_as(outputs, made)


def _symbol(tensor: Any) -> KerasTensor:
    return KerasTensor(tuple(tensor.shape), tensor.dtype.name)
