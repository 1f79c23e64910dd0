"""Hashing, HashedCrossing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from laminar import layers
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.models import Model

from .harness import check_config, check_symbolic, check_traced

LETTERS = [["A"], ["B"], ["C"], ["D"], ["E"]]


# From the documentation of Keras's layer.
@pytest.mark.parametrize(
    ("salt", "expected"), [([133, 137], [1, 2, 1, 0, 2]), (133, [0, 0, 2, 1, 0])]
)
def test_with_a_salt_the_bins_are_those_of_keras(salt: Any, expected: list[int]) -> None:
    found = layers.Hashing(3, salt=salt)(LETTERS)
    assert found.dtype == "int64"
    assert found.numpy().ravel().tolist() == expected


def test_without_a_salt() -> None:
    """As Keras 3.15 with TensorFlow 2.21, and so all numbers below."""
    found = layers.Hashing(7)(LETTERS).numpy().ravel().tolist()
    assert found == [3, 6, 1, 4, 1]


def test_shapes_of_bins() -> None:
    for mask in (None, 0, ""):
        assert layers.Hashing(3, mask_value=mask).compute_output_shape((None, 2)) == (None, 2)
    counts = layers.Hashing(3, mask_value="", output_mode="count")
    assert counts.compute_output_shape((None, 2)) == (None, 3)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "uint8"])
def test_numbers_are_hashed_as_text(dtype: str) -> None:
    x = np.array([[0, 7, 123]], dtype)
    found = layers.Hashing(1000)(x).numpy()
    assert found.tolist() == [[735, 88, 931]]
    assert layers.Hashing(1000)(np.array([-7.9])).numpy().item() == 62


@pytest.mark.parametrize(
    ("x", "mask", "expected"), [([["a", "", "b"]], "", [1, 0, 2]), ([[5, 0, 6]], 0, [2, 0, 3])]
)
def test_mask_value_has_bin_0_alone(x: Any, mask: Any, expected: list[int]) -> None:
    found = layers.Hashing(4, mask_value=mask)(x).numpy()
    assert found.tolist() == [expected]
    assert layers.Hashing(1, mask_value=mask)(x).numpy().tolist() == [[0, 0, 0]]


MODES = ["int", "one_hot", "multi_hot", "count"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(6, 1), (3, 2)])
def test_hashing_does_what_layers_do(mode: str, shape: tuple[int, int]) -> None:
    x = np.array([*"abcdea"], object).reshape(shape)
    layer = layers.Hashing(5, output_mode=mode, mask_value="a", salt=3)
    numbers = layers.Hashing(5, mask_value="a", salt=3)(x).numpy()
    value = layer(x).numpy()
    hot = np.eye(5)[numbers]
    expected = {
        "int": numbers,
        "one_hot": hot[:, 0] if shape[1] == 1 else hot,
        "multi_hot": hot.max(1),
        "count": hot.sum(1),
    }[mode]
    np.testing.assert_array_equal(value, expected)
    assert value.dtype == (np.int64 if mode == "int" else np.float32)
    symbol = layer(layers.Input(shape[1:], dtype="string"))
    assert tuple(symbol.shape) == (None, *value.shape[1:])
    check_config(layers.Hashing, layer, x, value)


def test_hashing_of_numbers_in_traces() -> None:
    x = np.arange(12).reshape(4, 3)
    layer = layers.Hashing(5)
    check_symbolic(layer, x, layer(x).numpy())
    check_traced(layer, x, layer(x).numpy(), 0)


def test_config_of_hashing() -> None:
    config = json.loads(json.dumps(layers.serialize(layers.Hashing(3, salt=1, name="h"))))["config"]
    assert config == {
        "name": "h",
        "trainable": True,
        "dtype": {
            "module": "keras",
            "class_name": "DTypePolicy",
            "config": {"name": "int64"},
            "registered_name": None,
        },
        "num_bins": 3,
        "salt": [1, 1],
        "mask_value": None,
        "output_mode": "int",
        "sparse": False,
    }


@pytest.mark.parametrize(
    ("kwargs", "error"),
    [
        ({"num_bins": 0}, InvalidArgumentError),
        ({"num_bins": 2, "salt": "s"}, InvalidArgumentError),
        ({"num_bins": 2, "salt": [1, 2, 3]}, InvalidArgumentError),
        ({"num_bins": 2, "output_mode": "hot"}, InvalidArgumentError),
        ({"num_bins": 2, "output_mode": "count", "sparse": True}, InvalidArgumentError),
        ({"num_bins": 2, "dtype": "float32"}, DTypeError),
    ],
)
def test_hashing_refuses(kwargs: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        layers.Hashing(**kwargs)


# HashedCrossing


@pytest.mark.parametrize("shape", [(), (4,), (4, 1)])
@pytest.mark.parametrize("mode", ["int", "one_hot"])
def test_crossing(shape: tuple[int, ...], mode: str) -> None:
    words, numbers = np.array([*"abca"], object), np.array([1, 2, 1, 1])
    if not shape:
        words, numbers = words[:1], numbers[:1]
    bins = np.array([1, 1, 5, 1])[: len(words)]
    layer = layers.HashedCrossing(6, output_mode=mode)
    inputs = [words.reshape(shape), numbers.reshape(shape)]
    value = layer(inputs).numpy()
    wanted = bins.reshape(shape) if mode == "int" else np.eye(6)[bins]
    np.testing.assert_array_equal(value, wanted)
    assert value.dtype == (np.int64 if mode == "int" else np.float32)
    assert layer.compute_output_shape([shape, shape]) == value.shape
    check_config(layers.HashedCrossing, layer, inputs, value)


def test_crossing_in_a_model() -> None:
    a, b = layers.Input((1,), dtype="string"), layers.Input((1,), dtype="int64")
    layer = layers.HashedCrossing(6, output_mode="one_hot")
    model = Model([a, b], layer((a, b)))
    x = [np.array([["u"], ["v"]]), np.array([[1], [2]])]
    assert model.output_shape == (None, 6)
    np.testing.assert_array_equal(model.predict(x, verbose=0), layer(x).numpy())
    same = layer([x[0].tolist(), x[1].tolist()])
    np.testing.assert_array_equal(same.numpy(), layer(x).numpy())


def test_crossing_refuses() -> None:
    layer = layers.HashedCrossing(6)
    with pytest.raises(InvalidArgumentError, match="two inputs"):
        layer([["a"]])
    with pytest.raises(InvalidArgumentError, match="two inputs"):
        layer(np.array(["a"]))
    with pytest.raises(ShapeError, match=r"\(batch, 1\)"):
        layer([[["a", "b"]], [["a", "b"]]])
    with pytest.raises(ShapeError, match="equal shapes"):
        layer([["a"], ["a", "b"]])
    with pytest.raises(DTypeError, match="whole numbers"):
        layer([["a"], [1.5]])
    with pytest.raises(InvalidArgumentError, match="output_mode"):
        layers.HashedCrossing(6, output_mode="count")
