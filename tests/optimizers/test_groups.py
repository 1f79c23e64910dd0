"""Learning rates of their own for parts of a model, and averages that change places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops, optimizers
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError

X = np.ones((8, 3), "float32")
Y = np.ones((8, 1), "float32")


def variables() -> list[Any]:
    found = [laminar.Variable(np.ones(2, "float32"), name=name) for name in ("a", "b", "c")]
    for v in found:
        v.path = f"net/{v.name}"
    return found


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Nadam", "Lion"])
def test_a_factor_is_a_rate_of_its_own(kind: str) -> None:
    make = getattr(optimizers, kind)
    grouped, whole, tenth = variables(), variables(), variables()
    optimizer = make(0.1)
    optimizer.groups({"net/b": 0.1, "net/c": 0})
    for chosen, given in ((optimizer, grouped), (make(0.1), whole), (make(0.01), tenth)):
        for _ in range(3):
            chosen.apply([ops.ones(2)] * 3, given)
    np.testing.assert_allclose(grouped[0], whole[0], rtol=1e-6)
    np.testing.assert_allclose(grouped[1], tenth[1], rtol=1e-6)
    np.testing.assert_array_equal(grouped[2], np.ones(2))


def model() -> laminar.Sequential:
    net = laminar.Sequential(
        [layers.Input((3,)), layers.Dense(2, name="low"), layers.Dense(1, name="top")]
    )
    net.compile(optimizers.AdamW(0.1), "mse")
    return net


def test_layers_and_variables_in_fit_also_after_a_trace() -> None:
    net: Any = model()
    net.fit(X, Y, verbose=0)
    low: Any = net.get_layer("low")
    top: Any = net.get_layer("top")
    net.optimizer.groups({low: 0, top.bias: 0})
    before = [low.kernel.numpy(), top.bias.numpy(), top.kernel.numpy()]
    net.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(low.kernel, before[0])
    np.testing.assert_array_equal(top.bias, before[1])
    assert (top.kernel.numpy() != before[2]).any()
    net.optimizer.groups({})
    net.fit(X, Y, verbose=0)
    assert (low.kernel.numpy() != before[0]).any()


def test_groups_are_saved_by_path() -> None:
    net = model()
    top: Any = net.get_layer("top")
    net.optimizer.groups({"low": 0.5, top.kernel: 2})
    net.optimizer.build(net.trainable_variables)
    config = net.optimizer.get_config()
    assert config["groups"] == {"low": 0.5, f"^{top.kernel.path}$": 2.0}
    again = optimizers.AdamW.from_config(config)
    assert again.get_config()["groups"] == config["groups"]
    assert "groups" not in optimizers.AdamW().get_config()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"lwo": 0.1}, "'lwo' fits none of the 4 variables"),
        ({"low": -1}, "a factor must be a number of at least 0, got -1"),
        ({"low": "slow"}, "a factor must be a number of at least 0, got 'slow'"),
        ({3: 0.1}, "expected a part of a path, a layer or a variable, got 3"),
        ({"(": 0.1}, "is no regular expression"),
    ],
)
def test_wrong_groups(given: dict[Any, Any], text: str) -> None:
    net = model()
    net.optimizer.build(net.trainable_variables)
    with pytest.raises(InvalidArgumentError) as caught:
        net.optimizer.groups(given)
    assert text in caught.value.message


def test_loss_scaling_passes_groups_on() -> None:
    optimizer = optimizers.LossScaleOptimizer(optimizers.SGD(0.1))
    optimizer.groups({"net/a": 0})
    given = variables()
    optimizer.apply([ops.ones(2)] * 3, given)
    np.testing.assert_array_equal(given[0], np.ones(2))
    assert (given[1].numpy() != 1).all()


def test_averages_change_places_and_stay_at_the_end() -> None:
    (v, *_) = variables()
    optimizer = optimizers.SGD(0.5, use_ema=True, ema_momentum=0.5)
    optimizer.swap_averages(in_place=True)  # there are none yet
    optimizer.apply([ops.ones(2)], [v])
    optimizer.apply([ops.ones(2)], [v])
    # 1 -> 0.5 -> 0; the average is 0.5, then 0.25
    optimizer.swap_averages(in_place=True)
    np.testing.assert_allclose(v, [0.25, 0.25])
    optimizer.swap_averages(in_place=True)
    np.testing.assert_allclose(v, [0.25, 0.25])
    optimizer.swap_averages(in_place=False)
    np.testing.assert_allclose(v, [0.0, 0.0])
    optimizer.swap_averages(in_place=True)
    optimizer.finalize_variable_values([v])
    np.testing.assert_allclose(v, [0.25, 0.25])
    with pytest.raises(FailedPreconditionError, match="it keeps no averages"):
        optimizers.SGD().swap_averages(in_place=True)
