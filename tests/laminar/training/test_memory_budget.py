"""`compile(remat="auto", memory_budget=...)`: a step keeps to its budget, with the same bits."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.errors import InvalidArgumentError

ROWS, UNITS, BLOCKS = 256, 32, 12


def residual_model(**given: Any) -> laminar.Model:
    """Layers with effects (statistics, draws), and values that skip some of them."""
    laminar.set_random_seed(3)
    inputs = layers.Input((UNITS,))
    x = inputs
    for _ in range(BLOCKS):
        y = layers.BatchNormalization()(layers.Dense(UNITS, activation="tanh")(x))
        x = layers.Add()([x, layers.Dropout(0.2, seed=1)(y)])
    model = laminar.Model(inputs, layers.Dense(1)(x))
    model.compile("sgd", "mse", **given)
    return model


def batch(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(rows, UNITS)).astype(np.float32)
    return x, x[:, :1]


def trained(model: laminar.Model) -> tuple[list[float], list[np.ndarray]]:
    x, y = batch()
    history = model.fit(x, y, batch_size=ROWS, epochs=3, verbose=0).history["loss"]
    return history, model.get_weights()


def memory(model: laminar.Model) -> int:
    """What the last train step works in."""
    return sum(event.arena_bytes for event in model.make_train_function().compiles)


@pytest.fixture(scope="module")
def plain() -> tuple[list[float], list[np.ndarray], int]:
    model = residual_model()
    return *trained(model), memory(model)


@pytest.mark.slow
def test_a_step_keeps_to_its_budget(plain: Any) -> None:
    losses, weights, needed = plain
    budget = needed // 2
    model = residual_model(remat="auto", memory_budget=budget)
    found, values = trained(model)
    assert 0 < memory(model) <= budget
    assert found == losses
    for value, expected in zip(values, weights, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_what_fits_is_not_computed_again(plain: Any) -> None:
    model = residual_model(remat="auto", memory_budget=plain[2])
    assert trained(model)[0] == plain[0]
    assert memory(model) == plain[2]


def test_a_larger_batch_is_looked_at_again(plain: Any) -> None:
    model = residual_model(remat="auto", memory_budget=plain[2])
    model.train_on_batch(*batch(ROWS // 2))
    model.train_on_batch(*batch())
    assert memory(model) == plain[2]
    model.train_on_batch(*batch(2 * ROWS))
    assert 0 < memory(model) <= plain[2]


@pytest.mark.slow
def test_where_nothing_fits_the_least_is_taken_and_said(plain: Any) -> None:
    model = residual_model(remat="auto", memory_budget=1000)
    with pytest.warns(UserWarning, match=r"more than memory_budget, 1000.*use smaller batches"):
        assert trained(model)[0] == plain[0]
    assert memory(model) < plain[2] / 2


def test_a_model_without_a_network_says_what_to_do() -> None:
    class Own(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x)

    model = Own()
    model.compile("sgd", "mse", remat="auto", memory_budget=1000)
    with pytest.raises(InvalidArgumentError, match=r"(?s)needs a model of layers.*RematScope"):
        model.fit(*batch(), verbose=0)


@pytest.mark.parametrize(
    "way",
    [
        {"run_eagerly": True},
        {"jit_compile": False},
        {"strategy": laminar.distribute.DataParallel(["cpu:0", "cpu:1"])},
    ],
)
def test_a_step_that_is_not_compiled_whole_has_no_known_memory(way: dict[str, Any]) -> None:
    model = residual_model(remat="auto", memory_budget=1000, **way)
    with pytest.raises(InvalidArgumentError, match="needs a training step that is compiled"):
        model.train_on_batch(*batch())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"remat": "full", "memory_budget": 1000}, 'remat must be "auto" or None'),
        ({"memory_budget": 1000}, 'remat must be "auto" or None'),
        ({"remat": "auto"}, "memory_budget must be a positive number of bytes, got None"),
        ({"remat": "auto", "memory_budget": 0}, "must be a positive number of bytes, got 0"),
        ({"remat": "auto", "memory_budget": "1 GB"}, "must be a positive number of bytes"),
        ({"remat": "auto", "memory_budget": True}, "must be a positive number of bytes"),
    ],
)
def test_arguments_that_mean_nothing(given: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=text):
        residual_model(**given)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    residual_model(remat="auto", memory_budget=1234).save(tmp_path / "model.keras")
    config = laminar.saving.load_model(tmp_path / "model.keras").get_compile_config()
    assert config is not None
    assert (config["remat"], config["memory_budget"]) == ("auto", 1234)
    plain = residual_model().get_compile_config()
    assert plain is not None
    assert "remat" not in plain  # other readers of the file do not know it


def test_it_ends_with_the_next_compile_and_goes_with_a_copy(plain: Any) -> None:
    model = residual_model(remat="auto", memory_budget=plain[2] // 2)
    model.train_on_batch(*batch())
    twin = copy.deepcopy(model)
    twin.train_on_batch(*batch())
    assert 0 < memory(twin) <= plain[2] // 2
    model.compile("sgd", "mse")
    model.train_on_batch(*batch())
    assert memory(model) == plain[2]
