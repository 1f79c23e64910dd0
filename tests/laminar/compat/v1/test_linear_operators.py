"""Operators of matrices against the matrices themselves, by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import linalg as scipy_linalg

import laminar.compat.v1 as tf

rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 3)) + 3 * np.eye(3), rng.normal(size=(2, 2)) + 2 * np.eye(2)
U, V, D = rng.normal(size=(3, 2)), rng.normal(size=(3, 2)), np.array([0.5, 2.0])
DIAGONAL, AXIS = np.array([[1.0, 2, 3], [4, 5, 6]]), np.array([1.0, 2, 2])
SPECTRUM = np.array([4.0, 2 + 1j, 3, 2 - 1j])
BOX = np.fft.fft2(rng.normal(size=(2, 3)) + 3 * np.eye(2, 3)).astype("complex128")
SPD = A @ A.swapaxes(-1, -2)
L = tf.linalg


def circulant(spectrum: Any) -> Any:
    """The matrix of a convolution that wraps around, by the vectors of unit."""
    n = spectrum.size
    units = np.eye(n).reshape(n, *spectrum.shape)
    axes = tuple(range(1, spectrum.ndim + 1))
    done = np.fft.ifftn(np.fft.fftn(units, axes=axes) * spectrum, axes=axes)
    return done.reshape(n, n).T


def blocks(x: Any, y: Any) -> Any:
    return np.stack([scipy_linalg.block_diag(a, y) for a in x])


TABLE: list[tuple[str, Callable[[], Any], Any]] = [
    ("full", lambda: L.LinearOperatorFullMatrix(A), A),
    ("diag", lambda: L.LinearOperatorDiag(DIAGONAL), np.stack([np.diag(d) for d in DIAGONAL])),
    ("triangle", lambda: L.LinearOperatorLowerTriangular(A), np.tril(A)),
    ("identity", lambda: L.LinearOperatorIdentity(3, dtype=tf.float64), np.eye(3)),
    ("identities", lambda: L.LinearOperatorIdentity(3, [2], tf.float64), np.stack([np.eye(3)] * 2)),
    ("scaled", lambda: L.LinearOperatorScaledIdentity(3, np.array([2.0, -3.0])),
     np.array([2.0, -3.0])[:, None, None] * np.eye(3)),
    ("householder", lambda: L.LinearOperatorHouseholder(AXIS),
     np.eye(3) - 2 * np.outer(AXIS, AXIS) / 9),
    ("composition", lambda: L.LinearOperatorFullMatrix(A).matmul(L.LinearOperatorDiag(DIAGONAL)),
     A * DIAGONAL[:, None, :]),
    ("blocks", lambda: L.LinearOperatorBlockDiag(
        [L.LinearOperatorFullMatrix(A), L.LinearOperatorFullMatrix(B)]), blocks(A, B)),
    ("kronecker", lambda: L.LinearOperatorKronecker(
        [L.LinearOperatorFullMatrix(A), L.LinearOperatorFullMatrix(B)]),
     np.stack([np.kron(a, B) for a in A])),
    ("adjoint", lambda: L.LinearOperatorFullMatrix(A).H, A.swapaxes(-1, -2)),
    ("inversion", lambda: L.LinearOperatorFullMatrix(A).inverse(), np.linalg.inv(A)),
    ("update", lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorDiag(DIAGONAL), U, D, V),
     np.stack([np.diag(d) for d in DIAGONAL]) + U * D @ V.T),
    ("circulant", lambda: L.LinearOperatorCirculant(SPECTRUM, tf.float64),
     circulant(SPECTRUM).real),
    ("circulant 2d", lambda: L.LinearOperatorCirculant2D(BOX, tf.float64), circulant(BOX).real),
    ("toeplitz", lambda: L.LinearOperatorToeplitz([1.0, 2, 3], [1.0, -1, -2]),
     scipy_linalg.toeplitz([1, 2, 3], [1, -1, -2])),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


@pytest.mark.parametrize(("make", "dense"), [t[1:] for t in TABLE], ids=[t[0] for t in TABLE])
def test_what_a_matrix_does(make: Callable[[], Any], dense: Any) -> None:
    operator = make()
    assert operator.shape.as_list() == list(dense.shape)
    n = dense.shape[-1]
    x = rng.normal(size=(*dense.shape[:-2], n, 2))
    if operator.dtype == tf.float32:
        x = x.astype("float32")
    transposed = dense.swapaxes(-1, -2)
    expected: dict[str, Any] = {
        "dense": dense,
        "product": dense @ x,
        "adjoint product": transposed @ x,
        "vector": (dense @ x)[..., 0],
        "solution": np.linalg.solve(dense, x),
        "adjoint solution": np.linalg.solve(transposed, x),
        "determinant": np.linalg.det(dense),
        "logarithm": np.linalg.slogdet(dense)[1],
        "diagonal": np.diagonal(dense, axis1=-2, axis2=-1),
        "trace": np.trace(dense, axis1=-2, axis2=-1),
        "sum": dense + np.ones((n, n)),
        "shape": dense.shape,
    }
    found = {
        "dense": operator.to_dense(),
        "product": operator.matmul(x),
        "adjoint product": operator.matmul(x.swapaxes(-1, -2), adjoint=True, adjoint_arg=True),
        "vector": operator.matvec(x[..., 0]),
        "solution": operator.solve(x),
        "adjoint solution": operator.solve(x, adjoint=True),
        "determinant": operator.determinant(),
        "logarithm": operator.log_abs_determinant(),
        "diagonal": operator.diag_part(),
        "trace": operator.trace(),
        "sum": operator.add_to_tensor(np.ones((n, n), x.dtype)),
        "shape": operator.shape_tensor(),
    }
    with tf.Session() as session:
        values = session.run(found)
    tolerance = 1e-4 if operator.dtype == tf.float32 else 1e-9
    for key, value in values.items():
        np.testing.assert_allclose(
            value, expected[key], rtol=tolerance, atol=tolerance, err_msg=key
        )


def test_factors_and_gradients() -> None:
    operator = L.LinearOperatorFullMatrix(SPD, is_self_adjoint=True, is_positive_definite=True)
    lower = operator.cholesky()
    x = tf.constant(np.ones((2, 3, 1)))
    gradient = tf.gradients(tf.reduce_sum(operator.matmul(x)), x)[0]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(lower.to_dense()), np.linalg.cholesky(SPD))
        np.testing.assert_allclose(session.run(gradient)[..., 0], SPD.sum(-2))
        session.run(operator.assert_positive_definite())
        session.run(operator.assert_self_adjoint())
        session.run(operator.assert_non_singular())
        with pytest.raises(tf.errors.InvalidArgumentError, match="not positive definite"):
            session.run(L.LinearOperatorFullMatrix(-SPD).assert_positive_definite())
        with pytest.raises(tf.errors.InvalidArgumentError, match="singular"):
            session.run(L.LinearOperatorFullMatrix(np.ones((2, 2))).assert_non_singular())


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="self-adjoint positive definite"):
        L.LinearOperatorFullMatrix(A).cholesky()
    with pytest.raises(ValueError, match="not singular"):
        L.LinearOperatorFullMatrix(A, is_non_singular=False, is_positive_definite=True)
    with pytest.raises(NotImplementedError, match="square"):
        L.LinearOperatorFullMatrix(np.ones((2, 3))).determinant()
    with pytest.raises(ValueError, match="2 rows do not fit"):
        L.LinearOperatorFullMatrix(A).matmul(np.ones((2, 1)))
    zeros = L.LinearOperatorZeros(2, 3, dtype=tf.float64, is_square=False, is_self_adjoint=False)
    with tf.Session() as session:
        assert session.run(zeros.matmul(np.ones((3, 4)))).tolist() == np.zeros((2, 4)).tolist()
    with pytest.raises(NotImplementedError, match="singular"):
        L.LinearOperatorZeros(2).solve(np.ones((2, 1), "float32"))


def test_normalize() -> None:
    unit, size = L.normalize(tf.constant([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    with tf.Session() as session:
        found = session.run([unit, size])
    np.testing.assert_allclose(found[0], [[0.6, 0.8], [0.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(found[1][:, 0], [5, 2])
