"""Training in bfloat16, whatever multiplies it: the matrix unit, vectors, or float32."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, mixed_precision, optimizers
from laminar.engine.compiler.kernels import PairUnit
from laminar.engine.compiler.lower.rules import contractions, convolution
from laminar.engine.compiler.plan import plan_cache

from .kernels.pair_products import UNITS

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "digits.py"


@pytest.fixture(autouse=True)
def _policy() -> Iterator[None]:
    before = mixed_precision.global_policy()
    yield
    mixed_precision.set_global_policy(before)


def trained(channels: int, **options: Any) -> tuple[list[Any], list[float]]:
    """Weights and losses of a network of convolutions, products and normalizations."""
    laminar.set_random_seed(3)
    model = laminar.Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.Conv2D(channels, 3, padding="same", activation="relu"),
            layers.Conv2D(channels, 3, padding="same"),
            layers.BatchNormalization(),
            layers.Conv2D(24, 3, strides=2, padding="same"),
            layers.LayerNormalization(),
            layers.Reshape((16, 24)),
            layers.Dense(32, activation="gelu"),
            layers.Flatten(),
            layers.Dense(5),
        ]
    )
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(64, 8, 8, 3)).astype(np.float32), draw.integers(0, 5, 64)
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizers.SGD(0.05), loss, **options)
    history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, shuffle=False)
    return model.get_weights(), history.history["loss"]


@pytest.mark.parametrize(
    "channels", [16, 32]
)  # 32: by Winograd's algorithm, where pairs are not faster
@pytest.mark.parametrize("unit", [*UNITS, None])
def test_training(unit: PairUnit | None, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gives what the reference kernels give."""
    asked = []

    def pair_unit() -> PairUnit | None:
        asked.append(unit)
        return unit

    for module in (contractions, convolution, plan_cache):
        monkeypatch.setattr(module, "pair_unit", pair_unit)
    mixed_precision.set_global_policy("mixed_bfloat16")
    weights, found = trained(channels)
    assert asked
    expected_weights, expected = trained(channels, jit_compile=False)
    np.testing.assert_allclose(found, expected, rtol=2e-2)
    for a, b in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.1, atol=0.02)


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits_in_bfloat16", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_digits_are_recognised_as_well_as_in_float32() -> None:
    digits = example()
    (x, y), (x_test, y_test) = digits.load()
    found = {}
    for policy in ("float32", "mixed_bfloat16"):
        mixed_precision.set_global_policy(policy)
        laminar.set_random_seed(1)
        model = digits.build()
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(x, y, batch_size=64, epochs=12, verbose=0)
        found[policy] = model.evaluate(x_test, y_test, verbose=0)[1]
    assert found["float32"] > 0.97
    assert found["mixed_bfloat16"] > found["float32"] - 0.015
