"""CTC under the names of TensorFlow 1, against sums over all alignments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

rng = np.random.default_rng(2)
TIME, CLASSES = 4, 3  # the last class is the blank


def spelled(path: Any) -> tuple[int, ...]:
    return tuple(k for k, _ in itertools.groupby(path) if k != CLASSES - 1)


def probabilities(scores: Any) -> dict[tuple[int, ...], float]:
    """Of each label sequence, by all alignments."""
    p = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(CLASSES), repeat=len(scores)):
        labels = spelled(path)
        found[labels] = found.get(labels, 0.0) + float(np.prod(p[np.arange(len(p)), path]))
    return found


@pytest.fixture(autouse=True)
def _own_graph() -> Any:
    with tf.Graph().as_default():
        yield


def dense(found: Any) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(found.dense_shape[0])]
    for (row, _), value in zip(found.indices, found.values, strict=True):
        rows[row].append(int(value))
    return rows


@pytest.mark.parametrize("time_major", [True, False])
def test_loss(time_major: bool) -> None:
    scores = rng.normal(size=(TIME, 2, CLASSES))
    lengths, truth = [4, 3], [(0, 1), (1,)]
    labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], np.array([0, 1, 1], np.int32), [2, 2])
    given = scores if time_major else scores.transpose(1, 0, 2)
    loss = tf.nn.ctc_loss(labels, given, lengths, time_major=time_major)
    expected = [
        -np.log(probabilities(scores[:n, i])[t])
        for i, (n, t) in enumerate(zip(lengths, truth, strict=True))
    ]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(loss), expected, rtol=1e-6)
    with pytest.raises(NotImplementedError):
        tf.nn.ctc_loss(labels, given, lengths, ctc_merge_repeated=False)


def test_greedy() -> None:
    best = np.array([[0, 0, 2, 0], [1, 2, 2, 2]]).T
    scores = np.where(np.eye(CLASSES)[best] > 0, 2.0, -1.0)
    (found,), sums = tf.nn.ctc_greedy_decoder(scores, [4, 3])
    (runs,), _ = tf.nn.ctc_greedy_decoder(scores, [4, 3], merge_repeated=False)
    with tf.Session() as session:
        found, sums, runs = session.run([found, sums, runs])
    assert dense(found) == [[0, 0], [1]]
    assert found.dense_shape.tolist() == [2, 2]
    assert found.values.dtype == np.int64
    assert dense(runs) == [[0, 0, 0], [1]]
    assert sums.tolist() == [[-8.0], [-6.0]]


def test_beam_search() -> None:
    scores = rng.normal(size=(TIME, 1, CLASSES))
    paths, logs = tf.nn.ctc_beam_search_decoder(
        scores, [TIME], beam_width=50, top_paths=3, merge_repeated=False
    )
    expected = sorted(probabilities(scores[:, 0]).items(), key=lambda item: -item[1])[:3]
    with tf.Session() as session:
        paths, logs = session.run([paths, logs])
    assert [tuple(dense(path)[0]) for path in paths] == [labels for labels, _ in expected]
    np.testing.assert_allclose(logs, [[np.log(p) for _, p in expected]], rtol=1e-6)


def test_runs_in_a_path_can_be_merged() -> None:
    best = np.array([[0, 2, 0, 1]]).T
    scores = np.where(np.eye(CLASSES)[best] > 0, 9.0, -9.0)
    (merged,), _ = tf.nn.ctc_beam_search_decoder(scores, [4])
    (kept,), _ = tf.nn.ctc_beam_search_decoder_v2(scores, [4])
    with tf.Session() as session:
        merged, kept = session.run([merged, kept])
    assert (dense(merged), dense(kept)) == ([[0, 1]], [[0, 0, 1]])
