"""A step of training, evaluation or prediction as one traced function.

The batch dimension is unknown in the trace, so a short last batch or another batch size runs the
same graph. `_concrete[form]` is the graph for batches of one form: structure, dtypes, sizes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.graph import Tensor, TensorSpec
from laminar.tree import map_structure


class Step:
    """`step(batch)` on tensors: traced once for each form of batch, or run op by op.

    Args:
        step: what a batch goes through.
        eager: whether to run it op by op, for debugging.
        native: whether to run native code where there is some.
    """

    def __init__(self, step: Callable[[Any], Any], *, eager: bool, native: bool = True) -> None:
        self._step = step
        self._native = native
        self._function = None if eager else Function(step)
        self._concrete: dict[Any, ConcreteFunction] = {}

    def __call__(self, batch: Any) -> Any:
        """Run the step."""
        if self._function is None:
            return self._step(batch)
        tensors: list[Tensor] = []
        form = _form(batch, tensors)
        concrete = self._concrete.get(form)
        if concrete is None:
            concrete = self._function.concrete(map_structure(batch_spec, batch))
            if self._native:
                importlib.import_module("laminar.engine.compiler")  # not before it is needed
                concrete.compiled = True
            self._concrete[form] = concrete
        return concrete.pack(concrete.call_flat(tensors))


def _form(value: Any, tensors: list[Tensor]) -> Any:
    """What a trace depends on; the tensors of `value` are added to `tensors`, as flattened."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return value.dtype, value.shape[1:]
    if isinstance(value, dict):
        return tuple((key, _form(value[key], tensors)) for key in sorted(value))
    if isinstance(value, list | tuple):
        return type(value), *(_form(part, tensors) for part in value)
    return None


def batch_spec(tensor: Any) -> Any:
    """The spec of a batch of any size."""
    if tensor is None:
        return None
    return TensorSpec((None, *tensor.shape[1:]), tensor.dtype)
