"""Barrier: values that are not there before others are; what is made of them comes later."""

from __future__ import annotations

from typing import Any

from ...graph import ANY, Array, OpView, Tensor, TensorSpec, resource
from .op_def import Grads
from .registry import define


@define("Barrier", dtypes={"tensors": ANY | {resource}}, same_dtype=False)
def barrier(*tensors: TensorSpec, outputs: int) -> tuple[TensorSpec, ...]:
    """The first `outputs` inputs as they are, once all inputs are there.

    No rewrite takes a result for its input, so what is computed from results is computed again
    although the same has been computed from the inputs.
    """
    return tuple(tensors[:outputs])


@barrier.reference
def _barrier_kernel(xp: Any, *arrays: Array, outputs: int) -> Any:
    return arrays[0] if outputs == 1 else arrays[:outputs]


@barrier.grad
def _barrier_grad(op: OpView, *dys: Tensor | None) -> Grads:
    return [*dys, *(None for _ in range(len(op.inputs) - len(dys)))]
