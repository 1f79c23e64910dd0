"""What stands for floats in few bits, against Keras's functions and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops, quantizers
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def keras() -> Any:
    return pytest.importorskip("keras")


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_nibbles(keras: Any, axis: int, dtype: str) -> None:
    low = 0 if dtype == "uint8" else -8
    x = rng.integers(low, low + 16, (3, 4, 5)).astype(dtype)
    packed, shape, count = quantizers.pack_int4(x, axis, dtype)
    wanted, wanted_shape, wanted_count = keras.quantizers.pack_int4(x, axis, dtype)
    assert (shape, count) == (wanted_shape, wanted_count)
    assert np.array_equal(packed, wanted)
    assert np.array_equal(quantizers.unpack_int4(packed, count, axis, dtype), x)


def test_what_is_no_nibble() -> None:
    with pytest.raises(InvalidArgumentError, match="'int8' or 'uint8', got 'int4'"):
        quantizers.pack_int4(np.zeros(2, "int8"), dtype="int4")
    with pytest.raises(DTypeError, match="expected numbers of int8, got float32"):
        quantizers.pack_int4(np.zeros(2, "float32"))
    with pytest.raises(DTypeError, match="expected bytes, got float32"):
        quantizers.unpack_int4(np.zeros(2, "float32"), 3)


@pytest.mark.parametrize("rows", [8, 10, 3])
@pytest.mark.parametrize("to_numpy", [False, True])
def test_groups_have_a_zero_of_their_own(keras: Any, rows: int, to_numpy: bool) -> None:
    x = (rng.normal(size=(rows, 6)) + 1).astype("float32")
    found = quantizers.abs_max_quantize_grouped_with_zero_point(x, 4, to_numpy=to_numpy)
    wanted = keras.quantizers.abs_max_quantize_grouped_with_zero_point(x, 4, to_numpy=to_numpy)
    for a, b in zip(found, wanted, strict=True):
        assert str(a.dtype) == str(np.asarray(b).dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6)
    outputs, scale, zero = (np.asarray(v, "float32") for v in found)
    groups = np.arange(rows) // 4
    back = (outputs - zero[groups]) * scale[groups]
    is_inside = (outputs > -8) & (outputs < 7)
    assert (np.abs(back - x)[is_inside] <= (scale[groups] * 0.5001)[is_inside]).all()


def test_groups_are_of_a_matrix() -> None:
    with pytest.raises(ShapeError, match="of a matrix"):
        quantizers.abs_max_quantize_grouped_with_zero_point(np.zeros(3), 2)
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        quantizers.abs_max_quantize_grouped_with_zero_point(np.zeros((3, 3)), 0)


@pytest.mark.keras_on_jax
def test_scales_of_8_bits_of_floating_point(keras: Any) -> None:
    amax = np.array([0.0, 2.0, np.inf, np.nan, 500.0], "float32")
    scale = np.array([3.0, 3.0, 3.0, 3.0, 3.0], "float32")
    for margin in (0, 2):
        found = quantizers.compute_float8_scale(amax, scale, 448.0, margin)
        wanted = keras.quantizers.compute_float8_scale(amax, scale, 448.0, margin)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    x = rng.normal(size=(3, 4)).astype("float32")
    history = np.arange(5, dtype="float32")
    found = quantizers.compute_float8_amax_history(x, history)
    wanted = keras.quantizers.compute_float8_amax_history(x, history)
    assert np.array_equal(found, wanted)


RANGES = [
    (-0.1, 63.65, 8, False),
    (-0.125, 63.625, 8, True),
    (0.0, 15.0, 4, False),
    (-7.0, 7.0, 3, True),
]


@pytest.mark.parametrize(("low", "high", "bits", "narrow"), RANGES)
@pytest.mark.keras_on_jax
def test_fake_quantization(keras: Any, low: float, high: float, bits: int, narrow: bool) -> None:
    x = np.linspace(low - 1, high + 1, 41, dtype="float32").reshape(1, 41)
    weights = rng.normal(size=x.shape).astype("float32")
    ends = np.float32(low), np.float32(high)
    wanted = keras.quantizers.fake_quant_with_min_max_vars(x, *ends, bits, narrow)
    with laminar.GradientTape() as tape:
        xs = [ops.convert_to_tensor(v) for v in (x, *ends)]
        for v in xs:
            tape.watch(v)
        y = quantizers.fake_quant_with_min_max_vars(xs[0], xs[1], xs[2], bits, narrow)
        loss = ops.sum(y * weights)
    np.testing.assert_allclose(y, wanted, rtol=1e-6, atol=1e-6)
    dx, dlow, dhigh = (np.asarray(g) for g in tape.gradient(loss, xs))
    scale = (ends[1] - ends[0]) / (2**bits - 1 - narrow)
    zero = np.round(np.clip(narrow - ends[0] / scale, narrow, 2**bits - 1))
    bottom, top = (narrow - zero) * scale, (2**bits - 1 - zero) * scale
    np.testing.assert_allclose(dx, np.where((x >= bottom) & (x <= top), weights, 0))
    np.testing.assert_allclose(dlow, weights[x <= bottom].sum(), rtol=1e-5)
    np.testing.assert_allclose(dhigh, weights[x >= top].sum(), rtol=1e-5)


@pytest.mark.keras_on_jax
def test_fake_quantization_of_channels(keras: Any) -> None:
    x = rng.normal(size=(4, 3, 2)).astype("float32") * 4
    low, high = np.array([-1, -2, -3.0], "float32"), np.array([1, 4, 2.0], "float32")
    found = quantizers.fake_quant_with_min_max_vars(x, low, high, axis=1)
    parts = [
        keras.quantizers.fake_quant_with_min_max_vars(x[:, i], low[i], high[i]) for i in range(3)
    ]
    np.testing.assert_allclose(found, np.stack(parts, 1), rtol=1e-5, atol=1e-6)
    with pytest.raises(InvalidArgumentError, match="at least 2"):
        quantizers.fake_quant_with_min_max_vars(x, 0.0, 1.0, num_bits=1)


CONFIGS: list[tuple[str, dict[str, Any]]] = [
    ("Int8QuantizationConfig", {}),
    ("Int4QuantizationConfig", {"block_size": 32}),
    ("Int4QuantizationConfig", {"block_size": -1}),
    ("Float8QuantizationConfig", {}),
    ("GPTQConfig", {"dataset": None, "tokenizer": None, "weight_bits": 3, "symmetric": True}),
    ("AWQConfig", {"dataset": None, "tokenizer": None, "group_size": -1}),
]


@pytest.mark.parametrize(("name", "arguments"), CONFIGS)
def test_configs_travel_both_ways(keras: Any, name: str, arguments: dict[str, Any]) -> None:
    ours = getattr(quantizers, name)(**arguments)
    theirs = getattr(keras.quantizers, name)(**arguments)
    assert ours.mode == theirs.mode
    written = quantizers.serialize(ours)
    assert written["config"] == quantizers.serialize(quantizers.deserialize(written))["config"]
    again = keras.saving.deserialize_keras_object(written)
    assert type(again).__name__ == name
    back = quantizers.deserialize(keras.saving.serialize_keras_object(theirs))
    assert back.get_config() == ours.get_config()
    if hasattr(theirs, "dtype_policy_string"):
        assert ours.dtype_policy_string() == theirs.dtype_policy_string()


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Int4QuantizationConfig", {"block_size": 0}, "None, -1 or positive"),
        (
            "Int4QuantizationConfig",
            {"weight_quantizer": quantizers.AbsMaxQuantizer()},
            "take no quantizers",
        ),
        (
            "Int4QuantizationConfig",
            {"weight_quantizer": quantizers.AbsMaxQuantizer(), "block_size": None},
            "the range \\(-8, 7\\)",
        ),
        (
            "Int8QuantizationConfig",
            {"weight_quantizer": quantizers.AbsMaxQuantizer(output_dtype="int16")},
            "must give int8, got int16",
        ),
        ("GPTQConfig", {"weight_bits": 5}, "one of \\[2, 3, 4, 8\\], got 5"),
        ("GPTQConfig", {"num_samples": 0}, "num_samples must be positive"),
        ("GPTQConfig", {"sequence_length": -1}, "sequence_length must be positive"),
        ("GPTQConfig", {"hessian_damping": 1.5}, "from 0 to 1"),
        ("GPTQConfig", {"group_size": 0}, "group_size must be -1"),
        ("AWQConfig", {"weight_bits": 8}, "one of \\[4\\], got 8"),
        ("AWQConfig", {"num_grid_points": 0}, "num_grid_points must be positive"),
    ],
)
def test_configs_that_cannot_be(name: str, arguments: dict[str, Any], message: str) -> None:
    if name in ("GPTQConfig", "AWQConfig"):
        arguments = {"dataset": None, "tokenizer": None, **arguments}
    with pytest.raises(InvalidArgumentError, match=message):
        getattr(quantizers, name)(**arguments)
