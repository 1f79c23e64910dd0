"""Histograms, polynomials and the beta function against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import laminar.compat.v1 as tf

X = np.random.default_rng(0).normal(size=(3, 20)).astype("float32")
CASES: list[Any] = [
    pytest.param(lambda: tf.lbeta([2.0, 3.0]), scipy.special.betaln(2, 3), id="lbeta"),
    pytest.param(
        lambda: tf.lbeta(np.exp(X[:, :3])),
        scipy.special.gammaln(np.exp(X[:, :3])).sum(1)
        - scipy.special.gammaln(np.exp(X[:, :3]).sum(1)),
        id="lbeta of rows",
    ),
    pytest.param(lambda: tf.lbeta(np.zeros(0, "float32")), -np.inf, id="lbeta of none"),
    pytest.param(lambda: tf.math.polyval([2.0, 0.5, -1.0], X), np.polyval([2, 0.5, -1], X)),
    pytest.param(lambda: tf.math.polyval([], X), np.zeros_like(X), id="no polynomial"),
    pytest.param(
        lambda: tf.histogram_fixed_width(X, [-1.0, 1.0], 8),
        np.histogram(np.clip(X, -1, 1 - 1e-6), 8, (-1, 1))[0],
        id="histogram",
    ),
    pytest.param(
        lambda: tf.histogram_fixed_width([-1, 0, 4, 5, 9], [0, 5], nbins=5, dtype=tf.int64),
        [2, 0, 0, 0, 3],
        id="histogram of integers",
    ),
    pytest.param(
        lambda: tf.histogram_fixed_width_bins([[-1.0, 0.0], [2.5, 9.0]], [0.0, 5.0], nbins=5),
        [[0, 0], [2, 4]],
        id="places",
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_values(make: Any, expected: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(make())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


WRONG: list[Any] = [
    pytest.param(lambda: tf.histogram_fixed_width(X, [1.0, 1.0]), "is empty", id="range"),
    pytest.param(lambda: tf.histogram_fixed_width(X, [0.0, 1.0], 0), "above 0", id="parts"),
    pytest.param(lambda: tf.histogram_fixed_width(X, [0.0, 1.0, 2.0]), "two ends", id="ends"),
    pytest.param(lambda: tf.math.polyval(2.0, X), "a list", id="coefficients"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()
