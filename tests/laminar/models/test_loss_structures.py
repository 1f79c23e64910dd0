"""Structures of losses and weights over structures of outputs."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.tree import flatten, map_structure

rng = np.random.default_rng(0)
X = rng.normal(size=(6, 3)).astype("float32")
Y = [rng.normal(size=(6, 1)).astype("float32") for _ in range(2)]
Pair = namedtuple("Pair", ["first", "second"])


def whole(y: Any, y_pred: Any) -> Any:
    """The greatest error of a structure, for each example."""
    errors = [ops.abs(a - b) for a, b in zip(flatten(y), flatten(y_pred), strict=True)]
    return ops.max(ops.concatenate(errors, -1), -1)


def two(make: Any) -> laminar.Model:
    """A model of two outputs, "p" and "q", in a structure of them."""
    x = layers.Input((3,))
    return laminar.Model(x, make(layers.Dense(1, name="p")(x), layers.Dense(1, name="q")(x)))


def found_and_expected(model: laminar.Model, make: Any) -> tuple[dict[str, float], Any]:
    y = make(*Y)
    logs = model.evaluate(X, y, verbose=0, return_dict=True)
    p, q = (np.asarray(a) - b for a, b in zip(flatten(model(X)), flatten(y), strict=True))
    worst = np.maximum(np.abs(p), np.abs(q)).mean()
    return logs, (float((p**2).mean()), float(np.abs(q).mean()), float(worst))


STRUCTURES: list[Any] = [
    pytest.param(lambda p, q: [p, q], (whole, ("mse", "mae")), "p_q", "p", "q", id="list"),
    pytest.param(lambda p, q: (p, q), [whole, ["mse", "mae"]], "p_q", "p", "q", id="tuple"),
    pytest.param(Pair, [whole, Pair("mse", "mae")], "p_q", "p", "q", id="named"),
    pytest.param(
        lambda p, q: {"a": p, "b": q},
        [whole, {"a": "mse", "b": ["mae"]}],
        "a_b",
        "a",
        "b",
        id="dict",
    ),
    pytest.param(
        lambda p, q: {"c": (p, q)}, {"c": [whole, ("mse", "mae")]}, "c", "c/p", "c/q", id="deep"
    ),
]


@pytest.mark.parametrize(("make", "loss", "both", "first", "second"), STRUCTURES)
def test_losses_of_parts_and_of_the_whole(
    make: Any, loss: Any, both: str, first: str, second: str
) -> None:
    model = two(make)
    model.compile("sgd", loss=loss)
    logs, (mse, mae, worst) = found_and_expected(model, make)
    assert set(logs) == {"loss", *(f"{name}_loss" for name in (both, first, second))}
    assert logs[f"{first}_loss"] == pytest.approx(mse, rel=1e-5)
    assert logs[f"{second}_loss"] == pytest.approx(mae, rel=1e-5)
    assert logs[f"{both}_loss"] == pytest.approx(worst, rel=1e-5)
    assert logs["loss"] == pytest.approx(mse + mae + worst, rel=1e-5)
    weights = iter([2.0, 3.0, 5.0])
    model.compile("sgd", loss=loss, loss_weights=map_structure(lambda _: next(weights), loss))
    logs, _ = found_and_expected(model, make)
    assert logs["loss"] == pytest.approx(3 * mse + 5 * mae + 2 * worst, rel=1e-5)


@pytest.mark.parametrize(
    "loss", ["mse", ["mse"], {"p": "mse"}, {"p": ["mse"]}], ids=["one", "list", "dict", "deep"]
)
def test_ways_to_write_one_loss(loss: Any) -> None:
    x = layers.Input((3,))
    p = layers.Dense(1, name="p")(x)
    for outputs in (p, [p], {"p": p}):
        model = laminar.Model(x, outputs)
        model.compile("sgd", loss=loss)
        logs = model.evaluate(X, Y[0], verbose=0, return_dict=True)
        expected = float(((np.asarray(flatten(model(X))[0]) - Y[0]) ** 2).mean())
        assert logs == {"loss": pytest.approx(expected, rel=1e-5)}


def test_several_losses_of_one_output() -> None:
    x = layers.Input((3,))
    model = laminar.Model(x, layers.Dense(1)(x))
    model.compile("sgd", loss=["mse", "mae"], loss_weights=[0.5, 2.0])
    logs = model.evaluate(X, Y[0], verbose=0, return_dict=True)
    error = np.asarray(model(X)) - Y[0]
    assert logs["mse_loss"] == pytest.approx(float((error**2).mean()), rel=1e-5)
    assert logs["mae_loss"] == pytest.approx(float(np.abs(error).mean()), rel=1e-5)
    expected = 0.5 * logs["mse_loss"] + 2 * logs["mae_loss"]
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)


def keyed(p: Any, q: Any) -> Any:
    return {"a": p, "b": q}


def listed(p: Any, q: Any) -> Any:
    return [p, q]


MISFITS: list[Any] = [
    (keyed, {"a": "mse", "c": "mae"}, None, NotFoundError, "the output has no 'c', it has a, b"),
    (
        listed,
        {"p": "mse", "c": "mae"},
        None,
        InvalidArgumentError,
        "no output is named 'c'; .* p, q",
    ),
    (listed, ["mse"] * 3, None, InvalidArgumentError, "one for each output .* got 3"),
    (listed, ["mse"] * 2, [1.0, [2.0]], InvalidArgumentError, "expected a number for a loss"),
    (
        listed,
        [["mse", "mae"], "mse"],
        [[1.0], 2.0],
        InvalidArgumentError,
        "expected 2 entries, one",
    ),
]


@pytest.mark.parametrize(("make", "loss", "weights", "error", "message"), MISFITS)
def test_structures_that_do_not_fit(
    make: Any, loss: Any, weights: Any, error: Any, message: str
) -> None:
    model = two(make)
    model.compile("sgd", loss=loss, loss_weights=weights)
    with pytest.raises(error, match=message):
        model.evaluate(X, make(*Y), verbose=0)


def test_one_sample_weight_for_several_outputs() -> None:
    model = two(listed)
    model.compile("sgd", loss=(whole, (None, None)))
    w = np.array([1, 0, 0, 0, 0, 0], "float32")
    found = model.evaluate(X, Y, sample_weight=w, verbose=0)
    expected = max(abs(np.asarray(p)[0, 0] - y[0, 0]) for p, y in zip(model(X), Y, strict=True))
    assert found == pytest.approx(expected / 6, rel=1e-5)
    with pytest.raises(InvalidArgumentError, match="have different weights"):
        model.evaluate(X, Y, sample_weight=[w, w + 1], verbose=0)


class AddIfGiven(layers.Layer):
    def call(self, x: Any, y: Any = None) -> Any:
        return x if y is None else x + y


@pytest.mark.parametrize("given", [True, False])
def test_optional_inputs(given: bool) -> None:
    x, y = layers.Input((3,), name="x"), layers.Input((3,), name="y", optional=True)
    model = laminar.Model({"x": x, "y": y}, layers.Dense(1)(AddIfGiven()(x, y)))
    model.compile("sgd", "mse")
    data = {"y": X if given else None, "x": X}
    model.fit(data, Y[0], verbose=0, batch_size=3)
    expected = model(data)
    np.testing.assert_allclose(model.predict(data, verbose=0), expected, rtol=1e-5, atol=1e-6)
    batches = [({k: v if v is None else v[i : i + 3] for k, v in data.items()},) for i in (0, 3)]
    np.testing.assert_allclose(
        model.predict(iter(batches), verbose=0), expected, rtol=1e-5, atol=1e-6
    )
    assert model.evaluate(data, Y[0], verbose=0) > 0


def test_inputs_that_nothing_uses_are_in_the_config() -> None:
    x, y = layers.Input((3,), name="x"), layers.Input((3,), name="y")
    model = laminar.Model({"x": x, "y": y}, x * 2)
    again = type(model).from_config(model.get_config())
    np.testing.assert_array_equal(again({"x": X, "y": X}), 2 * X)


class Twice(laminar.Model):
    """Two outputs that nobody named."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(1)

    def call(self, x: Any) -> Any:
        return [self.dense(x), self.dense(x)]


