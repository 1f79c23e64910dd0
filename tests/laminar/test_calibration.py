"""Weights in few bits that data was looked at for: GPTQ and AWQ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, quantizers
from laminar.engine.errors import DTypeError, FailedPreconditionError, InvalidArgumentError
from laminar.quantizers.awq import InputMagnitudes, awq_round
from laminar.quantizers.calibration import calibration_sequences
from laminar.quantizers.gptq import InputProducts, gptq_round
from laminar.quantizers.levels import find_levels

CHANCE = np.random.default_rng(0)


class Letters:
    def tokenize(self, text: str) -> list[int]:
        return [ord(c) % 20 for c in text]


TEXTS = ["a text that is looked at", "and another one, which is longer than the first"]


def gptq(**options: Any) -> Any:
    return quantizers.GPTQConfig(
        TEXTS, Letters(), **{"num_samples": 4, "sequence_length": 8, "group_size": 4, **options}
    )


def awq(**options: Any) -> Any:
    return quantizers.AWQConfig(
        TEXTS, Letters(), **{"num_samples": 4, "sequence_length": 8, "group_size": 4, **options}
    )


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("bits", "size"), [(4, -1), (4, 3), (8, 4), (2, -1)])
def test_levels(bits: int, size: int, symmetric: bool, per_channel: bool) -> None:
    x = CHANCE.normal(size=(5, 8)) + 0.3
    levels = find_levels(x, bits, symmetric=symmetric, per_channel=per_channel, group_size=size)
    groups = np.arange(8) // (size if size > 0 and per_channel else 8)
    numbers = levels.numbers(x, groups)
    kept = levels.floats(numbers, groups)
    assert numbers.min() >= 0
    assert numbers.max() <= 2**bits - 1
    assert np.abs(kept - x).max() <= levels.scale.max() * 1.01  # the zero is rounded too
    assert levels.zero.dtype == np.uint8
    assert levels.scale.shape == (5, groups[-1] + 1)
    if not symmetric and per_channel:
        first = x[0, groups == 0]
        assert np.isclose(levels.scale[0, 0] * (2**bits - 1), first.max() - first.min())


def test_levels_of_equal_numbers() -> None:
    for value in (0.0, 3.0, -2.0):
        levels = find_levels(np.full((1, 4), value, np.float32), 4)
        groups = np.zeros(4, int)
        found = levels.floats(levels.numbers(np.full((1, 4), value), groups), groups)
        assert np.allclose(found, value)


def cost(weights: Any, kept: Any, inputs: Any) -> float:
    return float(np.mean(((weights - kept) @ inputs.T) ** 2))


@pytest.mark.parametrize("options", [{}, {"activation_order": True}, {"group_size": -1}])
def test_gptq_changes_outputs_less_than_rounding(options: dict[str, Any]) -> None:
    config = gptq(**options)
    # Inputs that say much about each other are what errors can be made good by.
    inputs = CHANCE.normal(size=(300, 6)) @ CHANCE.normal(size=(6, 160))
    inputs = (inputs + 0.1 * CHANCE.normal(size=(300, 160))).astype("float32")
    weights = CHANCE.normal(size=(7, 160)).astype("float32")
    seen = InputProducts(160)
    for part in np.split(inputs, 3):
        seen.add(part)
    assert np.allclose(seen.mean, 2 / 300 * inputs.T @ inputs, rtol=1e-4, atol=1e-4)
    found = gptq_round(weights, seen, config)
    kept = found.levels.floats(found.numbers, found.groups)
    size = 160 if config.group_size == -1 else config.group_size
    plain = find_levels(weights, 4, group_size=config.group_size)
    groups = np.arange(160) // size
    nearest = plain.floats(plain.numbers(weights, groups), groups)
    assert cost(weights, kept, inputs) < 0.5 * cost(weights, nearest, inputs)
    assert found.numbers.min() >= 0
    assert found.numbers.max() <= 15
    assert np.array_equal(np.bincount(found.groups), np.bincount(groups))


def test_gptq_without_correlations_is_rounding() -> None:
    weights = CHANCE.normal(size=(7, 16)).astype("float32")
    seen = InputProducts(16)
    seen.add(np.eye(16, dtype="float32"))
    found = gptq_round(weights, seen, gptq())
    plain = find_levels(weights, 4, group_size=4)
    assert np.array_equal(found.numbers, plain.numbers(weights, np.arange(16) // 4))
    assert np.array_equal(found.levels.scale, plain.scale)


def test_awq_changes_less_what_meets_large_inputs() -> None:
    weights = CHANCE.normal(size=(7, 16)).astype("float32")
    most = np.where(np.arange(16) % 4 == 0, 50, 0.1).astype("float32")
    seen = InputMagnitudes(16)
    seen.add(np.stack([most / 2, -most]))
    assert np.array_equal(seen.most, most)
    found = awq_round(weights, seen, awq())
    rounded, scales = found
    kept = rounded.levels.floats(rounded.numbers, rounded.groups) / scales
    plain = find_levels(weights, 4, group_size=4)
    nearest = plain.floats(plain.numbers(weights, rounded.groups), rounded.groups)
    assert np.mean(((weights - kept) * most) ** 2) < np.mean(((weights - nearest) * most) ** 2)


def test_sequences() -> None:
    ids = np.arange(10)
    found = calibration_sequences([ids[:4], ids[4:]], None, 3, 4)
    assert found.tolist() == [[[0, 1, 2, 3]], [[5, 6, 7, 8]], [[0, 1, 2, 3]]]
    assert found.dtype == np.int32
    assert calibration_sequences(["ab"], Letters(), 2, 5).shape == (2, 1, 5)
    with pytest.raises(InvalidArgumentError, match="is empty"):
        calibration_sequences([], None, 3, 4)
    with pytest.raises(DTypeError, match="must be an iterable"):
        calibration_sequences("wikitext", None, 3, 4)


class Block(layers.Layer):
    """Attention and two dense layers."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(2, 4)
        self.dense = layers.Dense(24, activation="relu")
        self.back = layers.Dense(12)

    def build(self, input_shape: Any) -> None:
        self.attention.build(input_shape, input_shape)
        self.dense.build(input_shape)
        self.back.build((*input_shape[:-1], 24))

    def call(self, inputs: Any) -> Any:
        x = inputs + self.attention(inputs, inputs)
        return x + self.back(self.dense(x))


