"""Gradients of tensors whose number of axes is known at run time only: those of known ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine import (
    GradientTape,
    Graph,
    Session,
    TensorSpec,
    function,
    gradients,
    placeholder,
)

X = np.arange(1.0, 7.0, dtype="float32").reshape(2, 3) / 4
W = np.array([2.0, -1.0, 0.5], "float32")

CASES: dict[str, Callable[[Any], Any]] = {
    "product": lambda x: x * x,
    "broadcast": lambda x: x * W + 1.0,
    "repeated": lambda x: W * ops.sum(x, axis=1, keepdims=True),
    "where": lambda x: ops.where(x > 0.6, x * 3.0, ops.minimum(x, W)),
    "sum": lambda x: ops.sum(x) * 2.0,
    "sum-of-an-axis": lambda x: ops.square(ops.sum(x, axis=0)),
    "sum-of-the-last": lambda x: ops.square(ops.sum(x, axis=-1)),
    "mean": lambda x: ops.square(ops.mean(x, axis=1)),
    "mean-of-all": lambda x: ops.square(ops.mean(x)),
    "variance": lambda x: ops.var(x, axis=0) * 2.0,
    "max": lambda x: ops.max(x, axis=1) * 2.0,
    "logsumexp": lambda x: ops.logsumexp(x, axis=0),
    "softmax": lambda x: ops.softmax(x) * W,
    "reshape": lambda x: ops.square(ops.reshape(x, [-1])),
    "expand": lambda x: ops.expand_dims(x, 0) * W,
    "transpose": lambda x: ops.matmul(ops.transpose(x), x),
    "matmul": lambda x: ops.matmul(x, ops.reshape(W, (3, 1))),
    "concatenate": lambda x: ops.concatenate([x, x * 2.0], axis=0),
    "stack": lambda x: ops.stack([x, x * 2.0]),
    "cumsum": lambda x: ops.square(ops.cumsum(x, axis=0)),
}


def expected(fn: Callable[[Any], Any], twice: bool) -> Any:
    x = ops.convert_to_tensor(X)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        dx = tape.gradient(y, x)
        total = ops.sum(dx * dx)
    return outer.gradient(total, x, unconnected_gradients="zero") if twice else dx


@pytest.mark.parametrize("fn", CASES.values(), ids=CASES.keys())
def test_in_a_graph(fn: Callable[[Any], Any]) -> None:
    with Graph().as_default(), Session() as session:
        x = placeholder("float32")
        (dx,) = gradients(fn(x), [x])
        assert dx is not None
        (ddx,) = gradients(ops.sum(dx * dx), [x], unconnected="zero")
        found = session.run([dx, ddx], {x: X})
    np.testing.assert_allclose(found[0], expected(fn, False), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], expected(fn, True), rtol=1e-5, atol=1e-5)


def test_in_a_function() -> None:
    @function(input_signature=[TensorSpec(None, "float32")])
    def slope(x: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(x)
            y = ops.square(ops.sum(x * W, axis=-1))
        return tape.gradient(y, x)

    for x in (X, X[0], np.stack([X, X])):
        want = 2 * np.sum(x * W, axis=-1, keepdims=True) * W
        np.testing.assert_allclose(slope(x), want, rtol=1e-5)
