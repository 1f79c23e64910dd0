"""An axis whose number a run knows alone: it is brought to the front, where ops can name it."""

from __future__ import annotations

from typing import Any, TypeGuard

from ...graph import GraphTensor, Tensor
from ..core.entries import known_value
from .by_vectors import front_order, transpose_by
from .shape import shape_of


def is_open_axis(axis: Any) -> TypeGuard[GraphTensor]:
    """Whether an axis is a tensor whose value is not known while a graph is built."""
    return isinstance(known_value(axis), GraphTensor)


def to_front(x: Tensor, axis: Tensor) -> Tensor:
    """`x` with `axis` as its first axis, behind which the others keep their order."""
    return transpose_by(x, front_order(shape_of(x), axis))


def from_front(y: Tensor, x: Tensor, axis: Tensor, count: int = 1, more: int = 0) -> Tensor:
    """`y`, the first `count` axes of which stand for one of `x`, with these in its place.

    Args:
        y: a value for `to_front(x, axis)`.
        x: any tensor.
        axis: the axis.
        count: how many axes of `y` are to stand there.
        more: how many axes of `axis`'s numbering `x` has not.
    """
    order = front_order(shape_of(x), axis, count=count, more=more)
    return transpose_by(y, order, inverse=True)


def like(y: Tensor, x: Tensor) -> Tensor:
    """`y`, which is known to have the shape of `x`."""
    if isinstance(y, GraphTensor):
        y.set_shape(x.shape)
    return y
