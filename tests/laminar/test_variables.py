"""`laminar.Variable`: initializers by name, and what Keras's variables have besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import Variable, constraints, initializers, regularizers
from laminar.engine.errors import DTypeError, InvalidArgumentError

INITIALIZERS: list[Any] = [
    pytest.param("ones", id="name"),
    pytest.param(initializers.Ones(), id="object"),
    pytest.param(initializers.Ones, id="class"),
    pytest.param({"class_name": "Ones", "config": {}}, id="config"),
    pytest.param(lambda shape, dtype: np.ones(shape), id="function"),
]


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_initializers(initializer: Any) -> None:
    v = Variable(initializer, shape=(2, 3), dtype="float16")
    assert v.dtype == "float16"
    np.testing.assert_array_equal(v.numpy(), np.ones((2, 3)))


def test_texts_are_values_without_a_shape() -> None:
    assert Variable("ones").numpy() == b"ones"
    assert Variable("ones", shape=(), dtype="string").numpy() == b"ones"


def test_unknown_initializers() -> None:
    with pytest.raises(InvalidArgumentError, match="'oness' is not known"):
        Variable("oness", shape=(2,))
    with pytest.raises(InvalidArgumentError, match="shape= is needed"):
        Variable(initializers.Ones())


def test_attributes() -> None:
    v = Variable("zeros", shape=(2,), aggregation=None, synchronization=None)
    assert (v.aggregation, v.synchronization, v.overwrite_with_gradient) == ("none", "none", False)
    for name, found in (
        ("regularizer", regularizers.L2(0.1)),
        ("constraint", constraints.NonNeg()),
    ):
        for value in (found, abs, None):
            setattr(v, name, value)
            assert getattr(v, name) is value
        with pytest.raises(InvalidArgumentError, match=f"a {name} is a function"):
            setattr(v, name, "l2")
    v.overwrite_with_gradient = True
    assert v.overwrite_with_gradient
    with pytest.raises(DTypeError, match="overwrite_with_gradient is a bool"):
        v.overwrite_with_gradient = "yes"  # type: ignore[assignment]  # the mistake


@pytest.mark.parametrize(
    "options",
    [{"name": 3}, {"aggregation": "max"}, {"synchronization": "never"}],
    ids=lambda options: next(iter(options)),
)
def test_mistakes(options: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="Variable:"):
        Variable("zeros", shape=(2,), **options)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_and_or_and_xor_are_logical(dtype: str) -> None:
    a, b = np.array([0, 0, 2, 3]).astype(dtype), np.array([0, 1, 0, 4]).astype(dtype)
    v, w = Variable(a), Variable(b)
    for found, expected in (
        (v & w, np.logical_and(a, b)),
        (v | b, np.logical_or(a, b)),
        (a ^ w, np.logical_xor(a, b)),
    ):
        assert found.dtype == "bool"
        np.testing.assert_array_equal(found, expected)


def test_as_python_numbers() -> None:
    v = Variable([1.16, 2.25, -3.5])
    np.testing.assert_array_equal(round(v), [1.0, 2.0, -4.0])
    np.testing.assert_allclose(round(v, 1), [1.2, 2.2, -3.5])
    np.testing.assert_array_equal(round(Variable([14, 16]), -1), [10, 20])
    assert int(Variable([[3.0]])) == 3
    for number in (int, float, complex):
        with pytest.raises(TypeError, match=r"the tensor is float32\[3\]"):
            number(v)
