"""Settings and dtype policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import config, dtype_policies, ops, settings
from laminar.dtype_policies import DTypePolicy, DTypePolicyMap
from laminar.engine.errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
)
from laminar.initializers import Zeros

UNKNOWN: Any = "nhwc"


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(dtype_policies.policy.Global, "policy", None)
    names = [name for name in vars(settings._Settings) if name[0] != "_"]
    before = {name: getattr(settings._Settings, name) for name in names}
    floatx = config.floatx()
    yield
    config.set_floatx(floatx)
    for name, value in before.items():
        setattr(settings._Settings, name, value)


def test_defaults() -> None:
    assert config.backend() == "laminar"
    assert config.floatx() == "float32"
    assert config.epsilon() == 1e-7
    assert config.image_data_format() == "channels_last"
    assert config.dtype_policy() == DTypePolicy("float32")
    assert config.is_interactive_logging_enabled()
    assert config.is_traceback_filtering_enabled()
    assert config.max_epochs() is None
    assert config.max_steps_per_epoch() is None


def test_setters() -> None:
    config.set_epsilon(1e-3)
    assert config.epsilon() == 1e-3
    config.set_floatx("float64")
    assert config.floatx() == "float64"
    assert config.dtype_policy().name == "float64"
    config.set_image_data_format("channels_first")
    assert config.image_data_format() == "channels_first"
    assert ops.max_pool(np.ones((1, 2, 4, 4)), 2).shape == (1, 2, 2, 2)
    config.disable_interactive_logging()
    assert not config.is_interactive_logging_enabled()
    config.enable_interactive_logging()
    assert config.is_interactive_logging_enabled()
    config.disable_traceback_filtering()
    assert not config.is_traceback_filtering_enabled()
    config.enable_traceback_filtering()
    assert config.is_traceback_filtering_enabled()
    config.set_max_epochs(3)
    config.set_max_steps_per_epoch(4)
    assert (config.max_epochs(), config.max_steps_per_epoch()) == (3, 4)
    config.set_backend("laminar")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: config.set_floatx("int32"), "set_floatx: expected one of"),
        (lambda: config.set_image_data_format(UNKNOWN), "data_format: expected one of"),
        (lambda: config.set_backend("jax"), "expected 'laminar', got 'jax'"),
        (config.enable_unsafe_deserialization, "files that laminar loads cannot run code"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "compute", "variable"),
    [
        ("float32", "float32", "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),
        ("mixed_float16", "float16", "float32"),
        ("mixed_bfloat16", "bfloat16", "float32"),
    ],
)
def test_policies(name: str, compute: str, variable: str) -> None:
    policy = DTypePolicy(name)
    assert (policy.compute_dtype, policy.variable_dtype) == (compute, variable)
    assert policy.name == name
    assert policy.quantization_mode is None
    assert dtype_policies.deserialize(dtype_policies.serialize(policy)) == policy
    assert dtype_policies.get(name) == policy
    assert dtype_policies.get(policy) is policy
    assert hash(policy) == hash(DTypePolicy(name))
    config.set_dtype_policy(name)
    assert config.dtype_policy() == DTypePolicy() == dtype_policies.get(None) == policy


def test_the_form_of_a_serialized_policy_is_that_of_keras() -> None:
    assert dtype_policies.serialize(DTypePolicy("mixed_float16")) == {
        "module": "keras",
        "class_name": "DTypePolicy",
        "config": {"name": "mixed_float16"},
        "registered_name": None,
    }


def test_convert_input() -> None:
    policy = DTypePolicy("mixed_float16")
    assert policy.convert_input(np.ones(2, "float32"), True, "float16").dtype == "float16"
    assert policy.convert_input(ops.ones(2), False, "float16").dtype == "float32"
    assert policy.convert_input(np.ones(2, "int32"), True, "float16").dtype == "int32"
    assert policy.convert_input("text", True, "float16") == "text"


def test_policy_errors() -> None:
    with pytest.raises(InvalidArgumentError, match="there is no policy 'mixed_float8'"):
        DTypePolicy("mixed_float8")
    with pytest.raises(DTypeError, match="expected a name such as"):
        DTypePolicy(16)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(NotFoundError, match="the config names 'Other'"):
        dtype_policies.deserialize({"class_name": "Other", "config": {}})
    with pytest.raises(InvalidArgumentError, match="'Zeros' is no policy"):
        dtype_policies.deserialize({"class_name": "Zeros", "config": {}}, {"Zeros": Zeros})
    with pytest.raises(InvalidArgumentError, match="expected a policy, its name or an element"):
        dtype_policies.get(3.5)  # type: ignore[arg-type]  # the mistake


def test_policy_maps() -> None:
    table = DTypePolicyMap("float32", {"encoder/.*": "mixed_float16"})
    table["encoder/head"] = "float64"
    assert table["encoder/head"].name == "float64"
    assert table["encoder/dense"].name == "mixed_float16"
    assert table["decoder"].name == "float32"
    assert table.name == "map_float32"
    assert (table.compute_dtype, table.variable_dtype) == ("float32", "float32")
    assert len(table) == 2
    again = dtype_policies.get(dtype_policies.serialize(table))
    assert dict(again) == dict(table)
    assert again.get_config() == table.get_config()
    with pytest.raises(AlreadyExistsError, match="has the policy 'float64' already"):
        table["encoder/head"] = "float32"
    table["encoder/d.*"] = "float32"
    with pytest.raises(InvalidArgumentError, match="is matched by 2 patterns"):
        table["encoder/dense"]
    config.set_dtype_policy("mixed_bfloat16")
    assert DTypePolicyMap()["any"].name == "mixed_bfloat16"
