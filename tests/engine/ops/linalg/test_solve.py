"""Inverse, determinant, solving, pseudo-inverse, powers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.linalg.solve import (
    cholesky_inverse,
    determinant,
    inverse,
    lstsq,
    matrix_power,
    pinv,
    slogdet,
    solve,
    triangular_solve,
)

from ..harness import check_op

rng = np.random.default_rng(17)


def matrices(*shape: int) -> Any:
    """Well conditioned square matrices."""
    return rng.normal(size=(*shape, shape[-1])) + 3 * np.eye(shape[-1])


STACKS = [(3,), (1,), (2, 3), (2, 1, 2), (0, 3), (0,)]


@pytest.mark.parametrize("shape", STACKS)
def test_inverse(shape: tuple[int, ...]) -> None:
    check_op(inverse, np.linalg.inv, [matrices(*shape)], dtypes=["float32"], rtol=1e-4)


@pytest.mark.parametrize("shape", STACKS)
def test_determinant(shape: tuple[int, ...]) -> None:
    check_op(determinant, np.linalg.det, [matrices(*shape)], dtypes=["float32"], rtol=1e-4)


@pytest.mark.parametrize("shape", STACKS)
def test_slogdet(shape: tuple[int, ...]) -> None:
    x = matrices(*shape)
    if x.size:
        x[..., 0] *= -1
    check_op(slogdet, lambda x: tuple(np.linalg.slogdet(x)), [x], dtypes=["float32"], rtol=1e-4)


def test_of_a_singular_matrix() -> None:
    x = constant(np.ones((2, 2)))
    sign, logarithm = slogdet(x)
    assert (sign.numpy(), logarithm.numpy()) == (0.0, -np.inf)
    assert determinant(x).numpy() == 0
    with pytest.raises(InvalidArgumentError, match=r"MatrixInverse\(float64\[2, 2\]\): Singular"):
        inverse(x)
    with pytest.raises(InvalidArgumentError, match=r"Solve.*Singular"):
        solve(x, constant(np.ones(2)))


SYSTEMS = [
    pytest.param((3,), (3, 2), id="matrix"),
    pytest.param((3,), (3,), id="vector"),
    pytest.param((2, 3), (2, 3, 1), id="stack"),
    pytest.param((2, 3), (2, 3), id="stack-of-vectors"),
    pytest.param((4, 1, 3), (1, 2, 3, 2), id="broadcast"),
    pytest.param((3,), (2, 4, 3, 2), id="b-has-more-axes"),
    pytest.param((3,), (3, 0), id="no-columns"),
    pytest.param((40,), (40, 2), id="large"),
]


@pytest.mark.parametrize(("a", "b"), SYSTEMS)
def test_solve(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    def reference(a: Any, b: Any) -> Any:
        if b.ndim == a.ndim - 1:
            return np.linalg.solve(a, b[..., None])[..., 0]
        return np.linalg.solve(a, b)

    check_op(solve, reference, [matrices(*a), rng.normal(size=b)], dtypes=["float32"], rtol=1e-4)


@pytest.mark.parametrize("is_adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (3, 2)), ((3,), (3,)), ((2, 3), (2, 3, 1)), ((4, 1, 3), (1, 2, 3, 2)), ((0,), (0, 2))],
)
def test_triangular_solve(
    a: tuple[int, ...], b: tuple[int, ...], lower: bool, is_adjoint: bool
) -> None:
    def reference(a: Any, b: Any) -> Any:
        t = np.tril(a) if lower else np.triu(a)
        t = np.swapaxes(t, -1, -2) if is_adjoint else t
        if b.ndim == a.ndim - 1:
            return np.linalg.solve(t, b[..., None])[..., 0]
        return np.linalg.solve(t, b)

    check_op(
        lambda a, b: triangular_solve(a, b, lower, is_adjoint),
        reference,
        [matrices(*a), rng.normal(size=b)],
        dtypes=["float32"],
        rtol=1e-4,
    )


def test_triangular_solve_of_many_equations() -> None:
    a, b = matrices(100), rng.normal(size=(100, 3))
    a += 20 * np.eye(100)
    for lower in (False, True):
        found = triangular_solve(constant(a), constant(b), lower).numpy()
        t = np.tril(a) if lower else np.triu(a)
        np.testing.assert_allclose(found, np.linalg.solve(t, b), rtol=1e-9)


def test_complex_matrices() -> None:
    z = matrices(3) + 1j * matrices(3)
    b = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
    t = constant(z)
    np.testing.assert_allclose(inverse(t).numpy(), np.linalg.inv(z))
    np.testing.assert_allclose(determinant(t).numpy(), np.linalg.det(z))
    np.testing.assert_allclose(solve(t, constant(b)).numpy(), np.linalg.solve(z, b))
    found = triangular_solve(t, constant(b), lower=True, adjoint=True).numpy()
    np.testing.assert_allclose(found, np.linalg.solve(np.tril(z).conj().T, b))
    np.testing.assert_allclose(pinv(t).numpy(), np.linalg.inv(z))


TALL_AND_WIDE = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (0, 2), (2, 0)]


@pytest.mark.parametrize("shape", TALL_AND_WIDE)
def test_pinv(shape: tuple[int, ...]) -> None:
    check_op(pinv, np.linalg.pinv, [rng.normal(size=shape)], dtypes=["float32"], rtol=1e-3)


def test_pinv_of_a_matrix_without_full_rank() -> None:
    x = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]).astype(np.float32)
    np.testing.assert_allclose(pinv(constant(x)).numpy(), np.linalg.pinv(x, 1e-6), rtol=1e-4)
    y = np.diag([1.0, 0.01])
    np.testing.assert_allclose(pinv(constant(y), 0.1).numpy(), np.diag([1.0, 0.0]), atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_lstsq(shape: tuple[int, int], columns: tuple[int, ...]) -> None:
    check_op(
        lstsq,
        lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0],
        [rng.normal(size=shape), rng.normal(size=(shape[0], *columns))],
        dtypes=["float32"],
        rtol=1e-3,
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -1, -2])
@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_matrix_power(shape: tuple[int, ...], n: int) -> None:
    check_op(
        lambda x: matrix_power(x, n) + 0.0 * x,
        lambda x: np.linalg.matrix_power(x, n),
        [matrices(*shape)],
        dtypes=["float32"],
        rtol=1e-4,
    )


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_cholesky_inverse(shape: tuple[int, ...], upper: bool) -> None:
    def reference(x: Any) -> Any:
        f = np.triu(x) if upper else np.tril(x)
        t = np.swapaxes(f, -1, -2)
        return np.linalg.inv(t @ f if upper else f @ t)

    check_op(
        lambda x: cholesky_inverse(x, upper),
        reference,
        [matrices(*shape)],
        dtypes=["float32"],
        rtol=1e-4,
    )


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 3, 3])
        assert inverse(x).shape == TensorShape([None, 3, 3])
        assert determinant(x).shape == TensorShape([None])
        b = placeholder("float32", [1, 3, 2])
        assert solve(x, b).shape == TensorShape([None, 3, 2])
        assert pinv(placeholder("float32", [None, 5])).shape == TensorShape([5, None])


ERRORS: list[Any] = [
    pytest.param(inverse, (2, 3), ShapeError, r"expected square .*2 rows, 3 columns", id="inv"),
    pytest.param(determinant, (3,), ShapeError, "expected a matrix or a stack", id="vector"),
    pytest.param(
        lambda x: solve(x, constant(np.zeros((4, 1)))),
        (3, 3),
        ShapeError,
        "Solve: a has 3 rows and b has 4",
        id="rows",
    ),
    pytest.param(
        lambda x: triangular_solve(x, constant(np.zeros((4, 1)))),
        (3, 3),
        ShapeError,
        "TriangularSolve: a has 3 rows and b has 4",
        id="triangular",
    ),
    pytest.param(lambda x: matrix_power(x, 0), (2, 3), ShapeError, "square", id="power"),
]


@pytest.mark.parametrize(("call", "shape", "error", "message"), ERRORS)
def test_errors(
    call: Callable[[Any], Any], shape: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros(shape)))


def test_half_precision_is_refused() -> None:
    with pytest.raises(DTypeError, match="MatrixInverse: x must be one of"):
        inverse(constant(np.eye(2, dtype=np.float16)))
