"""Metrics: values and masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import metrics
from laminar.engine.functions import function
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.layers.masking import set_mask

from .loss_metric_cases import METRICS, Case, input_name
from .loss_metric_inputs import INPUTS, MODES, REFERENCE, Array, close

rng = np.random.default_rng(5)


@pytest.mark.slow
@pytest.mark.parametrize("run", MODES)
@pytest.mark.parametrize("case", METRICS, ids=lambda case: case.id)
def test_results_equal_keras(case: Case, run: Callable[..., Any]) -> None:
    metric = getattr(metrics, case.name)(**case.options)
    for batch in case.batches:
        values = [INPUTS[input_name(case, a)] if isinstance(a, str) else a for a in batch]
        run(metric.update_state, *values)
    found = run(metric.result)
    expected = np.asarray(REFERENCE["metrics"][case.id])
    assert found.shape == expected.shape
    assert found.dtype == "float32"
    close(found, expected)


# Against definitions

LABELS = rng.integers(0, 2, 400).astype("float32")
SCORES = np.clip(LABELS * 0.3 + rng.uniform(0, 0.7, 400), 0, 1).astype("float32")
WEIGHTS = rng.uniform(0, 2, 400).astype("float32")


def rank_auc(weights: Array) -> Any:
    """The chance that a label 1 scores above a label 0: what the area under the ROC curve is."""
    ones, zeros = LABELS == 1, LABELS == 0
    pairs = weights[ones][:, None] * weights[zeros]
    above = (SCORES[ones][:, None] > SCORES[zeros]) + 0.5 * (SCORES[ones][:, None] == SCORES[zeros])
    return np.sum(above * pairs) / np.sum(pairs)


@pytest.mark.parametrize("weighted", [False, True])
def test_auc_is_the_chance_of_the_right_order(weighted: bool) -> None:
    weights = WEIGHTS if weighted else np.ones_like(WEIGHTS)
    metric = metrics.AUC(num_thresholds=20001)
    metric.update_state(LABELS, SCORES, weights if weighted else None)
    close(metric.result(), rank_auc(weights), tolerance=2e-4)


def test_uneven_thresholds_cut_where_even_ones_do() -> None:
    even = metrics.AUC(num_thresholds=11)
    inner = [*even.thresholds[1:-1], 0.05]  # one more makes them uneven
    uneven = metrics.AUC(thresholds=inner)
    for metric in (even, uneven):
        metric.update_state(LABELS, SCORES, WEIGHTS)
    places = [uneven.thresholds.index(t) for t in even.thresholds]
    for a, b in zip(even.variables, uneven.variables, strict=True):
        close(b.numpy()[places], a.numpy(), tolerance=2e-5)


@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.5, 1.0])
def test_counts_are_those_of_comparing(threshold: float) -> None:
    above = np.greater(SCORES, threshold)
    expected = {
        "TruePositives": (above & (LABELS == 1)),
        "FalsePositives": (above & (LABELS == 0)),
        "TrueNegatives": (~above & (LABELS == 0)),
        "FalseNegatives": (~above & (LABELS == 1)),
    }
    for name, where in expected.items():
        close(getattr(metrics, name)(thresholds=threshold)(LABELS, SCORES), np.sum(where))
        several = getattr(metrics, name)(thresholds=[0.3, threshold])
        close(several(LABELS, SCORES, WEIGHTS)[1], np.sum(WEIGHTS * where), tolerance=1e-5)


def test_pearson_correlation_is_numpys() -> None:
    x, y = rng.normal(size=(2, 3, 50))
    expected = [np.corrcoef(a, b)[0, 1] for a, b in zip(x, y, strict=True)]
    close(metrics.pearson_correlation(x, y), expected)


def test_r2_score_is_one_minus_the_unexplained_share() -> None:
    y_true, y_pred = rng.normal(size=(2, 60, 2))
    metric = metrics.R2Score(class_aggregation=None)
    for rows in (slice(0, 25), slice(25, 60)):
        metric.update_state(y_true[rows], y_pred[rows])
    residual = np.sum((y_true - y_pred) ** 2, 0)
    close(metric.result(), 1 - residual / np.sum((y_true - y_true.mean(0)) ** 2, 0), 2e-5)


def test_a_function_of_any_batch_size_is_traced_once() -> None:
    metric = metrics.SparseCategoricalAccuracy()
    area = metrics.AUC(num_thresholds=50)
    signature = [TensorSpec([None], "int32"), TensorSpec([None, 2], "float32")]

    @function(input_signature=signature)
    def step(y_true: Any, y_pred: Any) -> Any:
        area.update_state(y_true, y_pred[:, 1])
        return metric(y_true, y_pred)

    y_true, y_pred = rng.integers(0, 2, 30).astype("int32"), rng.random((30, 2)).astype("float32")
    for rows in (slice(0, 8), slice(8, 24), slice(24, 30)):
        found = step(y_true[rows], y_pred[rows])
    assert step.trace_count == 1
    close(found, np.mean(y_true == y_pred.argmax(-1)))
    fresh = metrics.AUC(num_thresholds=50)
    close(area.result(), fresh(y_true, y_pred[:, 1]))


# Masks

MASK = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize("run", MODES)
@pytest.mark.parametrize("weights", [None, "step_weights"])
def test_masked_values_do_not_count(weights: str | None, run: Callable[..., Any]) -> None:
    metric = metrics.SparseCategoricalAccuracy()

    def update(y_true: Any, y_pred: Any, mask: Any, *sample_weight: Any) -> None:
        y_pred = convert_to_tensor(y_pred)
        set_mask(y_pred, mask)
        metric.update_state(y_true, y_pred, *sample_weight)

    more = [] if weights is None else [INPUTS[weights]]
    run(update, INPUTS["steps"], INPUTS["sequence_logits"], MASK, *more)
    right = INPUTS["sequence_logits"].argmax(-1) == INPUTS["steps"]
    counting = MASK * (1.0 if weights is None else INPUTS[weights])
    close(metric.result(), np.sum(right * counting) / np.sum(counting))


def test_a_mask_of_steps_meets_weights_of_samples() -> None:
    y_pred = convert_to_tensor(INPUTS["sequence_logits"])
    set_mask(y_pred, convert_to_tensor(MASK))
    metric = metrics.SparseCategoricalAccuracy()
    found = metric(INPUTS["steps"], y_pred, sample_weight=INPUTS["weights"])
    right = INPUTS["sequence_logits"].argmax(-1) == INPUTS["steps"]
    counting = MASK * INPUTS["weights"][:, None]
    close(found, np.sum(right * counting) / np.sum(counting))


@pytest.mark.parametrize(
    ("make", "y_true", "y_pred"),
    [
        (lambda: metrics.AUC(num_thresholds=9), LABELS, SCORES),
        (lambda: metrics.Precision(), LABELS, SCORES),
        (lambda: metrics.TrueNegatives(thresholds=[0.2, 0.6]), LABELS, SCORES),
        (lambda: metrics.PrecisionAtRecall(0.5), LABELS, SCORES),
        (lambda: metrics.MeanSquaredError(), LABELS[:, None], SCORES[:, None]),
        (lambda: metrics.RootMeanSquaredError(), LABELS[:, None], SCORES[:, None]),
        (lambda: metrics.F1Score(threshold=0.5), LABELS[:, None], SCORES[:, None]),
        (lambda: metrics.R2Score(), LABELS[:, None], SCORES[:, None]),
        (lambda: metrics.MeanIoU(2), LABELS, np.round(SCORES)),
        (lambda: metrics.BinaryIoU(), LABELS, SCORES),
    ],
)
def test_a_mask_is_the_same_as_leaving_out(
    make: Callable[[], metrics.Metric], y_true: Array, y_pred: Array
) -> None:
    mask = rng.random(len(y_true)) < 0.6
    tensor = convert_to_tensor(y_pred)
    set_mask(tensor, convert_to_tensor(mask))
    masked, short = make(), make()
    masked.update_state(y_true, tensor)
    short.update_state(y_true[mask], y_pred[mask])
    if isinstance(masked, metrics.R2Score):  # num_samples counts masked rows, too
        close(masked.result(), short.result(), 1e-4)
        return
    for a, b in zip(masked.variables, short.variables, strict=True):
        close(a.numpy(), b.numpy(), 2e-5)


def test_ignored_classes_do_not_count() -> None:
    metric = metrics.SparseCategoricalCrossentropy(ignore_class=1)
    found = metric(INPUTS["classes"], INPUTS["probabilities"])
    kept = INPUTS["classes"] != 1
    again = metrics.SparseCategoricalCrossentropy()
    close(found, again(INPUTS["classes"][kept], INPUTS["probabilities"][kept]))
