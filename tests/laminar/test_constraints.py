"""Constraints: arithmetic, configs, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import constraints
from laminar.engine.errors import InvalidArgumentError

rng = np.random.default_rng(0)
W = 3 * rng.normal(size=(4, 3, 2))
SMALL = 1e-7


def lengths(axis: Any) -> Any:
    return np.sqrt((W * W).sum(axis=axis, keepdims=True))


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (constraints.NonNeg(), np.maximum(W, 0)),
        (constraints.UnitNorm(), W / (lengths(0) + SMALL)),
        (constraints.UnitNorm(axis=[0, 1]), W / (lengths((0, 1)) + SMALL)),
        (constraints.MaxNorm(2), W * np.minimum(lengths(0), 2) / (lengths(0) + SMALL)),
        (
            constraints.MinMaxNorm(4.0, 5.0, 0.5, axis=1),
            W * (0.5 * np.clip(lengths(1), 4, 5) + 0.5 * lengths(1)) / (lengths(1) + SMALL),
        ),
    ],
)
def test_values(constraint: Any, expected: Any) -> None:
    np.testing.assert_allclose(constraint(W).numpy(), expected)
    again = constraints.deserialize(constraints.serialize(constraint))
    assert again.get_config() == constraint.get_config()
    np.testing.assert_allclose(again(W).numpy(), expected)


def test_names() -> None:
    assert isinstance(constraints.get("max_norm"), constraints.MaxNorm)
    assert isinstance(constraints.get("NonNeg"), constraints.NonNeg)
    assert constraints.get(None) is None
    assert constraints.unit_norm is constraints.UnitNorm
    with pytest.raises(InvalidArgumentError, match="'maxnorm' is not known"):
        constraints.get("maxnorm")


def test_agreement_with_keras() -> None:
    keras = pytest.importorskip("keras")
    w = W.astype("float32")
    for name in ("NonNeg", "UnitNorm", "MaxNorm", "MinMaxNorm"):
        theirs, ours = getattr(keras.constraints, name)(), getattr(constraints, name)()
        np.testing.assert_allclose(np.asarray(theirs(w)), ours(w).numpy(), rtol=1e-6)
        assert constraints.serialize(ours) == keras.constraints.serialize(theirs)
