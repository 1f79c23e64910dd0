"""The values of all iterations of a loop as one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...graph import OpView, Tensor, TensorShape, TensorSpec
from ..array.shape import reshape
from ..core.op_def import Grads
from ..core.registry import define
from .structured import Ragged


@define("JoinIterations", dtypes={})
def join_iterations_op(x: TensorSpec) -> TensorSpec:
    """Along their first axis, in which they may differ: (n, k, q...) -> (n * k, q...)."""
    shape = x.shape
    return TensorSpec(TensorShape(None if shape.rank is None else [None, *shape[2:]]), x.dtype)


@join_iterations_op.reference
def _join_kernel(xp: Any, x: Any) -> Any:
    if isinstance(x, Ragged):
        return np.concatenate(x)
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


@define("SplitIterations", dtypes={})
def split_iterations(y: TensorSpec, like: TensorSpec) -> TensorSpec:
    """What `JoinIterations` of a tensor as `like` gives, in the parts of the iterations again."""
    return TensorSpec(like.shape, y.dtype)


@split_iterations.reference
def _split_kernel(xp: Any, y: Any, like: Any) -> Any:
    if isinstance(like, Ragged):
        return Ragged(np.split(y, np.cumsum([len(part) for part in like])[:-1]))
    return y.reshape(like.shape)


@join_iterations_op.grad
def _join_grad(op: OpView, dy: Tensor) -> Tensor:
    return split_iterations(dy, op.inputs[0])


@split_iterations.grad
def _split_grad(op: OpView, dx: Tensor) -> Grads:
    return join_iterations_op(dx), None


def join_iterations(x: Tensor) -> Tensor:
    """The values of iterations joined along their first axis.

    Args:
        x: (n, k, q...), as a loop stacks the values (k, q...) of its iterations; where k is not
            known, it may differ from one to the next.
    """
    if x.shape.rank is not None and x.shape[1] is not None:
        return reshape(x, [-1, *x.shape[2:]])
    return join_iterations_op(x)
