"""What happens before the first step: nothing is traced twice, and what compiles is there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops

X = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
Y = np.arange(8) % 2


class Counting(layers.Layer):
    """Passes its input on, and counts the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def call(self, x: Any) -> Any:
        self.calls += 1
        return x


class Reporting(Counting):
    """Reports a metric besides."""

    def call(self, x: Any) -> Any:
        self.add_metric(ops.max(x), name="largest")
        return super().call(x)


def sequential(counting: Any) -> Any:
    return laminar.Sequential([layers.Input((3,)), counting, layers.Dense(2)])


def functional(counting: Any, wrap: Any = lambda y: y) -> Any:
    x = layers.Input((3,))
    return laminar.Model(x, wrap(layers.Dense(2, name="out")(counting(x))))


class Twice(laminar.Sequential):
    """Does more than to run its layers."""

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        y = super().call(inputs)
        return ops.concatenate([y, -y], axis=-1)


def fit(model: Any) -> dict[str, list[float]]:
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy"])
    history = model.fit(X, Y, batch_size=4, epochs=2, verbose=0, shuffle=False)
    found: dict[str, list[float]] = history.history
    return found


@pytest.mark.parametrize("build", [sequential, functional, lambda c: functional(c, lambda y: [y])])
def test_the_step_alone_is_traced(build: Any) -> None:
    counting = Counting()
    model = build(counting)
    before = counting.calls
    assert fit(model).keys() == {"loss", "accuracy"}
    assert counting.calls == before + 1


def test_the_loss_and_the_metrics_are_those_of_the_outputs() -> None:
    counting = Counting()
    model = functional(counting, lambda y: {"score": y})
    loss = {"score": laminar.losses.SparseCategoricalCrossentropy(from_logits=True)}
    model.compile("sgd", loss, metrics={"score": ["accuracy"]})
    weights = model.get_weights()
    logs = model.train_on_batch(X, {"score": Y}, return_dict=True)
    logits = X.astype("float64") @ weights[0] + weights[1]
    expected = np.mean((logits.argmax(-1) == Y).astype("float64"))
    assert logs["accuracy"] == pytest.approx(expected)
    shifted = logits - logits.max(-1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    assert logs["loss"] == pytest.approx(-log_softmax[np.arange(8), Y].mean(), rel=1e-5)


def test_a_reported_metric_is_there_from_the_first_step() -> None:
    history = fit(sequential(Reporting()))
    assert history["largest"] == pytest.approx([(X[:4].max() + X[4:].max()) / 2] * 2)


def test_a_call_that_does_more_decides_about_the_metrics() -> None:
    """With two columns `accuracy` of binary labels would be another metric."""
    model = Twice([layers.Input((3,)), layers.Dense(1)])
    history = fit(model)
    logits = np.asarray(model(X))
    assert logits.shape == (8, 2)
    assert 0 <= history["accuracy"][-1] <= 1
    assert isinstance(model.metrics[1], laminar.metrics.SparseCategoricalAccuracy)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "is_loaded"), [("", True), (", jit_compile=False", False)])
def test_compile_loads_what_compiles(options: str, is_loaded: bool) -> None:
    program = (
        "import sys, laminar\n"
        "model = laminar.Sequential([laminar.layers.Input((3,)), laminar.layers.Dense(1)])\n"
        "assert 'llvmlite' not in sys.modules\n"
        f"model.compile('sgd', 'mse'{options})\n"
        "print('llvmlite' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"{is_loaded}\n", done.stderr
