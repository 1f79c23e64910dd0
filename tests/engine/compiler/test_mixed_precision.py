"""Training in halves: a step is one native cluster, and gives what the reference kernels give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, mixed_precision, ops, optimizers

POLICIES = pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _policy(policy: str) -> Iterator[None]:
    before = mixed_precision.global_policy()
    mixed_precision.set_global_policy(policy)
    yield
    mixed_precision.set_global_policy(before)


def dense() -> tuple[Any, Array]:
    model = laminar.Sequential(
        [
            layers.Input((20,)),
            layers.Dense(48, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.25, seed=1),
            layers.Dense(33, activation="gelu"),
            layers.LayerNormalization(),
            layers.Dense(5),
        ]
    )
    return model, np.random.default_rng(0).normal(size=(64, 20)).astype(np.float32)


def convolutional() -> tuple[Any, Array]:
    model = laminar.Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.Rescaling(1 / 255),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 3, strides=2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5),
        ]
    )
    return model, np.random.default_rng(0).integers(0, 256, (64, 8, 8, 3), np.uint8)


class Attention(layers.Layer):
    """Attention of a sequence to itself."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 8)
        self.norm = layers.LayerNormalization()

    def call(self, x: Any) -> Any:
        return self.norm(x + self.attention(x, x))


def attentive() -> tuple[Any, Array]:
    model = laminar.Sequential(
        [
            layers.Input((7,), dtype="int32"),
            layers.Embedding(11, 16),
            Attention(),
            layers.GlobalAveragePooling1D(),
            layers.Dense(5),
        ]
    )
    return model, np.random.default_rng(0).integers(0, 11, (64, 7), np.int32)


def trained(make: Callable[[], tuple[Any, Array]], **options: Any) -> tuple[Any, list[float]]:
    laminar.set_random_seed(8)
    model, x = make()
    y = np.random.default_rng(1).integers(0, 5, len(x))
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizers.SGD(0.05), loss, **options)
    history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, shuffle=False)
    return model, history.history["loss"]


@pytest.mark.slow
@POLICIES
@pytest.mark.parametrize("make", [dense, convolutional, attentive])
def test_a_step(make: Callable[[], tuple[Any, Array]], policy: str) -> None:
    model, found = trained(make)
    ((_, event),) = model.explain_compiles()
    assert event.num_kernels > 10
    reference, expected = trained(make, jit_compile=False)
    assert not reference.explain_compiles()
    np.testing.assert_allclose(found, expected, rtol=2e-2)
    assert found[-1] < found[0]
    for a, b in zip(model.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=0.1, atol=0.02)


@pytest.mark.parametrize("policy", ["mixed_float16"])
def test_a_step_that_overflows_is_left_out(policy: str) -> None:
    """The scale of the loss is halved, and the weights stay."""
    model = laminar.Sequential([layers.Input((2,)), layers.Dense(1, use_bias=False)])
    scaled = optimizers.LossScaleOptimizer(optimizers.SGD(0.1), initial_scale=2.0**18)
    model.compile(scaled, "mse")
    before = model.get_weights()[0].copy()
    x, y = np.full((4, 2), 8.0, np.float32), np.full((4, 1), 16.0, np.float32)
    model.fit(x, y, batch_size=4, epochs=1, verbose=0)
    np.testing.assert_array_equal(model.get_weights()[0], before)
    assert float(ops.convert_to_numpy(scaled.dynamic_scale)) == 2.0**17
    assert model.explain_compiles()
