"""Tensors that are kept small."""

from __future__ import annotations

from typing import Any

from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.add_n import add_n

from .adapting import v1
from .maths import reduce_mean, reduce_sum
from .values import tensor

_maximum, _minimum, _sqrt = lookup("Maximum"), lookup("Minimum"), lookup("Sqrt")


@v1()
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any) -> Any:
    """Numbers no smaller and no larger than these."""
    x = tensor(t)
    return _maximum(_minimum(x, tensor(clip_value_max, x.dtype)), tensor(clip_value_min, x.dtype))


@v1()
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Any:
    """`t` scaled so that its norm over some axes is at most `clip_norm`."""
    x = tensor(t)
    limit = tensor(clip_norm, x.dtype)
    square = reduce_sum(x * x, axes, keepdims=True)
    return x * limit / _sqrt(_maximum(square, limit * limit))


@v1()
def clip_by_average_norm(t: Any, clip_norm: Any) -> Any:
    """`t` scaled so that its norm over its size is at most `clip_norm`."""
    x = tensor(t)
    limit = tensor(clip_norm, x.dtype)
    size = lookup("Cast")(lookup("Size")(x), dtype=x.dtype)
    return x * limit / _maximum(_sqrt(reduce_mean(x * x) / size), limit)


@v1()
def global_norm(t_list: Any) -> Tensor:
    """The norm of all numbers of some tensors; None among them counts for nothing."""
    found = [tensor(t) for t in t_list if t is not None]
    return _sqrt(add_n([reduce_sum(x * x) for x in found]))


@v1()
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None) -> Any:
    """(tensors scaled so that the norm of all is at most `clip_norm`, that norm before)."""
    norm = global_norm(t_list) if use_norm is None else tensor(use_norm)
    limit = tensor(clip_norm, norm.dtype)
    factor = limit / _maximum(norm, limit)
    return [None if t is None else tensor(t) * factor for t in t_list], norm
