"""Metrics as objects: one's own, states, names, configs, mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import losses, metrics, naming, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError, UnimplementedError

from .loss_metric_cases import ARGUMENTS
from .loss_metric_inputs import INPUTS, MODES, REFERENCE, Array, close


class Spread(metrics.Metric):
    """The least and the largest value, and the mean by a metric that this one holds."""

    def __init__(self, name: str = "spread", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.low = self.add_weight(name="low")
        self.high = self.add_variable((), "zeros", name="high", dtype="float64")
        self.mean = metrics.Mean()

    def update_state(self, values: Any) -> None:
        self.low.assign(ops.minimum(self.low.value, ops.min(values)))
        self.high.assign(ops.maximum(self.high.value, ops.cast(ops.max(values), "float64")))
        self.mean.update_state(values)

    def result(self) -> Any:
        return {"low": self.low.value, "high": self.high.value, "mean": self.mean.result()}


@pytest.mark.parametrize("run", MODES)
def test_a_metric_of_ones_own(run: Callable[..., Any]) -> None:
    metric = Spread()
    assert [v.path for v in metric.variables[:2]] == ["spread/low", "spread/high"]
    assert [v.dtype for v in metric.variables[:2]] == ["float32", "float64"]
    assert len(metric.variables) == 4
    run(metric.update_state, np.array([3.0, -2.0], "float32"))
    found = run(metric, np.array([5.0, 2.0], "float32"))
    assert {key: float(value) for key, value in found.items()} == {
        "low": -2.0,
        "high": 5.0,
        "mean": 2.0,
    }
    metric.reset_state()
    assert all(not v.numpy().any() for v in metric.variables)


@pytest.mark.parametrize("run", MODES)
def test_stateless(run: Callable[..., Any]) -> None:
    metric = metrics.Mean()
    metric.update_state([10.0])

    def step(values: Any) -> Any:
        state = metric.stateless_reset_state()
        state = metric.stateless_update_state(state, values)
        state = metric.stateless_update_state(state, [6.0], sample_weight=[2.0])
        return metric.stateless_result(state), state

    result, state = run(step, np.array([1.0, 2.0], "float32"))
    close(result, 15 / 4)
    close([np.asarray(s) for s in state], [15.0, 4.0])
    close(metric.result(), 10.0)


def test_stateless_needs_all_values() -> None:
    with pytest.raises(InvalidArgumentError, match="expected 2 values"):
        metrics.Mean().stateless_result([1.0])


def test_call_updates_and_gives_the_result() -> None:
    metric = metrics.Sum()
    assert float(metric([1.0, 2.0])) == 3.0
    assert float(metric([4.0])) == 7.0


def test_results_before_any_batch() -> None:
    for metric in (metrics.Mean(), metrics.AUC(), metrics.Precision(), metrics.F1Score()):
        assert float(metric.result()) == 0.0


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_dtype(dtype: str) -> None:
    metric = metrics.MeanSquaredError(dtype=dtype)
    assert metric.dtype == dtype
    assert {v.dtype for v in metric.variables} == {dtype}
    assert metric(INPUTS["values"], INPUTS["values_2"]).dtype == dtype


def test_names_count_up() -> None:
    naming.reset_names()
    assert [metrics.AUC().name for _ in range(3)] == ["auc", "auc_1", "auc_2"]
    assert metrics.MeanIoU(2).name == "mean_io_u"
    assert metrics.AUC(name="mine").true_positives.path == "mine/true_positives"


# Names and configs


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mse", metrics.MeanSquaredError),
        ("MAE", metrics.MeanAbsoluteError),
        ("bce", metrics.BinaryCrossentropy),
        ("accuracy", metrics.Accuracy),
        ("auc", metrics.AUC),
        ("AUC", metrics.AUC),
        ("f1_score", metrics.F1Score),
        ("sparse_top_k_categorical_accuracy", metrics.SparseTopKCategoricalAccuracy),
    ],
)
def test_get(name: str, expected: type[metrics.Metric]) -> None:
    assert type(metrics.get(name)) is expected


def test_get_other_things() -> None:
    metric = metrics.Mean()
    assert metrics.get(metric) is metric
    assert metrics.get(metrics.binary_accuracy) is metrics.binary_accuracy
    assert isinstance(metrics.get(metrics.Mean), metrics.Mean)
    assert metrics.get(None) is None


def test_get_names_near_ones() -> None:
    with pytest.raises(InvalidArgumentError, match="binary_accuracy"):
        metrics.get("binary_acuracy")


@pytest.mark.parametrize("name", REFERENCE["metric_configs"])
def test_default_configs_and_variables_equal_keras(name: str) -> None:
    metric = getattr(metrics, name)(**ARGUMENTS.get(name, {}))
    expected = REFERENCE["metric_configs"][name]
    config = metric.get_config()
    config["name"] = config["name"].rstrip("_0123456789")
    assert json.loads(json.dumps(config)) == expected["config"]
    variables = [[v.path.split("/")[-1], list(v.shape)] for v in metric.variables]
    assert variables == expected["variables"]


@pytest.mark.parametrize(
    "metric",
    [
        metrics.AUC(thresholds=[0.2, 0.7], curve="pr", label_weights=[1.0, 2.0], name="area"),
        metrics.Precision(thresholds=[0.1, 0.2], top_k=3, class_id=1),
        metrics.SparseTopKCategoricalAccuracy(k=3, from_sorted_ids=True),
        metrics.CosineSimilarity(axis=0),
        metrics.FBetaScore(average="micro", beta=0.5, threshold=0.3),
        metrics.R2Score(class_aggregation=None, num_regressors=2),
        metrics.OneHotIoU(4, [1, 2], ignore_class=3, dtype="float32"),
        metrics.BinaryIoU([1], 0.3),
        metrics.PrecisionAtRecall(0.7, num_thresholds=20, class_id=0),
        metrics.MeanMetricWrapper(metrics.binary_accuracy, name="share", threshold=0.3),
    ],
    ids=lambda metric: type(metric).__name__,
)
def test_configs_round_trip(metric: metrics.Metric) -> None:
    data = json.loads(json.dumps(metrics.serialize(metric)))
    again = metrics.deserialize(data)
    assert type(again) is type(metric)
    assert again.get_config() == metric.get_config()


def test_label_weights_of_a_file_may_be_a_tensor() -> None:
    weights = {"class_name": "__tensor__", "config": {"value": [1.0, 2.0], "dtype": "float32"}}
    metric = metrics.AUC.from_config({"num_thresholds": 4, "label_weights": weights})
    assert metric.get_config()["label_weights"] == [1.0, 2.0]


def test_custom_objects() -> None:
    data = metrics.serialize(Spread(name="s"))
    assert isinstance(metrics.deserialize(data, custom_objects={"Spread": Spread}), Spread)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, "float32")


@pytest.mark.parametrize(
    ("call", "kind", "parts"),
    [
        pytest.param(
            lambda: metrics.BinaryAccuracy()(zeros(4), zeros(4, 3)),
            ShapeError,
            ["binary_accuracy", "[4]", "[4, 3]"],
            id="shapes",
        ),
        pytest.param(
            lambda: metrics.CategoricalAccuracy()(zeros(4), zeros(4, 3)),
            ShapeError,
            ["categorical_accuracy", "look like class numbers"],
            id="class-numbers",
        ),
        pytest.param(
            lambda: metrics.SparseCategoricalAccuracy()(zeros(4, 3), zeros(4, 3)),
            ShapeError,
            ["sparse_categorical_accuracy", "look one-hot"],
            id="one-hot",
        ),
        pytest.param(
            lambda: metrics.AUC()(zeros(4, 2), zeros(5, 2)),
            ShapeError,
            ["AUC", "batch sizes 4 and 5"],
            id="batch",
        ),
        pytest.param(
            lambda: metrics.AUC(multi_label=True)(zeros(4), zeros(4)),
            ShapeError,
            ["AUC", "num_labels="],
            id="labels-unknown",
        ),
        pytest.param(
            lambda: metrics.AUC(multi_label=True, num_labels=3)(zeros(4, 2), zeros(4, 2)),
            ShapeError,
            ["(batch, 3)", "[4, 2]"],
            id="labels",
        ),
        pytest.param(
            lambda: metrics.AUC(num_labels=3), InvalidArgumentError, ["multi_label"], id="no-labels"
        ),
        pytest.param(
            lambda: metrics.AUC(multi_label=True, num_labels=3, label_weights=[1.0]),
            ShapeError,
            ["expected 3 label_weights"],
            id="label-weights",
        ),
        pytest.param(
            lambda: metrics.AUC(num_thresholds=1),
            InvalidArgumentError,
            ["at least 2", "1"],
            id="thresholds",
        ),
        pytest.param(
            lambda: metrics.AUC(curve="RC"), InvalidArgumentError, ["ROC, PR", "'RC'"], id="curve"
        ),
        pytest.param(
            lambda: metrics.Precision(thresholds=[0.5, 1.5]),
            InvalidArgumentError,
            ["Precision", "between 0 and 1", "1.5"],
            id="threshold",
        ),
        pytest.param(
            lambda: metrics.Recall(top_k=4)(zeros(2, 3), zeros(2, 3)),
            InvalidArgumentError,
            ["Recall", "at least 4 classes", "[2, 3]"],
            id="top-k",
        ),
        pytest.param(
            lambda: metrics.Recall(class_id=3)(zeros(2, 3), zeros(2, 3)),
            InvalidArgumentError,
            ["at least 4 classes"],
            id="class-id",
        ),
        pytest.param(
            lambda: metrics.PrecisionAtRecall(1.5),
            InvalidArgumentError,
            ["recall must be between 0 and 1", "1.5"],
            id="recall",
        ),
        pytest.param(
            lambda: metrics.RecallAtPrecision(0.5, num_thresholds=0),
            InvalidArgumentError,
            ["num_thresholds"],
            id="no-thresholds",
        ),
        pytest.param(
            lambda: metrics.F1Score(average="mean"),
            InvalidArgumentError,
            ["F1Score", "'micro'", "'mean'"],
            id="average",
        ),
        pytest.param(
            lambda: metrics.FBetaScore(beta=0), InvalidArgumentError, ["beta", "0"], id="beta"
        ),
        pytest.param(
            lambda: metrics.FBetaScore(beta=1), InvalidArgumentError, ["a float"], id="beta-int"
        ),
        pytest.param(
            lambda: metrics.F1Score(threshold=1),
            InvalidArgumentError,
            ["a float"],
            id="f-threshold-int",
        ),
        pytest.param(
            lambda: metrics.F1Score(threshold=2.0), InvalidArgumentError, ["2.0"], id="f-threshold"
        ),
        pytest.param(
            lambda: metrics.F1Score()(zeros(4), zeros(4)),
            ShapeError,
            ["(batch, classes)", "[4]"],
            id="f-shape",
        ),
        pytest.param(
            lambda: metrics.R2Score()(zeros(4), zeros(4)), ShapeError, ["(batch, outputs)"], id="r2"
        ),
        pytest.param(
            lambda: metrics.R2Score(class_aggregation="sum"),
            InvalidArgumentError,
            ["'uniform_average'", "'sum'"],
            id="aggregation",
        ),
        pytest.param(
            lambda: metrics.R2Score(num_regressors=-1),
            InvalidArgumentError,
            ["-1"],
            id="regressors",
        ),
        pytest.param(
            lambda: metrics.IoU(3, [0, 3]), InvalidArgumentError, ["from 0 to 2", "[3]"], id="iou"
        ),
        pytest.param(
            lambda: metrics.Metric().update_state(), UnimplementedError, ["Metric"], id="update"
        ),
        pytest.param(
            lambda: metrics.Metric().result(), UnimplementedError, ["Metric"], id="result"
        ),
    ],
)
def test_errors(call: Callable[[], Any], kind: type[Exception], parts: list[str]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert [part for part in parts if part not in str(caught.value)] == []


def test_predictions_that_are_decisions() -> None:
    y = np.array([[True], [False], [True]])
    for decided in (y, y.astype("int32")):
        metric = metrics.BinaryAccuracy()
        metric.update_state(y, decided)
        assert float(metric.result()) == 1.0


def test_a_class_needs_an_axis() -> None:
    for kind in (metrics.Precision, metrics.Recall):
        with pytest.raises(ShapeError, match="axis of classes"):
            kind(class_id=2).update_state(np.array([0, 1, 1]), np.array([0.2, 0.1, 0.6]))


def test_options_are_attributes() -> None:
    metric = metrics.SparseTopKCategoricalAccuracy(k=2, from_sorted_ids=True)
    again = metrics.SparseTopKCategoricalAccuracy.from_config(metric.get_config())
    assert (again.k, again.from_sorted_ids) == (2, True)  # type: ignore[attr-defined]  # a Metric
    entropy = metrics.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2)
    assert (entropy.from_logits, entropy.ignore_class, entropy.axis) == (True, 2, -1)
    assert metrics.BinaryAccuracy(threshold=0.25).threshold == 0.25
    assert not hasattr(entropy, "label_smoothing")


def test_class_numbers_broadcast_with_a_warning() -> None:
    scores = np.array([[[0.9, 0.1, 0.0], [0.1, 0.8, 0.1]]])
    metric = metrics.SparseCategoricalAccuracy()
    with pytest.warns(UserWarning, match="give labels of shape"):
        metric.update_state(np.array([[0], [0]]), scores)  # (2, 1) against (1, 2)
    assert float(metric.result()) == 0.5
    with pytest.raises(ShapeError, match="one-hot"):
        metric.update_state(np.eye(3), np.eye(3))


def test_counts_of_metrics_in_few_bits_do_not_stop_growing() -> None:
    ones = np.ones(1500)
    for metric in (
        metrics.TruePositives(dtype="float16"),  # which holds no 2049
        metrics.TruePositives(thresholds=0.5, dtype="int32"),
    ):
        for _ in range(3):
            metric.update_state(ones, ones)
        assert (metric.result().dtype, float(metric.result())) == ("float32", 4500.0)
    weighted = metrics.Precision(dtype="int32")
    weighted.update_state([0, 1, 1], [0.9, 0.9, 0.9], [0.5, 0.5, 0.5])
    np.testing.assert_allclose(weighted.result(), 2 / 3, rtol=1e-6)
    overlap = metrics.MeanIoU(2, dtype="bfloat16")
    overlap.update_state([0, 1, 1], [0, 1, 0])
    assert overlap.result().dtype == "float32"
    assert metrics.AUC(dtype="float64").true_positives.dtype == "float64"


def test_the_name_of_a_policy_means_its_compute_dtype() -> None:
    assert metrics.Mean(dtype="mixed_bfloat16").dtype == "bfloat16"
    loss = losses.MeanSquaredError(dtype="mixed_float16")
    assert loss([[1.0]], [[3.0]]).dtype == "float16"
