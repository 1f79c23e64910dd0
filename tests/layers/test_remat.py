"""`remat` and `RematScope`: models train as without them; layers compute again what is asked."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import RematScope, layers, ops, remat
from laminar.engine.errors import InvalidArgumentError
from laminar.layers.remat import RematMode, get_current_remat_mode

rng = np.random.default_rng(3)
X = rng.normal(size=(32, 10)).astype(np.float32)
Y = rng.normal(size=(32, 1)).astype(np.float32)


class Penalised(layers.Layer):
    """Adds losses in its call, and so does a layer in it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.dense = layers.Dense(10, activation="tanh", activity_regularizer="l2")

    def build(self, shape: Any) -> None:
        self.dense.build(shape)

    def call(self, x: Any) -> Any:
        y = self.dense(x)
        self.add_loss(0.1 * ops.sum(y * y))
        return y


def model(scope: Any) -> Any:
    laminar.set_random_seed(3)
    with nullcontext() if scope is None else scope:
        parts = [
            layers.Dense(10, activation="tanh", name="first"),
            layers.BatchNormalization(name="norm"),
            layers.Dropout(0.5, name="drop"),
            Penalised(name="penalised"),
            layers.Dense(1, name="last"),
        ]
    return laminar.Sequential([layers.Input((10,)), *parts])


SCOPES = [
    pytest.param({"mode": "full"}, id="full"),
    pytest.param({"mode": "activations"}, id="activations"),
    pytest.param({"mode": "larger_than", "output_size_threshold": 100}, id="larger_than"),
    pytest.param({"mode": "list_of_layers", "layer_names": ["norm", "penalised"]}, id="list"),
    pytest.param({"mode": None}, id="none"),
]


