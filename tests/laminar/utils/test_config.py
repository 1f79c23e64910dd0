"""utils.Config and get_source_inputs."""

from __future__ import annotations

import json

import numpy as np
import pytest

import laminar
from laminar import layers, utils
from laminar.engine.errors import DTypeError, FailedPreconditionError


def test_keys_are_attributes() -> None:
    config = utils.Config(rate=0.5, name="x")
    config.units = 3
    config["depth"] = 2
    assert (config.rate, config["units"], config.get("none", 7)) == (0.5, 3, 7)
    assert "depth" in config
    assert list(config) == ["rate", "name", "units", "depth"]
    assert json.loads(config.to_json()) == config.as_dict() == dict(config.items())
    assert config.pop("depth") == 2
    config.update({"a": 1}, b=2)
    del config.rate
    assert list(config.keys()) == ["name", "units", "a", "b"]
    assert len(config) == 4
    with pytest.raises(AttributeError, match="no setting 'rate'"):
        _ = config.rate


def test_frozen() -> None:
    config = utils.Config(a=1)
    config.freeze()
    assert config.frozen
    for change in (lambda: config.update(a=2), lambda: config.pop("a")):
        with pytest.raises(FailedPreconditionError, match="it is frozen"):
            change()
    with pytest.raises(FailedPreconditionError, match="it is frozen"):
        config.a = 2
    config.unfreeze()
    config.a = 2
    assert config.a == 2


def test_source_inputs() -> None:
    a, b = layers.Input((3,), name="a"), layers.Input((3,), name="b")
    shared = layers.Dense(2)
    y = layers.concatenate([shared(b) + 1.0, shared(a), a])
    assert [x.name for x in utils.get_source_inputs(y)] == ["b", "a"]
    assert utils.get_source_inputs(a) == [a]
    with pytest.raises(DTypeError, match="expected a symbolic tensor"):
        utils.get_source_inputs(np.ones(3))


def test_settings_of_other_engines() -> None:
    laminar.config.enable_flash_attention()
    assert not laminar.config.is_flash_attention_enabled()
    assert not laminar.config.is_nnx_enabled()
    laminar.config.disable_flash_attention()


def test_names_of_keras_2() -> None:
    assert laminar.optimizers.legacy.Adam is laminar.optimizers.Adam
    assert utils.standardize_dtype(float) == "float32"