class Structured(laminar.Model):
    """A small transformer that says what its blocks are."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = layers.Embedding(20, 12)
        self.blocks = [Block(), Block()]
        self.scores = layers.Dense(20)

    def call(self, inputs: Any) -> Any:
        x = self.embedding(inputs)
        for block in self.blocks:
            x = block(x)
        return self.scores(x)

    def get_quantization_layer_structure(self, mode: str | None = None) -> dict[str, Any]:
        return {"pre_block_layers": [self.embedding], "sequential_blocks": self.blocks}


IDS = CHANCE.integers(0, 20, size=(3, 8))


@pytest.mark.parametrize("config", [gptq(), gptq(weight_bits=8), awq(), gptq(group_size=-1)])
def test_a_model(config: Any, tmp_path: Path) -> None:
    laminar.set_random_seed(0)
    model = Structured()
    exact = np.asarray(model(IDS))
    model.quantize(config=config, filters=lambda layer: layer.name != "key")
    found = np.asarray(model(IDS))
    spread = np.std(exact)
    assert 0 < np.abs(found - exact).max() < spread
    dense: Any = model.blocks[0].dense
    assert dense.quantization_mode == config.mode
    assert dense.kernel.dtype == "uint8"
    assert dense.dtype_policy.name == f"{config.dtype_policy_string()}_from_float32"
    assert model.blocks[1].attention._query_dense.quantization_mode == config.mode
    assert model.scores.quantization_mode is None
    path = tmp_path / "m.weights.h5"
    model.save_weights(path)
    again = Structured()
    again(IDS)
    again.quantize(config=config, filters=lambda layer: layer.name != "key")
    again.load_weights(path)
    assert np.array_equal(np.asarray(again(IDS)), found)


@pytest.mark.parametrize("config", [gptq(), awq()])
def test_a_functional_model_in_a_file(config: Any, tmp_path: Path) -> None:
    inputs = layers.Input((8,), dtype="int32")
    embedding = layers.Embedding(20, 12)
    first, second = layers.Dense(16, activation="relu"), layers.Dense(12)
    model = laminar.Model(inputs, second(first(embedding(inputs))))
    config.quantization_layer_structure = {
        "pre_block_layers": [embedding],
        "sequential_blocks": [first, second],
    }
    model.quantize(config.mode, config)
    config.quantization_layer_structure = None
    found = model.predict(IDS, verbose=0)
    model.save(tmp_path / "m.keras")
    again = laminar.saving.load_model(tmp_path / "m.keras")
    assert np.array_equal(again.predict(IDS, verbose=0), found)
    assert again.layers[-1].quantization_mode == config.mode


def test_refused() -> None:
    model = laminar.Sequential([layers.Input((4,)), layers.Dense(3)])
    before = model.get_weights()
    with pytest.raises(InvalidArgumentError, match="a valid quantization structure"):
        model.quantize("gptq", gptq())
    structure = {"sequential_blocks": [model.layers[0]]}
    config = quantizers.GPTQConfig(None, None, quantization_layer_structure=structure)
    with pytest.raises(InvalidArgumentError, match="looks at data"):
        model.quantize(config=config)
    for now, old in zip(model.get_weights(), before, strict=True):
        assert np.array_equal(now, old)
    layer = model.layers[0]
    layer.quantize("gptq", config=config)
    assert layer(np.ones((1, 4))).shape == (1, 3)
    with pytest.raises(FailedPreconditionError, match="has seen no data"):
        layer.save_own_variables({})
    cube = layers.EinsumDense("ab,bcde->acde", (2, 2, 2))
    cube.build((None, 3))
    with pytest.raises(InvalidArgumentError, match="kernels of 2 or 3 axes"):
        cube.quantize("awq", config=awq())
