"""Metrics at k and the pairwise loss, against their definitions written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

rng = np.random.default_rng(8)
SCORES = rng.normal(size=(5, 6)).astype("float32")
LABELS = np.array([[0, 3], [5, 1], [2, 4], [1, 0], [3, 5]])
WEIGHTS = np.array([1.0, 0.5, 2.0, 0.0, 1.0], np.float32)


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(pair: Any) -> float:
    """The value after two equal batches, which the update gives, too."""
    value, update = pair
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        last = session.run(update)
        found = session.run(value)
    np.testing.assert_allclose(last, found)
    return float(found)


def best(k: int) -> Any:
    return np.argsort(-SCORES, 1)[:, :k]


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize("class_id", [None, 3])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_precision_and_recall(k: int, class_id: int | None, weights: Any) -> None:
    chosen, w = best(k), np.ones(5) if weights is None else weights
    counts = []
    for row, labels in zip(chosen.tolist(), LABELS.tolist(), strict=True):
        if class_id is not None:
            row, labels = ([x for x in xs if x == class_id] for xs in (row, labels))
        counts.append((len(set(row) & set(labels)), len(row), len(labels)))
    hits, drawn, true = (np.array(c) @ w for c in zip(*counts, strict=True))
    found = [
        run(tf.metrics.precision_at_k(LABELS, SCORES, k, class_id, weights)),
        run(tf.metrics.precision_at_top_k(LABELS, chosen, k, class_id, weights)),
        run(tf.metrics.recall_at_k(LABELS, SCORES, k, class_id, weights)),
        run(tf.metrics.recall_at_top_k(LABELS, chosen, k, class_id, weights)),
    ]
    precision = hits / drawn if drawn else 0.0
    np.testing.assert_allclose(found[:2], precision, rtol=1e-6)
    np.testing.assert_allclose(found[2:], hits / true, rtol=1e-6)


def test_labels_in_other_forms() -> None:
    places = [[0, 0], [0, 1], [1, 0], [3, 0], [4, 0]]
    sparse = tf.SparseTensor(places, np.array([0, 3, 5, 1, 9]), [5, 2])
    true = [{0, 3}, {5}, set(), {1}, {9}]
    hits = sum(len(set(row) & t) for row, t in zip(best(3).tolist(), true, strict=True))
    assert run(tf.metrics.recall_at_k(sparse, SCORES, 3)) == pytest.approx(hits / 5)
    assert run(tf.metrics.sparse_precision_at_k(sparse, SCORES, 3)) == pytest.approx(hits / 15)
    one = LABELS[:, 0]
    expected = np.mean([label in row for label, row in zip(one, best(2), strict=True)])
    assert run(tf.metrics.recall_at_k(one, SCORES, 2)) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_average_precision(k: int) -> None:
    each = []
    for row, labels in zip(best(k).tolist(), LABELS.tolist(), strict=True):
        hits = [x in labels for x in row]
        total = sum(h * sum(hits[: i + 1]) / (i + 1) for i, h in enumerate(hits))
        each.append(total / min(k, 2))
    found = run(tf.metrics.average_precision_at_k(LABELS, SCORES, k))
    np.testing.assert_allclose(found, np.mean(each), rtol=1e-6)


def test_pairs_of_elements() -> None:
    y, t = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 2, 2))
    d = (y - t).reshape(3, 4)
    each = [np.mean([(r[i] - r[j]) ** 2 for i in range(4) for j in range(i)]) for r in d]
    loss = tf.losses.mean_pairwise_squared_error(t, y)
    weighted = tf.losses.mean_pairwise_squared_error(t, y, [1.0, 0.0, 2.0], loss_collection=None)
    assert tf.losses.get_losses() == [loss]
    with tf.Session() as session:
        found = session.run([loss, weighted])
    np.testing.assert_allclose(found, [sum(each), each[0] + 2 * each[2]], rtol=1e-6)
