"""Functions of matrices of TensorFlow 1 against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import laminar.compat.v1 as tf
from laminar import errors

rng = np.random.default_rng(0)
A = rng.normal(size=(2, 4, 4))
B = rng.normal(size=(2, 4, 3))
BANDS = rng.normal(size=(2, 3, 5))
RHS = rng.normal(size=(2, 5, 3))
TALL = rng.normal(size=(5, 3))


def dense(bands: Any) -> Any:
    return np.stack([np.diag(u[:-1], 1) + np.diag(d) + np.diag(low[1:], -1) for u, d, low in bands])


def ridge(a: Any, b: Any, weight: float) -> Any:
    return np.linalg.solve(a.T @ a + weight * np.eye(a.shape[1]), a.T @ b)


HARD = np.array([[[2, -1, 1, 0], [1, 4, 1, -1], [0, 2, -2, 3]]], "float64")
CASES: list[Any] = [
    pytest.param(lambda: tf.linalg.tridiagonal_matmul(BANDS, RHS), dense(BANDS) @ RHS),
    pytest.param(
        lambda: tf.linalg.tridiagonal_matmul(
            (BANDS[:, 0, :-1], BANDS[:, 1], BANDS[:, 2, 1:]), RHS, "sequence"
        ),
        dense(BANDS) @ RHS,
        id="product of a sequence",
    ),
    pytest.param(
        lambda: tf.linalg.tridiagonal_solve(BANDS, RHS), np.linalg.solve(dense(BANDS), RHS)
    ),
    pytest.param(
        lambda: tf.linalg.tridiagonal_solve(dense(BANDS), RHS[..., 0], "matrix"),
        np.linalg.solve(dense(BANDS), RHS[..., :1])[..., 0],
        id="solve of vectors",
    ),
    pytest.param(
        lambda: tf.linalg.tridiagonal_solve(
            BANDS + [[0], [9], [0]], RHS.swapaxes(1, 2), transpose_rhs=True, partial_pivoting=False
        ),
        np.linalg.solve(dense(BANDS + [[0], [9], [0]]), RHS).swapaxes(1, 2),
        id="solve without exchanges",
    ),
    pytest.param(
        lambda: tf.linalg.tridiagonal_solve(HARD, np.array([[1.0, 2, 3, 4]])),
        [[8, -3.5, 0, -4]],
        id="solve with exchanges",
    ),
    pytest.param(
        lambda: tf.linalg.tridiagonal_solve(BANDS * 1j, RHS * (1 + 1j), conjugate_rhs=True),
        np.linalg.solve(dense(BANDS) * 1j, RHS * (1 - 1j)),
        id="solve of complex numbers",
    ),
    pytest.param(lambda: tf.linalg.tridiagonal_solve(BANDS[:, :, :1], RHS[:, :1]), None),
    pytest.param(lambda: tf.linalg.tridiagonal_solve(BANDS[..., :0], RHS[:, :0]), RHS[:, :0]),
    *(
        pytest.param(
            lambda s=scale: tf.linalg.expm(A * s),
            np.stack([scipy.linalg.expm(a * scale) for a in A]),
            id=f"expm {scale}",
        )
        for scale in (0.01, 1.0, 5.0)
    ),
    pytest.param(
        lambda: tf.linalg.expm((1j * A).astype("complex64")),
        np.stack([scipy.linalg.expm(1j * a) for a in A]).astype("complex64"),
        id="expm complex64",
    ),
    pytest.param(lambda: tf.linalg.lu_reconstruct(*tf.linalg.lu(A)), A, id="lu"),
    pytest.param(lambda: tf.linalg.lu_solve(*tf.linalg.lu(A), B), np.linalg.solve(A, B)),
    pytest.param(lambda: tf.linalg.lu_matrix_inverse(*tf.linalg.lu(A)), np.linalg.inv(A)),
    pytest.param(lambda: tf.matrix_solve_ls(TALL, RHS[0], 0.5), ridge(TALL, RHS[0], 0.5)),
    pytest.param(
        lambda: tf.matrix_solve_ls(TALL, RHS[0], fast=False),
        np.linalg.lstsq(TALL, RHS[0], None)[0],
        id="least squares",
    ),
    pytest.param(
        lambda: tf.matrix_solve_ls(TALL.T, B[0, :3]),
        np.linalg.lstsq(TALL.T, B[0, :3], None)[0],
        id="the shortest",
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_values(make: Any, expected: Any) -> None:
    if expected is None:
        expected = RHS[:, :1] / BANDS[:, 1, :1, None]
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(make())
    tolerance = 1e-5 if found.dtype == np.complex64 else 1e-9
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("of", ["expm", "solve", "lu"])
def test_gradients(of: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder("float64", [2, 3, 3])
        if of == "expm":
            y = tf.linalg.expm(x)
        elif of == "solve":
            y = tf.linalg.tridiagonal_solve(x, RHS[:, :3])
        else:
            y = tf.linalg.lu_solve(*tf.linalg.lu(x), RHS[:, :3])
        loss = tf.reduce_sum(y * y)
        (dx,) = tf.gradients(loss, [x])
        at, way = rng.normal(size=(2, 2, 3, 3))
        at[:, 1] += 3
        gradient = session.run(dx, {x: at})
        ends = [session.run(loss, {x: at + e * way}) for e in (1e-5, -1e-5)]
    np.testing.assert_allclose((gradient * way).sum(), (ends[0] - ends[1]) / 2e-5, rtol=1e-5)


def test_no_inverse() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.linalg.tridiagonal_solve([[3.0, 0], [1, 3], [0, 1]], [1.0, 4.0])
        with pytest.raises(errors.InvalidArgumentError, match="has no inverse"):
            session.run(x)


WRONG: list[Any] = [
    pytest.param(lambda: tf.linalg.tridiagonal_solve(BANDS, RHS[:, :4]), "rhs", id="rhs"),
    pytest.param(lambda: tf.linalg.tridiagonal_solve(BANDS[:, :2], RHS), "3, size", id="bands"),
    pytest.param(lambda: tf.linalg.tridiagonal_solve(BANDS, RHS, "rows"), "one of compact"),
    pytest.param(lambda: tf.linalg.tridiagonal_matmul(RHS, RHS, "matrix"), "square", id="matrix"),
    pytest.param(lambda: tf.linalg.expm(TALL), "square matrices", id="expm"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()
