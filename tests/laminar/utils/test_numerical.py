"""to_categorical and normalize."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import ops, utils
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor

ONE_HOT = [
    ([0, 2], None, [[1, 0, 0], [0, 0, 1]]),
    ([[0], [1]], None, [[1, 0], [0, 1]]),
    ([[0, 1]], None, [[[1, 0], [0, 1]]]),
    ([0, 1], 3, [[1, 0, 0], [0, 1, 0]]),
    (1, 2, [0, 1]),
    ([1.0], None, [[0, 1]]),
]


@pytest.mark.parametrize(("labels", "count", "expected"), ONE_HOT)
def test_to_categorical(labels: Any, count: int | None, expected: Any) -> None:
    found = utils.to_categorical(labels, count)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(utils.to_categorical(ops.array(labels), count), expected)


def test_to_categorical_of_nothing() -> None:
    assert utils.to_categorical(np.zeros(0, "int64"), 3).shape == (0, 3)


def test_to_categorical_makes_no_table_of_all_classes() -> None:
    found = utils.to_categorical([10**6], 10**6 + 1)  # 8 MB; a table would be 8 TB
    assert found.sum() == found[0, -1] == 1


@pytest.mark.parametrize(
    ("labels", "count", "message"),
    [
        ([0, 3], 3, "from 0 to 3, expected 0 to 2\n.*\n.*num_classes=4"),
        ([-1, 1], None, "from -1 to 1, expected 0 to 1\n.*\n.*from 0"),
        ([], None, "no labels"),
    ],
)
def test_bad_labels(labels: Any, count: int | None, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        utils.to_categorical(labels, count)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_normalize(axis: int, order: int) -> None:
    x = np.array([[3.0, 0.0, -4.0], [1.0, 0.0, 2.0]])
    norm = (np.abs(x) ** order).sum(axis, keepdims=True) ** (1 / order)
    expected = x / np.where(norm == 0, 1, norm)
    np.testing.assert_allclose(utils.normalize(x, axis, order), expected)
    tensor = utils.normalize(ops.array(x, dtype="float32"), axis, order)
    assert isinstance(tensor, Tensor)
    np.testing.assert_allclose(np.asarray(tensor), expected, rtol=1e-6)


@pytest.mark.keras_on_jax
def test_agrees_with_keras() -> None:
    keras = pytest.importorskip("keras")
    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_array_equal(utils.normalize(x), keras.utils.normalize(x))
    labels = np.array([[1], [0], [4]])
    expected = keras.utils.to_categorical(labels)
    found = utils.to_categorical(labels)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_one_hot_rows_of_a_tensor_are_a_tensor() -> None:
    found = utils.to_categorical(ops.convert_to_tensor([0, 2]), 3)
    assert isinstance(found, Tensor)
    assert found.dtype == "float32"
    np.testing.assert_array_equal(found.numpy(), [[1, 0, 0], [0, 0, 1]])
