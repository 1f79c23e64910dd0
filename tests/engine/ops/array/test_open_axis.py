"""Axes whose numbers a run knows alone: ops give what NumPy gives for the number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import LaminarError

X = np.random.default_rng(0).normal(size=(2, 4, 6))
PLACES = np.array([[1, 0], [0, 1]])

CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, int], Any]]] = {
    "argmax": (lambda x, a: ops.argmax(x, axis=a), lambda x, a: np.argmax(x, a)),
    "argmin": (
        lambda x, a: ops.argmin(x, axis=a, keepdims=True),
        lambda x, a: np.argmin(x, a, keepdims=True),
    ),
    "cumsum": (lambda x, a: ops.cumsum(x, axis=a), lambda x, a: np.cumsum(x, a)),
    "cumprod": (lambda x, a: ops.cumprod(x, axis=a), lambda x, a: np.cumprod(x, a)),
    "expand_dims": (lambda x, a: ops.expand_dims(x, a), lambda x, a: np.expand_dims(x, a)),
    "squeeze": (
        lambda x, a: ops.squeeze(ops.sum(x, axis=a, keepdims=True), axis=a),
        lambda x, a: np.sum(x, a),
    ),
    "flip": (lambda x, a: ops.flip(x, a), lambda x, a: np.flip(x, a)),
    "concatenate": (
        lambda x, a: ops.concatenate([x, x * 2, x], axis=a),
        lambda x, a: np.concatenate([x, x * 2, x], a),
    ),
    "stack": (lambda x, a: ops.stack([x, -x], axis=a), lambda x, a: np.stack([x, -x], a)),
    "split": (lambda x, a: ops.split(x, 2, axis=a), lambda x, a: np.split(x, 2, a)),
    "take": (lambda x, a: ops.take(x, [1, 0, 1], axis=a), lambda x, a: np.take(x, [1, 0, 1], a)),
    "take_one": (lambda x, a: ops.take(x, 1, axis=a), lambda x, a: np.take(x, 1, a)),
    "take_block": (lambda x, a: ops.take(x, PLACES, axis=a), lambda x, a: np.take(x, PLACES, a)),
}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, native: bool) -> None:
    ours, numpys = CASES[name]
    f = eng.function(ours, jit_compile=native)
    for axis in range(-3, 3):
        found = f(ops.convert_to_tensor(X, "float64"), ops.convert_to_tensor(axis))
        expected = numpys(X, axis)
        if not isinstance(expected, list):
            found, expected = [found], [expected]
        for y, e in zip(found, expected, strict=True):
            assert y.shape == e.shape
            np.testing.assert_allclose(y, e, rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith("arg")])
def test_gradients(name: str) -> None:
    """Against those for axes that are known."""
    ours, _ = CASES[name]
    f = eng.function(ours)
    x = ops.convert_to_tensor(X, "float64")

    def slope(fn: Callable[[Any, Any], Any], axis: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = fn(x, axis)
            parts = y if isinstance(y, list | tuple) else [y]
            loss = sum(ops.sum(p * p * (i + 2.0)) for i, p in enumerate(parts))
        return tape.gradient(loss, x)

    for axis in (0, 2, -2):
        found = slope(f, ops.convert_to_tensor(axis))
        np.testing.assert_allclose(found, slope(ours, axis), rtol=1e-9)


def test_shapes_are_known_as_far_as_they_can_be() -> None:
    shapes = []

    @eng.function
    def f(x: Any, axis: Any) -> Any:
        y = ops.cumsum(x, axis)
        shapes.extend([tuple(y.shape), ops.expand_dims(x, axis).shape.rank])
        return y

    f(ops.convert_to_tensor(X, "float64"), ops.convert_to_tensor(1))
    assert shapes == [(2, 4, 6), 4]


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_that_does_not_exist(axis: int) -> None:
    f = eng.function(lambda x, a: ops.cumsum(x, a))
    with pytest.raises(LaminarError, match=f"axis.*{axis}"):
        f(ops.convert_to_tensor(X, "float64"), ops.convert_to_tensor(axis))
