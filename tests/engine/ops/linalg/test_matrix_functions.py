"""Square roots and logarithms of matrices, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import laminar.compat.v1 as tf
from laminar import engine
from laminar.engine.errors import ShapeError
from laminar.engine.ops.linalg.matrix_functions import logm, sqrtm
from tests.engine.ops.harness import check_op

rng = np.random.default_rng(5)


def of_each(fn: Any) -> Any:
    """A function of one matrix as one of stacks."""

    def call(x: Any) -> Any:
        found = [fn(m) for m in x.reshape(-1, *x.shape[-2:])]
        return np.reshape(found, x.shape).astype(x.dtype)

    return call


SPREAD = np.eye(3) * 2 + 0.4 * rng.normal(size=(2, 3, 3))
TURN = np.array([[0.0, -2.0], [2.0, 0.1]])  # its eigenvalues are nearly imaginary


@pytest.mark.parametrize(
    ("op", "reference"), [(sqrtm, scipy.linalg.sqrtm), (logm, scipy.linalg.logm)]
)
@pytest.mark.parametrize("x", [SPREAD, TURN, np.array([[4.0]])], ids=["stack", "turn", "number"])
def test_op(op: Any, reference: Any, x: Any) -> None:
    check_op(op, of_each(reference), [x], dtypes=["float32"])


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_sizes(scale: float) -> None:
    x = rng.normal(size=(6, 6))
    x = (x @ x.T + np.diag(10.0 ** np.arange(-3, 3))) * scale
    root = sqrtm(engine.convert_to_tensor(x)).numpy()
    np.testing.assert_allclose(root @ root, x, rtol=1e-9, atol=1e-12 * scale * 1e3)
    log = logm(engine.convert_to_tensor(x)).numpy()
    values, vectors = np.linalg.eigh(x)
    np.testing.assert_allclose(log, vectors * np.log(values) @ vectors.T, rtol=1e-8, atol=1e-9)


def test_complex() -> None:
    x = SPREAD + 1j * rng.normal(size=SPREAD.shape)
    for op, reference in ((sqrtm, scipy.linalg.sqrtm), (logm, scipy.linalg.logm)):
        found = op(engine.convert_to_tensor(x)).numpy()
        np.testing.assert_allclose(found, of_each(reference)(x), rtol=1e-10)


def test_what_has_none_is_nan() -> None:
    x = np.stack([np.diag([4.0, 9.0]), np.diag([-4.0, 9.0]), np.zeros((2, 2))])
    found = sqrtm(engine.convert_to_tensor(x)).numpy()
    np.testing.assert_allclose(found[0], np.diag([2.0, 3.0]))
    assert np.isnan(found[1:]).any(axis=(1, 2)).all()
    assert sqrtm(engine.convert_to_tensor(np.zeros((0, 0)))).shape == (0, 0)
    with pytest.raises(ShapeError):
        sqrtm(engine.convert_to_tensor(np.zeros((2, 3))))


def test_under_the_names_of_tensorflow() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(np.diag([4.0, 9.0]))
        roots = session.run([tf.linalg.sqrtm(x), tf.matrix_square_root(x)])
        for root in roots:
            np.testing.assert_allclose(root, np.diag([2.0, 3.0]))
        np.testing.assert_allclose(session.run(tf.linalg.logm(x)), np.diag(np.log([4.0, 9.0])))
