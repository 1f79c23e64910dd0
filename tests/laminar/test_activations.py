"""Activations by name, and those that are not plain ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import activations, ops
from laminar.engine.errors import InvalidArgumentError
from laminar.registration import register_keras_serializable

X = np.linspace(-7, 9, 33).astype("float32")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, np.maximum(X, 0)),
        ({"negative_slope": 0.2}, np.where(X > 0, X, np.float32(0.2) * X)),
        ({"max_value": 6}, np.clip(X, 0, 6)),
        ({"threshold": 1.0}, np.where(X > 1, X, 0)),
        (
            {"negative_slope": 0.5, "max_value": 4.0, "threshold": 1.0},
            np.where(X > 4, 4, np.where(X > 1, X, 0.5 * (X - 1))),
        ),
    ],
)
def test_relu(options: dict[str, Any], expected: Any) -> None:
    np.testing.assert_allclose(activations.relu(X, **options).numpy(), expected)


def test_gelu_is_exact_by_default() -> None:
    np.testing.assert_array_equal(
        activations.gelu(X).numpy(), ops.gelu(X, approximate=False).numpy()
    )


def test_linear_and_exponential() -> None:
    assert activations.linear(X) is X
    np.testing.assert_allclose(activations.exponential(X).numpy(), np.exp(X), rtol=1e-6)


@pytest.mark.parametrize("name", sorted(activations._NAMES))
def test_names_round_trip(name: str) -> None:
    fn = activations.get(name)
    text = activations.serialize(fn)
    assert isinstance(text, str)
    assert activations.deserialize(text) is fn
    if name not in ("glu", "threshold"):
        assert fn(np.ones((2, 4), "float32")).shape == (2, 4)


def test_other_identifiers() -> None:
    assert activations.get(None) is activations.linear
    assert activations.get(np.tanh) is np.tanh
    assert activations.serialize(ops.relu) == "relu"
    assert activations.swish is activations.silu
    with pytest.raises(InvalidArgumentError, match="'rellu' is not known") as error:
        activations.get("rellu")
    assert "did you mean relu" in str(error.value)


@register_keras_serializable("tests")
def cubed(x: Any) -> Any:
    return x**3


def test_a_registered_function_round_trips() -> None:
    data = activations.serialize(cubed)
    assert data["registered_name"] == "tests>cubed"
    assert activations.deserialize(data) is cubed


def test_agreement_with_keras() -> None:
    keras = pytest.importorskip("keras")
    x = X.reshape(3, 11)
    skipped = {"glu", "threshold", "sparsemax"}  # arguments of their own; Keras's sums too much
    for name in sorted(set(activations._NAMES) - skipped):
        theirs = np.asarray(getattr(keras.activations, name)(x))
        ours = np.asarray(getattr(activations, name)(x))
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6, err_msg=name)
