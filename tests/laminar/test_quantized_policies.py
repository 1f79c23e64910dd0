"""Policies of layers in few bits, as Keras names and writes them."""

from __future__ import annotations

from typing import Any

import pytest

from laminar import dtype_policies
from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.serialization import serialize_keras_object

POLICIES: list[tuple[str, tuple[Any, ...]]] = [
    ("QuantizedDTypePolicy", ("int8", "float32")),
    ("QuantizedDTypePolicy", ("int4", "mixed_bfloat16")),
    ("QuantizedFloat8DTypePolicy", ("float8", "mixed_bfloat16")),
    ("Int4DTypePolicy", ("int4/128", "bfloat16")),
    ("Int4DTypePolicy", ("int4/-1", "float32")),
    ("GPTQDTypePolicy", ("gptq/3/32", "float32")),
    ("AWQDTypePolicy", ("awq/4/-1", "float32")),
]


@pytest.mark.parametrize(("name", "arguments"), POLICIES)
def test_policies_travel_both_ways(name: str, arguments: tuple[Any, ...]) -> None:
    keras = pytest.importorskip("keras")
    ours = getattr(dtype_policies, name)(*arguments)
    theirs = getattr(keras.dtype_policies, name)(*arguments)
    for what in ("name", "compute_dtype", "variable_dtype", "quantization_mode"):
        assert getattr(ours, what) == getattr(theirs, what)
    assert ours.get_config() == theirs.get_config()
    assert dtype_policies.deserialize(dtype_policies.serialize(ours)) == ours
    again = keras.dtype_policies.deserialize(dtype_policies.serialize(ours))
    assert again == theirs
    by_name = dtype_policies.get(ours.name)
    assert by_name == ours
    assert hash(by_name) == hash(ours)
    assert by_name != dtype_policies.DTypePolicy(arguments[1])


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("QuantizedDTypePolicy", "int3"),
        ("Int4DTypePolicy", "int4"),
        ("Int4DTypePolicy", "int4/0"),
        ("Int4DTypePolicy", "int8/128"),
        ("GPTQDTypePolicy", "gptq/5/32"),
        ("GPTQDTypePolicy", "gptq/4/x"),
        ("AWQDTypePolicy", "awq/8/32"),
        ("AWQDTypePolicy", "awq/4/-2"),
    ],
)
def test_modes_that_cannot_be(name: str, mode: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a mode"):
        getattr(dtype_policies, name)(mode, "float32")


def test_what_8_bits_are_too_wide_for() -> None:
    with pytest.raises(InvalidArgumentError, match="too wide for float16"):
        dtype_policies.QuantizedDTypePolicy("int8", "mixed_float16")
    wrong: Any = 1.5
    with pytest.raises(DTypeError, match="must be a whole number"):
        dtype_policies.QuantizedFloat8DTypePolicy("float8", "float32", wrong)
    lengths = [dtype_policies.QuantizedFloat8DTypePolicy("float8", "float32", n) for n in (1, 2)]
    assert lengths[0] != lengths[1]


def test_maps_are_objects_in_configs() -> None:
    policies = dtype_policies.DTypePolicyMap()
    policies["block/dense"] = "int8_from_mixed_bfloat16"
    policies["block/.*"] = "bfloat16"
    data = serialize_keras_object({"dtype": policies})["dtype"]
    assert data["class_name"] == "DTypePolicyMap"
    # Without a default policy, modes stay and types are those where it is made again.
    again = dtype_policies.deserialize(data)
    assert isinstance(again, dtype_policies.DTypePolicyMap)
    assert again["block/dense"].name == "int8_from_float32"
    assert again["block/other"].name == "float32"
    assert policies["block/other"].name == "bfloat16"
    fixed = dtype_policies.DTypePolicyMap("mixed_bfloat16", {"a": "int4/64_from_bfloat16"})
    again = dtype_policies.DTypePolicyMap.from_config(fixed.get_config())
    assert again["a"].name == "int4/64_from_bfloat16"
    assert again["b"].name == "mixed_bfloat16"
    with pytest.raises(DTypeError, match="must be a dict"):
        dtype_policies.DTypePolicyMap(policy_map=123)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(InvalidArgumentError, match="cannot be a map"):
        dtype_policies.DTypePolicyMap(fixed)
