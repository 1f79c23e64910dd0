"""Training steps of models as people write them: one native call, with the reference's results."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, metrics, optimizers
from laminar.engine.compiler.native import threads
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.runtime import plan as executor

Array = np.ndarray[Any, Any]
# A model with its inputs, targets, and what `compile` takes.
Case = tuple[Any, Array, Array, dict[str, Any]]

STEPS = 5


def images(count: int, size: int, channels: int) -> Array:
    rng = np.random.default_rng(1)
    return rng.normal(size=(count, size, size, channels)).astype(np.float32)


def classes(count: int, number: int) -> Array:
    return np.random.default_rng(2).integers(0, number, count).astype(np.int32)


def vectors(*shape: int) -> Array:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def digits() -> Case:
    model = laminar.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(8, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.Activation("relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25, seed=1),
            layers.Flatten(),
            layers.Dense(32, activation="relu"),
            layers.Dropout(0.5, seed=2),
            layers.Dense(10, activation="softmax"),
        ]
    )
    options = {"optimizer": "adam", "loss": losses.SparseCategoricalCrossentropy()}
    return model, images(16, 8, 1), classes(16, 10), options


def residual() -> Case:
    def block(x: Any, filters: int, strides: int) -> Any:
        y = convolved(convolved(x, filters, 3, strides, True), filters, 3, 1, False)
        if strides > 1:
            x = convolved(x, filters, 1, strides, False)
        return layers.Activation("relu")(layers.add([x, y]))

    def convolved(x: Any, filters: int, size: int, strides: int, relu: bool) -> Any:
        options: Any = {"strides": strides, "padding": "same", "use_bias": False}
        y = layers.BatchNormalization()(layers.Conv2D(filters, size, **options)(x))
        return layers.Activation("relu")(y) if relu else y

    inputs = layers.Input((8, 8, 3))
    x = convolved(inputs, 8, 3, 1, True)
    for filters, strides in ((8, 1), (16, 2), (32, 2)):
        x = block(x, filters, strides)
    logits = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    options = {
        "optimizer": optimizers.SGD(0.02, momentum=0.9),
        "loss": losses.SparseCategoricalCrossentropy(from_logits=True),
    }
    return laminar.Model(inputs, logits), images(8, 8, 3), classes(8, 10), options


class Positions(layers.Layer):
    """Adds a vector for each position."""

    def build(self, shape: Any) -> None:
        self.table = self.add_weight(name="table", shape=tuple(shape[1:]))

    def call(self, x: Any) -> Any:
        return x + self.table


def transformer() -> Case:
    words, length, width = 30, 8, 16
    inputs = layers.Input((length,), dtype="int32")
    x = Positions()(layers.Embedding(words, width)(inputs))
    for seed in (1, 2):
        y = layers.LayerNormalization()(x)
        attention = layers.MultiHeadAttention(2, width // 2, dropout=0.1, seed=seed)
        x = x + attention(y, y, use_causal_mask=True)
        y = layers.LayerNormalization()(x)
        y = layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
        x = x + layers.Dropout(0.1, seed=10 + seed)(y)
    logits = layers.Dense(words)(layers.LayerNormalization()(x))
    rng = np.random.default_rng(4)
    tokens, targets = rng.integers(0, words, (2, 4, length)).astype(np.int32)
    options = {
        "optimizer": optimizers.AdamW(0.01, clipnorm=1.0),
        "loss": losses.SparseCategoricalCrossentropy(from_logits=True),
    }
    return laminar.Model(inputs, logits), tokens, targets, options


def separable() -> Case:
    model = laminar.Sequential(
        [
            layers.Input((9, 9, 3)),
            layers.SeparableConv2D(8, 3, padding="same", activation="relu"),
            layers.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2),
            layers.BatchNormalization(),
            layers.ReLU(max_value=6),
            layers.GlobalMaxPooling2D(),
            layers.Dense(4, activation="softmax"),
        ]
    )
    targets = np.eye(4, dtype=np.float32)[classes(8, 4)]
    options = {"optimizer": "rmsprop", "loss": losses.CategoricalCrossentropy()}
    return model, images(8, 9, 3), targets, options


def unet() -> Case:
    def convolved(x: Any, filters: int) -> Any:
        return layers.Conv2D(filters, 3, padding="same", activation="relu")(x)

    inputs = layers.Input((8, 8, 2))
    wide = convolved(inputs, 4)
    deep = convolved(layers.MaxPooling2D()(wide), 8)
    up = layers.UpSampling2D(interpolation="bilinear")(deep)
    x = convolved(layers.Concatenate()([wide, up]), 4)
    again = layers.UpSampling2D()(layers.AveragePooling2D(2)(x))
    mask = layers.Conv2D(1, 1, activation="sigmoid")(layers.Concatenate()([x, again]))
    targets = (images(4, 8, 1) > 0).astype(np.float32)
    options = {"optimizer": "adam", "loss": losses.BinaryCrossentropy()}
    return laminar.Model(inputs, mask), images(4, 8, 2), targets, options


def autoencoder() -> Case:
    options: Any = {"strides": 2, "padding": "same"}
    model = laminar.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(8, 3, activation="relu", **options),
            layers.Conv2D(4, 3, activation="relu", **options),
            layers.Conv2DTranspose(8, 3, activation="relu", **options),
            layers.Conv2DTranspose(1, 3, **options),
        ]
    )
    x = images(8, 8, 1)
    return model, x, x, {"optimizer": "adam", "loss": losses.MeanSquaredError()}


def frames() -> Case:
    model = laminar.Sequential(
        [
            layers.Input((3, 8, 8, 2)),
            layers.TimeDistributed(layers.Conv2D(4, 3, activation="relu")),
            layers.ConvLSTM2D(3, 3),
            layers.Flatten(),
            layers.Dense(4),
        ]
    )
    x = vectors(4, 3, 8, 8, 2)
    return model, x, vectors(4, 4), {"optimizer": "adam", "loss": losses.MeanSquaredError()}


def sentences() -> Case:
    words = layers.LSTM(5, return_sequences=True)
    model = laminar.Sequential(
        [
            layers.Input((4, 6, 3)),
            layers.TimeDistributed(words),
            layers.TimeDistributed(layers.GlobalMaxPooling1D()),
            layers.GRU(3),
        ]
    )
    x = vectors(4, 4, 6, 3)
    return model, x, vectors(4, 3), {"optimizer": "adam", "loss": losses.MeanSquaredError()}


def stateful() -> Case:
    model = laminar.Sequential(
        [
            layers.Input(batch_shape=(4, 6, 3)),
            layers.LSTM(5, stateful=True, return_sequences=True),
            layers.GRU(4, stateful=True),
            layers.Dense(2),
        ]
    )
    return model, vectors(4, 6, 3), vectors(4, 2), {"optimizer": "adam", "loss": "mse"}


def doubles() -> Case:
    """Powers of float64, in what the optimizer divides by."""
    model = laminar.Sequential(
        [
            layers.Input((6,), dtype="float64"),
            layers.Dense(5, "softplus", dtype="float64"),
            layers.Dense(3, dtype="float64"),
        ]
    )
    x, y = (vectors(8, n).astype(np.float64) for n in (6, 3))
    return model, x, y, {"optimizer": optimizers.Nadam(0.01), "loss": "mse"}


def encoded() -> Case:
    """Categories of an example as one vector."""
    inputs = layers.Input((3,))
    numbers = layers.Discretization(bin_boundaries=[-1.0, 0.0, 1.0])(inputs)
    some = layers.CategoryEncoding(4, output_mode="multi_hot")(numbers)
    known = layers.IntegerLookup(vocabulary=[0, 2, 3])(numbers)
    many = layers.CategoryEncoding(4, output_mode="count")(known)
    outputs = layers.Dense(2)(layers.Concatenate()([some, many]))
    model = laminar.Model(inputs, outputs)
    return model, vectors(8, 3), vectors(8, 2), {"optimizer": "adam", "loss": "mse"}


def experts() -> Case:
    """Each example takes the two of four experts that a gate likes best."""
    inputs = layers.Input((6,))
    scores, chosen = laminar.ops.top_k(layers.Dense(4)(inputs), 2)
    each = layers.Reshape((4, 5))(layers.Dense(20, "tanh")(inputs))
    taken = laminar.ops.take_along_axis(each, laminar.ops.expand_dims(chosen, -1), 1)
    weights = laminar.ops.expand_dims(laminar.ops.softmax(scores), -1)
    outputs = layers.Dense(2)(laminar.ops.sum(taken * weights, 1))
    sparse = layers.Activation("sparsemax")(layers.Dense(3)(inputs))
    model = laminar.Model(inputs, layers.Concatenate()([outputs, sparse]))
    return model, vectors(8, 6), vectors(8, 5), {"optimizer": "adam", "loss": "mse"}


def dense(optimizer: Any) -> Case:
    model = laminar.Sequential(
        [layers.Input((12,)), layers.Dense(16, activation="tanh"), layers.Dense(4)]
    )
    options = {"optimizer": optimizer, "loss": losses.MeanSquaredError()}
    return model, vectors(8, 12), vectors(8, 4), options


MODELS = [digits, residual, transformer, separable, unet, autoencoder, frames, sentences]
MODELS += [stateful, doubles, encoded, experts]

OPTIMIZERS: list[Callable[[], Any]] = [
    lambda: optimizers.SGD(0.01, nesterov=True, momentum=0.9),
    lambda: optimizers.SGD(optimizers.schedules.CosineDecay(0.1, 100)),
    lambda: optimizers.Adam(0.01, global_clipnorm=1.0),
    lambda: optimizers.Adam(0.01, amsgrad=True, clipvalue=0.5),
    lambda: optimizers.Adam(0.01, use_ema=True, weight_decay=0.1),
    lambda: optimizers.Adam(0.01, gradient_accumulation_steps=2),
    lambda: optimizers.RMSprop(0.01, centered=True),
    lambda: optimizers.Adagrad(0.01),
    lambda: optimizers.Adadelta(0.01),
    lambda: optimizers.Adamax(0.01),
    lambda: optimizers.Nadam(0.01),
    lambda: optimizers.Ftrl(0.01),
    lambda: optimizers.Lion(0.01),
    lambda: optimizers.Adafactor(0.01),
    lambda: optimizers.Lamb(0.01),
    lambda: optimizers.LossScaleOptimizer(optimizers.SGD(0.01)),
]


def clusters() -> dict[int, NativeCluster]:
    return {id(o): o for o in gc.get_objects() if type(o) is NativeCluster}


def trained(case: Callable[[], Case], **more: Any) -> tuple[list[float], list[Array]]:
    """The losses of some steps, and the weights after them."""
    laminar.utils.set_random_seed(7)
    model, x, y, options = case()
    model.compile(**options, **more)
    found = [float(model.train_on_batch(x, y)) for _ in range(STEPS)]
    return found, model.get_weights()


def check(case: Callable[[], Case], monkeypatch: pytest.MonkeyPatch) -> None:
    """One native call is the whole step, and gives what the reference kernels give."""
    left: list[list[str]] = []
    plan = executor.Plan.__init__

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        plan(self, *args, **kwargs)
        if args[0].compiled:
            left.append([op.type for op in self.operations if op.inputs or op.type == "Cluster"])

    before = clusters()
    with monkeypatch.context() as patch:
        patch.setattr(executor.Plan, "__init__", noted)
        losses_, weights = trained(case)
    made = [c for key, c in clusters().items() if key not in before]
    assert [types for types in left if types] == [["Cluster"]]
    assert [c._refused for c in made] == [False]
    expected, reference = trained(case, jit_compile=False)
    np.testing.assert_allclose(losses_, expected, rtol=2e-4, atol=1e-5)
    for a, b in zip(weights, reference, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("case", MODELS)
def test_a_step_is_one_native_call(
    case: Callable[[], Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(case, monkeypatch)


@pytest.mark.parametrize("case", [frames, sentences])
def test_a_short_batch_runs_the_same_kernels(case: Callable[[], Case]) -> None:
    model, x, y, options = case()
    model.compile(**options)
    model.fit(x, y, batch_size=3, verbose=0)  # 3 examples, then the last one
    assert [event.reason for _, event in model.explain_compiles()] == ["first run"]


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_of_an_optimizer_is_one_native_call(
    optimizer: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(lambda: dense(optimizer()), monkeypatch)


def test_a_wrong_index_is_an_error_that_changes_nothing() -> None:
    model, x, y, options = transformer()
    model.compile(**options)
    model.train_on_batch(x, y)
    before = model.get_weights()
    wrong = x.copy()
    wrong[1, 2] = 1_000_000
    with pytest.raises(InvalidArgumentError, match="out of range"):
        model.train_on_batch(wrong, y)
    for a, b in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", [digits, transformer])
def test_the_bits_do_not_depend_on_the_threads(case: Callable[[], Case]) -> None:
    found = []
    for count in (1, 2):
        threads.set_threads(count)
        try:
            found.append(trained(case))
        finally:
            threads.set_threads(None)
    assert found[0][0] == found[1][0]
    for a, b in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "metric",
    [
        lambda: metrics.AUC(),
        lambda: metrics.AUC(multi_label=True, num_labels=3),
        lambda: metrics.PrecisionAtRecall(0.5),
        lambda: metrics.F1Score(average="macro"),
        lambda: metrics.MeanIoU(3, sparse_y_true=False, sparse_y_pred=False),
        lambda: metrics.OneHotIoU(3, target_class_ids=[0, 2]),
        lambda: metrics.TopKCategoricalAccuracy(k=2),
        lambda: metrics.Precision(top_k=2),
    ],
)
def test_metrics_are_part_of_a_step(metric: Callable[[], Any]) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 6)), np.eye(3)[rng.integers(0, 3, 20)]

    def history(**more: Any) -> tuple[list[list[float]], int]:
        laminar.utils.set_random_seed(7)
        model = laminar.Sequential(
            [layers.Input((6,)), layers.Dense(5, "relu"), layers.Dense(3, "softmax")]
        )
        model.compile("adam", "categorical_crossentropy", metrics=[metric()], **more)
        found = model.fit(x, y, batch_size=10, epochs=3, shuffle=False, verbose=0)
        return list(found.history.values()), len(model.explain_compiles())

    found, number = history()
    assert number == 1
    np.testing.assert_allclose(found, history(jit_compile=False)[0], rtol=1e-4, atol=1e-5)
