"""Segments, embeddings, diagonals, averages and rates of TensorFlow 1 against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import errors

rng = np.random.default_rng(0)
X = np.array([[1, 2], [3, 4], [5, 6]], "int32")
TABLE = rng.normal(size=(7, 3)).astype("float32")
BLOCK = rng.normal(size=(2, 3, 2, 3))


def parts(strategy: str) -> list[Any]:
    if strategy == "div":
        return np.array_split(TABLE, 3)
    return [TABLE[i::3] for i in range(3)]


def ids() -> Any:
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 3, 5]), [2, 2])


def holes() -> Any:
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, -1, 5]), [3, 2])


def weights() -> Any:
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1.0, 2.0, 0.5]), [2, 2])


CASES: list[Any] = [
    pytest.param(lambda: tf.segment_max(X, [0, 2, 2]), [[1, 2], [0, 0], [5, 6]], id="max"),
    pytest.param(lambda: tf.segment_min(X, [0, 0, 2]), [[1, 2], [0, 0], [5, 6]], id="min"),
    pytest.param(lambda: tf.segment_prod(X, [0, 0, 1]), [[3, 8], [5, 6]], id="prod"),
    pytest.param(lambda: tf.segment_mean(X, [0, 0, 0]), [[3, 4]], id="mean of integers"),
    pytest.param(lambda: tf.segment_mean(X * (1 + 0j), [0, 0, 1]), [[2, 3], [5, 6]], id="complex"),
    pytest.param(lambda: tf.unsorted_segment_sum(X, [1, -1, 1], 2), [[0, 0], [6, 8]], id="any"),
    pytest.param(
        lambda: tf.unsorted_segment_sum(X, [[0, 1], [1, 1], [0, 2]], 3), [6, 9, 6], id="matrix"
    ),
    pytest.param(lambda: tf.eye(2, 0, batch_shape=[1]), np.zeros((1, 2, 0)), id="eye without"),
    pytest.param(
        lambda: tf.eye(2, batch_shape=tf.placeholder_with_default([2, 1], [None])),
        np.broadcast_to(np.eye(2), (2, 1, 2, 2)),
        id="eye of a shape",
    ),
    pytest.param(lambda: tf.diag([1, 2]), [[1, 0], [0, 2]], id="diag"),
    pytest.param(
        lambda: tf.diag(X[:2]),
        np.einsum("ab,ac,bd->abcd", X[:2], np.eye(2), np.eye(2)),
        id="diag of a matrix",
    ),
    pytest.param(lambda: tf.diag_part(BLOCK), np.einsum("abab->ab", BLOCK), id="diag_part"),
    pytest.param(lambda: tf.diag_part(np.zeros((0, 0))), np.zeros(0), id="diag_part of none"),
    *(
        pytest.param(
            lambda s=strategy: tf.nn.embedding_lookup(parts(s), [[6, 0], [3, 4]], s),
            TABLE[[[6, 0], [3, 4]]],
            id=f"embedding {strategy}",
        )
        for strategy in ("mod", "div")
    ),
    pytest.param(
        lambda: tf.nn.embedding_lookup(TABLE, [1], max_norm=0.5),
        TABLE[[1]] * min(1.0, 0.5 / np.linalg.norm(TABLE[1])),
        id="max_norm",
    ),
    pytest.param(lambda: tf.nn.embedding_lookup(np.array([4.0, -1.0]), 0, max_norm=2.0), 2.0),
    pytest.param(
        lambda: tf.nn.embedding_lookup_sparse(TABLE, ids(), None),
        [(TABLE[1] + TABLE[3]) / 2, TABLE[5]],
        id="mean of sparse",
    ),
    pytest.param(
        lambda: tf.nn.embedding_lookup_sparse(parts("mod"), ids(), weights(), combiner="sqrtn"),
        [(TABLE[1] + 2 * TABLE[3]) / math.sqrt(5), TABLE[5]],
        id="sqrtn of sparse",
    ),
    pytest.param(
        lambda: tf.nn.safe_embedding_lookup_sparse(TABLE, holes()),
        [TABLE[1], np.zeros(3), TABLE[5]],
        id="rows without ids",
    ),
    pytest.param(
        lambda: tf.nn.safe_embedding_lookup_sparse(TABLE, holes(), default_id=2),
        [TABLE[1], TABLE[2], TABLE[5]],
        id="rows with the default",
    ),
    pytest.param(
        lambda: tf.train.cosine_decay_restarts(1.0, 3, 2, t_mul=2.0, m_mul=0.5),
        0.5 * 0.5 * (1 + math.cos(math.pi / 4)),
        id="restarts",
    ),
    pytest.param(
        lambda: tf.train.cosine_decay_restarts(1.0, 5, 2, t_mul=1.0),
        0.5 * (1 + math.cos(math.pi / 2)),
        id="restarts of one length",
    ),
    pytest.param(
        lambda: tf.train.linear_cosine_decay(1.0, 5, 10),
        0.5 * 0.5 * (1 + math.cos(math.pi / 2)) + 0.001,
        id="linear cosine",
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_values(make: Any, expected: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(make())
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.shape(found) == np.shape(expected)


@pytest.mark.parametrize("wrong", [[1, 0, 1], [-1, 0, 1]])
def test_segments_out_of_order(wrong: list[int]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        total = tf.segment_sum(X, wrong)
        with pytest.raises(errors.InvalidArgumentError, match="must rise from 0 on"):
            session.run(total)


WRONG: list[Any] = [
    pytest.param(lambda: tf.diag_part(np.zeros((2, 3))), "must be the same", id="diag_part"),
    pytest.param(lambda: tf.diag_part(np.zeros(3)), "even number of axes", id="diag_part odd"),
    pytest.param(lambda: tf.nn.embedding_lookup(parts("mod"), [0], "both"), "'mod' or 'div'"),
    pytest.param(lambda: tf.nn.embedding_lookup([], [0]), "no parts", id="no parts"),
    pytest.param(
        lambda: tf.nn.embedding_lookup_sparse(TABLE, ids(), None, combiner="max"), "one of mean"
    ),
    pytest.param(
        lambda: tf.unsorted_segment_sum(X, [[0], [1]], 2), "must begin with", id="unsorted"
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()


def test_averages_of_tensors_without_bias() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(2.0, name="v")
        x = v * 1.0
        averages = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
        update = averages.apply([v, x])
        assert tf.moving_average_variables() == [v]
        session.run(tf.global_variables_initializer())
        values = []
        for number in (4.0, 10.0):
            session.run(v.assign(number))
            session.run(update)
            values.append(session.run([averages.average(v), averages.average(x)]))
    expected = [[0.9 * 2 + 0.1 * 4, 4.0]]
    biased = 0.9 * 0.1 * 4 + 0.1 * 10
    expected.append([0.9 * expected[0][0] + 0.1 * 10, biased / (1 - 0.9**2)])
    np.testing.assert_allclose(values, expected, rtol=1e-5)
