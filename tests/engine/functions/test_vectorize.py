"""vmap, against NumPy's results for each example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype("float32")
W = RNG.normal(size=(3, 2)).astype("float32")


def test_each_example_is_computed_by_itself() -> None:
    found = laminar.vmap(lambda row: ops.softmax(row) @ W)(X)
    e = np.exp(X - X.max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True) @ W, rtol=1e-5)


@pytest.mark.parametrize("in_axes", [(0, None), [0, None]])
def test_arguments_that_all_examples_share(in_axes: Any) -> None:
    found = laminar.vmap(lambda row, w: ops.matmul(row, w), in_axes=in_axes)(X, W)
    np.testing.assert_allclose(found, X @ W, rtol=1e-5)


def test_other_axes() -> None:
    found = laminar.vmap(lambda row: row * 2, in_axes=-1, out_axes=1)(X.T)
    assert found.shape == (3, 4)
    np.testing.assert_array_equal(found, 2 * X.T)


def test_structures() -> None:
    def f(pair: dict[str, Any], scale: Any, *, shift: Any) -> tuple[Any, Any]:
        return pair["a"] * pair["b"] * scale + shift, {"sum": ops.sum(pair["a"])}

    mapped = laminar.vmap(f, in_axes=({"a": 1, "b": None}, 0), out_axes=(1, 0))
    first, second = mapped({"a": X.T, "b": X[0]}, X[:, 0], shift=X)
    np.testing.assert_allclose(first, (X * X[0] * X[:, :1] + X).T, rtol=1e-6)
    np.testing.assert_allclose(second["sum"], X.sum(1), rtol=1e-6)


def test_a_gradient_for_each_example() -> None:
    def loss(w: Any, x: Any) -> Any:
        return ops.sum(ops.tanh(x @ w) ** 2)

    found = laminar.vmap(laminar.grad(loss), in_axes=(None, 0))(W, X)
    t = np.tanh(X @ W)
    expected = X[:, :, None] * (2 * t * (1 - t**2))[:, None, :]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_it_can_be_differentiated() -> None:
    w = laminar.Variable(W)
    with laminar.GradientTape() as tape:
        y = ops.sum(laminar.vmap(lambda row: ops.square(row @ w))(X))
    (dw,) = tape.gradient(y, [w])
    np.testing.assert_allclose(dw, 2 * X.T @ (X @ W), rtol=1e-4)


def test_inside_of_itself_and_of_a_function() -> None:
    @laminar.function
    def products(a: Any, b: Any) -> Any:
        return laminar.vmap(lambda x: laminar.vmap(lambda y: x * y)(b))(a)

    np.testing.assert_allclose(products(X[:, 0], X[:, 1]), np.outer(X[:, 0], X[:, 1]), rtol=1e-6)


def test_in_a_graph_with_a_session() -> None:
    with engine.Graph().as_default():
        x = engine.placeholder("float32", (None, 3))
        y = laminar.vmap(ops.sum)(x)
        with engine.Session() as session:
            np.testing.assert_allclose(session.run(y, {x: X}), X.sum(1), rtol=1e-6)


def test_no_examples() -> None:
    assert laminar.vmap(lambda row: ops.sum(row))(X[:0]).shape == (0,)


def test_it_traces_once_for_a_form() -> None:
    calls = []

    def f(row: Any) -> Any:
        calls.append(row)
        return row + 1

    mapped = laminar.vmap(f)
    mapped(X), mapped(X * 2)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("in_axes", "arguments", "error"),
    [
        pytest.param(0, (X, X[:2]), ShapeError, id="sizes"),
        pytest.param(0, (X, 1.0), ShapeError, id="scalar"),
        pytest.param((0, 2), (X, X), ShapeError, id="axis"),
        pytest.param(None, (X, X), InvalidArgumentError, id="nothing-mapped"),
        pytest.param((0,), (X, X), InvalidArgumentError, id="number"),
        pytest.param("rows", (X, X), InvalidArgumentError, id="kind"),
        pytest.param((0, {"a": 0}), (X, X), InvalidArgumentError, id="structure"),
    ],
)
def test_axes_that_do_not_fit(in_axes: Any, arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"vmap\(f\)"):
        laminar.vmap(f, in_axes=in_axes)(*arguments)


def f(a: Any, b: Any) -> Any:
    return a + b


def test_results_have_their_axis() -> None:
    with pytest.raises(InvalidArgumentError, match="out_axes"):
        laminar.vmap(f, out_axes=None)
