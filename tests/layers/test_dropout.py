"""Dropout and noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers, ops, random
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph, TensorSpec
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.nn.dropout import dropout as engine_dropout
from laminar.engine.runtime import Session
from laminar.engine.state import global_variables_initializer
from laminar.tree import flatten

from .harness import check_layer, check_same_config, random_inputs

wrong: Any = layers  # for arguments of the wrong type

CASES: list[Any] = [
    ("Dropout", {"rate": 0.4}, (64, 50)),
    ("SpatialDropout1D", {"rate": 0.4}, (64, 3, 50)),
    ("SpatialDropout2D", {"rate": 0.4}, (64, 3, 2, 50)),
    ("SpatialDropout2D", {"rate": 0.4, "data_format": "channels_first"}, (64, 50, 3, 2)),
    ("SpatialDropout3D", {"rate": 0.4}, (64, 3, 2, 2, 50)),
    ("GaussianDropout", {"rate": 0.4}, (64, 50)),
    ("GaussianNoise", {"stddev": 0.4}, (64, 50)),
    ("AlphaDropout", {"rate": 0.4}, (64, 50)),
]


@pytest.mark.parametrize(("name", "kwargs", "shape"), CASES)
def test_layer(name: str, kwargs: dict[str, Any], shape: tuple[int, ...]) -> None:
    layer = check_layer(
        getattr(layers, name), kwargs, shape, expected_output_shape=shape, expected_weights={}
    )
    x = random_inputs(shape)
    np.testing.assert_array_equal(layer(x, training=False).numpy(), x)
    first, second = (layer(x, training=True).numpy() for _ in range(2))
    assert (first != x).any()
    assert (first != second).any()
    seeded = [getattr(layers, name)(**kwargs, seed=7)(x, training=True) for _ in range(2)]
    np.testing.assert_array_equal(*(y.numpy() for y in seeded))
    assert [v.name for v in layer.variables] == ["seed_generator_state"]
    half = getattr(layers, name)(**kwargs, dtype="mixed_float16")
    assert half(x, training=True).dtype == "float16"


@pytest.mark.parametrize(("name", "kwargs", "shape"), CASES)
def test_config_is_that_of_keras(name: str, kwargs: dict[str, Any], shape: Any) -> None:
    keras = pytest.importorskip("keras")
    ours = getattr(layers, name)(**kwargs, seed=3, dtype="float32")
    theirs = getattr(keras.layers, name)(**kwargs, seed=3, dtype="float32")
    if name.startswith("Spatial"):  # Keras writes the name of the dtype, and reads both
        assert set(ours.get_config()) == set(theirs.get_config())
        assert keras.saving.deserialize_keras_object(layers.serialize(ours)).rate == 0.4
    else:
        check_same_config(theirs, ours)


@pytest.mark.parametrize(("name", "kwargs", "shape"), CASES)
def test_numbers_are_fresh_at_each_call_of_a_trace(
    name: str, kwargs: dict[str, Any], shape: tuple[int, ...]
) -> None:
    layer = getattr(layers, name)(**kwargs)
    traced = function(
        lambda x: layer(x, training=True),
        input_signature=[TensorSpec((None, *shape[1:]), "float32")],
    )
    x = np.ones(shape, np.float32)
    first, second = traced(x).numpy(), traced(x).numpy()
    assert (first != second).any()
    assert traced(x[:3]).shape == (3, *shape[1:])
    assert traced.trace_count == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("rate", [0.0, 0.25, 1.0])
def test_rate_is_a_tensor(dtype: str, rate: float) -> None:
    """A rate that is computed drops what the same number drops; the gradient is the mask's."""
    x = np.random.default_rng(0).normal(size=(5, 7)).astype(dtype)
    state = np.array([1, 2, 3, 4], np.uint32)
    for noise in (None, (5, 1)):
        x_tensor = ops.convert_to_tensor(x)
        expected = engine_dropout(x_tensor, ops.convert_to_tensor(state), rate, noise).numpy()

        @function
        def dropped(x: Any, rate: Any, noise: Any = noise) -> Any:
            with GradientTape() as tape:
                tape.watch(x)
                y = engine_dropout(x, ops.convert_to_tensor(state), rate, noise)
            return y, tape.gradient(y, x)

        y, dx = dropped(x_tensor, ops.convert_to_tensor(np.float32(rate)))
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-3 if dtype == "float16" else 1e-6)
        kept = 0 if rate == 1 else (expected != 0) / (1 - rate)
        np.testing.assert_allclose(dx.numpy(), kept * np.ones_like(x), rtol=1e-3)


