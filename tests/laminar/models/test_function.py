"""Function: a part of a model, to be called."""

from __future__ import annotations

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import InvalidArgumentError

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_function_computes_its_outputs() -> None:
    x = layers.Input((3,))
    hidden = layers.Dense(4, activation="relu")(x)
    y = layers.Dense(2)(hidden)
    whole = laminar.Function(x, {"hidden": hidden, "y": y * 2})
    found = whole(X)
    by_hand = laminar.Model(x, y)(X).numpy()
    np.testing.assert_allclose(found["y"], by_hand * 2, rtol=1e-6)
    assert found["hidden"].shape == (2, 4)
    assert len(whole.operations) == 4
    assert len(whole.inputs) == 1
    assert len(whole.outputs) == 2
    assert whole.compute_output_shape((5, 3)) == {"hidden": (5, 4), "y": (5, 2)}
    again = whole(layers.Input((3,)))
    assert tuple(again["y"].shape) == (None, 2)

    last = laminar.Function(hidden, y, name="last")
    np.testing.assert_allclose(last(found["hidden"]), by_hand, rtol=1e-6)
    assert last.name == "last"
    assert isinstance(last, laminar.Operation)


def test_mistakes() -> None:
    x, other = layers.Input((3,)), layers.Input((3,))
    with pytest.raises(InvalidArgumentError, match="must be symbolic tensors"):
        laminar.Function(X, x)
    with pytest.raises(InvalidArgumentError, match="which is not among the inputs"):
        laminar.Function(x, x + other)
