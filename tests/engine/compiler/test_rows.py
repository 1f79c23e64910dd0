"""Rows as native code, those that are written out and those in loops: values beside NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.target import llvm
from laminar.engine.graph import TensorSpec
from tests.engine.ops.native import every_cluster

Array = np.ndarray[Any, Any]

LENGTHS = (1, 2, 7, 10, 15, 16, 17, 33, 64, 100, 128, 129, 200)
rng = np.random.default_rng(0)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    found: Array = e / e.sum(-1, keepdims=True)
    return found


def normalized(x: Array) -> Array:
    deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    found: Array = (x - x.mean(-1, keepdims=True)) / deviation
    return found


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "softmax": (ops.softmax, softmax),
    "log_softmax": (ops.log_softmax, lambda x: np.log(softmax(x))),
    "normalization": (lambda x: ops.layer_normalization(x, epsilon=1e-3), normalized),
    "sum": (lambda x: ops.sum(x, -1), lambda x: x.sum(-1)),
    "norm": (lambda x: ops.sqrt(ops.sum(x * x, -1)), lambda x: np.sqrt((x * x).sum(-1))),
    "max": (lambda x: ops.max(x, -1), lambda x: x.max(-1)),
    "argmax": (lambda x: ops.argmax(x, -1), lambda x: x.argmax(-1)),
    "argmin": (lambda x: ops.argmin(x, -1), lambda x: x.argmin(-1)),
}


@pytest.fixture(autouse=True)
def native() -> Any:
    with every_cluster():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_values(length: int, dtype: str) -> None:
    x = rng.normal(size=(3, 5, length)).astype(dtype) * 3
    for name, (function, expected) in CASES.items():
        found = np.asarray(laminar.function(function)(x))
        tolerance = 2e-6 if dtype == "float32" else 1e-14
        wanted = expected(x.astype("float64"))
        np.testing.assert_allclose(found, wanted, tolerance, tolerance * 10, err_msg=name)


@pytest.mark.parametrize("length", LENGTHS)
def test_gradients_of_normalized_rows(length: int) -> None:
    x, dy = rng.normal(size=(2, 6, length)).astype("float32")
    gamma = rng.normal(size=length).astype("float32")

    def gradients(x: Any, gamma: Any, dy: Any) -> Any:
        with laminar.GradientTape() as tape:
            tape.watch([x, gamma])
            y = ops.layer_normalization(x, gamma, epsilon=1e-3)
            loss = ops.sum(y * dy)
        return tape.gradient(loss, [x, gamma])

    dx, dgamma = laminar.function(gradients)(*map(ops.convert_to_tensor, (x, gamma, dy)))
    wide = x.astype("float64")
    n, deviation = normalized(wide), np.sqrt(wide.var(-1, keepdims=True) + 1e-3)
    g = (gamma * dy).astype("float64")
    wanted = (g - g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) / deviation
    np.testing.assert_allclose(dx, wanted, 2e-4, 2e-5)
    np.testing.assert_allclose(dgamma, (dy * n).sum(0), 1e-5, 1e-5)


@pytest.mark.parametrize("length", [5, 16, 40, 300])
def test_places_that_are_masked_have_no_share(length: int) -> None:
    x = rng.normal(size=(4, length)).astype("float32")
    is_seen = rng.random((4, length)) < 0.6
    is_seen[:, 0] = True
    found = np.asarray(
        laminar.function(lambda x, seen: ops.softmax(ops.where(seen, x, -1e9)))(x, is_seen)
    )
    assert not found[~is_seen].any()
    wanted = softmax(np.where(is_seen, x, -np.inf).astype("float64"))
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-7)


def test_specials_stay_in_their_rows() -> None:
    x = rng.normal(size=(4, 20)).astype("float32")
    x[1, 17] = np.nan
    x[2, 3] = np.inf
    found = np.asarray(laminar.function(ops.softmax)(x))
    assert np.isfinite(found[[0, 3]]).all()
    assert np.isnan(found[1]).all()
    assert np.isnan(found[2]).any()


def test_the_exponential_down_to_nothing() -> None:
    """To the last normal number; what is below counts as 0."""
    x = np.concatenate(
        [np.linspace(-110, -80, 4001), [-np.inf, -1e30, -1e9, np.nan, 0.0, 1.0]]
    ).astype("float32")
    found = np.asarray(laminar.function(ops.exp)(x))
    wanted = np.exp(x.astype("float64")).astype("float32")
    wanted[wanted < np.finfo("float32").smallest_normal] = 0
    steps = np.abs(found.view("int32").astype("int64") - wanted.view("int32"))
    assert steps[np.isfinite(x)].max() <= 1
    assert found[-6:-3].tolist() == [0.0, 0.0, 0.0]
    assert np.isnan(found[-3])


def test_one_code_for_rows_of_unknown_length() -> None:
    f = laminar.function(ops.softmax, input_signature=[TensorSpec([None, None], "float32")])
    for length in (*LENGTHS, 4 * llvm.vector_bytes()):
        x = rng.normal(size=(2, length)).astype("float32")
        np.testing.assert_allclose(f(x), softmax(x.astype("float64")), 1e-6, 1e-7)
