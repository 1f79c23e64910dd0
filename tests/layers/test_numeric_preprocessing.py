"""Normalization, Discretization, CategoryEncoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import layers
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec
from laminar.models import Model, Sequential
from laminar.ops import convert_to_tensor
from laminar.saving import load_model

from .harness import check_config, check_layer, check_same_config, check_symbolic, check_traced

rng = np.random.default_rng(3)


def test_one_hot_numbers_have_the_dtype_of_variables() -> None:
    for policy, dtype in (("mixed_float16", "float32"), ("float16", "float16")):
        for made in (
            layers.CategoryEncoding(3, output_mode="count", dtype=policy),
            layers.Hashing(3, output_mode="one_hot", dtype=policy),
        ):
            assert made(np.array([[1, 2]])).dtype == dtype


DATA = (rng.normal(size=(50, 4, 3)) * [1, 10, 0.1] + [5, 0, -3]).astype(np.float32)


def check_data_layer(layer: layers.Layer, x: Any) -> Any:
    """Symbolic calls, traces for any batch and configs agree with the eager value."""
    value = layer(x).numpy()
    check_symbolic(layer, x, value)
    check_traced(layer, x, value, 1e-6)
    check_config(type(layer), layer, x, value)
    return value


# Normalization


@pytest.mark.parametrize("axis", [-1, 2, 1, (1, 2), (-1, 1), None, ()])
@pytest.mark.parametrize("invert", [False, True])
def test_normalization_agrees_with_keras(axis: Any, invert: bool) -> None:
    keras = pytest.importorskip("keras")
    ours, theirs = (
        layers.Normalization(axis, invert=invert),
        keras.layers.Normalization(axis, invert=invert),
    )
    for layer in (ours, theirs):
        layer.adapt(DATA)
    for v, w in zip(ours.weights, theirs.weights, strict=True):
        assert (v.name, tuple(v.shape), v.trainable) == (w.name, tuple(w.shape), w.trainable)
        np.testing.assert_allclose(v.numpy(), np.asarray(w.value), rtol=1e-5, atol=1e-6)
    found = ours(DATA[:7]).numpy()
    np.testing.assert_allclose(found, np.asarray(theirs(DATA[:7])), rtol=1e-4, atol=1e-4)
    check_same_config(theirs, ours)


@pytest.mark.parametrize(
    ("axis", "mean", "variance"),
    [
        (-1, 2.0, 4.0),
        (None, 2.0, 4.0),
        (-1, [1.0, 2.0, 3.0], [1.0, 4.0, 9.0]),
        ((1, 2), [1.0, 2.0, 3.0], [1.0, 4.0, 9.0]),
        ((1, 2), np.arange(12.0).reshape(4, 3), np.arange(12.0).reshape(4, 3)),
    ],
)
def test_normalization_with_given_numbers(axis: Any, mean: Any, variance: Any) -> None:
    keras = pytest.importorskip("keras")
    kwargs = {"axis": axis, "mean": mean, "variance": variance}
    ours, theirs = layers.Normalization(**kwargs), keras.layers.Normalization(**kwargs)
    np.testing.assert_allclose(ours(DATA).numpy(), np.asarray(theirs(DATA)), rtol=1e-5, atol=1e-5)
    assert not ours.weights
    np.testing.assert_allclose(ours.mean.numpy(), np.asarray(theirs.mean))
    check_same_config(theirs, ours)
    with pytest.raises(InvalidArgumentError, match="no effect"):
        ours.adapt(DATA)


def test_normalization_does_what_layers_do() -> None:
    check_layer(
        layers.Normalization,
        {"mean": [1.0, 2.0, 3.0], "variance": [1.0, 4.0, 0.0]},
        DATA,
        expected_output_shape=DATA.shape,
    )
    layer = layers.Normalization()
    layer.adapt(DATA)
    check_data_layer(layer, DATA)
    mean, variance = DATA.astype(np.float64).mean((0, 1)), DATA.astype(np.float64).var((0, 1))
    np.testing.assert_allclose(
        layer(DATA).numpy(), (DATA - mean) / np.sqrt(variance), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("targets", [False, True])
def test_normalization_of_batches(targets: bool) -> None:
    whole, parts = layers.Normalization(), layers.Normalization()
    whole.adapt(DATA)
    cuts = [DATA[:1], DATA[1:20], DATA[20:20], DATA[20:]]
    parts.adapt((c, c) if targets else c for c in cuts)
    for a, b in zip(whole.weights, parts.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_normalization_adapts_again_in_a_trace() -> None:
    layer = layers.Normalization(axis=None)
    layer.adapt(np.array([[0.0], [2.0]]))
    traced = function(layer, input_signature=[TensorSpec((None, 1), "float32")])
    np.testing.assert_allclose(traced(np.array([[2]], np.float32)).numpy(), [[1]])
    layer.adapt(np.array([[0.0], [4.0]]))
    np.testing.assert_allclose(traced(np.array([[2]], np.float32)).numpy(), [[0]])


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras
def test_normalization_in_a_file(tmp_path: Path) -> None:
    layer = layers.Normalization()
    layer.adapt(DATA)
    model = Sequential([layers.Input((4, 3)), layer, layers.Dense(2)])
    model.save(tmp_path / "m.keras")
    again = load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again(DATA).numpy(), model(DATA).numpy())
    keras = pytest.importorskip("keras")
    theirs = keras.saving.load_model(tmp_path / "m.keras")
    np.testing.assert_allclose(np.asarray(theirs(DATA)), model(DATA).numpy(), atol=1e-4)
    theirs.save(tmp_path / "k.keras")
    back = load_model(tmp_path / "k.keras")
    np.testing.assert_array_equal(back(DATA).numpy(), model(DATA).numpy())


def test_normalization_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match="belong together"):
        layers.Normalization(mean=1.0)
    with pytest.raises(ShapeError, match="variance"):
        layers.Normalization(mean=[1.0], variance=[1.0, 2.0])
    with pytest.raises(ShapeError, match="more axes"):
        layers.Normalization(axis=None, mean=[1.0], variance=[1.0])
    with pytest.raises(ShapeError, match="does not exist"):
        layers.Normalization(axis=3)(DATA)
    with pytest.raises(ShapeError, match="unknown"):
        layers.Normalization()(layers.Input((4, None)))
    with pytest.raises(ShapeError, match="do not fit"):
        layers.Normalization(mean=[1.0, 2.0], variance=[1.0, 2.0])(DATA)
    layer = layers.Normalization()
    layer.adapt(DATA)
    before = layer.get_weights()
    with pytest.raises(ShapeError, match="built for"):
        layer.adapt([DATA, DATA[..., :2]])
    with pytest.raises(InvalidArgumentError, match="no data"):
        layer.adapt([])
    with pytest.raises(DTypeError, match="arrays"):
        layer.adapt([[1.0, 2.0]])
    for a, b in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


# Discretization

X = np.array([[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]], np.float32)


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("shape", [(2, 4), (8, 1), (8,)])
def test_discretization_agrees_with_keras(mode: str, shape: tuple[int, ...]) -> None:
    keras = pytest.importorskip("keras")
    kwargs: dict[str, Any] = {"bin_boundaries": [0.0, 1.0, 2.0], "output_mode": mode}
    ours, theirs = layers.Discretization(**kwargs), keras.layers.Discretization(**kwargs)
    x = X.reshape(shape)
    expected = np.asarray(theirs(x))
    found = ours(x).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    check_same_config(theirs, ours)
    if len(shape) > 1:
        check_data_layer(ours, x)


@pytest.mark.parametrize(("count", "num_bins"), [(10, 3), (99, 4), (1000, 10), (777, 50), (5, 8)])
def test_discretization_learns_what_keras_does(count: int, num_bins: int) -> None:
    keras = pytest.importorskip("keras")
    data = rng.normal(size=count).astype(np.float32)
    ours = layers.Discretization(num_bins=num_bins)
    theirs = keras.layers.Discretization(num_bins=num_bins)
    batched = [data[i : i + 7] for i in range(0, count, 7)]
    for given, parts in ((data, [data]), (iter(batched), batched[:20])):
        ours.adapt(given, steps=20)
        theirs.reset_state()  # its adapt() asks for TensorFlow, the parts of it do not
        for part in parts:
            theirs.update_state(part)
        theirs.finalize_state()
        assert ours.bin_boundaries is not None
        np.testing.assert_allclose(ours.bin_boundaries, theirs.bin_boundaries, rtol=1e-6)
        check_same_config(theirs, ours)


def test_discretization_finds_quantiles() -> None:
    data = rng.exponential(size=100_000)
    layer = layers.Discretization(num_bins=4, epsilon=0.001)
    layer.adapt(data)
    quartiles = np.quantile(data, [0.25, 0.5, 0.75])
    np.testing.assert_allclose(np.array(layer.bin_boundaries), quartiles, rtol=0.02)
    shares = np.bincount(layer(data).numpy()) / len(data)
    np.testing.assert_allclose(shares, 0.25, atol=0.005)


def test_discretization_in_a_model_before_it_is_adapted(tmp_path: Path) -> None:
    layer = layers.Discretization(num_bins=3, output_mode="one_hot")
    x = layers.Input((1,))
    model = Model(x, layers.Dense(2)(layer(x)))
    assert layer.compute_output_shape((None, 1)) == (None, 3)
    with pytest.raises(FailedPreconditionError, match="no bins"):
        model(np.zeros((1, 1)))
    layer.adapt(np.arange(9.0))
    values = model.predict(np.array([[0.0], [8.0]]), verbose=0)
    model.save(tmp_path / "m.keras")
    again = load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.predict(np.array([[0.0], [8.0]]), verbose=0), values)


def test_discretization_keeps_numbers_exact_under_a_half_type() -> None:
    layer = layers.Discretization(bin_boundaries=[256.5, 257.5], dtype="bfloat16")
    assert layer([256.0, 257.0, 258.0]).numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"num_bins": 2, "bin_boundaries": [1.0]},
        {"num_bins": 0},
        {"num_bins": 2, "output_mode": "two_hot"},
        {"num_bins": 2, "output_mode": "count", "sparse": True},
    ],
)
def test_discretization_refuses(kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        layers.Discretization(**kwargs)


def test_discretization_refuses_to_adapt() -> None:
    with pytest.raises(InvalidArgumentError, match="no effect"):
        layers.Discretization([1.0]).adapt([1.0])
    with pytest.raises(InvalidArgumentError, match="no data"):
        layers.Discretization(num_bins=2).adapt([])


# CategoryEncoding


@pytest.mark.parametrize("mode", ["one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("shape", [(12,), (12, 1), (4, 3), (2, 3, 2), ()])
@pytest.mark.keras_on_jax
def test_category_encoding_agrees_with_keras(mode: str, shape: tuple[int, ...]) -> None:
    keras = pytest.importorskip("keras")
    kwargs: dict[str, Any] = {"num_tokens": 4, "output_mode": mode}
    ours, theirs = layers.CategoryEncoding(**kwargs), keras.layers.CategoryEncoding(**kwargs)
    x = rng.integers(0, 5, size=shape).astype(np.int32)  # 4 is out of range
    expected = np.asarray(theirs(x))
    found = ours(x).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    check_same_config(keras.layers.CategoryEncoding(**kwargs), layers.CategoryEncoding(**kwargs))
    if len(shape) > 1:
        check_data_layer(ours, x)


def test_category_encoding_weighs() -> None:
    keras = pytest.importorskip("keras")
    x = np.array([[0, 1], [0, 0], [1, 2], [3, 1]])
    weights = np.array([[0.1, 0.2], [0.1, 0.1], [0.2, 0.3], [0.4, 0.2]], np.float32)
    ours = layers.CategoryEncoding(4, output_mode="count")
    theirs = keras.layers.CategoryEncoding(4, output_mode="count")
    expected = np.asarray(theirs(x, count_weights=weights))
    np.testing.assert_allclose(ours(x, count_weights=weights).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(ours(x.tolist(), weights.tolist()).numpy(), expected, rtol=1e-6)
    w = convert_to_tensor(weights)
    with GradientTape() as tape:
        tape.watch(w)
        y = ours(x, count_weights=w)[:, 1]
    np.testing.assert_array_equal(tape.gradient(y, w).numpy(), x == 1)
    with pytest.raises(InvalidArgumentError, match="count_weights"):
        layers.CategoryEncoding(4)(x, count_weights=weights)


def test_category_encoding_of_nothing() -> None:
    layer = layers.CategoryEncoding(3)
    assert layer(np.zeros((2, 0), int)).numpy().tolist() == [[0, 0, 0]] * 2
    assert layer(np.zeros((0, 2), int)).shape == (0, 3)


def test_category_encoding_of_many_categories() -> None:
    """Numbers are exact under a half type, and no array of one-hot vectors is made."""
    x = rng.integers(0, 50_000, size=(64, 500))
    y = layers.CategoryEncoding(50_000, dtype="bfloat16")(x).numpy()
    assert all(set(np.flatnonzero(row)) == set(n) for row, n in zip(y, x, strict=True))


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"num_tokens": 0},
        {"num_tokens": 2, "output_mode": "int"},
        {"num_tokens": 2, "sparse": 1},
    ],
)
def test_category_encoding_refuses(kwargs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        layers.CategoryEncoding(**kwargs)


def test_old_name_of_a_mode() -> None:
    layer = layers.CategoryEncoding(2, output_mode="binary")
    assert json.loads(json.dumps(layer.get_config()))["output_mode"] == "multi_hot"