def test_rate_is_a_placeholder() -> None:
    with Graph().as_default() as graph:
        rate = placeholder("float32", ())
        y = layers.Dropout(rate, seed=1)(np.ones((100, 50), np.float32), training=True)
        z = random.dropout(placeholder("float32", (None, 4), name="z"), rate, (None, 1))
        initialize = global_variables_initializer()
    with Session(graph=graph) as session:
        session.run(initialize)
        for value in (0.25, 0.75):
            found = session.run(y, {rate: value})
            assert set(np.unique(found)) == {np.float32(0), 1 / np.float32(1 - value)}
            assert abs((found == 0).mean() - value) < 0.03
        rows = session.run(z, {rate: 0.5, "z:0": np.ones((9, 4), np.float32)})
        assert (rows == rows[:, :1]).all()
        with pytest.raises(InvalidArgumentError, match="the rate must be from 0 to 1"):
            session.run(y, {rate: 1.5})


def test_dropout_keeps_the_mean() -> None:
    y = layers.Dropout(0.3, seed=1)(np.ones((200, 500), np.float32), training=True).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1) / np.float32(0.7)}
    assert abs((y == 0).mean() - 0.3) < 0.01


@pytest.mark.parametrize(
    ("layer", "shape", "axes"),
    [
        (layers.Dropout(0.5, noise_shape=(None, 1, None)), (20, 6, 30), (1,)),
        (layers.Dropout(0.5, noise_shape=(1, 6, 30)), (20, 6, 30), (0,)),
        (layers.SpatialDropout1D(0.5), (20, 6, 30), (1,)),
        (layers.SpatialDropout2D(0.5), (20, 3, 2, 30), (1, 2)),
        (layers.SpatialDropout2D(0.5, "channels_first"), (20, 30, 3, 2), (2, 3)),
        (layers.SpatialDropout3D(0.5), (20, 3, 2, 2, 30), (1, 2, 3)),
        (layers.AlphaDropout(0.5, noise_shape=(20, 1, 30)), (20, 6, 30), (1,)),
        (layers.AlphaDropout(0.5, noise_shape=(None, 1, None)), (20, 6, 30), (1,)),
    ],
)
def test_numbers_that_are_dropped_together(
    layer: layers.Layer, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    y = layer(np.ones(shape, np.float32), training=True).numpy()
    assert (y.max(axes) == y.min(axes)).all()
    assert len(np.unique(y)) == 2


def test_gaussian_dropout_multiplies_and_noise_adds() -> None:
    x = np.full((400, 500), 3, np.float32)
    y = layers.GaussianDropout(0.2, seed=1)(x, training=True).numpy() / 3
    assert abs(y.mean() - 1) < 0.01
    assert abs(y.std() - 0.5) < 0.01  # sqrt(0.2 / 0.8)
    z = layers.GaussianNoise(0.7, seed=1)(x, training=True).numpy() - 3
    assert abs(z.mean()) < 0.01
    assert abs(z.std() - 0.7) < 0.01


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = np.random.default_rng(0).normal(size=(400, 500)).astype(np.float32)
    y = layers.AlphaDropout(0.3, seed=1)(x, training=True).numpy()
    assert abs(y.mean()) < 0.01
    assert abs(y.std() - 1) < 0.01
    kept = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
    np.testing.assert_array_equal(layers.AlphaDropout(0)(kept, training=True).numpy(), kept)


def test_rates_of_0_and_1() -> None:
    x = random_inputs((3, 4))
    idle = layers.Dropout(0)
    np.testing.assert_array_equal(idle(x, training=True).numpy(), x)
    assert flatten(idle.variables) == []
    np.testing.assert_array_equal(layers.Dropout(1)(x, training=True).numpy(), 0)


REFUSED: list[Any] = [
    (lambda: wrong.Dropout(-0.1), "Dropout 'dropout.*': rate must be from 0 to 1, got -0.1"),
    (lambda: wrong.Dropout(1.5), "rate must be from 0 to 1"),
    (lambda: wrong.Dropout("0.5"), "rate must be from 0 to 1"),
    (lambda: wrong.Dropout(None), "rate must be from 0 to 1"),
    (lambda: wrong.Dropout(0.5, noise_shape=(0, 2)), "noise_shape must hold positive"),
    (lambda: wrong.Dropout(0.5, noise_shape=3), "noise_shape must hold positive"),
    (lambda: wrong.Dropout(0.5, seed="a"), "seed must be a whole number"),
    (lambda: wrong.SpatialDropout2D(2), "rate must be from 0 to 1"),
    (lambda: wrong.GaussianDropout(1), "rate must be from 0 to 1, and below 1"),
    (lambda: wrong.GaussianNoise(-1), "stddev must be a number of at least 0"),
    (lambda: wrong.AlphaDropout(1), "and below 1"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_constructor_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_spatial_dropout_checks_the_number_of_axes() -> None:
    with pytest.raises(ShapeError, match="expected 4 axes"):
        layers.SpatialDropout2D(0.5)(np.zeros((2, 3, 4), np.float32))
