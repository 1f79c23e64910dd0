"""Losses as objects: names, configs, mistakes."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import losses, ops
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError, UnimplementedError
from laminar.engine.graph import tensor_like
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.losses.alignment import squeeze_or_expand_to_same_rank

from .loss_metric_inputs import REFERENCE, Array, close


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mse", "mean_squared_error"),
        ("MAE", "mean_absolute_error"),
        ("mape", "mean_absolute_percentage_error"),
        ("msle", "mean_squared_logarithmic_error"),
        ("bce", "binary_crossentropy"),
        ("kld", "kl_divergence"),
        ("sparse_categorical_crossentropy", "sparse_categorical_crossentropy"),
    ],
)
def test_get_a_function(name: str, expected: str) -> None:
    assert losses.get(name) is getattr(losses, expected)


def test_get_an_object() -> None:
    assert isinstance(losses.get("Huber"), losses.Huber)
    assert isinstance(losses.get(losses.Huber), losses.Huber)
    loss = losses.Huber()
    assert losses.get(loss) is loss
    assert losses.get(None) is None


def test_get_names_near_ones() -> None:
    with pytest.raises(InvalidArgumentError, match="mean_squared_error"):
        losses.get("mean_sqared_error")


@pytest.mark.parametrize("name", REFERENCE["loss_configs"])
def test_default_configs_equal_keras(name: str) -> None:
    loss = getattr(losses, name)()
    assert loss.get_config() == REFERENCE["loss_configs"][name]["config"]


@pytest.mark.parametrize(
    "loss",
    [
        losses.Huber(delta=2.0, reduction="sum", name="mine"),
        losses.CosineSimilarity(axis=0, dtype="float64"),
        losses.SparseCategoricalCrossentropy(True, ignore_class=-1, axis=1),
        losses.CategoricalFocalCrossentropy(alpha=[0.1, 0.2, 0.7]),
        losses.Dice(axis=[1, 2]),
        losses.CTC(),
        losses.LossFunctionWrapper(losses.huber, delta=0.2),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_configs_round_trip(loss: losses.Loss) -> None:
    data = json.loads(json.dumps(losses.serialize(loss)))
    again = losses.deserialize(data)
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()


def test_functions_are_saved_by_name() -> None:
    data = losses.serialize(losses.mean_squared_error)
    assert losses.deserialize(data) is losses.mean_squared_error


def test_custom_objects() -> None:
    class Mine(losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return y_pred - y_true

    data = losses.serialize(Mine(name="m"))
    assert isinstance(losses.deserialize(data, custom_objects={"Mine": Mine}), Mine)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, "float32")


@pytest.mark.parametrize(
    ("call", "kind", "parts"),
    [
        pytest.param(
            lambda: losses.MeanSquaredError()(zeros(4, 3), zeros(5, 3)),
            ShapeError,
            ["float32[4, 3]", "float32[5, 3]", "batch sizes 4 and 5", "one row per sample"],
            id="batch",
        ),
        pytest.param(
            lambda: losses.MeanSquaredError()(zeros(4, 2), zeros(4, 3)),
            ShapeError,
            ["[4, 2]", "[4, 3]", "axis 1: 2 against 3", "last layer give 2 values"],
            id="outputs",
        ),
        pytest.param(
            lambda: losses.MeanSquaredError()(zeros(4), zeros(4, 3)),
            ShapeError,
            ["1 against 2 axes", "1 unit instead of 3", "sparse_categorical_crossentropy"],
            id="one-label-for-many-outputs",
        ),
        pytest.param(
            lambda: losses.CategoricalCrossentropy()(zeros(4), zeros(4, 3)),
            ShapeError,
            ["look like class numbers: use sparse_categorical_crossentropy", "to_categorical"],
            id="class-numbers",
        ),
        pytest.param(
            lambda: losses.CategoricalCrossentropy()(zeros(4, 1), zeros(4, 3)),
            ShapeError,
            ["look like class numbers"],
            id="class-numbers-column",
        ),
        pytest.param(
            lambda: losses.SparseCategoricalCrossentropy()(zeros(4, 3), zeros(4, 3)),
            ShapeError,
            ["[4, 3]", "look one-hot: use categorical_crossentropy"],
            id="one-hot",
        ),
        pytest.param(
            lambda: losses.SparseCategoricalCrossentropy()(zeros(5), zeros(4, 3)),
            ShapeError,
            ["[5]", "[4, 3]", "batch axis"],
            id="sparse-batch",
        ),
        pytest.param(
            lambda: losses.SparseCategoricalCrossentropy()(np.array([0, 3]), zeros(2, 3)),
            InvalidArgumentError,
            ["3"],
            id="label-out-of-range",
        ),
        pytest.param(
            lambda: losses.MeanSquaredError()(zeros(4, 3), zeros(4, 3), zeros(4, 3)),
            ShapeError,
            ["the values are float32[4], the weights float32[4, 3]", "for each sample"],
            id="weights-rank",
        ),
        pytest.param(
            lambda: losses.MeanSquaredError()(zeros(4, 3), zeros(4, 3), zeros(3)),
            ShapeError,
            ["float32[4]", "float32[3]"],
            id="weights-batch",
        ),
        pytest.param(
            lambda: losses.circle(zeros(4), zeros(4, 3, 2)),
            ShapeError,
            ["circle", "[4, 3, 2]"],
            id="circle",
        ),
        pytest.param(
            lambda: losses.CTC()(zeros(4), zeros(4, 3)), ShapeError, ["ctc", "pad"], id="ctc"
        ),
        pytest.param(
            lambda: losses.MeanSquaredError(reduction="auto"),  # type: ignore[arg-type]  # the mistake
            InvalidArgumentError,
            ["'sum_over_batch_size'", "'auto'"],
            id="reduction",
        ),
        pytest.param(
            lambda: losses.CategoricalGeneralizedCrossEntropy(q=1.5),
            InvalidArgumentError,
            ["q must be between 0 and 1", "1.5"],
            id="q",
        ),
        pytest.param(
            lambda: losses.Loss()(zeros(1), zeros(1)), UnimplementedError, ["call"], id="abstract"
        ),
    ],
)
def test_errors(call: Callable[[], Any], kind: type[Exception], parts: list[str]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [
        pytest.param(1.0, zeros(4, 3) + 3, id="number"),
        pytest.param(zeros(1, 3) + 1, zeros(4, 3) + 3, id="one-row"),
        pytest.param(zeros(4, 1, 3) + 1, zeros(4, 2, 3) + 3, id="inner-axis"),
    ],
)
def test_shapes_that_broadcast(y_true: Any, y_pred: Array) -> None:
    close(losses.mean_squared_error(y_true, y_pred), np.full(y_pred.shape[:-1], 4.0))


def test_one_class_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="binary_crossentropy"):
        losses.categorical_crossentropy(zeros(4, 1), zeros(4, 1) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses.categorical_crossentropy(zeros(4, 2), zeros(4, 2) + 1)


@pytest.mark.parametrize(
    ("shapes", "expand_rank_1", "expected"),
    [
        (((4,), (4, 1)), True, ((4, 1), (4, 1))),
        (((4,), (4, 1)), False, ((4,), (4,))),
        (((4, 5, 1), (4, 5)), True, ((4, 5), (4, 5))),
        (((4, 5), (4, 5, 1)), True, ((4, 5), (4, 5))),
        (((4, 5), (4, 5, 2)), True, ((4, 5), (4, 5, 2))),
        (((4,), (4, 5, 1)), True, ((4,), (4, 5, 1))),
    ],
)
def test_squeeze_or_expand(shapes: Any, expand_rank_1: bool, expected: Any) -> None:
    tensors = [convert_to_tensor(zeros(*s)) for s in shapes]
    found = squeeze_or_expand_to_same_rank(tensors[0], tensors[1], expand_rank_1)
    assert tuple(tuple(tensor_like(x).shape) for x in found) == expected


@pytest.mark.parametrize("name", ["mean_squared_error", "huber", "poisson", "hinge", "dice"])
def test_labels_broadcast_with_a_warning(name: str) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.uniform(0.1, 0.9, (4, 1)).astype("float32")
    y_pred = rng.uniform(0.1, 0.9, (4, 3)).astype("float32")
    loss = losses.get(name)
    with pytest.warns(UserWarning, match=r"float32\[4, 1\].*float32\[4, 3\].*axis 1: 1 against 3"):
        found = loss(y_true, y_pred)
    if name != "dice":  # which sums over all axes
        np.testing.assert_allclose(found, loss(np.repeat(y_true, 3, axis=1), y_pred), rtol=1e-6)
    with pytest.warns(UserWarning, match="1 against 2 axes"):
        losses.MeanSquaredError()(zeros(4), zeros(4, 4))


def test_text_as_labels_is_refused_with_a_remedy() -> None:
    model = laminar.Sequential([laminar.layers.Input((1,)), laminar.layers.Dense(2)])
    losses_of = ("mse", losses.SparseCategoricalCrossentropy(from_logits=True))
    for loss in losses_of:
        model.compile("sgd", loss)
        with pytest.raises(DTypeError, match=r"(?s)labels are text.*StringLookup"):
            model.fit(np.ones((2, 1)), np.array(["u", "v"]), verbose=0)


def test_a_sample_without_a_pair_has_no_part_in_circles_mean() -> None:
    """As in Keras 3.15: the third sample has nobody of its class."""
    labels = np.array([1, 1, 2])
    x = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    values = losses.circle(labels, x).numpy()
    assert values[2] == 0
    assert values[0] > 0
    mean = losses.Circle()(labels, x).numpy()
    np.testing.assert_allclose(mean, values[:2].mean(), rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (
            losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1),
            {"from_logits": True, "label_smoothing": 0.1, "axis": -1},
        ),
        (losses.BinaryFocalCrossentropy(gamma=1.5), {"gamma": 1.5, "alpha": 0.25}),
        (losses.Tversky(alpha=0.3), {"alpha": 0.3, "beta": 0.5, "axis": None}),
        (losses.Circle(margin=0.5), {"margin": 0.5, "gamma": 80.0, "remove_diagonal": True}),
        (losses.CategoricalGeneralizedCrossEntropy(q=0.75), {"q": 0.75}),
    ],
)
def test_options_are_attributes(loss: losses.Loss, options: dict[str, Any]) -> None:
    for made in (loss, copy.deepcopy(loss), type(loss).from_config(loss.get_config())):
        assert {name: getattr(made, name) for name in options} == options
        assert not hasattr(made, "power")


def test_a_class_to_ignore_need_not_fit_into_the_type_of_the_labels() -> None:
    y_true, y_pred = np.array([0, 1], np.uint8), np.array([[0.75, 0.25], [0.5, 0.5]], np.float32)
    loss = losses.SparseCategoricalCrossentropy(ignore_class=-1)
    expected = -float(np.log([0.75, 0.5]).mean())
    np.testing.assert_allclose(ops.convert_to_numpy(loss(y_true, y_pred)), expected, rtol=1e-6)
