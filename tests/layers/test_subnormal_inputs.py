"""Softmax and normalization of subnormal numbers: as of 0, and NumPy's values in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.functions import function

MASK = np.where(np.arange(64) % 3, 0, 90).astype("float32")  # exp(-90) is a subnormal number
BELOW = np.random.default_rng(0).uniform(-1e-38, 1e-38, (8, 64))


def normalized(x: Any, axis: Any) -> Any:
    mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-3)


def softmax(x: Any) -> Any:
    shares = np.exp(x - x.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


CASES = [
    pytest.param(ops.softmax, softmax, id="softmax"),
    pytest.param(ops.log_softmax, lambda x: np.log(softmax(x)), id="log-softmax"),
    pytest.param(
        lambda x: ops.softmax(x - MASK), lambda x: softmax(x - MASK), id="softmax-of-masked"
    ),
    pytest.param(layers.LayerNormalization(), lambda x: normalized(x, -1), id="layer"),
    pytest.param(
        partial(layers.BatchNormalization(), training=True),
        lambda x: normalized(x, 0),
        id="batch",
    ),
    pytest.param(layers.RMSNormalization(), lambda x: x / np.sqrt(1e-6), id="rms"),
    pytest.param(layers.UnitNormalization(), lambda x: 0 * x, id="unit"),
]


@pytest.mark.parametrize(("fn", "reference"), CASES)
def test_values(fn: Callable[..., Any], reference: Callable[..., Any]) -> None:
    found = np.asarray(function(fn)(BELOW.astype("float32")))
    np.testing.assert_allclose(found, reference(BELOW), rtol=1e-5, atol=1e-6)
