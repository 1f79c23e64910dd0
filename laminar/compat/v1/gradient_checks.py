"""Gradients of a graph beside differences of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar import engine

from .sessions import Session


def _session() -> engine.Session:
    found = engine.get_default_session()
    return Session() if found is None else found


def _jacobians(
    session: engine.Session, x: Any, value: Any, y: Any, delta: float, feed: Mapping[Any, Any]
) -> tuple[Any, Any]:
    """(by gradients, by central differences), each (elements of x, elements of y)."""
    shape = tuple(int(d or 0) for d in y.shape)
    weights = engine.placeholder(y.dtype, shape)
    (dx,) = engine.gradients(y, [x], [weights])
    size = int(np.prod(shape))
    theory, numbers = np.zeros((value.size, size)), np.zeros((value.size, size))
    for column in range(size):
        one = np.zeros(size, y.dtype.numpy)
        one[column] = 1
        if dx is not None:
            fed = {**feed, x: value, weights: one.reshape(shape)}
            theory[:, column] = np.ravel(session.run(engine.identity(dx), fed))
    for row in range(value.size):
        ends = []
        for step in (delta, -delta):
            moved = value.copy()
            moved.flat[row] += step
            ends.append(np.ravel(session.run(y, {**feed, x: moved})).astype("float64"))
        numbers[row] = (ends[0] - ends[1]) / (2 * delta)
    return theory, numbers


def compute_gradient(
    x: Any,
    x_shape: Sequence[int] | Sequence[Sequence[int]],
    y: Any,
    y_shape: Sequence[int],
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Any:
    """The Jacobian of `y` by `x`, by its gradients and by differences.

    Args:
        x: a tensor, or a list of them.
        x_shape: its shape, or a list of shapes.
        y: a tensor of real numbers.
        y_shape: its shape.
        x_init_value: where; by default at random numbers in [0, 1).
        delta: half the distance of the values whose difference is taken.
        init_targets: operations that are run first.
        extra_feed_dict: what is fed besides.

    Returns:
        Two arrays (elements of x, elements of y), or a list of such pairs.
    """
    session = _session()
    if init_targets is not None:
        session.run(init_targets)
    several = isinstance(x, list | tuple)
    tensors = list(x) if several else [x]
    shapes: list[Any] = list(x_shape) if several else [x_shape]
    given = list(x_init_value) if several and x_init_value is not None else [x_init_value]
    values = given if len(given) == len(tensors) else [None] * len(tensors)
    rng = np.random.default_rng(0)
    fed = [
        np.array(rng.random(tuple(shape)) if value is None else value, tensor.dtype.numpy)
        for tensor, shape, value in zip(tensors, shapes, values, strict=True)
    ]
    found = []
    with session.graph.as_default():
        for i, tensor in enumerate(tensors):
            others = {t: v for j, (t, v) in enumerate(zip(tensors, fed, strict=True)) if j != i}
            feed = {**others, **(extra_feed_dict or {})}
            found.append(_jacobians(session, tensor, fed[i], y, delta, feed))
    return found if several else found[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> float:
    """The greatest difference of the two Jacobians of `compute_gradient`."""
    found = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    pairs = found if isinstance(found, list) else [found]
    return max((float(np.abs(a - b).max(initial=0)) for a, b in pairs), default=0.0)
