"""Metrics of TensorFlow 1 over batches, against NumPy on all of them at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

rng = np.random.default_rng(0)
LABELS = rng.integers(0, 2, size=(3, 8))
SCORES = np.clip(LABELS * 0.3 + rng.uniform(size=(3, 8)) * 0.7, 0, 1).astype("float32")
WEIGHTS = rng.uniform(size=(3, 8)).astype("float32")
CLASSES = rng.integers(0, 3, size=(2, 3, 8))
T, S, W = LABELS.ravel().astype(bool), SCORES.ravel(), WEIGHTS.ravel()


def counts(limit: float, w: Any = None) -> Any:
    w = np.ones(24) if w is None else w
    positive = limit < S
    return [w[a & b].sum() for a in (positive, ~positive) for b in (T, ~T)]  # tp, fp, fn, tn


def area() -> float:
    """The probability that a positive has the greater score: what the ROC's area estimates."""
    more = S[T][:, None] > S[~T][None]
    return float(more.mean())


def best(of: int, wanted: float) -> float:
    points = [-1e-7, *((i + 1) / 199 for i in range(198)), 1 - 1e-7]
    tables = [counts(p) for p in points]
    rates = np.array([(tp / (tp + fn), tn / (tn + fp)) for tp, fp, fn, tn in tables])
    apart = abs(rates[:, 1 - of] - wanted)
    place = int(apart.argmin()) if of == 0 else len(points) - 1 - int(apart[::-1].argmin())
    return float(rates[place, of])


def iou() -> float:
    t, y = CLASSES[0].ravel(), CLASSES[1].ravel()
    shares = [((t == c) & (y == c)).sum() / ((t == c) | (y == c)).sum() for c in range(3)]
    return float(np.mean(shares))


m = tf.metrics
CASES: list[Any] = [
    pytest.param(lambda t, s, w, c, d: m.auc(t, s, num_thresholds=2000), area(), 0.01, id="auc"),
    pytest.param(
        lambda t, s, w, c, d: m.precision_at_thresholds(t, s, [0.3, 0.6], w),
        [counts(p, W)[0] / sum(counts(p, W)[:2]) for p in (0.3, 0.6)],
        1e-5,
        id="precision",
    ),
    pytest.param(
        lambda t, s, w, c, d: m.recall_at_thresholds(t, s, [0.3, 0.6]),
        [counts(p)[0] / T.sum() for p in (0.3, 0.6)],
        1e-5,
        id="recall",
    ),
    pytest.param(
        lambda t, s, w, c, d: m.false_positives_at_thresholds(t, s, [0.3]),
        [counts(0.3)[1]],
        0,
        id="false positives",
    ),
    pytest.param(lambda t, s, w, c, d: m.sensitivity_at_specificity(t, s, 0.7), best(0, 0.7), 1e-5),
    pytest.param(lambda t, s, w, c, d: m.specificity_at_sensitivity(t, s, 0.7), best(1, 0.7), 1e-5),
    pytest.param(lambda t, s, w, c, d: m.mean_iou(c, d, 3), iou(), 1e-6, id="iou"),
    pytest.param(
        lambda t, s, w, c, d: m.mean_per_class_accuracy(c, d, 3),
        np.mean([(CLASSES[1][CLASSES[0] == k] == k).mean() for k in range(3)]),
        1e-6,
        id="by class",
    ),
    pytest.param(
        lambda t, s, w, c, d: m.mean_relative_error(w, s, w), (abs(W - S) / W).mean(), 1e-5
    ),
    pytest.param(
        lambda t, s, w, c, d: m.mean_cosine_distance(w, s, 0),
        1 - (WEIGHTS * SCORES).sum(1).mean(),
        1e-5,
        id="cosine",
    ),
    pytest.param(
        lambda t, s, w, c, d: m.percentage_below(s, 0.5, w), W[S < 0.5].sum() / W.sum(), 1e-5
    ),
    pytest.param(lambda t, s, w, c, d: m.mean_tensor(s), SCORES.mean(0), 1e-6, id="mean tensor"),
    pytest.param(
        lambda t, s, w, c, d: m.accuracy(c, d, tf.expand_dims(w, 1)),
        W[(CLASSES[0] == CLASSES[1]).ravel()].sum() / W.sum(),
        1e-5,
        id="weights of a column",
    ),
]


@pytest.mark.parametrize(("make", "expected", "tolerance"), CASES)
def test_over_batches(make: Any, expected: Any, tolerance: float) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        feeds = [tf.placeholder(kind, [8]) for kind in ("int64", "float32", "float32")]
        feeds += [tf.placeholder("int64", [8]) for _ in range(2)]
        value, update = make(*feeds)
        session.run(tf.local_variables_initializer())
        for i in range(3):
            batch = [x[i] for x in (LABELS, SCORES, WEIGHTS, *CLASSES)]
            session.run(update, dict(zip(feeds, batch, strict=True)))
        found = session.run(value)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("curve", "method"),
    [("PR", "trapezoidal"), ("PR", "careful_interpolation"), ("ROC", "minoring")],
)
def test_areas_of_what_is_sure(curve: str, method: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        given = [0.0, 0.0, 1.0, 1.0]
        value, update = m.auc(given, given, curve=curve, summation_method=method)
        session.run(tf.local_variables_initializer())
        assert session.run(update) == pytest.approx(1.0, abs=1e-4)
        assert session.run(value) == pytest.approx(1.0, abs=1e-4)


def test_names_of_the_counts() -> None:
    with tf.Graph().as_default():
        m.recall([1], [1])
        m.precision_at_thresholds([1.0], [1.0], [0.5])
        names = {v.name for v in tf.local_variables()}
    assert names == {
        "recall/true_positives/count",
        "recall/false_negatives/count",
        "precision_at_thresholds/true_positives",
        "precision_at_thresholds/false_positives",
    }


WRONG: list[Any] = [
    pytest.param(lambda: m.auc([1], [1.0], curve="X"), "ROC or PR", id="curve"),
    pytest.param(lambda: m.auc([1], [1.0], summation_method="careful_interpolation"), "no way"),
    pytest.param(lambda: m.auc([1], [1.0], num_thresholds=1), "at least 2", id="thresholds"),
    pytest.param(lambda: m.sensitivity_at_specificity([1], [1.0], 2.0), "from 0 to 1", id="rate"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()
