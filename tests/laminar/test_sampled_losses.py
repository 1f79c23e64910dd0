"""Candidate samplers and the losses over sampled classes, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import losses, random
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.gradients import GradientTape, IndexedSlices
from laminar.random import Candidates

rng = np.random.default_rng(0)
WEIGHTS, BIASES = rng.normal(size=(20, 4)), rng.normal(size=20)
INPUTS, LABELS = rng.normal(size=(3, 4)), np.array([[1, 5], [7, 2], [19, 0]])
SAMPLED = np.array([5, 3, 0, 11, 8])
TRUE_COUNT, SAMPLED_COUNT = rng.uniform(0.1, 0.9, (3, 2)), rng.uniform(0.1, 0.9, 5)


def candidates() -> Candidates:
    as_float = [laminar.ops.convert_to_tensor(c, "float64") for c in (TRUE_COUNT, SAMPLED_COUNT)]
    return Candidates(laminar.ops.convert_to_tensor(SAMPLED), *as_float)


def reference(removes_hits: bool) -> Any:
    """Logits and targets, class by class."""
    logits, targets = np.zeros((3, 7)), np.zeros((3, 7))
    targets[:, :2] = 0.5
    for i in range(3):
        for j, k in enumerate(LABELS[i]):
            logits[i, j] = INPUTS[i] @ WEIGHTS[k] + BIASES[k] - np.log(TRUE_COUNT[i, j])
        for j, k in enumerate(SAMPLED):
            logits[i, 2 + j] = INPUTS[i] @ WEIGHTS[k] + BIASES[k] - np.log(SAMPLED_COUNT[j])
            if removes_hits and k in LABELS[i]:
                logits[i, 2 + j] = -np.inf
    return logits, targets


@pytest.mark.parametrize("removes_hits", [True, False])
def test_sampled_softmax(removes_hits: bool) -> None:
    logits, targets = reference(removes_hits)
    normalizer = np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = -(targets[:, :2] * (logits - normalizer)[:, :2]).sum(axis=1)
    found: Any = losses.sampled_softmax_loss(
        WEIGHTS, BIASES, LABELS, INPUTS, 5, 20, 2, candidates(), removes_hits
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("removes_hits", [True, False])
def test_nce(removes_hits: bool) -> None:
    logits, targets = reference(removes_hits)
    p = 1 / (1 + np.exp(-logits))
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(targets > 0, -targets * np.log(p), 0) - (1 - targets) * np.log1p(-p)
    found: Any = losses.nce_loss(
        WEIGHTS, BIASES, LABELS, INPUTS, 5, 20, 2, candidates(), removes_hits
    )
    np.testing.assert_allclose(found, parts.sum(axis=1), rtol=1e-10)


def test_gradients_are_of_the_rows_that_are_read() -> None:
    weights, biases = laminar.Variable(WEIGHTS), laminar.Variable(BIASES)
    with GradientTape() as tape:
        loss = losses.sampled_softmax_loss(
            weights, biases, LABELS, INPUTS, 5, 20, 2, candidates(), True
        )
    gradient = tape.gradient(loss, weights)
    assert isinstance(gradient, IndexedSlices)
    assert set(np.asarray(gradient.indices).tolist()) == {*LABELS.flat, *SAMPLED}


def drawn(sampler: Any, unique: bool, times: int, **options: Any) -> Any:
    generator = random.SeedGenerator(3)
    true = np.arange(8)[:, None]
    return [
        [np.asarray(part) for part in sampler(true, 4, unique, 8, seed=generator, **options)]
        for _ in range(times)
    ]


SAMPLERS = {
    "uniform": (random.uniform_candidate_sampler, {}, np.full(8, 1 / 8)),
    "log-uniform": (
        random.log_uniform_candidate_sampler,
        {},
        np.log((np.arange(8) + 2) / (np.arange(8) + 1)) / np.log(9),
    ),
    "unigrams": (
        random.fixed_unigram_candidate_sampler,
        {"unigrams": [0, 1, 2, 3, 4, 5, 6, 7], "distortion": 0.75},
        np.arange(8) ** 0.75 / np.sum(np.arange(8) ** 0.75),
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_classes_come_as_often_as_their_probability(name: str) -> None:
    """1,000 draws of 4: a frequency is within 4 of its standard deviations."""
    sampler, options, p = SAMPLERS[name]
    found = drawn(sampler, False, 1000, **options)
    counts = np.bincount(np.concatenate([sampled for sampled, _, _ in found]), minlength=8)
    assert (np.abs(counts - 4000 * p) <= 4 * np.sqrt(4000 * p * (1 - p)) + 1e-9).all()
    _, true_count, sampled_count = found[0]
    np.testing.assert_allclose(true_count[:, 0], 4 * p, rtol=1e-6)
    np.testing.assert_allclose(sampled_count, 4 * p[found[0][0]], rtol=1e-6)


@pytest.mark.parametrize("name", SAMPLERS)
def test_unique_classes(name: str) -> None:
    """Each class once in a draw; the expected counts are means of what is drawn, about."""
    sampler, options, p = SAMPLERS[name]
    found = drawn(sampler, True, 1000, **options)
    assert all(len(set(sampled.tolist())) == 4 for sampled, _, _ in found)
    counts = np.bincount(np.concatenate([sampled for sampled, _, _ in found]), minlength=8)
    expected = np.mean([true_count[:, 0] for _, true_count, _ in found], axis=0)
    np.testing.assert_allclose(counts / 1000, expected, atol=0.06)
    _, true_count, _ = found[0]
    tries = np.log1p(-true_count[1:, 0]) / np.log1p(-p[1:])
    np.testing.assert_allclose(tries, tries.round()[0], rtol=1e-4)


def test_a_trained_model_knows_the_classes() -> None:
    """50 classes on a line of features: the softmax over all of them gets most right."""
    laminar.set_random_seed(0)
    features = rng.normal(size=(50, 8)).astype("float32")
    weights, biases = laminar.Variable(np.zeros((50, 8), "float32")), laminar.Variable(np.zeros(50))
    optimizer = laminar.optimizers.Adam(0.05)
    labels = np.arange(50)[:, None]

    @laminar.function
    def step() -> Any:
        with GradientTape() as tape:
            loss = laminar.ops.mean(
                losses.sampled_softmax_loss(
                    weights, laminar.ops.cast(biases, "float32"), labels, features, 10, 50
                )
            )
        optimizer.apply(tape.gradient(loss, [weights, biases]), [weights, biases])
        return loss

    for _ in range(150):
        step()
    scores = features @ np.asarray(weights).T + np.asarray(biases)
    assert np.mean(scores.argmax(axis=1) == np.arange(50)) > 0.9


def test_mistakes() -> None:
    with pytest.raises(InvalidArgumentError, match="cannot draw 9 different classes of 8"):
        random.uniform_candidate_sampler([[1]], 9, True, 8)
    with pytest.raises(ShapeError, match="expected 8 unigrams"):
        random.fixed_unigram_candidate_sampler([[1]], 2, True, 8, [1, 2])
    with pytest.raises(InvalidArgumentError, match="unigrams must be at least 0"):
        random.fixed_unigram_candidate_sampler([[1]], 1, True, 2, [-1, 2])
    with pytest.raises(ShapeError, match=r"expected labels \(batch, num_true=1\)"):
        losses.nce_loss(WEIGHTS, BIASES, LABELS[:, 0], INPUTS, 5, 20)
