"""Batches normalized, and optimizers with zeros in their solutions, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4, 5)).astype("float32")
SCALE, OFFSET = rng.uniform(1, 2, size=(2, 5)).astype("float32")
WEIGHTS = rng.uniform(size=(2, 3, 4, 5)).astype("float32")
COUNTS = np.array([0.0, 1.0, 4.0], "float32")


def normalized(x: Any, mean: Any, variance: Any) -> Any:
    return (x - mean) / np.sqrt(variance + 0.001) * SCALE + OFFSET


MEAN, VARIANCE = X.mean((0, 1, 2)), X.var((0, 1, 2))
WEIGHTED = np.average(X, (0, 1, 2), WEIGHTS)

CASES: list[Any] = [
    pytest.param(
        lambda: tf.nn.fused_batch_norm(X, SCALE, OFFSET),
        (normalized(X, MEAN, VARIANCE), MEAN, VARIANCE * 24 / 23),
        id="fused",
    ),
    pytest.param(
        lambda: tf.nn.fused_batch_norm(X.transpose(0, 3, 1, 2), SCALE, OFFSET, data_format="NCHW")[
            0
        ],
        normalized(X, MEAN, VARIANCE).transpose(0, 3, 1, 2),
        id="fused channels first",
    ),
    pytest.param(
        lambda: tf.nn.fused_batch_norm(X, SCALE, OFFSET, OFFSET, SCALE, is_training=False)[0],
        normalized(X, OFFSET, SCALE),
        id="fused as it was",
    ),
    pytest.param(
        lambda: tf.nn.normalize_moments(*tf.nn.sufficient_statistics(X, [0, 1, 2], 0.5)),
        (MEAN, VARIANCE),
        id="moments by parts",
    ),
    pytest.param(
        lambda: tf.nn.weighted_moments(X, [0, 1, 2], WEIGHTS),
        (WEIGHTED, np.average((X - WEIGHTED) ** 2, (0, 1, 2), WEIGHTS)),
        id="weighted",
    ),
    pytest.param(
        lambda: tf.nn.batch_norm_with_global_normalization(
            X, MEAN, VARIANCE, OFFSET, SCALE, 0.001, True
        ),
        normalized(X, MEAN, VARIANCE),
        id="global",
    ),
    pytest.param(
        lambda: tf.nn.log_poisson_loss(COUNTS, [0.5, 0.0, 1.0], True),
        np.exp([0.5, 0.0, 1.0])
        - COUNTS * [0.5, 0.0, 1.0]
        + [0, 0, 4 * np.log(4) - 4 + 0.5 * np.log(8 * np.pi)],
        id="poisson",
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_values(make: Any, expected: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(make())
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def ftrl(w: Any, grads: Any, power: float = 0.5, l1: float = 0.0, l2: float = 0.0) -> Any:
    a, z = np.full_like(w, 0.1), np.zeros_like(w)
    for g in grads:
        new = a + g * g
        z = z + g - (new**power - a**power) / 0.5 * w
        a = new
        w = np.where(abs(z) > l1, (np.sign(z) * l1 - z) / (a**power / 0.5 + 2 * l2), 0.0)
    return w


def proximal(w: Any, grads: Any) -> Any:
    a = np.full_like(w, 0.1)
    for g in grads:
        a = a + g * g
        r = 0.5 / np.sqrt(a)
        w = w - r * g
        w = np.sign(w) * np.maximum(abs(w) - r * 0.3, 0) / (1 + r * 0.2)
    return w


def averaged(w: Any, grads: Any) -> Any:
    a, s = np.full_like(w, 0.1), np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        a, s = a + g * g, s + g
        shrunk = np.sign(s) * np.maximum(abs(s) - 0.3 * t, 0)
        w = -0.5 * shrunk / (0.2 * t * 0.5 + np.sqrt(a))
    return w


train = tf.train
OPTIMIZERS: list[Any] = [
    pytest.param(lambda step: train.FtrlOptimizer(0.5), ftrl, id="ftrl"),
    pytest.param(
        lambda step: train.FtrlOptimizer(
            0.5, -0.3, l1_regularization_strength=0.3, l2_regularization_strength=0.2
        ),
        lambda w, g: ftrl(w, g, 0.3, 0.3, 0.2),
        id="ftrl with penalties",
    ),
    pytest.param(
        lambda step: train.ProximalAdagradOptimizer(
            0.5, l1_regularization_strength=0.3, l2_regularization_strength=0.2
        ),
        proximal,
        id="proximal adagrad",
    ),
    pytest.param(
        lambda step: train.AdagradDAOptimizer(
            0.5, step, l1_regularization_strength=0.3, l2_regularization_strength=0.2
        ),
        averaged,
        id="adagrad da",
    ),
]


@pytest.mark.parametrize(("make", "reference"), OPTIMIZERS)
def test_optimizers(make: Any, reference: Any) -> None:
    begin = np.array([1.0, -2.0, 0.1, 0.0])
    grads = rng.normal(size=(4, 4))
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.get_or_create_global_step()
        w, g = tf.Variable(begin), tf.placeholder("float64", [4])
        update = make(step).apply_gradients([(g, w)], step)
        session.run(tf.global_variables_initializer())
        for grad in grads:
            session.run(update, {g: grad})
        found = session.run(w)
    np.testing.assert_allclose(found, reference(begin, grads), rtol=1e-5, atol=1e-7)


WRONG: list[Any] = [
    pytest.param(lambda: train.FtrlOptimizer(1.0, 0.5), "0 or less", id="power"),
    pytest.param(lambda: train.FtrlOptimizer(1.0, l1_regularization_strength=-1.0), "0 or more"),
    pytest.param(lambda: tf.nn.fused_batch_norm(X, SCALE, OFFSET, data_format="N"), "NHWC or"),
    pytest.param(
        lambda: tf.nn.fused_batch_norm(X, SCALE, OFFSET, is_training=False), "give mean", id="mean"
    ),
    pytest.param(lambda: tf.nn.log_poisson_loss(COUNTS, X), "targets are", id="poisson"),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_wrong_arguments(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        make()
