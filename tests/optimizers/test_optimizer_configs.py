"""Optimizers: what is saved of them, configs and names."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from laminar import optimizers
from laminar.engine.errors import (
    DTypeError,
    InvalidArgumentError,
)
from laminar.engine.state import Variable
from laminar.optimizers import SGD, Adam, LossScaleOptimizer, schedules

from .samples import ONES, RULES, variable


def test_save_and_load_own_variables() -> None:
    first, second = Adam(0.3), Adam(0.1)
    w, u = variable(), variable()
    for _ in range(3):
        first.apply([ONES], [w])
    store: dict[str, Any] = {}
    first.save_own_variables(store)
    assert list(store) == ["0", "1", "2", "3"]
    second.build([u])
    u.assign(w)
    second.load_own_variables(store)
    for optimizer, x in ((first, w), (second, u)):
        optimizer.apply([ONES], [x])
    np.testing.assert_array_equal(u.numpy(), w.numpy())
    second.set_weights([v.numpy() for v in first.variables])
    assert int(second.iterations) == 4


def test_load_warns_of_another_number() -> None:
    w, optimizer = variable(), Adam(0.3)
    optimizer.build([w])
    with pytest.warns(UserWarning, match="the saved optimizer has 1 variables, this one has 4"):
        optimizer.load_own_variables({"0": np.int32(5)})
    assert int(optimizer.iterations) == 0
    with pytest.raises(InvalidArgumentError, match="1 values for 4 optimizer variables"):
        optimizer.set_weights([5])


@pytest.mark.parametrize("kind", RULES)
def test_building_again_keeps_the_state(kind: str) -> None:
    w = Variable(np.ones((2, 2), np.float32), name="w")
    optimizer = getattr(optimizers, kind)(0.1, use_ema=True)
    optimizer.build([w])
    before = optimizer.variables
    optimizer.build([w])
    assert [id(v) for v in optimizer.variables] == [id(v) for v in before]


@pytest.mark.parametrize("kind", RULES)
def test_config_round_trip(kind: str) -> None:
    rate = schedules.CosineDecay(0.1, 5)
    for made in (
        getattr(optimizers, kind)(0.25, clipnorm=2.0, use_ema=True, name="mine"),
        getattr(optimizers, kind)(rate, gradient_accumulation_steps=2),
    ):
        data = json.loads(json.dumps(optimizers.serialize(made)))
        assert data["module"] == "keras.optimizers"
        assert data["class_name"] == kind
        again = optimizers.deserialize(data)
        assert type(again) is type(made)
        assert again.get_config() == made.get_config()


def test_config_of_loss_scale_round_trip() -> None:
    made = LossScaleOptimizer(Adam(0.25), initial_scale=4.0, dynamic_growth_steps=7)
    again = optimizers.deserialize(json.loads(json.dumps(optimizers.serialize(made))))
    assert again.get_config() == made.get_config()
    assert isinstance(again.inner_optimizer, Adam)


def test_config_of_a_torch_backend_file() -> None:
    """Keras with PyTorch writes the private module of its own class."""
    data = {
        "module": "keras.src.backend.torch.optimizers.torch_adamw",
        "class_name": "AdamW",
        "config": {"learning_rate": 0.5, "weight_decay": 0.25},
        "registered_name": "AdamW",
    }
    made = optimizers.deserialize(data)
    assert isinstance(made, optimizers.AdamW)
    assert made.weight_decay == 0.25


def test_get() -> None:
    made = Adam()
    assert optimizers.get(made) is made
    for name in ("adam", "Adam", "rmsprop", "RMSprop", "adamw", "lamb", "SGD"):
        assert type(optimizers.get(name)).__name__.lower() == name.lower()
    assert type(optimizers.get({"class_name": "sgd", "config": {"learning_rate": 0.5}})) is SGD
    with pytest.raises(InvalidArgumentError, match="'adan' is not known") as caught:
        optimizers.get("adan")
    assert "adam" in str(caught.value.remedy)
    with pytest.raises((InvalidArgumentError, DTypeError), match="got 3"):
        optimizers.get(3)  # type: ignore[arg-type]  # the mistake
