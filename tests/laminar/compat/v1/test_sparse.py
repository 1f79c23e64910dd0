"""Sparse tensors under TensorFlow 1's names."""

from __future__ import annotations

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


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


def test_sparse_tensors_are_fetched_as_values() -> None:
    sp = tf.SparseTensor(np.array([[0, 1], [1, 0]]), [1.0, 2.0], [2, 2])
    assert isinstance(sp, tf.SparseTensor)
    assert sp.get_shape().as_list() == [2, 2]
    assert sp.graph is tf.get_default_graph()
    value = run(sp)
    assert isinstance(value, tf.SparseTensorValue)
    assert value.indices.tolist() == [[0, 1], [1, 0]]
    assert run(tf.sparse_tensor_to_dense(sp)).tolist() == [[0, 1], [2, 0]]
    assert run(tf.sparse.to_dense(sp, default_value=-1.0)).tolist() == [[-1, 1], [2, -1]]
    assert run(tf.sparse_tensor_dense_matmul(sp, [[1.0], [10.0]])).tolist() == [[10], [2]]
    assert run(sp * tf.constant([[2.0, 3.0]])).values.tolist() == [3.0, 4.0]


def test_placeholders() -> None:
    x = tf.sparse_placeholder(tf.float32, shape=[2, 3])
    total = tf.sparse_reduce_sum(x, reduction_axes=1, keep_dims=True)
    value = tf.SparseTensorValue([[0, 2], [1, 1]], [3.0, 4.0], [2, 3])
    assert run(total, {x: value}).tolist() == [[3], [4]]


def test_older_names_and_orders_of_arguments() -> None:
    a = tf.SparseTensor([[0, 0]], [1], [1, 2])
    b = tf.SparseTensor([[0, 1]], [2], [1, 2])
    joined = tf.sparse_concat(1, [a, b])
    assert run(tf.sparse_tensor_to_dense(joined)).tolist() == [[1, 0, 0, 2]]
    first, second = tf.sparse_split(sp_input=joined, num_split=2, axis=1)
    assert run(first).values.tolist() == [1]
    assert run(second).indices.tolist() == [[0, 1]]
    assert run(tf.sparse_add(a, b, thresh=2)).values.tolist() == [2]
    with pytest.raises(TypeError, match="at least one"):
        tf.sparse_add(1, 2)
    assert run(tf.sparse_to_dense([1, 3], [5], 7, -1)).tolist() == [-1, 7, -1, 7, -1]
    assert run(tf.sparse_to_dense([[0, 1]], [2, 2], ["x"], "")).tolist() == [
        [b"", b"x"],
        [b"", b""],
    ]
    assert run(tf.sparse_tensor_to_dense(tf.sparse.eye(2, 3))).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_segments_of_rows() -> None:
    data = tf.constant([[1.0, 2], [3, 4], [5, 6]])
    arguments = data, [0, 2, 1], [0, 0, 2]
    assert run(tf.sparse_segment_sum(*arguments)).tolist() == [[6, 8], [0, 0], [3, 4]]
    assert run(tf.sparse_segment_mean(*arguments)).tolist() == [[3, 4], [0, 0], [3, 4]]
    root = np.sqrt(2)
    np.testing.assert_allclose(
        run(tf.sparse_segment_sqrt_n(*arguments)), [[6 / root, 8 / root], [0, 0], [3, 4]], rtol=1e-6
    )


def test_slices_are_masked() -> None:
    slices = tf.IndexedSlices(tf.constant([[1.0], [2], [3]]), tf.constant([5, 1, 3]), [7, 1])
    found = tf.sparse.mask(slices, [1, 6])
    assert run([found.indices, found.values])[0].tolist() == [5, 3]


def test_arithmetic_that_keeps_zeros_is_of_the_values() -> None:
    sp = tf.SparseTensor([[0, 1], [1, 2]], [-1.0, 4.0], [2, 3])
    assert run(tf.square(sp)).values.tolist() == [1, 16]
    assert run(tf.abs(sp)).values.tolist() == [1, 4]
    whole = run(tf.abs(tf.SparseTensor([[0, 1]], [3 - 4j], [2, 3])))
    assert (whole.values.tolist(), whole.indices.tolist()) == ([5.0], [[0, 1]])
    assert run(tf.negative(sp)).indices.tolist() == [[0, 1], [1, 2]]
    assert run(tf.cast(sp, tf.int32)).values.dtype == "int32"
    assert run(tf.identity(sp)).values.tolist() == [-1, 4]
    with pytest.raises(TypeError, match="not sparse"):
        tf.exp(sp)
    assert run([tf.shape(sp), tf.size(sp), tf.rank(sp)])[0].tolist() == [2, 3]
    assert run([tf.size(sp), tf.rank(sp)]) == [6, 2]
