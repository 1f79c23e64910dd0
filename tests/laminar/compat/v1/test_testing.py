"""`tf.test`: the test case, its assertions, and gradients by differences."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


class Case(tf.test.TestCase):  # type: ignore[misc]  # its class is looked up when it is asked for
    """Run by `results`, not by pytest."""

    __test__ = False

    def runTest(self) -> None:  # noqa: N802  # unittest's name
        """Build, run and compare."""
        x = tf.constant([[1.0, 2.0]])
        with self.session() as session:
            self.assertAllClose(session.run(2 * x), [[2, 4]])
        with self.cached_session():
            self.assertAllEqual(x + 1, [[2, 3]])
            self.assertAllEqual(tf.constant(["a"]), [b"a"])
            self.assertNotAllClose(x, [[1, 3]])
            self.assertAllInRange(x, 1, 2)
            self.assertAllClose({"a": x, "b": [x, 1.0]}, {"a": [[1, 2]], "b": [[[1, 2]], 1]})
            self.assertShapeEqual(np.zeros((1, 2)), x)
            self.assertDTypeEqual(x, tf.float32)
            with self.assertRaisesOpError("got|expected"):
                self.evaluate(tf.debugging.assert_equal(x, -x))
        drawn = self.evaluate(tf.random_uniform([2], seed=1))
        tf.reset_default_graph()
        tf.set_random_seed(87654321)
        self.assertAllEqual(self.evaluate(tf.random_uniform([2], seed=1)), drawn)


FAILING: list[Any] = [
    lambda case, x: case.assertAllEqual(x, [1, 3]),
    lambda case, x: case.assertAllClose(x, [1, 2.1]),
    lambda case, x: case.assertAllClose(x, [[1, 2]]),
    lambda case, x: case.assertAllGreater(x, 1),
    lambda case, x: case.assertAllLess(x, 2),
    lambda case, x: case.assertAllInSet(x, {1.0}),
    lambda case, x: case.assertNear(1.0, 1.2, 0.1),
    lambda case, x: case.assertArrayNear([1.0], [1.2], 0.1),
    lambda case, x: case.assertNDArrayNear(np.ones(2), np.zeros(2), 1.0),
    lambda case, x: case.assertNotAllEqual(x, [1, 2]),
    lambda case, x: case.assertAllInRange(x, 1, 2, open_lower_bound=True),
    lambda case, x: case.assertShapeEqual(np.zeros(3), x),
    lambda case, x: case.assertDTypeEqual(x, tf.float64),
    lambda case, x: case.assertStartsWith("abc", "b"),
]


def test_a_case_passes() -> None:
    result = unittest.TestResult()
    Case().run(result)
    assert result.testsRun == 1
    assert not result.failures
    assert not result.errors


@pytest.mark.parametrize("fails", FAILING)
def test_assertions_fail(fails: Any) -> None:
    case = Case()
    case.setUp()
    with pytest.raises(AssertionError):
        fails(case, tf.constant([1.0, 2.0]))
    case.tearDown()


def test_halves_are_close_by_their_own_limit() -> None:
    case = Case()
    case.assertAllCloseAccordingToType(np.array([1.0], "float16"), np.array([1.001], "float16"))
    with pytest.raises(AssertionError):
        case.assertAllCloseAccordingToType(np.array([1.0], "float32"), np.array([1.001], "float32"))


def test_gradients_by_differences() -> None:
    x = tf.placeholder(tf.float64, [2, 2])
    w = np.array([[1.0, 2.0], [3.0, 4.0]])
    y = tf.reduce_sum(tf.square(x) * w, axis=1)
    at = np.array([[1.0, -1.0], [0.5, 2.0]])
    with tf.Session():
        theory, numbers = tf.test.compute_gradient(x, [2, 2], y, [2], at)
        error = tf.test.compute_gradient_error([x], [[2, 2]], y, [2], [at])
        wrong = tf.test.compute_gradient_error(x, [2, 2], tf.stop_gradient(y) + y, [2], at)
    expected = np.zeros((4, 2))
    for i, j in np.ndindex(2, 2):
        expected[2 * i + j, i] = 2 * at[i, j] * w[i, j]
    np.testing.assert_allclose(theory, expected, atol=1e-12)
    np.testing.assert_allclose(numbers, expected, atol=1e-6)
    assert error < 1e-6
    np.testing.assert_allclose(wrong, np.abs(expected).max(), rtol=1e-5)


def test_graphs_are_compared() -> None:
    def built(value: float) -> Any:
        with tf.Graph().as_default() as graph:
            tf.constant(value, name="a")
        return graph.as_graph_def()

    tf.test.assert_equal_graph_def(built(1.0), built(1.0))
    with pytest.raises(AssertionError, match=r"differ: \['a'\]"):
        tf.test.assert_equal_graph_def(built(1.0), built(2.0))
    with pytest.raises(TypeError, match="expected a GraphDef"):
        tf.test.assert_equal_graph_def(built(1.0), None)


def test_stubs() -> None:
    stubs = tf.test.StubOutForTesting()
    owner = type("Owner", (), {"value": 1})
    stubs.Set(owner, "value", 2)
    assert owner.value == 2  # type: ignore[attr-defined]  # set above
    stubs.CleanUp()
    assert owner.value == 1  # type: ignore[attr-defined]  # set above
