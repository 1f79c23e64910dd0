"""Initializers: values, configs, names."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from laminar import initializers, random
from laminar.engine.errors import InvalidArgumentError, LaminarError, ShapeError
from laminar.initializers import compute_fans

SHAPE = (3, 3, 20, 50)
FAN_IN, FAN_OUT = 9 * 20, 9 * 50


@pytest.mark.parametrize(
    ("initializer", "variance", "limit"),
    [
        (initializers.GlorotUniform(seed=1), 2 / (FAN_IN + FAN_OUT), 3**0.5),
        (initializers.GlorotNormal(seed=1), 2 / (FAN_IN + FAN_OUT), 2 / 0.8796),
        (initializers.HeUniform(seed=1), 2 / FAN_IN, 3**0.5),
        (initializers.HeNormal(seed=1), 2 / FAN_IN, 2 / 0.8796),
        (initializers.LecunUniform(seed=1), 1 / FAN_IN, 3**0.5),
        (initializers.LecunNormal(seed=1), 1 / FAN_IN, 2 / 0.8796),
        (initializers.VarianceScaling(3.0, "fan_out", "uniform", 1), 3 / FAN_OUT, 3**0.5),
        (initializers.VarianceScaling(3.0, "fan_out", "untruncated_normal", 1), 3 / FAN_OUT, 6.0),
        (initializers.RandomNormal(0.0, 0.1, seed=1), 0.01, 6.0),
        (initializers.RandomUniform(-0.3, 0.3, seed=1), 0.03, 3**0.5),
        (initializers.TruncatedNormal(0.0, 0.1, seed=1), 0.01 * 0.87962566**2, 2 / 0.8796),
    ],
)
def test_moments(initializer: Any, variance: float, limit: float) -> None:
    x = initializer(SHAPE).numpy().astype("float64")
    assert x.shape == SHAPE
    assert x.var() == pytest.approx(variance, rel=0.05)
    assert abs(x.mean()) < 5 * (variance / x.size) ** 0.5
    assert np.abs(x).max() <= limit * variance**0.5 * 1.001


def test_constants() -> None:
    np.testing.assert_array_equal(initializers.Zeros()((2, 3)).numpy(), np.zeros((2, 3)))
    np.testing.assert_array_equal(initializers.Ones()((2,), "int32").numpy(), [1, 1])
    np.testing.assert_array_equal(initializers.Constant(2.5)((2,)).numpy(), [2.5, 2.5])
    np.testing.assert_array_equal(initializers.Constant([1, 2])((2, 2)).numpy(), [[1, 2], [1, 2]])
    np.testing.assert_array_equal(initializers.Identity(2.0)((2, 3)).numpy(), 2 * np.eye(2, 3))
    with pytest.raises(ShapeError, match="Identity: expected the shape of a matrix"):
        initializers.Identity()((2, 3, 4))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_orthogonal(shape: tuple[int, ...], dtype: str) -> None:
    x = initializers.Orthogonal(gain=2.0, seed=1)(shape, dtype)
    assert x.dtype == dtype
    matrix = x.numpy().astype("float64").reshape(-1, shape[-1]) / 2
    rows, columns = matrix.shape
    product = matrix.T @ matrix if rows >= columns else matrix @ matrix.T
    tolerance = {"float32": 1e-5, "float64": 1e-12, "float16": 5e-3}[dtype]
    np.testing.assert_allclose(product, np.eye(min(rows, columns)), atol=tolerance)
    with pytest.raises(ShapeError, match="at least two axes"):
        initializers.Orthogonal()((3,))


RANDOM = [
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "variance_scaling",
]


@pytest.mark.parametrize("name", RANDOM)
def test_seeds(name: str) -> None:
    kind = type(initializers.get(name))
    same = kind(seed=3)
    np.testing.assert_array_equal(same((4, 3)).numpy(), same((4, 3)).numpy())
    np.testing.assert_array_equal(same((4, 3)).numpy(), kind(seed=3)((4, 3)).numpy())
    generator = kind(seed=random.SeedGenerator(3))
    assert (generator((4, 3)).numpy() != generator((4, 3)).numpy()).any()
    random.set_random_seed(9)
    first, second = kind(), kind()
    assert (first((4, 3)).numpy() != second((4, 3)).numpy()).any()
    random.set_random_seed(9)
    np.testing.assert_array_equal(kind()((4, 3)).numpy(), first((4, 3)).numpy())


@pytest.mark.parametrize("name", [*RANDOM, "zeros", "ones", "constant", "identity"])
def test_config_round_trip(name: str) -> None:
    made = initializers.get(name)
    data = initializers.serialize(made)
    assert data["module"] == "keras.initializers"
    assert data["registered_name"] is None
    again = initializers.deserialize(data)
    assert type(again) is type(made)
    assert again.get_config() == made.get_config()
    assert type(made.clone()) is type(made)


def test_a_generator_travels_in_a_config() -> None:
    made = initializers.RandomNormal(seed=random.SeedGenerator(4, name="g"))
    again = initializers.deserialize(initializers.serialize(made))
    np.testing.assert_array_equal(again((3,)).numpy(), made((3,)).numpy())


def test_names_and_other_identifiers() -> None:
    assert isinstance(initializers.get("uniform"), initializers.RandomUniform)
    assert isinstance(initializers.get(initializers.Ones), initializers.Ones)
    importlib.import_module("laminar.layers")  # where an op layer is called Ones, too
    assert isinstance(initializers.get({"class_name": "Ones", "config": {}}), initializers.Ones)
    assert initializers.get(None) is None
    given = initializers.get(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(given((2,), "float32").numpy(), [1, 2])
    with pytest.raises(ShapeError, match="cannot initialize a variable of shape"):
        given((3,))
    with pytest.raises(InvalidArgumentError, match="'glorot' is not known") as error:
        initializers.get("glorot")
    assert "did you mean" in str(error.value)


@pytest.mark.parametrize(
    ("shape", "axes", "fans"),
    [
        ((), {}, (1, 1)),
        ((4,), {}, (4, 4)),
        ((2, 3), {}, (2, 3)),
        ((3, 3, 2, 5), {}, (18, 45)),
        ((2, 3, 4), {"input_axes": [0, 1], "output_axes": [2]}, (6, 4)),
    ],
)
def test_fans(shape: tuple[int, ...], axes: Any, fans: tuple[int, int]) -> None:
    assert compute_fans(shape, **axes) == fans


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0}, "scale must be positive"),
        ({"mode": "fan"}, "mode must be one of"),
        ({"distribution": "cauchy"}, "distribution must be one of"),
        ({"seed": "x"}, "seed must be an int or a SeedGenerator"),
    ],
)
def test_errors(options: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        initializers.VarianceScaling(**options)


def test_configs_are_those_of_keras() -> None:
    keras = pytest.importorskip("keras")
    for name in [*RANDOM, "zeros", "ones", "constant"]:  # Keras's Identity forgets its gain
        kind = type(initializers.get(name))
        theirs = getattr(keras.initializers, kind.__name__)()
        assert initializers.serialize(kind()) == keras.initializers.serialize(theirs)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("VarianceScaling", {"scale": "x"}),
        ("VarianceScaling", {"scale": None}),
        ("VarianceScaling", {"scale": 10**400}),
        ("VarianceScaling", {"distribution": {}}),
        ("VarianceScaling", {"mode": []}),
        ("VarianceScaling", {"input_axes": [99], "output_axes": [0]}),
        ("VarianceScaling", {"input_axes": 3, "output_axes": "x"}),
        ("GlorotUniform", {"input_axes": [9], "output_axes": [8]}),
        ("Initializer", {}),
        ("Constant", {"value": {}}),
        ("Orthogonal", {"gain": "x"}),
        ("RandomNormal", {"stddev": []}),
    ],
)
def test_configs_that_cannot_be(name: str, config: dict[str, Any]) -> None:
    with pytest.raises(LaminarError):
        initializers.deserialize({"class_name": name, "config": config})((4, 4))
