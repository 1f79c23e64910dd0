"""Recurrent layers: values, gradients, masks and configs agree with Keras's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.layers.masking import get_mask
from laminar.models import Sequential
from laminar.tree import flatten

from .harness import check_layer, check_same_config
from .recurrent_cases import (
    CASES,
    MASK,
    STATE,
    Case,
    X,
    described,
    factors_for,
    names_removed,
    weights_for,
)
from .recurrent_checks import KINDS, check_equal

rng = np.random.default_rng(21)
REFERENCE = json.loads(Path(__file__).with_name("recurrent_reference.json").read_text())
KERAS_WARNS = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def check_numbers(found: Any, expected: list[list[float]], atol: float = 2e-5) -> None:
    flat = [np.asarray(y).reshape(-1) for y in flatten(found)]
    assert [len(y) for y in flat] == [len(y) for y in expected]
    for ours, theirs in zip(flat, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_layers_agree_with_keras(case: Case) -> None:
    """Weights, configs, outputs and gradients."""
    expected = REFERENCE[case.name]
    layer = case.make(layers)
    layer(case.x, **case.last_call())
    assert described(layer) == expected["weights"]
    layer.set_weights(weights_for([tuple(w.shape) for w in layer.weights]))
    for name, call in case.calls().items():
        check_numbers(layer(case.x, **call), expected["outputs"][name])

    call = case.last_call()
    factors = factors_for([np.asarray(y) for y in flatten(layer(case.x, **call))])

    @function
    def gradients(x: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(x)
            ys = flatten(layer(x, **call))
            total = sum(ops.sum(y * f) for y, f in zip(ys, factors, strict=True))
        return tape.gradient(total, [*layer.trainable_variables, x])

    check_numbers(gradients(ops.convert_to_tensor(case.x)), expected["gradients"], 1e-4)
    mine, theirs = (
        names_removed(json.loads(json.dumps(config)))
        for config in (layers.serialize(layer), expected["config"])
    )
    assert mine == theirs
    copy = layers.deserialize(
        expected["config"] | {"config": with_names(expected["config"]["config"])}
    )
    assert names_removed(copy.get_config()) == names_removed(layer.get_config())


def pair(make: Any, x: Any, **call: Any) -> tuple[Any, Any]:
    """Keras's layer and ours, as made by a function of the module, with the same weights."""
    keras = pytest.importorskip("keras")
    theirs, ours = make(keras.layers), make(layers)
    theirs(x, **call)
    ours(x, **call)
    values = weights_for([tuple(w.shape) for w in theirs.weights])
    theirs.set_weights(values)
    ours.set_weights(values)
    return theirs, ours


def with_names(config: dict[str, Any]) -> dict[str, Any]:
    return {"name": "copy", **config}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kwargs", [{}, {"return_sequences": True}, {"go_backwards": True}])
def test_layers_do_what_layers_do(name: str, kwargs: dict[str, Any]) -> None:
    check_layer(getattr(layers, name), {"units": 2, **kwargs}, (3, 5, 4), tolerance=1e-5)


def test_layers_made_of_cells_do_what_layers_do() -> None:
    def rnn(**kwargs: Any) -> layers.RNN:
        return layers.RNN([layers.LSTMCell(3), layers.GRUCell(2)], **kwargs)

    check_layer(rnn, {}, (3, 5, 4), mixed=False, expected_output_shape=(3, 2))
    for mode in ("concat", "sum", "mul", "ave"):
        check_layer(
            lambda **kwargs: layers.Bidirectional(layers.GRU(2), **kwargs),
            {"merge_mode": mode},
            (3, 5, 4),
            mixed=False,
        )
    check_layer(
        lambda **kwargs: layers.TimeDistributed(layers.Dense(2), **kwargs),
        {},
        (3, 5, 4),
        mixed=False,
    )
    check_layer(
        layers.ConvLSTM2D,
        {"filters": 2, "kernel_size": 2, "strides": 2},
        (2, 3, 6, 5, 2),
        expected_output_shape=(2, 3, 2, 2),
        tolerance=1e-5,
    )


