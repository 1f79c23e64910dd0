"""Regularizers: arithmetic, configs, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import regularizers
from laminar.engine.errors import InvalidArgumentError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 3))


def cosines(rows: Any) -> float:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    product = unit @ unit.T
    n = len(rows)
    return float(np.abs(product - np.diag(np.diag(product))).sum() / (n * (n - 1)))


@pytest.mark.parametrize(
    ("regularizer", "expected"),
    [
        (regularizers.L1(0.1), 0.1 * np.abs(X).sum()),
        (regularizers.L2(0.1), 0.1 * (X * X).sum()),
        (regularizers.L1L2(0.1, 0.2), 0.1 * np.abs(X).sum() + 0.2 * (X * X).sum()),
        (regularizers.L1L2(), 0.0),
        (regularizers.OrthogonalRegularizer(0.5), 0.5 * cosines(X)),
        (regularizers.OrthogonalRegularizer(0.5, "columns"), 0.5 * cosines(X.T)),
    ],
)
def test_values(regularizer: Any, expected: float) -> None:
    found = regularizer(X)
    assert found.dtype == "float64"
    assert found.shape == ()
    np.testing.assert_allclose(found.numpy(), expected)
    again = regularizers.deserialize(regularizers.serialize(regularizer))
    assert again.get_config() == regularizer.get_config()
    np.testing.assert_allclose(again(X).numpy(), expected)


def test_defaults_and_names() -> None:
    assert regularizers.get("l1").get_config() == {"l1": 0.01}
    assert regularizers.get("L2").get_config() == {"l2": 0.01}
    assert regularizers.get("l1_l2").get_config() == {"l1": 0.0, "l2": 0.0}
    assert regularizers.get(None) is None
    assert regularizers.get(abs) is abs
    assert regularizers.l2 is regularizers.L2
    with pytest.raises(InvalidArgumentError, match="'l3' is not known"):
        regularizers.get("l3")


def test_errors() -> None:
    for value in (-1, float("nan"), "x"):
        with pytest.raises(InvalidArgumentError, match="l1 must be a finite number of at least 0"):
            regularizers.L1(value)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(InvalidArgumentError, match="mode must be 'rows' or 'columns'"):
        regularizers.OrthogonalRegularizer(mode="all")
    with pytest.raises(ShapeError, match="expected a matrix"):
        regularizers.OrthogonalRegularizer()(np.ones(3))


def test_agreement_with_keras() -> None:
    keras = pytest.importorskip("keras")
    for name in ("L1", "L2", "L1L2", "OrthogonalRegularizer"):
        theirs = getattr(keras.regularizers, name)(0.25)
        ours = getattr(regularizers, name)(0.25)
        np.testing.assert_allclose(
            np.asarray(theirs(X.astype("float32"))), ours(X.astype("float32")).numpy(), rtol=1e-6
        )
        assert regularizers.serialize(ours) == keras.regularizers.serialize(theirs)
