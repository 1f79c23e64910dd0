"""`tf.sets`, against Python's sets and values that TensorFlow gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import DTypeError, ShapeError

A = np.array([[[1, 2, 2], [3, 0, 1]], [[4, 4, 4], [0, 9, 8]]])
B = np.array([[[2, 7], [1, 1]], [[4, 5], [8, 0]]])


@pytest.fixture(autouse=True)
def default_graph() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


@pytest.mark.parametrize(
    ("ours", "pythons"),
    [
        (tf.sets.set_intersection, set.intersection),
        (tf.sets.set_union, set.union),
        (tf.sets.set_difference, set.difference),
        (lambda a, b: tf.sets.difference(b, a, aminusb=False), set.difference),
    ],
)
def test_of_dense_arrays(ours: Callable[..., Any], pythons: Callable[..., Any]) -> None:
    y = ours(A, tf.placeholder_with_default(B, [2, None, None]))
    with tf.Session() as session:
        found, sizes = session.run([y, tf.sets.set_size(y)])
    wanted = {
        (i, j): sorted(pythons(set(A[i, j].tolist()), set(B[i, j].tolist())))
        for i in range(2)
        for j in range(2)
    }
    places = [[*place, k] for place, items in wanted.items() for k in range(len(items))]
    assert found.indices.tolist() == places
    assert found.values.tolist() == [v for items in wanted.values() for v in items]
    assert found.dense_shape.tolist() == [2, 2, max(map(len, wanted.values()))]
    assert sizes.tolist() == [[len(wanted[i, j]) for j in range(2)] for i in range(2)]


def test_of_sparse_tensors() -> None:
    """As TensorFlow has it: a dense one with a sparse one, strings, and sets that are empty."""
    x = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.array([5, 6, 7]), [3, 2])
    words = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [b"b", b"a", b"c"], [3, 2])
    both = tf.sets.intersection(np.array([[6, 1], [1, 1], [7, 7]]), x)
    with tf.Session() as session:
        found, union, sizes = session.run([both, tf.sets.union(words, words), tf.sets.size(words)])
    assert found.indices.tolist() == [[0, 0], [2, 0]]
    assert (found.values.tolist(), found.dense_shape.tolist()) == ([6, 7], [3, 1])
    assert union.values.tolist() == [b"a", b"b", b"c"]
    assert sizes.tolist() == [2, 0, 1]


def test_errors() -> None:
    with tf.Session() as session, pytest.raises(ShapeError, match="before the last differ"):
        session.run(tf.sets.union(A, B[:1]))
    with pytest.raises(ShapeError, match="3 axes, and the other 2"):
        tf.sets.union(A, B[0])
    with pytest.raises(DTypeError):
        tf.sets.union(A.astype("float32"), B.astype("float32"))
    with pytest.raises(DTypeError, match="one holds int64, the other int32"):
        tf.sets.union(A, B.astype("int32"))