def test_outputs_without_names_are_called_after_losses_and_metrics() -> None:
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    model = Twice()
    model.compile("sgd", ["mean_squared_error", "mae"], metrics=[["mae"], ["mae"]])
    logs = model.fit(x, [y, y], verbose=0).history
    assert list(logs) == ["loss", "mean_squared_error_loss", "mae_loss", "mae", "mae_1"]
    model.compile("sgd", ["mse", "mse"])
    assert list(model.fit(x, [y, y], verbose=0).history) == ["loss", "mse_loss", "mse_1_loss"]


class Split(laminar.Model):
    """One output, of which the loss makes two."""

    def __init__(self) -> None:
        x = layers.Input((3,))
        super().__init__(inputs=x, outputs=layers.Dense(1, name="a")(x))

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        return super().compute_loss(x, y, [y_pred, 2 * y_pred], sample_weight, training)


def test_a_loss_of_other_outputs_than_those_of_the_model() -> None:
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    model = Split()
    model.compile("sgd", ["mse", "mae"])
    value = float(model.predict(x, verbose=0)[0, 0])
    logs = model.fit(x, (y, y), verbose=0).history
    np.testing.assert_allclose(logs["mse_loss"], [(value - 1) ** 2], rtol=1e-5)
    np.testing.assert_allclose(logs["mae_loss"], [abs(2 * value - 1)], rtol=1e-5)
