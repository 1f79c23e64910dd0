"""`grad` and `value_and_grad`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.math.elementary import sin
from laminar.engine.ops.math.reduce import reduce_sum


def cubic(x: Any, y: Any = 2.0) -> Any:
    """x^3 y."""
    return x * x * x * y


def test_grad() -> None:
    assert float(eng.grad(cubic)(3.0)) == 54.0
    assert float(eng.grad(cubic)(np.asarray(3.0), y=1.0)) == 27.0


def test_value_and_grad() -> None:
    value, gradient = eng.value_and_grad(cubic)(3.0)
    assert (float(value), float(gradient)) == (54.0, 54.0)


def test_several_arguments() -> None:
    dx, dy = eng.grad(cubic, argnums=(0, 1))(3.0, 5.0)
    assert (float(dx), float(dy)) == (135.0, 27.0)
    assert float(eng.grad(cubic, argnums=-1)(3.0, 5.0)) == 27.0
    with pytest.raises(InvalidArgumentError, match="argument 2 was asked for, the call has 1"):
        eng.grad(cubic, argnums=2)(3.0)


def test_structures_and_variables() -> None:
    v = eng.Variable([1.0, 2.0])

    def loss(parameters: Any, x: Any) -> Any:
        return reduce_sum(parameters["w"] * x) + reduce_sum(parameters["b"] * parameters["b"])

    found = eng.grad(loss)({"w": v, "b": 3.0}, np.array([10, 20], np.float32))
    assert found["w"].tolist() == [10.0, 20.0]
    assert float(found["b"]) == 6.0


def test_aux() -> None:
    def loss(x: Any) -> Any:
        return x * x, {"seen": "x"}

    (value, aux), gradient = eng.value_and_grad(loss, has_aux=True)(3.0)
    assert (float(value), aux, float(gradient)) == (9.0, {"seen": "x"}, 6.0)
    gradient, aux = eng.grad(loss, has_aux=True)(3.0)
    assert (float(gradient), aux) == (6.0, {"seen": "x"})


def test_higher_order() -> None:
    third = eng.grad(eng.grad(eng.grad(sin)))
    assert float(third(np.asarray(0.4))) == pytest.approx(-np.cos(0.4))


def test_the_result_must_be_a_scalar() -> None:
    with pytest.raises(InvalidArgumentError, match=r"must return a scalar, got float32\[2\]"):
        eng.grad(lambda x: x * x)(np.ones(2, np.float32))


def test_of_a_function_and_in_a_function() -> None:
    traced = eng.function(cubic)
    assert float(eng.grad(traced)(3.0, 2.0)) == 54.0
    both = eng.function(lambda x: eng.grad(eng.grad(cubic))(x))
    assert float(both(eng.convert_to_tensor(3.0))) == 36.0


def test_variables_that_are_not_arguments_are_constants() -> None:
    v = eng.Variable(5.0)
    assert float(eng.grad(lambda x: x * v)(2.0)) == 5.0


def test_the_wrapped_function_keeps_its_name() -> None:
    assert eng.grad(cubic).__name__ == "cubic"
    assert eng.grad(cubic).__doc__ == "x^3 y."
