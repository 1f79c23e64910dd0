"""Control flow on tensors in `call`, in losses, and in steps of the user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops


class Clipped(layers.Layer):
    """Doubles its input as often as its largest element stays below a limit."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight((shape[-1],), "ones", name="scale")

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            x = x * self.scale
        for _ in range(3):
            if ops.max(x) < self.limit:
                x = x * 2.0
        return x


def test_call() -> None:
    layer = Clipped(5.0)
    x = np.array([[1.0, 2.0]], np.float32)
    eager = layer(x)
    np.testing.assert_array_equal(eager, [[4.0, 8.0]])
    np.testing.assert_array_equal(laminar.function(layer)(x), eager)
    inputs = layers.Input((2,))
    model = laminar.Model(inputs, layer(inputs))
    np.testing.assert_array_equal(model.predict(x, verbose=0), eager)
    wrapped = layers.Lambda(lambda x: x if ops.max(x) > 1 else -x)
    model = laminar.Sequential([layers.Input((2,)), wrapped])
    np.testing.assert_array_equal(model.predict(x / 2, verbose=0), -x / 2)


def careful_loss(y_true: Any, y_pred: Any) -> Any:
    error = ops.mean(ops.abs(y_true - y_pred))
    if error > 1.0 or error < 0.0:
        error = error * 0.5
    return error


class Careful(laminar.Sequential):
    """Trains only on batches that it is bad at."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with laminar.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        grads = tape.gradient(loss, self.trainable_variables)
        if loss > 0.1:
            self.optimizer.apply(grads, self.trainable_variables)
        return {"loss": loss}


@pytest.mark.parametrize("jit_compile", [False, True])
def test_fit(jit_compile: bool) -> None:
    x = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 2)
    found = []
    for run_eagerly in (True, False):
        model = Careful([layers.Input((2,)), Clipped(1.5), layers.Dense(1, "linear", True, "ones")])
        jit: Any = jit_compile and not run_eagerly
        model.compile("sgd", careful_loss, run_eagerly=run_eagerly, jit_compile=jit)
        losses = model.fit(x, x.sum(1), batch_size=2, epochs=3, shuffle=False, verbose=0)
        found.append([losses.history["loss"], *map(np.asarray, model.trainable_variables)])
    for eager, traced in zip(*found, strict=True):
        np.testing.assert_allclose(traced, eager, rtol=1e-5)
