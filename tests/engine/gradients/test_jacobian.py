"""Jacobians, whole and by rows, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import FailedPreconditionError, ShapeError
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import square
from laminar.engine.ops.math.elementary import exp
from laminar.engine.ops.math.reduce import reduce_sum

rng = np.random.default_rng(0)
A, X = rng.normal(size=(3, 4)), rng.normal(size=(5, 3))


def tensor(value: Any) -> Any:
    return eng.convert_to_tensor(np.asarray(value, "float64"))


def both(fn: Any, *values: Any) -> list[Any]:
    """The results on values at hand and in a function, there of unknown sizes too."""
    arguments = [tensor(v) for v in values]
    unknown = [eng.TensorSpec([None] * a.shape.rank, a.dtype) for a in arguments]
    traced = [eng.function(fn), eng.function(fn, input_signature=unknown)]
    return [np.asarray(f(*arguments)) for f in (fn, *traced)]


def test_jacobian() -> None:
    def fn(x: Any, a: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = exp(matmul(x, a))
        return tape.jacobian(y, x)

    expected = np.einsum("bo,bc,io->boci", np.exp(X @ A), np.eye(5), A)
    for found in both(fn, X, A):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_batch_jacobian() -> None:
    def fn(x: Any, a: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = exp(matmul(x, a))
        return tape.batch_jacobian(y, x)

    expected = np.einsum("bo,io->boi", np.exp(X @ A), A)
    for found in both(fn, X, A):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_scalar_target_and_source() -> None:
    def fn(x: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.jacobian(y, x)

    for found in both(fn, 3.0):
        np.testing.assert_array_equal(found, 6.0)


def test_the_hessian() -> None:
    def fn(x: Any) -> Any:
        with eng.GradientTape() as outer:
            outer.watch(x)
            with eng.GradientTape() as inner:
                inner.watch(x)
                y = reduce_sum(square(x) * x)
            dx = inner.gradient(y, x)
        return outer.jacobian(dx, x)

    for found in both(fn, A[0]):
        np.testing.assert_allclose(found, np.diag(6 * A[0]), rtol=1e-12)


def test_the_gradient_of_a_jacobian() -> None:
    def fn(x: Any) -> Any:
        with eng.GradientTape() as outer:
            outer.watch(x)
            with eng.GradientTape() as inner:
                inner.watch(x)
                y = square(x) * x
            slopes = inner.jacobian(y, x)
        return outer.gradient(slopes, x)

    for found in both(fn, A[0]):
        np.testing.assert_allclose(found, 6 * A[0], rtol=1e-12)


def test_structures_variables_and_what_is_unconnected() -> None:
    v, x, other = eng.Variable(A), tensor(X), tensor([1.0, 2.0])
    with eng.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = matmul(x, v)
    found = tape.jacobian(y, {"v": v, "other": other, "x": [x]})
    np.testing.assert_allclose(found["v"], np.einsum("bi,oc->boic", X, np.eye(4)), rtol=1e-12)
    assert found["other"] is None
    assert found["x"][0].shape == (5, 4, 5, 3)
    np.testing.assert_array_equal(tape.jacobian(y, other, "zero"), np.zeros((5, 4, 2)))
    assert tape.batch_jacobian(y, tensor(X)) is None


def test_errors() -> None:
    x = tensor(X)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = reduce_sum(x, 0)
    with pytest.raises(ShapeError, match="must have one first axis"):
        tape.batch_jacobian(y, x)
    tape.jacobian(y, x)
    with pytest.raises(FailedPreconditionError, match="a second time"):
        tape.jacobian(y, x)


def test_in_a_branch_of_tensors_from_outside() -> None:
    @eng.function
    def fn(x: Any, p: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = square(x)
            return eng.cond(p, lambda: tape.jacobian(y * 3.0, x), lambda: tensor(np.zeros((2, 2))))

    found = fn(tensor(A[0][:2]), eng.convert_to_tensor(True))
    np.testing.assert_allclose(found, np.diag(6 * A[0][:2]), rtol=1e-12)
