"""Ops whose shape is a vector that is known at run time only, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.ops.array.broadcast import broadcast_to_shape, sum_to_shape
from laminar.engine.ops.array.shape import reshape_to_shape
from laminar.engine.ops.math.arithmetic import multiply
from laminar.engine.ops.math.reduce import reduce_sum

from ..harness import check_op

X = np.random.default_rng(0).normal(size=(2, 1, 3))


def summed(x: Any, shape: Any) -> Any:
    kept = (1,) * (x.ndim - len(shape)) + tuple(shape)
    axes = tuple(a for a, n in enumerate(kept) if n == 1 and x.shape[a] != 1)
    return x.sum(axis=axes, keepdims=True).reshape(tuple(shape))


CASES = [
    pytest.param(broadcast_to_shape, np.broadcast_to, X, (4, 2, 5, 3), id="broadcast"),
    pytest.param(broadcast_to_shape, np.broadcast_to, X[0, 0, 0], (2,), id="broadcast-number"),
    pytest.param(sum_to_shape, summed, X, (1, 3), id="sum"),
    pytest.param(sum_to_shape, summed, X, (), id="sum-to-number"),
    pytest.param(reshape_to_shape, np.reshape, X, (3, 2), id="reshape"),
]


@pytest.mark.parametrize(("op", "reference", "x", "shape"), CASES)
def test_op(op: Any, reference: Any, x: Any, shape: tuple[int, ...]) -> None:
    vector = np.array(shape, np.int64)
    check_op(op, lambda a, s: np.array(reference(a, tuple(s.tolist()))), [x, vector])


@pytest.mark.parametrize("axis", [0, -1, (0, 2)])
def test_the_gradient_of_a_sum_of_unknown_rank(axis: Any) -> None:
    with engine.Graph().as_default() as graph:
        x = engine.placeholder("float64", engine.unknown_shape(), name="x")
        weights = engine.placeholder("float64", engine.unknown_shape(), name="weights")
        y = reduce_sum(multiply(x, x), axis)
        (dx,) = engine.gradients(multiply(y, weights), [x])
    given = np.random.default_rng(1).normal(size=X.sum(axis=axis).shape)
    with engine.Session(graph=graph) as session:
        found = session.run(dx, {x: X, weights: given})
    np.testing.assert_allclose(found, 2 * X * np.expand_dims(given, axis), rtol=1e-12)
