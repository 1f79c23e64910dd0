"""pad_sequences."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from laminar import utils
from laminar.engine.errors import InvalidArgumentError, ShapeError

CASES = [
    ({}, [[0, 0, 1], [0, 2, 3], [4, 5, 6]]),
    ({"padding": "post"}, [[1, 0, 0], [2, 3, 0], [4, 5, 6]]),
    ({"maxlen": 2}, [[0, 1], [2, 3], [5, 6]]),
    ({"maxlen": 2, "truncating": "post"}, [[0, 1], [2, 3], [4, 5]]),
    ({"maxlen": 4, "value": -1}, [[-1, -1, -1, 1], [-1, -1, 2, 3], [-1, 4, 5, 6]]),
    ({"maxlen": 0}, [[], [], []]),
]


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_cases(options: dict[str, Any], expected: Any) -> None:
    found = utils.pad_sequences([[1], [2, 3], [4, 5, 6]], **options)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.array(expected, "int32"))


def test_agrees_with_keras() -> None:
    keras = pytest.importorskip("keras")
    rng = np.random.default_rng(0)
    kinds: list[Any] = [
        [list(rng.integers(0, 9, n)) for n in (3, 0, 5, 1)],
        [rng.normal(size=(n, 2)) for n in (2, 4, 1)],
        ([1, 2], (3,), np.array([4, 5, 6])),
    ]
    for sequences, padding, truncating, maxlen, dtype in product(
        kinds, ["pre", "post"], ["pre", "post"], [None, 2, 7], ["int32", "float32"]
    ):
        options: dict[str, Any] = {
            "padding": padding,
            "truncating": truncating,
            "maxlen": maxlen,
            "dtype": dtype,
        }
        found = utils.pad_sequences(sequences, **options)
        expected = keras.utils.pad_sequences(sequences, **options)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_texts() -> None:
    found = utils.pad_sequences([["a"], ["long one", "b"]], dtype=object, value="-")
    assert found.tolist() == [["-", "a"], ["long one", "b"]]


def test_nothing() -> None:
    assert utils.pad_sequences([]).shape == (0, 0)
    assert utils.pad_sequences([[], []], maxlen=2).tolist() == [[0, 0], [0, 0]]


BAD = [
    (3, {}, InvalidArgumentError, "expected a list of sequences, got 3"),
    ([1, 2], {}, InvalidArgumentError, "the item 0 is 1"),
    ([[1]], {"padding": "left"}, InvalidArgumentError, "padding must be 'pre' or 'post'"),
    ([[1]], {"truncating": "left"}, InvalidArgumentError, "truncating must be 'pre' or 'post'"),
    ([[1]], {"value": "x"}, InvalidArgumentError, "does not fit the dtype int32"),
    ([np.ones((2, 3)), np.ones((1, 4))], {}, ShapeError, r"have shape \(4,\), those of the first"),
]


@pytest.mark.parametrize(("sequences", "options", "error", "message"), BAD)
def test_errors(
    sequences: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        utils.pad_sequences(sequences, **options)