# Cells


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SimpleRNNCell", "LSTMCell", "GRUCell"])
def test_cells_agree_with_keras(name: str) -> None:
    states = [STATE, STATE * 2][: 2 if name == "LSTMCell" else 1]
    x = X[:, 0]
    theirs, ours = pair(lambda module: getattr(module, name)(2), x, states=states)
    check_equal(ours(x, states), theirs(x, states))
    y, after = ours(x, states)
    assert len(after) == len(states)
    check_same_config(theirs, ours)
    assert [tuple(s.shape) for s in ours.get_initial_state(7)] == [(7, 2)] * len(states)


class Minimal:
    """A cell that is no layer, and says as little as it may."""

    state_size = 4

    def call(self, inputs: Any, states: Any) -> Any:
        total = states[0] + inputs
        return total * 2, [total]


class Counting(layers.Layer):
    """A cell as users write it, with states and an output of different sizes."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.state_size = [4, 1]
        self.output_size = 2

    def build(self, input_shape: Any) -> None:
        self.w = self.add_weight((input_shape[-1], 2), "ones", name="w")

    def call(self, inputs: Any, states: Any, training: bool = False) -> Any:
        total, count = states
        after = (total + inputs, count + 1)
        return ops.matmul(after[0], self.w) / after[1] * (2 if training else 1), after


def test_cells_of_users() -> None:
    layer = layers.RNN(Minimal(), return_sequences=True, return_state=True)
    y, state = layer(X)
    np.testing.assert_allclose(y, 2 * X.cumsum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(state, X.sum(1), rtol=1e-5, atol=1e-5)

    layer = layers.RNN(Counting(), return_sequences=True, return_state=True)
    y, total, count = layer(X, mask=MASK)
    kept = np.where(MASK[..., None], X, 0)
    means = kept.cumsum(1).sum(-1) / np.maximum(MASK.cumsum(1), 1)
    np.testing.assert_allclose(y, np.repeat(means[..., None], 2, -1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(count.numpy()[:, 0], MASK.sum(1))
    np.testing.assert_allclose(total, kept.sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(layer(X, training=True)[0], 2 * layer(X)[0].numpy(), rtol=1e-5)
    symbol = layers.RNN(Counting())(layers.Input((None, 4)))
    assert tuple(symbol.shape) == (None, 2)


# Both directions


def test_bidirectional_with_its_own_backward_layer() -> None:
    ours = layers.Bidirectional(layers.LSTM(2), backward_layer=layers.GRU(3, go_backwards=True))
    ours(X)
    copy = layers.deserialize(json.loads(json.dumps(layers.serialize(ours))))
    copy.set_weights(ours.get_weights())
    check_equal(copy(X), ours(X))
    assert isinstance(copy.backward_layer, layers.GRU)

    weights = [w + 1 for w in ours.get_weights()]
    other = layers.Bidirectional(
        layers.LSTM(2), weights=weights, backward_layer=layers.GRU(3, go_backwards=True)
    )
    other(X)
    check_equal(other.get_weights(), weights)


# Steps of their own


@pytest.mark.slow
def test_time_distributed_takes_masks_and_statistics_step_by_step() -> None:
    x = rng.normal(size=(3, 4, 5, 4)).astype(np.float32)
    mask = rng.random((3, 4, 5)) < 0.6
    theirs, ours = pair(lambda module: module.TimeDistributed(module.LSTM(2)), x)
    check_equal(ours(x, mask=mask), theirs(x, mask=mask))

    theirs, ours = pair(lambda module: module.TimeDistributed(module.BatchNormalization()), X)
    values = [np.abs(w) for w in ours.get_weights()]
    theirs.set_weights(values)
    ours.set_weights(values)
    check_equal(ours(X, training=True), theirs(X, training=True))
    check_equal(ours.get_weights(), [w.value for w in theirs.weights])
    check_equal(ours(X), theirs(X))
    with pytest.raises(ShapeError, match="rank 3"):
        layers.TimeDistributed(layers.Dense(2))(np.ones((2, 3), "float32"))


# Convolutions


def test_convolution_with_channels_first() -> None:
    x = rng.normal(size=(2, 3, 2, 5, 6)).astype(np.float32)
    last = layers.ConvLSTM2D(2, 3, dropout=0.3, recurrent_dropout=0.3)
    y = last(x.transpose(0, 1, 3, 4, 2)).numpy()
    first = layers.ConvLSTM2D(2, 3, data_format="channels_first", padding="valid")
    first.build(x.shape)
    first.set_weights(last.get_weights())
    check_equal(first(x), y.transpose(0, 3, 1, 2))
    with pytest.raises(ShapeError, match="spatial axes"):
        layers.ConvLSTM2D(2, 3)(layers.Input((3, None, 4, 2)))


# Masks through models


def test_masks_pass_through_layers() -> None:
    ids = np.array([[3, 1, 2, 0, 0], [4, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
    model = Sequential(
        [
            layers.Input((None,), dtype="int32"),
            layers.Embedding(5, 3, mask_zero=True),
            layers.LSTM(4, return_sequences=True),
            layers.Bidirectional(layers.GRU(3, return_sequences=True)),
            layers.TimeDistributed(layers.Dense(3)),
            layers.SimpleRNN(2),
        ]
    )
    full = model(ids).numpy()
    for row, size in zip(range(3), (3, 1, 5), strict=True):
        np.testing.assert_allclose(
            model(ids[row : row + 1, :size])[0], full[row], rtol=1e-5, atol=1e-6
        )
    embedded = model.layers[0](ids)
    y, state = layers.GRU(2, return_sequences=True, return_state=True)(embedded)
    assert (get_mask(y).numpy() == (ids != 0)).all()
    assert get_mask(state) is None
    assert get_mask(layers.GRU(2)(embedded)) is None
    assert get_mask(layers.Bidirectional(layers.GRU(2))(embedded)) is None
    model.compile("adam", "mse")
    model.fit(ids, np.ones((3, 2)), epochs=2, verbose=0)


# Training


@pytest.mark.slow
@KERAS_WARNS
@pytest.mark.keras_on_jax
def test_training_as_keras_does() -> None:
    keras = pytest.importorskip("keras")

    def make(module: Any) -> Any:
        inner = module.layers
        return module.Sequential(
            [
                inner.Input((5, 4)),
                inner.Bidirectional(inner.LSTM(3, return_sequences=True)),
                inner.GRU(3, return_sequences=True),
                inner.SimpleRNN(2),
            ]
        )

    theirs, ours = make(keras), make(laminar)
    ours.set_weights([np.asarray(w.value) for w in theirs.weights])
    y = rng.normal(size=(3, 2)).astype(np.float32)
    history = []
    for model, module in ((theirs, keras), (ours, laminar)):
        model.compile(module.optimizers.Adam(0.01), "mse")
        history.append([float(model.train_on_batch(X, y)) for _ in range(20)])
    np.testing.assert_allclose(history[1], history[0], rtol=1e-4)
    check_equal(ours.get_weights(), [w.value for w in theirs.weights], 1e-4)


@pytest.mark.slow
@KERAS_WARNS
def test_files_travel_both_ways(tmp_path: Any) -> None:
    keras = pytest.importorskip("keras")

    def make(module: Any) -> Any:
        inner = module.layers
        return module.Sequential(
            [
                inner.Input((5, 4)),
                inner.Bidirectional(inner.LSTM(3, return_sequences=True)),
                inner.TimeDistributed(inner.Dense(3)),
                inner.RNN([inner.LSTMCell(3), inner.GRUCell(2)]),
            ]
        )

    ours, theirs = make(laminar), make(keras)
    ours.save(tmp_path / "ours.keras")
    theirs.save(tmp_path / "theirs.keras")
    check_equal(keras.saving.load_model(tmp_path / "ours.keras")(X), ours(X))
    check_equal(laminar.saving.load_model(tmp_path / "theirs.keras")(X), theirs(X))


def test_cells_of_other_types() -> None:
    """They compute in their own type, and traced as without a trace."""

    def cells(*dtypes: str) -> list[Any]:
        kinds = (layers.LSTMCell, layers.GRUCell)
        return [kind(4, dtype=d) for kind, d in zip(kinds, dtypes, strict=True)]

    x = X.astype(np.float64)
    for layer, dtype in (
        (layers.RNN(cells("float64", "float64"), dtype="float64"), "float64"),
        (layers.RNN(cells("float64", "float64")), "float32"),
        (layers.RNN(cells("float32", "float64"), dtype="float64"), "float64"),
        (layers.RNN(layers.StackedRNNCells(cells("float64", "float64"))), "float32"),
    ):
        eager = layer(x)
        assert eager.dtype == dtype
        traced = function(lambda x, layer=layer: layer(x))(ops.convert_to_tensor(x))
        np.testing.assert_allclose(traced, eager, rtol=1e-5, atol=1e-6)
    exact = layers.RNN(cells("float64", "float64"), dtype="float64")
    assert exact.cell.compute_dtype == "float64"
    y = exact(x)
    z: Any = x
    for cell in exact.cell.cells:
        z = layers.RNN(cell, True, dtype="float64")(z)
    np.testing.assert_allclose(y, z[:, -1], rtol=1e-12)


def test_sixteen_bits() -> None:
    for name in KINDS:
        layer = getattr(layers, name)(2, dtype="mixed_bfloat16", return_sequences=True)
        with GradientTape() as tape:
            y = layer(X)
            loss = ops.sum(y)
        assert y.dtype == "bfloat16"
        assert all(g.dtype == "float32" for g in tape.gradient(loss, layer.trainable_variables))
        exact = getattr(layers, name)(2, return_sequences=True)
        exact.build(X.shape)
        exact.set_weights(layer.get_weights())
        np.testing.assert_allclose(ops.cast(y, "float32").numpy(), exact(X), atol=0.05)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: layers.LSTM(0), InvalidArgumentError, "units must be a whole number"),
        (lambda: layers.GRU(2, dropout=1.5), InvalidArgumentError, "dropout must be from 0 to 1"),
        (lambda: layers.RNN(3), InvalidArgumentError, "no `call`"),
        (lambda: layers.RNN(layers.Dense(2)), InvalidArgumentError, "no `state_size`"),
        (lambda: layers.RNN(layers.LSTMCell), InvalidArgumentError, "got a class"),
        (lambda: layers.StackedRNNCells([1]), InvalidArgumentError, "no `call`"),
        (lambda: layers.Bidirectional(layers.Dense(2)), InvalidArgumentError, "recurrent layer"),
        (lambda: layers.Bidirectional(3), InvalidArgumentError, "expected a layer"),
        (lambda: layers.Bidirectional(layers.GRU(2), "add"), InvalidArgumentError, "merge_mode"),
        (
            lambda: layers.Bidirectional(layers.GRU(2), backward_layer=layers.GRU(2)),
            InvalidArgumentError,
            "both layers have go_backwards=False",
        ),
        (
            lambda: layers.Bidirectional(
                layers.GRU(2), backward_layer=layers.GRU(2, go_backwards=True, return_state=True)
            ),
            InvalidArgumentError,
            "return_state is False in the forward layer",
        ),
        (lambda: layers.LSTM(2)(X, initial_state=STATE), InvalidArgumentError, "has 2 states"),
        (
            lambda: layers.LSTM(2, unroll=True)(layers.Input((None, 3))),
            InvalidArgumentError,
            "unroll=True",
        ),
        (lambda: layers.LSTM(2, use_cudnn="no"), InvalidArgumentError, "use_cudnn"),
        (lambda: layers.LSTM(2)(np.ones((2, 3), "f4")), ShapeError, "LSTM"),
        (lambda: layers.GRU(2)(layers.Input((5, None))), ShapeError, "number of features"),
        (
            lambda: layers.ConvLSTM1D(2, 2, strides=2, dilation_rate=2),
            InvalidArgumentError,
            "both above 1",
        ),
    ],
)
def test_mistakes(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_time_distributed_refuses_masks_of_other_steps() -> None:
    layer = layers.TimeDistributed(layers.Dense(2))
    x = np.zeros((4, 5, 3), np.float32)
    assert layer(x, mask=np.ones((4, 5, 2), bool)).shape == (4, 5, 2)
    for shape in ((4, 6), (3, 5), (4, 6, 2)):
        with pytest.raises(ShapeError, match=r"expected a mask \(4, 5\)"):
            layer(x, mask=np.ones(shape, bool))


@pytest.mark.parametrize("use_cudnn", [True, False, "auto"])
def test_bidirectional_keeps_use_cudnn(use_cudnn: Any) -> None:
    layer = layers.Bidirectional(layers.GRU(1, use_cudnn=use_cudnn))
    assert layer.forward_layer.use_cudnn == layer.backward_layer.use_cudnn == use_cudnn
