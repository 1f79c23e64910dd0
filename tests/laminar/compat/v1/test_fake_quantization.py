"""Fake quantization, against the rounding written out in NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any) -> Any:
    with tf.Session() as session:
        return session.run(x)


X = np.linspace(-2.0, 3.0, 41).astype("float32")


def stored(low: float, high: float, bits: int, narrow: bool) -> Any:
    """The numbers that can be stored: 2**bits, or one less, of which 0 is one."""
    count = 2**bits - 1 - narrow
    scale = (high - low) / count
    first = -round(-low / scale)
    return (first + np.arange(count + 1)) * scale


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (-0.7, 1.31), (0.0, 2.0)])
def test_numbers_are_the_nearest_stored(bits: int, narrow: bool, low: float, high: float) -> None:
    known = stored(low, high, bits, narrow)
    nearest = np.abs(X[:, None] - known).min(1)
    found = run(
        [
            tf.quantization.fake_quant_with_min_max_args(X, low, high, bits, narrow),
            tf.quantization.fake_quant_with_min_max_vars(X, low, high, bits, narrow),
            tf.fake_quant_with_min_max_vars_per_channel(
                np.stack([X, X], -1), [low, -2.0], [high, 2.0], bits, narrow
            )[:, 0],
        ]
    )
    for value in found:
        np.testing.assert_allclose(np.abs(value - X), nearest, atol=1e-5)
        np.testing.assert_allclose(np.abs(value[:, None] - known).min(1), 0, atol=1e-5)


def test_slopes() -> None:
    x, low, high = tf.constant(X), tf.constant(-1.0), tf.constant(2.0)
    y = tf.fake_quant_with_min_max_vars(x, low, high, 4)
    dx, dlow, dhigh = run(tf.gradients(y, [x, low, high]))
    known = stored(-1.0, 2.0, 4, False)
    inside = (known[0] <= X) & (known[-1] >= X)
    np.testing.assert_array_equal(dx, inside)
    assert dlow == (known[0] > X).sum()
    assert dhigh == (known[-1] < X).sum()
    found = run(tf.fake_quant_with_min_max_args_gradient(2 * np.ones_like(X), X, -1, 2, 4))
    np.testing.assert_array_equal(found, 2.0 * inside)


def test_mistakes() -> None:
    with pytest.raises(InvalidArgumentError, match="from 2 to 16"):
        tf.fake_quant_with_min_max_args(X, num_bits=1)
    with pytest.raises(InvalidArgumentError, match="below max"):
        tf.fake_quant_with_min_max_args(X, 1, -1)
