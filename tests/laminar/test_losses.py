from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

from laminar import losses
from laminar.engine.errors import InvalidArgumentError, ShapeError, UnimplementedError
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec, tensor_like
from laminar.engine.ops.convert import convert_to_tensor
from laminar.layers.masking import get_mask, set_mask
from laminar.losses.alignment import squeeze_or_expand_to_same_rank

from .loss_metric_cases import FUNCTIONS, OBJECTS, Case, input_name

Array = np.ndarray[Any, Any]

REFERENCE = json.loads(Path(__file__).with_name("loss_metric_reference.json").read_text())
INPUTS = {
    name: np.array(entry["value"], entry["dtype"]) for name, entry in REFERENCE["inputs"].items()
}
rng = np.random.default_rng(3)


def close(found: Any, expected: Any, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


def arguments(case: Case) -> list[Any]:
    (batch,) = case.batches
    return [INPUTS[input_name(case, a)] if isinstance(a, str) else a for a in batch]


def traced(fn: Callable[..., Any], *args: Any) -> Any:
    """`fn` run as a graph that does not know the batch size."""
    arrays = [convert_to_tensor(a) for a in args]
    specs = [TensorSpec([None, *a.shape[1:]] if a.shape else (), a.dtype) for a in arrays]
    with_arity: list[Callable[..., Any]] = [
        lambda: fn(),
        lambda a: fn(a),
        lambda a, b: fn(a, b),
        lambda a, b, c: fn(a, b, c),
        lambda a, b, c, d: fn(a, b, c, d),
    ]
    return function(with_arity[len(args)], input_signature=specs)(*arrays)


def run_eagerly(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


MODES = [pytest.param(run_eagerly, id="eager"), pytest.param(traced, id="traced")]


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
    reduction: str, expected: Callable[..., Any], weights: str | None, run: Callable[..., Any]
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


# Names and configs


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


# Errors


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
            lambda: losses.MeanSquaredError()(zeros(4), zeros(4, 4)),
            ShapeError,
            ["1 against 2 axes", "1 unit instead of 4", "sparse_categorical_crossentropy"],
            id="one-label-for-many-outputs",
        ),
        pytest.param(
            lambda: losses.mean_absolute_error(zeros(4, 1), zeros(4, 3)),
            ShapeError,
            ["axis 1: 1 against 3", "1 unit instead of 3"],
            id="broadcast-of-labels",
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
            lambda: losses.MeanSquaredError(reduction="auto"),
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


def test_ctc_equals_the_sum_over_alignments() -> None:
    # Three frames, labels "1 2": the alignments that collapse to it, blanks being 0.
    logits = rng.normal(size=(1, 3, 3)).astype("float32")
    p = special.softmax(logits[0].astype("float64"), -1)
    paths = [(1, 1, 2), (1, 2, 2), (0, 1, 2), (1, 0, 2), (1, 2, 0)]
    expected = -np.log(sum(np.prod([p[t, c] for t, c in enumerate(path)]) for path in paths))
    close(losses.CTC(reduction="none")(np.array([[1, 2, 0]]), logits), [expected])
