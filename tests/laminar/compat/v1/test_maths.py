"""Arithmetic and arrays of TensorFlow 1 against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

A = np.arange(6, dtype="float32").reshape(2, 3)
N = np.array([3, -1, 4, 1], "int32")

CASES: list[Any] = [
    pytest.param(lambda: tf.reduce_mean(N), 1, id="mean of whole numbers"),
    pytest.param(lambda: tf.reduce_sum(A, reduction_indices=[1], keep_dims=True), [[3.0], [12.0]]),
    pytest.param(lambda: tf.reduce_sum(A, [1, 1]), [3.0, 12.0], id="an axis named twice"),
    pytest.param(lambda: tf.reduce_all([]), True, id="all of nothing"),
    pytest.param(lambda: tf.reduce_any([]), False, id="any of nothing"),
    pytest.param(lambda: tf.logical_and([], []), np.zeros(0, bool), id="nothing and nothing"),
    pytest.param(lambda: tf.logical_not([]), np.zeros(0, bool), id="not nothing"),
    pytest.param(lambda: tf.div(N, 2), [1, -1, 2, 0], id="div"),
    pytest.param(lambda: tf.truediv(N, 2), [1.5, -0.5, 2.0, 0.5], id="truediv"),
    pytest.param(lambda: tf.truncatediv(tf.constant([7, -7]), 2), [3, -3], id="truncatediv"),
    pytest.param(lambda: tf.matmul(A, A, transpose_b=True), A @ A.T, id="matmul"),
    pytest.param(lambda: tf.constant(2, shape=[2, 2]), [[2, 2], [2, 2]], id="constant"),
    pytest.param(lambda: tf.constant([1, 2], shape=[3]), [1, 2, 2], id="last value fills up"),
    pytest.param(lambda: tf.where([True, False], A, -A), [A[0], -A[1]], id="where of rows"),
    pytest.param(lambda: tf.where([False, True, True]), [[1], [2]], id="where"),
    pytest.param(
        lambda: tf.one_hot([0, 2], 3, on_value=5, off_value=-1), [[5, -1, -1], [-1, -1, 5]]
    ),
    pytest.param(lambda: tf.squeeze(A[None], squeeze_dims=[0]), A, id="squeeze"),
    pytest.param(lambda: tf.split(A, 3, 1)[2], A[:, 2:], id="split"),
    pytest.param(lambda: tf.reverse(A, [1]), A[:, ::-1], id="reverse"),
    pytest.param(lambda: tf.reverse_sequence(A, [2, 1], seq_axis=1), [[1, 0, 2], [3, 4, 5]]),
    pytest.param(lambda: tf.strided_slice(A, [0, 1], [2, 3], end_mask=2), A[:, 1:], id="slices"),
    pytest.param(lambda: tf.gather_nd(A, [[1], [0]], batch_dims=1), [1.0, 3.0], id="gather_nd"),
    pytest.param(lambda: tf.unique([5, 3, 5])[1], [0, 1, 0], id="unique"),
    pytest.param(lambda: tf.clip_by_norm(A, 1.0), A / np.sqrt(55), id="clip_by_norm"),
    pytest.param(lambda: tf.clip_by_global_norm([A, None], 1.0)[0][0], A / np.sqrt(55)),
    pytest.param(lambda: tf.argmax(A, 1), [2, 2], id="argmax"),
    pytest.param(lambda: tf.squared_difference([1 + 2j], [0j]), [5 + 0j], id="squares"),
    pytest.param(lambda: tf.cumsum(N, exclusive=True), [0, 3, 2, 6], id="cumsum"),
    pytest.param(lambda: tf.multiply_no_nan([np.inf, 2.0], [0.0, 3.0]), [0.0, 6.0]),
    pytest.param(lambda: tf.bincount([1, 1, 3], minlength=5), [0, 2, 0, 1, 0], id="bincount"),
    pytest.param(lambda: tf.confusion_matrix([0, 1, 1], [0, 1, 0]), [[1, 0], [1, 1]]),
    pytest.param(lambda: tf.norm(A), np.sqrt(55), id="norm"),
    pytest.param(lambda: tf.nn.l2_loss(A), 27.5, id="l2_loss"),
    pytest.param(lambda: tf.nn.moments(A, [0])[1], A.var(0), id="moments"),
    pytest.param(
        lambda: tf.nn.softmax_cross_entropy_with_logits(
            labels=[[0.0, 1.0]], logits=[[1000.0, -1000.0]]
        ),
        [2000.0],
        id="large logits",
    ),
    pytest.param(
        lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[0.0]), [np.log(2)]
    ),
    pytest.param(lambda: tf.losses.mean_squared_error([1.0, 2.0], [2.0, 4.0]), 2.5, id="mse"),
    pytest.param(
        lambda: tf.losses.absolute_difference([1.0, 2.0], [2.0, 4.0], weights=[1.0, 0.0]), 1.0
    ),
    pytest.param(lambda: tf.train.exponential_decay(0.1, 20, 10, 0.5), 0.025, id="decay"),
    pytest.param(
        lambda: tf.train.piecewise_constant(tf.constant(7), [5, 10], [1.0, 0.5, 0.1]), 0.5
    ),
    pytest.param(lambda: tf.strings.join(["a", ["b", "c"]], "-"), [b"a-b", b"a-c"], id="join"),
    pytest.param(
        lambda: tf.image.central_crop(np.ones((4, 4, 1), "float32"), 0.5), np.ones((2, 2, 1))
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_value(make: Any, expected: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        found = sess.run(make())
    if np.asarray(found).dtype == object:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_hessians() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.constant([1.0, 2.0])
        (found,) = tf.hessians(tf.reduce_sum(x * x * x), [x])
        np.testing.assert_allclose(sess.run(found), [[6.0, 0.0], [0.0, 12.0]])


def test_draws() -> None:
    def values() -> Any:
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.set_random_seed(1)
            x, y = tf.random_uniform([1000]), tf.random_normal([1000], 2.0, 3.0)
            n = tf.random_uniform([1000], 0, 5, tf.int32)
            first = sess.run([x, y, n])
            assert not np.array_equal(first[0], sess.run(x))
            return first

    x, y, n = values()
    assert 0 <= x.min() < 0.02
    assert 0.98 < x.max() < 1
    assert abs(y.mean() - 2) < 0.4
    assert abs(y.std() - 3) < 0.3
    assert set(n) == set(range(5))
    for before, after in zip((x, y, n), values(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_transposed_convolution_has_the_shape_asked_for() -> None:
    x = np.ones((1, 3, 3, 2), "float32")
    kernel = np.ones((3, 3, 1, 2), "float32")
    with tf.Graph().as_default(), tf.Session() as sess:
        for size in (5, 6):
            y = tf.nn.conv2d_transpose(x, kernel, [1, size, size, 1], [1, 2, 2, 1])
            z = tf.placeholder(tf.float32, [1, size, size, 1])
            (dz,) = tf.gradients(tf.nn.conv2d(z, kernel, [1, 2, 2, 1], "SAME"), z, x)
            found, expected = sess.run([y, dz], {z: np.zeros((1, size, size, 1))})
            np.testing.assert_array_equal(found, expected)


def test_tables_and_files() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        found = tf.lookup.StaticHashTable(words, -1).lookup(tf.constant(["b", "c"]))
        sess.run(tf.tables_initializer())
        np.testing.assert_array_equal(sess.run(found), [2, -1])
    assert not tf.gfile.Exists("/no/such/file")
    with pytest.raises(FileNotFoundError):
        tf.gfile.Open("/no/such/file")


def test_arguments_that_tensorflow_refuses() -> None:
    """A pair for each axis, mirrors within the axis, axes in a vector, and equal shapes."""
    with tf.Graph().as_default() as graph:
        x = tf.constant([[1, 2]])
        calls: list[tuple[str, Callable[[], Any]]] = [
            (r"2 pairs \(before, after\)", lambda: tf.pad(x, [[0, 1]])),
            (r"2 pairs \(before, after\)", lambda: tf.pad(x, [0, 1])),
            (r"2 pairs \(before, after\)", lambda: tf.pad(x, np.zeros((2, 3), int))),
            ("at most 1 along axis 1", lambda: tf.pad(x, [[0, 0], [2, 0]], "REFLECT")),
            ("at most 2 along axis 1", lambda: tf.pad(x, [[0, 0], [0, 3]], "SYMMETRIC")),
            ("at most rank 1", lambda: tf.reduce_sum(x, [[0], [1]])),
            ("at most rank 1", lambda: tf.reduce_max(x, np.array([[0]]))),
            ("equal shapes", lambda: tf.math.approximate_equal([1.0, 2.0], [[1.0, 2.0]])),
            ("filename", lambda: tf.lookup.TextFileInitializer("", tf.string, -2, tf.int64, -1)),
            (
                r"values of \[2\] keys",
                lambda: tf.lookup.StaticHashTable(
                    tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2, 3]), -1
                ),
            ),
        ]
        for said, call in calls:
            with pytest.raises(ValueError, match=said):
                call()
        assert not [op for op in graph.get_operations() if op.type == "HashTable"]


def test_mirrors_as_wide_as_an_axis_has_elements() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]])
    with tf.Graph().as_default(), tf.Session() as sess:
        for mode, widths in (("REFLECT", [[1, 1], [2, 2]]), ("SYMMETRIC", [[2, 1], [3, 3]])):
            found = sess.run(tf.pad(tf.constant(x), tf.constant(widths), mode))
            how: Any = mode.lower()
            np.testing.assert_array_equal(found, np.pad(x, widths, how))
        assert sess.run(tf.pad(3, np.zeros((0, 2), int))) == 3
