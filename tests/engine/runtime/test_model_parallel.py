"""A stack of LSTMs, each on a device of its own: one step computes what one device computes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.graph import Array
from laminar.engine.ops.array.join import concat, split
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.elementary import sigmoid, tanh
from tests.engine.runtime.parts import in_thread, in_threads

LAYERS, UNITS, TIMES, BATCH = 3, 5, 4, 6


def kernels() -> list[Array]:
    """One for each layer: rows for its input and its state, columns for its four gates."""
    rng = np.random.default_rng(1)
    return [rng.normal(size=(2 * UNITS, 4 * UNITS)) * 0.6 for _ in range(LAYERS)]


def sequence(seed: int) -> Array:
    """What is fed: (time, example, unit)."""
    return np.random.default_rng(seed).normal(size=(TIMES, BATCH, UNITS))


def reference(x: Array, weights: list[Array]) -> Array:
    """The sum of squares of all outputs of the last layer, and those outputs, by NumPy."""
    steps = list(x)
    for kernel in weights:
        h = c = np.zeros((BATCH, UNITS))
        outputs = []
        for given in steps:
            i, f, o, g = np.split(np.concatenate([given, h], 1) @ kernel, 4, axis=1)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            outputs.append(h)
        steps = outputs
    return np.stack(steps)


def build(devices: int) -> tuple[Any, list[Any], Any, list[Any], Any]:
    """Placeholder, outputs, loss, gradients and initializer, the layers on `devices` devices."""
    x: Any = eng.placeholder("float64", [TIMES, None, UNITS])
    steps = [x[t] for t in range(TIMES)]
    weights = []
    for layer, kernel in enumerate(kernels()):
        with eng.device(f"cpu:{layer % devices}"), eng.name_scope(f"layer{layer}"):
            w: Any = eng.Variable(kernel, name="kernel")
            weights.append(w)
            h = c = steps[0] * 0.0
            outputs = []
            for given in steps:
                gates: Any = matmul(concat([given, h], axis=1), w.value)
                i, f, o, g = split(gates, 4, axis=1)
                c = sigmoid(f) * c + sigmoid(i) * tanh(g)
                h = sigmoid(o) * tanh(c)
                outputs.append(h)
            steps = outputs
    loss: Any = eng.lookup("Sum")(concat([h * h for h in steps]), axis=(0, 1))
    return x, steps, loss, eng.gradients(loss, weights), eng.global_variables_initializer()


def session_on(devices: int, wish: bool) -> eng.Session:
    return eng.Session(config=eng.SessionConfig({"cpu": devices}, jit_compile=wish))


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_outputs_and_gradients_are_those_of_one_device(compiled: bool) -> None:
    found = []
    data = sequence(0)
    for devices in (1, LAYERS):
        with eng.Graph().as_default():
            x, steps, loss, slopes, start = build(devices)
            with session_on(devices, compiled) as session:
                session.run(start)
                for _ in range(2):
                    values = in_thread(partial(session.run, [loss, *steps, *slopes], {x: data}))
                found.append(values)
    for one, three in zip(*found, strict=True):
        np.testing.assert_allclose(three, one, rtol=1e-10, atol=1e-12)
    expected = reference(data, kernels())
    np.testing.assert_allclose(np.stack(found[1][1 : 1 + TIMES]), expected, rtol=1e-10)
    np.testing.assert_allclose(found[1][0], (expected**2).sum(), rtol=1e-10)
    for layer in range(LAYERS):
        for place in ((0, 0), (UNITS, 3 * UNITS), (2 * UNITS - 1, UNITS)):
            sides = []
            for change in (-1e-5, 1e-5):
                weights = kernels()
                weights[layer][place] += change
                sides.append((reference(data, weights) ** 2).sum())
            slope = (sides[1] - sides[0]) / 2e-5
            assert found[1][1 + TIMES + layer][place] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_each_layer_and_its_gradients_run_on_its_device() -> None:
    with eng.Graph().as_default():
        x, _, _, slopes, start = build(LAYERS)
        told = eng.RunMetadata()
        with session_on(LAYERS, wish=True) as session:
            session.run(start)
            run = partial(session.run, slopes, {x: sequence(0)}, eng.RunOptions(trace=True), told)
            in_thread(run)
    products = {
        int(device.device[-1]): sum(n.type == "MatMul" for n in device.nodes)
        for device in told.step_stats
    }
    # forward, then backward for the kernel and for what was multiplied by it
    assert products == dict.fromkeys(range(LAYERS), 3 * TIMES) | {0: 3 * TIMES - 1}


@pytest.mark.parametrize("compiled", [False, True])
def test_many_steps_at_once_on_one_graph(compiled: bool) -> None:
    """Five clients, each with batches of its own: none sees what is another's."""
    with eng.Graph().as_default():
        x, steps, loss, _, start = build(LAYERS)
        with session_on(LAYERS, compiled) as session:
            session.run(start)

            def client(number: int) -> None:
                for k in range(10):
                    data = sequence(100 * number + k)
                    total, last = session.run([loss, steps[-1]], {x: data})
                    expected = reference(data, kernels())
                    np.testing.assert_allclose(total, (expected**2).sum(), rtol=1e-9)
                    np.testing.assert_allclose(last, expected[-1], rtol=1e-9, atol=1e-12)

            in_threads(5, client)
