"""laminar.quantizers against NumPy, and against what Keras gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from laminar import dtype_policies, quantizers
from laminar.engine.errors import InvalidArgumentError, UnimplementedError

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.1, -0.2]], "float32")


@pytest.mark.parametrize(
    ("axis", "outputs", "scale"),
    [
        (0, [[127, -127, 127], [63, 6, -8]], [[126.999985, 63.5, 42.333332]]),
        (-1, [[42, -85, 127], [127, 25, -51]], [[42.333332], [253.99994]]),
        (None, [[42, -85, 127], [21, 4, -8]], [[42.333332]]),
    ],
)
@pytest.mark.parametrize("to_numpy", [False, True])
def test_abs_max(axis: Any, outputs: Any, scale: Any, to_numpy: bool) -> None:
    found, found_scale = quantizers.abs_max_quantize(X, axis, to_numpy=to_numpy)
    assert isinstance(found, np.ndarray) == to_numpy
    assert str(found.dtype) == "int8"
    assert np.array_equal(found, outputs)
    assert np.allclose(found_scale, scale, rtol=1e-6)
    again, _ = quantizers.AbsMaxQuantizer(axis)(X)
    assert np.array_equal(again, outputs)


def test_quantize_and_dequantize() -> None:
    x = np.array([1.0, 2.3, 300.0, -1e6], "float32")
    found = quantizers.quantize_and_dequantize(x, np.float32(0.5), "int8", "float32")
    assert found.numpy().tolist() == [1.0, 2.5, 63.5, -63.5]
    half = quantizers.quantize_and_dequantize(x, np.float32(1.0), "float16", "float32")
    assert np.array_equal(half, np.clip(x, -65504, 65504).astype("float16").astype("float32"))
    with pytest.raises(InvalidArgumentError, match="numbers with a sign, got 'uint8'"):
        quantizers.quantize_and_dequantize(x, 1.0, "uint8", "float32")


def test_configs_as_keras_writes_them() -> None:
    quantizer = quantizers.AbsMaxQuantizer(axis=-1)
    config = {
        "module": "keras.quantizers",
        "class_name": "AbsMaxQuantizer",
        "config": {
            "value_range": [-127, 127],
            "epsilon": 1e-07,
            "output_dtype": "int8",
            "axis": [-1],
        },
        "registered_name": None,
    }
    assert json.loads(json.dumps(quantizers.serialize(quantizer))) == config
    assert quantizers.deserialize(config).axis == (-1,)
    assert quantizers.get(None) is None
    assert quantizers.get("abs_max_quantizer").axis is None
    again = quantizers.deserialize(quantizers.serialize(quantizers.Int8QuantizationConfig()))
    assert isinstance(again.activation_quantizer, quantizers.AbsMaxQuantizer)
    with pytest.raises(InvalidArgumentError, match="quantizer"):
        quantizers.get("absmax")


def test_policy() -> None:
    policy = dtype_policies.get("int8_from_mixed_bfloat16")
    assert (policy.compute_dtype, policy.variable_dtype) == ("bfloat16", "float32")
    assert policy.quantization_mode == "int8"
    assert dtype_policies.serialize(policy)["config"] == {
        "mode": "int8",
        "source_name": "mixed_bfloat16",
    }
    assert dtype_policies.deserialize(dtype_policies.serialize(policy)) == policy
    with pytest.raises(InvalidArgumentError, match="got 'int3'"):
        dtype_policies.get("int3_from_float32")


def test_ranges_and_modes() -> None:
    with pytest.raises(InvalidArgumentError, match="value_range of int8"):
        quantizers.AbsMaxQuantizer(value_range=(-256, 256))
    with pytest.raises(UnimplementedError, match="has no mode"):
        quantizers.QuantizationConfig().mode  # noqa: B018  # it raises
