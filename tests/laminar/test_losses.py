"""Losses: values, gradients and masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from laminar import losses
from laminar.engine.gradients import GradientTape
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.layers.masking import get_mask, set_mask
from laminar.losses.reduction import Reduction

from .loss_metric_cases import FUNCTIONS, OBJECTS, Case, input_name
from .loss_metric_inputs import INPUTS, MODES, REFERENCE, Array, close

rng = np.random.default_rng(3)


def arguments(case: Case) -> list[Any]:
    (batch,) = case.batches
    return [INPUTS[input_name(case, a)] if isinstance(a, str) else a for a in batch]


@pytest.mark.slow
@pytest.mark.parametrize("run", MODES)
@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case.id)
def test_functions_equal_keras(case: Case, run: Callable[..., Any]) -> None:
    fn = getattr(losses, case.name)
    found = run(lambda *args: fn(*args, **case.options), *arguments(case))
    expected = np.asarray(REFERENCE["functions"][case.id])
    assert found.shape == expected.shape
    assert found.dtype == "float32"
    close(found, expected)


@pytest.mark.parametrize("run", MODES)
@pytest.mark.parametrize("case", OBJECTS, ids=lambda case: case.id)
def test_objects_equal_keras(case: Case, run: Callable[..., Any]) -> None:
    loss = getattr(losses, case.name)(**case.options)
    found = run(loss, *arguments(case))
    expected = np.asarray(REFERENCE["objects"][case.id])
    assert found.shape == expected.shape
    assert found.dtype == "float32"
    close(found, expected)


def _softmax_entropy(y: Array, x: Array) -> Any:
    return -np.sum(y * special.log_softmax(x, -1), -1)


def _sigmoid_entropy(y: Array, x: Array) -> Any:
    return -np.mean(y * special.log_expit(x) + (1 - y) * special.log_expit(-x), -1)


Y = rng.uniform(0.05, 0.95, (5, 4))
X = rng.normal(0, 2, (5, 4))
P = special.softmax(X, -1)
T = special.softmax(rng.normal(size=(5, 4)), -1)
DEFINITIONS = [
    ("mean_squared_error", {}, Y, X, lambda y, x: np.mean((y - x) ** 2, -1)),
    ("mean_absolute_error", {}, Y, X, lambda y, x: np.mean(np.abs(y - x), -1)),
    (
        "mean_absolute_percentage_error",
        {},
        Y,
        X,
        lambda y, x: 100 * np.mean(np.abs(y - x) / y, -1),
    ),
    (
        "mean_squared_logarithmic_error",
        {},
        Y,
        P,
        lambda y, x: np.mean((np.log1p(y) - np.log1p(x)) ** 2, -1),
    ),
    ("huber", {"delta": 0.7}, Y, X, lambda y, x: np.mean(special.huber(0.7, x - y), -1)),
    ("log_cosh", {}, Y, X, lambda y, x: np.mean(np.log(np.cosh(x - y)), -1)),
    ("log_cosh", {}, Y, X * 400, lambda y, x: np.mean(np.abs(x - y) - np.log(2), -1)),
    (
        "cosine_similarity",
        {},
        Y,
        X,
        lambda y, x: -np.sum(y * x, -1) / np.linalg.norm(y, axis=-1) / np.linalg.norm(x, axis=-1),
    ),
    ("kl_divergence", {}, T, P, lambda y, x: np.sum(special.rel_entr(y, x), -1)),
    ("poisson", {}, Y, P, lambda y, x: np.mean(x - y * np.log(x + 1e-7), -1)),
    ("binary_crossentropy", {"from_logits": True}, Y, X * 20, _sigmoid_entropy),
    ("binary_crossentropy", {}, Y, P, lambda y, x: _sigmoid_entropy(y, special.logit(x))),
    ("categorical_crossentropy", {"from_logits": True}, T, X * 20, _softmax_entropy),
    ("categorical_crossentropy", {}, T, P, lambda y, x: -np.sum(y * np.log(x), -1)),
    ("dice", {"axis": -1}, T, P, lambda y, x: 1 - np.sum(y * x, -1)),
]


@pytest.mark.parametrize(
    ("name", "options", "y_true", "y_pred", "definition"),
    [pytest.param(*row, id=f"{row[0]}-{i}") for i, row in enumerate(DEFINITIONS)],
)
def test_functions_in_double_precision(
    name: str, options: dict[str, Any], y_true: Array, y_pred: Array, definition: Any
) -> None:
    found = getattr(losses, name)(y_true, y_pred, **options)
    assert found.dtype == "float64"
    close(found, definition(y_true, y_pred), tolerance=3e-7)


def _gradient(loss: Callable[..., Any], y_true: Any, y_pred: Array) -> Array:
    x = convert_to_tensor(y_pred)
    with GradientTape() as tape:
        tape.watch(x)
        value = loss(y_true, x)
    found: Array = tape.gradient(value, x).numpy()
    return found


@pytest.mark.parametrize(
    ("name", "options", "y_true", "y_pred"),
    [
        *[pytest.param(*row[:4], id=f"{row[0]}-{i}") for i, row in enumerate(DEFINITIONS)],
        ("hinge", {}, Y, X),
        ("squared_hinge", {}, np.sign(X[::-1]), X),
        ("categorical_hinge", {}, T, X),
        ("binary_focal_crossentropy", {"apply_class_balancing": True}, Y, P),
        ("categorical_focal_crossentropy", {"from_logits": True}, T, X),
        ("sparse_categorical_crossentropy", {"from_logits": True}, np.arange(5) % 4, X),
        ("sparse_categorical_crossentropy", {}, np.arange(5) % 4, P),
        ("sparse_categorical_crossentropy", {"ignore_class": 2}, np.arange(5) % 4, P),
        ("categorical_generalized_cross_entropy", {"q": 0.4}, np.arange(5) % 4, P),
        ("tversky", {"alpha": 0.3}, Y, P),
        (
            "circle",
            {"gamma": 3.0},
            np.array([0, 0, 1, 1, 1]),
            X / np.linalg.norm(X, axis=-1)[:, None],
        ),
    ],
)
def test_gradients(name: str, options: dict[str, Any], y_true: Array, y_pred: Array) -> None:
    fn = getattr(losses, name)
    direction = rng.normal(size=y_pred.shape)
    h = 1e-6 * max(1.0, float(np.abs(y_pred).max()))
    ends = [np.sum(np.asarray(fn(y_true, y_pred + s * h * direction, **options))) for s in (1, -1)]
    slope = np.sum(_gradient(lambda y, x: fn(y, x, **options), y_true, y_pred) * direction)
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * h), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "y_true", "y_pred"),
    [
        ("binary_crossentropy", {}, [[1.0, 0.0]], [[0.0, 1.0]]),
        ("binary_crossentropy", {"from_logits": True}, [[1.0, 0.0]], [[-1e4, 1e4]]),
        ("categorical_crossentropy", {}, [[1.0, 0.0]], [[0.0, 1.0]]),
        ("categorical_crossentropy", {"from_logits": True}, [[1.0, 0.0]], [[-1e4, 1e4]]),
        ("sparse_categorical_crossentropy", {"from_logits": True}, [0], [[-1e4, 1e4]]),
        ("binary_focal_crossentropy", {}, [[1.0, 0.0]], [[0.0, 1.0]]),
        ("kl_divergence", {}, [[1.0, 0.0]], [[0.0, 1.0]]),
        ("poisson", {}, [[1.0, 2.0]], [[0.0, 0.0]]),
        ("log_cosh", {}, [[1e4, -1e4]], [[0.0, 0.0]]),
        ("cosine_similarity", {}, [[0.0, 0.0]], [[0.0, 0.0]]),
        ("dice", {}, [[0.0, 0.0]], [[0.0, 0.0]]),
    ],
)
def test_finite_at_the_ends(name: str, options: dict[str, Any], y_true: Any, y_pred: Any) -> None:
    y_pred = np.array(y_pred, "float32")
    fn = getattr(losses, name)
    assert np.isfinite(np.asarray(fn(np.array(y_true), y_pred, **options))).all()
    assert np.isfinite(_gradient(lambda y, x: fn(y, x, **options), np.array(y_true), y_pred)).all()


# Weights and masks

VALUES = np.mean((INPUTS["sequence"] - INPUTS["sequence_2"]) ** 2, -1)
MASK = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize("run", MODES)
@pytest.mark.parametrize("weights", [None, "step_weights"])
@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("sum_over_batch_size", lambda v, m: np.sum(v * m) / np.sum(m)),
        ("mean", lambda v, m: np.sum(v * m) / np.sum(m)),
        ("sum", lambda v, m: np.sum(v * m)),
        ("none", lambda v, m: v * m),
    ],
)
def test_masks(
    reduction: Reduction, expected: Callable[..., Any], weights: str | None, run: Callable[..., Any]
) -> None:
    loss = losses.MeanSquaredError(reduction=reduction)

    def masked(y_true: Any, y_pred: Any, mask: Any, *sample_weight: Any) -> Any:
        y_pred = convert_to_tensor(y_pred)
        set_mask(y_pred, mask)
        return loss(y_true, y_pred, *sample_weight)

    more = [] if weights is None else [INPUTS[weights]]
    found = run(masked, INPUTS["sequence"], INPUTS["sequence_2"], MASK, *more)
    values = VALUES if weights is None else VALUES * INPUTS[weights]
    close(found, expected(values, MASK))


@pytest.mark.parametrize("run", MODES)
@pytest.mark.parametrize("masked", [False, True])
def test_weights_of_samples_count_for_all_their_steps(
    masked: bool, run: Callable[..., Any]
) -> None:
    def weighted(y_true: Any, y_pred: Any, mask: Any, sample_weight: Any) -> Any:
        y_pred = convert_to_tensor(y_pred)
        if masked:
            set_mask(y_pred, mask)
        return losses.MeanSquaredError(reduction="sum")(y_true, y_pred, sample_weight)

    inputs = INPUTS["sequence"], INPUTS["sequence_2"], MASK, INPUTS["weights"]
    expected = VALUES * INPUTS["weights"][:, None] * (MASK if masked else 1)
    close(run(weighted, *inputs), np.sum(expected))


def test_a_mask_meets_that_of_ignored_classes() -> None:
    logits = convert_to_tensor(INPUTS["sequence_logits"])
    set_mask(logits, convert_to_tensor(MASK))
    labels = INPUTS["steps"]
    found = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2)(labels, logits)
    logs = special.log_softmax(INPUTS["sequence_logits"].astype("float64"), -1)
    values = -np.take_along_axis(logs, labels[..., None], -1)[..., 0]
    both = MASK & (labels != 2)
    close(found, np.sum(values * both) / np.sum(both))


def test_ignored_classes_carry_a_mask() -> None:
    found = losses.sparse_categorical_crossentropy(
        [0, -1, 1], INPUTS["probabilities"][:3], ignore_class=-1
    )
    np.testing.assert_array_equal(get_mask(found), [True, False, True])
    assert found.numpy()[1] == 0


def test_class_numbers_keep_their_precision() -> None:
    # 257 is not a bfloat16 number.
    logits = np.zeros((1, 300), "float32")
    logits[0, 257] = 50.0
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, dtype="bfloat16")
    assert np.asarray(loss(np.array([257]), logits), "float32") < 1e-3


def test_nested_labels_and_predictions() -> None:
    def both(y_true: Any, y_pred: Any) -> Any:
        assert sorted(y_pred) == ["a", "b"]
        return losses.mean_squared_error(y_true["a"], y_pred["a"]) + losses.mean_absolute_error(
            y_true["b"], y_pred["b"]
        )

    y_true, y_pred = {"a": Y, "b": Y}, {"a": X, "b": P}
    found = losses.LossFunctionWrapper(both)(y_true, y_pred)
    close(found, np.mean((Y - X) ** 2) + np.mean(np.abs(Y - P)))


def test_nested_lists_of_numbers_are_one_array() -> None:
    found = losses.MeanSquaredError()([[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]])
    assert np.asarray(found) == 0.5


@pytest.mark.parametrize(
    ("dtype", "expected"), [(None, "float32"), ("float64", "float64"), ("bfloat16", "bfloat16")]
)
def test_dtype(dtype: str | None, expected: str) -> None:
    loss = losses.MeanSquaredError(dtype=dtype)
    assert loss.dtype == expected
    assert loss(Y, X).dtype == expected


def test_a_loss_of_ones_own() -> None:
    class Half(losses.Loss):
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return losses.mean_squared_error(y_true, y_pred) / 2.0

    loss = Half()
    assert loss.name == "half"
    close(loss(Y, X), np.mean((Y - X) ** 2) / 2)
    close(Half(reduction="none")(Y, X), np.mean((Y - X) ** 2, -1) / 2)


def test_ctc_equals_the_sum_over_alignments() -> None:
    # Three frames, labels "1 2": the alignments that collapse to it, blanks being 0.
    logits = rng.normal(size=(1, 3, 3)).astype("float32")
    p = special.softmax(logits[0].astype("float64"), -1)
    paths = [(1, 1, 2), (1, 2, 2), (0, 1, 2), (1, 0, 2), (1, 2, 0)]
    expected = -np.log(sum(np.prod([p[t, c] for t, c in enumerate(path)]) for path in paths))
    close(losses.CTC(reduction="none")(np.array([[1, 2, 0]]), logits), [expected])