@pytest.mark.parametrize("options", SCOPES)
def test_gradients_and_losses_eagerly(options: dict[str, Any]) -> None:
    found = []
    for scope in (None, RematScope(**options)):
        m = model(scope)
        with laminar.GradientTape() as tape:
            loss = ops.mean(ops.square(m(X, training=True) - Y)) + sum(m.losses)
        gradients = tape.gradient(loss, m.trainable_variables)
        found.append([loss.numpy(), *(g.numpy() for g in gradients), *m.get_weights()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(b, a)


@pytest.mark.slow
@pytest.mark.parametrize("eagerly", [False, True])
@pytest.mark.parametrize("options", SCOPES)
def test_fit(options: dict[str, Any], eagerly: bool) -> None:
    found = []
    for scope in (None, RematScope(**options)):
        m = model(scope)
        m.compile("adam", "mse", run_eagerly=eagerly)
        history = m.fit(X, Y, epochs=2, batch_size=16, verbose=0, shuffle=False)
        found.append([np.asarray(history.history["loss"]), *m.get_weights()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often layers of a name are recomputed when a gradient is asked for."""
    script = importlib.import_module("laminar.engine.functions.remat").Script
    counts: dict[str, int] = {}
    gradient = script.gradient

    def counting(self: Any, outside: Any, dys: Any) -> Any:
        for entry in self.entries:
            kind = entry.definition.type
            counts[kind] = counts.get(kind, 0) + 1
        return gradient(self, outside, dys)

    monkeypatch.setattr(script, "gradient", counting)
    return counts


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"mode": "full"}, {"MatMul": 2, "Tanh": 2, "Exp": 1}, id="full"),
        pytest.param({"mode": "activations"}, {"Tanh": 2}, id="activations"),
        pytest.param({"output_size_threshold": 63}, {"MatMul": 1, "Tanh": 1, "Exp": 1}, id="63"),
        pytest.param({"output_size_threshold": 64}, {}, id="64"),
        pytest.param({"layer_names": ["b"]}, {"MatMul": 1, "Tanh": 1}, id="list"),
        pytest.param({"mode": None}, {}, id="none"),
    ],
)
def test_what_is_computed_again(
    counted: dict[str, int], options: dict[str, Any], expected: dict[str, int]
) -> None:
    if "layer_names" in options:
        options = {"mode": "list_of_layers", **options}
    if "output_size_threshold" in options:
        options = {"mode": "larger_than", **options}
    with RematScope(**options):
        x = layers.Input((4,))
        h = layers.Dense(8, activation="tanh", name="a")(x)
        h = ops.exp(h)
        y = layers.Dense(2, activation="tanh", name="b")(h)
    m = laminar.Model(x, y)
    with laminar.GradientTape() as tape:
        loss = ops.sum(m(np.ones((8, 4), np.float32)))
    assert all(g is not None for g in tape.gradient(loss, m.trainable_variables))
    kinds = ("MatMul", "Tanh", "Exp")
    assert {k: n for k, n in counted.items() if k in kinds} == expected


def test_scopes_nest_and_end() -> None:
    assert get_current_remat_mode() is None
    with RematScope(mode="larger_than", output_size_threshold=5):
        with RematScope(mode="list_of_layers", layer_names=["x"]):
            assert get_current_remat_mode() == RematMode("list_of_layers", 1024, ("x",))
        assert get_current_remat_mode() == RematMode("larger_than", 5, ())
        with pytest.raises(ZeroDivisionError), RematScope():
            raise ZeroDivisionError
        assert get_current_remat_mode() == RematMode("larger_than", 5, ())
    assert get_current_remat_mode() is None


def test_it_is_where_a_layer_is_made_that_counts(counted: dict[str, int]) -> None:
    dense = layers.Dense(2)
    with RematScope(), laminar.GradientTape() as tape:
        loss = ops.sum(dense(np.ones((1, 3), np.float32)))
    tape.gradient(loss, dense.trainable_variables)
    assert not counted


@pytest.mark.parametrize("in_function", [False, True])
def test_remat_of_a_layer_and_a_mask(in_function: bool) -> None:
    embed = layers.Embedding(5, 3, mask_zero=True)
    again = remat(embed)
    ids = np.array([[1, 2, 0]])

    def run() -> Any:
        y = again(ids)
        return y, y._keras_mask

    y, mask = (laminar.function(run) if in_function else run)()
    np.testing.assert_array_equal(mask.numpy(), [[True, True, False]])
    with laminar.GradientTape() as tape:
        masked = run()[0]
        loss = ops.sum(masked * masked)
    np.testing.assert_array_equal(masked._keras_mask.numpy(), [[True, True, False]])
    dense = ops.convert_to_numpy(tape.gradient(loss, embed.trainable_variables)[0])
    np.testing.assert_allclose(dense[[1, 2, 0]], 2 * y.numpy()[0], rtol=1e-6)


def test_losses_of_a_recomputed_function_have_gradients() -> None:
    layer = Penalised()
    layer.build((None, 10))
    gradients = []
    for f in (layer, remat(layer), remat(lambda x: layer(x))):
        with laminar.GradientTape() as tape:
            f(X)
            loss = sum(layer.losses)
        gradients.append([g.numpy() for g in tape.gradient(loss, layer.trainable_variables)])
    assert np.abs(gradients[0][0]).max() > 0
    for other in gradients[1:]:
        for a, b in zip(gradients[0], other, strict=True):
            np.testing.assert_array_equal(b, a)


def test_wrong_use() -> None:
    with pytest.raises(InvalidArgumentError, match="mode must be one of 'full', .* got 'all'"):
        RematScope(mode="all")
    with pytest.raises(InvalidArgumentError, match=r"write layer_names=\['a'\]"):
        RematScope(mode="list_of_layers", layer_names="a")
    with pytest.raises(InvalidArgumentError, match="expected a function or a layer, got 3"):
        remat(3)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgumentError, match="RematScope"):
        remat(layers.Dense(2))(layers.Input((3,)))


def test_a_layer_can_decide_by_itself(counted: dict[str, int]) -> None:
    class Choosy(layers.Dense):
        def rematerialized_call(self, layer_call: Any, *args: Any, **kwargs: Any) -> Any:
            assert layer_call == self.call
            return layer_call if args[0].shape[0] < 3 else remat(layer_call)

    layer = Choosy(2)
    for rows, expected in ((2, 0), (3, 1)):
        with laminar.GradientTape() as tape:
            loss = ops.sum(layer(np.ones((rows, 3), np.float32)))
        tape.gradient(loss, layer.trainable_variables)
        assert counted.get("MatMul", 0) == expected
