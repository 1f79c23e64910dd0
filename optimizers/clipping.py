"""Limits on the size of gradients. Gradients that are None stay None.

Norms are computed in float32 at least: the squares of float16 gradients overflow early.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.gradients import CombinedSlices, mapped
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.lattice import result_type
from laminar.typing import TensorLike

from .checks import positive


def clip_by_value(gradients: Sequence[Any], limit: float) -> list[Any]:
    """Each element within [-limit, limit].

    Raises:
        InvalidArgumentError: `limit` is not positive.

    Examples:
        >>> laminar.optimizers.clip_by_value([ops.array([3.0, -0.5])], 1.0)
        [Tensor([ 1. , -0.5], shape=(2,), dtype=float32)]
    """
    positive("clip_by_value", limit=limit)
    return [
        None if g is None else mapped(g, lambda x: ops.clip(x, -limit, limit)) for g in gradients
    ]


def clip_by_norm(gradients: Sequence[Any], limit: float) -> list[Any]:
    """Each gradient by itself: g * limit / max(|g|, limit), with |g| its Euclidean norm.

    Raises:
        InvalidArgumentError: `limit` is not positive.

    Examples:
        >>> laminar.optimizers.clip_by_norm([ops.array([3.0, 4.0])], 1.0)
        [Tensor([0.6, 0.8], shape=(2,), dtype=float32)]
    """
    positive("clip_by_norm", limit=limit)
    return [
        None if g is None else _scaled(g, limit / ops.maximum(norm(g), limit)) for g in gradients
    ]


def clip_by_global_norm(gradients: Sequence[Any], limit: float) -> list[Any]:
    """All gradients by one factor: g * limit / max(n, limit), with n their common norm.

    When n is not finite every result is NaN, so that the fault is seen.

    Raises:
        InvalidArgumentError: `limit` is not positive.

    Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks",
        2013, arXiv:1211.5063, algorithm 1.

    Examples:
        >>> laminar.optimizers.clip_by_global_norm([ops.array([3.0]), ops.array([4.0])], 1.0)
        [Tensor([0.6], shape=(1,), dtype=float32), Tensor([0.8], shape=(1,), dtype=float32)]
    """
    positive("clip_by_global_norm", limit=limit)
    if all(g is None for g in gradients):
        return list(gradients)
    n = global_norm(gradients)
    factor = ops.where(ops.isfinite(n), limit / ops.maximum(n, limit), math.nan)
    return [None if g is None else _scaled(g, factor) for g in gradients]


def norm(x: Tensor) -> Tensor:
    """sqrt(sum of x**2) over all elements, in float32 or float64."""
    return ops.sqrt(_sum_of_squares(x))


def global_norm(xs: Sequence[Any]) -> Tensor:
    """The norm of all tensors together, as if they were one vector; 0 for none.

    Examples:
        >>> laminar.optimizers.global_norm([ops.array([3.0]), ops.array([4.0])])
        Tensor(5., shape=(), dtype=float32)
    """
    return ops.sqrt(sum((_sum_of_squares(x) for x in xs if x is not None), ops.zeros(())))


def _sum_of_squares(x: Tensor) -> Tensor:
    x = ops.convert_to_tensor(x.values if isinstance(x, CombinedSlices) else x)
    return ops.sum(ops.square(ops.cast(x, result_type(x.dtype, "float32"))))


def _scaled(g: TensorLike, factor: Tensor) -> Any:
    def scale(x: TensorLike) -> Any:
        x = ops.convert_to_tensor(x)
        return x * ops.cast(factor, x.dtype)

    return mapped(g, scale)
