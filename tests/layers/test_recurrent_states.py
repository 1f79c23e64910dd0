"""Recurrent layers: what is dropped at each step, and states that outlive a call."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.models import Model, Sequential

from .harness import check_same_config
from .recurrent_cases import (
    X,
)
from .recurrent_checks import KINDS, check_equal

rng = np.random.default_rng(21)


@pytest.mark.parametrize(
    ("make", "features"),
    [
        (lambda **k: layers.SimpleRNN(6, **k), 4),
        (lambda **k: layers.LSTM(6, **k), 4),
        (lambda **k: layers.GRU(6, **k), 4),
        (lambda **k: layers.GRU(6, reset_after=False, **k), 4),
        (lambda **k: layers.RNN([layers.LSTMCell(5, **k), layers.GRUCell(6, **k)]), 4),
    ],
)
@pytest.mark.parametrize(
    "rates",
    [{"dropout": 0.5}, {"recurrent_dropout": 0.5}, {"dropout": 0.3, "recurrent_dropout": 0.3}],
)
def test_dropout(make: Any, features: int, rates: dict[str, float]) -> None:
    x = rng.normal(size=(40, 5, features)).astype(np.float32)
    layer, same = make(**rates, seed=3), make(**rates, seed=3)
    still = layer(x, training=False).numpy()
    same.build(x.shape)
    same.set_weights(layer.get_weights())
    first, second = layer(x, training=True).numpy(), layer(x, training=True).numpy()
    np.testing.assert_array_equal(layer(x).numpy(), still)
    assert (first != still).any()
    assert (first != second).any()
    np.testing.assert_array_equal(same(x, training=True).numpy(), first)

    traced = function(
        lambda x: same(x, training=True),
        input_signature=[TensorSpec((None, None, features), "float32")],
    )
    np.testing.assert_allclose(traced(x).numpy(), second, rtol=1e-4, atol=1e-5)
    assert (traced(x).numpy() != second).any()


def test_the_same_is_dropped_at_each_step() -> None:
    class Sum(layers.SimpleRNNCell):
        """What the inputs add at each step, without a state."""

        def step(self, projected: Any, states: list[Any], training: bool) -> list[Any]:
            return [projected]

    layer = layers.RNN(
        Sum(4, dropout=0.5, use_bias=False, kernel_initializer="identity", seed=1),
        return_sequences=True,
    )
    y = layer(np.ones((6, 5, 4), "float32"), training=True).numpy()
    assert set(np.unique(y)) == {0.0, 2.0}
    assert (y == y[:, :1]).all()

    cell = layers.LSTMCell(4, recurrent_dropout=0.5, seed=1)
    masks = cell.get_recurrent_dropout_mask(np.ones((6, 4), "float32")).numpy()
    assert masks.shape == (4, 6, 4)  # one for each gate
    assert (cell.get_recurrent_dropout_mask(None).numpy() == masks).all()
    cell.reset_recurrent_dropout_mask()
    again = cell.get_recurrent_dropout_mask(np.ones((6, 4), "float32")).numpy()
    assert (again != masks).any()
    assert cell.get_dropout_mask(np.ones((6, 4), "float32")) is None


def test_masks_drawn_in_a_trace_stay_there() -> None:
    cell = layers.GRUCell(3, dropout=0.5, seed=1)

    @function
    def step(x: Any) -> Any:
        return cell(x, [ops.zeros((3, 3))], training=True)[0]

    step(X[:, 0])
    y, _ = cell(X[:, 0], [ops.zeros((3, 3))], training=True)
    again, _ = cell(X[:, 0], [ops.zeros((3, 3))], training=True)
    np.testing.assert_array_equal(y, again)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_stateful_layers_go_on_where_they_ended(name: str) -> None:
    whole = getattr(layers, name)(2, return_sequences=True)
    expected = whole(X).numpy()
    parts = getattr(layers, name)(2, return_sequences=True, stateful=True)
    parts.build((3, None, 4))
    parts.set_weights(whole.get_weights())
    check_equal(parts(X[:, :2]), expected[:, :2])
    check_equal(parts(X[:, 2:]), expected[:, 2:])
    assert len(parts.weights) == len(whole.weights)
    parts.reset_state()
    check_equal(parts(X[:, :2]), expected[:, :2])
    traced = function(lambda x: parts(x), input_signature=[TensorSpec((3, None, 4), "float32")])
    check_equal(traced(X[:, 2:]), expected[:, 2:])
    parts.reset_states()
    check_equal(traced(X), expected)
    theirs = getattr(pytest.importorskip("keras").layers, name)(2, stateful=True)
    theirs(X)
    ours = getattr(layers, name)(2, stateful=True)
    ours(X)
    check_same_config(theirs, ours)


def layers_of(model: Any) -> Any:
    return model.layers


def test_stateful_layers_in_models() -> None:
    laminar.set_random_seed(1)
    model = Sequential(
        [
            layers.Input(batch_shape=(4, 5, 3)),
            layers.LSTM(2, stateful=True, return_sequences=True),
            layers.Bidirectional(layers.GRU(2, stateful=True)),
            layers.Dense(1),
        ]
    )
    model.compile("sgd", "mse")
    x, y = rng.normal(size=(8, 5, 3)).astype("f4"), rng.normal(size=(8, 1)).astype("f4")
    model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    lstm, both, _ = layers_of(model)
    first = model.predict(x[:4], verbose=0)
    assert (model.predict(x[:4], verbose=0) != first).any()
    lstm.reset_state()
    both.reset_state()
    assert all((s.numpy() == 0).all() for s in [*lstm.states, *both.states])
    with pytest.raises(InvalidArgumentError, match="size of the batch must be known"):
        layers.LSTM(2, stateful=True)(layers.Input((5, 3)))
    with pytest.raises(FailedPreconditionError, match="no state"):
        layers.Bidirectional(layers.GRU(2)).reset_state()


def test_states_as_symbolic_tensors() -> None:
    """An encoder and a decoder, as a functional model; it survives its config."""
    source, target = layers.Input((None, 4)), layers.Input((None, 3))
    encoder = layers.LSTM(2, return_state=True)
    decoder = layers.LSTM(2, return_sequences=True)
    _, h, c = encoder(source)
    y = decoder(target, initial_state=[h, c])
    model = Model([source, target], layers.Dense(1)(y))
    inputs = [X, rng.normal(size=(3, 6, 3)).astype(np.float32)]
    expected = model(inputs).numpy()
    assert expected.shape == (3, 6, 1)
    copy = Model.from_config(json.loads(json.dumps(model.get_config())))
    copy.set_weights(model.get_weights())
    np.testing.assert_allclose(copy(inputs), expected, rtol=1e-5, atol=1e-6)
    state = encoder(X)[1:]
    by_hand = model.layers[-1](decoder(inputs[1], initial_state=list(state)))
    np.testing.assert_allclose(by_hand, expected, rtol=1e-5, atol=1e-6)

    keras = pytest.importorskip("keras")
    theirs = keras.Model.from_config(model.get_config())
    theirs.set_weights(model.get_weights())
    np.testing.assert_allclose(expected, np.asarray(theirs(inputs)), rtol=1e-4, atol=1e-5)
