"""A step of training, evaluation or prediction as one traced function.

The batch dimension is unknown in the trace, so a short last batch or another batch size runs the
same graph. `_concrete[form]` is the graph for batches of one form (structure, dtypes, sizes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.functions import ConcreteFunction, Function
from laminar.engine.graph import TensorSpec
from laminar.tree import flatten, map_structure


class Step:
    """`step(batch)` on tensors: traced once for each form of batch, or run op by op.

    Args:
        step: what a batch goes through.
        eager: whether to run it op by op, for debugging.
    """

    def __init__(self, step: Callable[[Any], Any], *, eager: bool) -> None:
        self._step = step
        self._function = None if eager else Function(_named(step))
        self._concrete: dict[Any, ConcreteFunction] = {}

    def __call__(self, batch: Any) -> Any:
        """Run the step."""
        if self._function is None:
            return self._step(batch)
        leaves = flatten(batch)
        form = tuple(None if t is None else (t.dtype, t.shape[1:]) for t in leaves)
        concrete = self._concrete.get(form)
        if concrete is None or len(leaves) != len(form):
            concrete = self._function.concrete(map_structure(batch_spec, batch))
            self._concrete[form] = concrete
        return concrete.pack(concrete.call_flat([t for t in leaves if t is not None]))


def batch_spec(tensor: Any) -> Any:
    """The spec of a batch of any size."""
    if tensor is None:
        return None
    return TensorSpec((None, *tensor.shape[1:]), tensor.dtype)


def _named(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(batch: Any) -> Any:
        return step(batch)

    run.__name__ = getattr(step, "__name__", "step")
    return run
