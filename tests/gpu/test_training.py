"""Whole models: what a GPU computes is what the CPU computes, by graphs as without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine import SessionConfig, set_device_count
from laminar.engine.devices import GpuDevice

from .models import MODELS, trained


def on_the_cpu(name: str, **options: Any) -> Any:
    set_device_count({"gpu": 0})
    try:
        return trained(name, **options)
    finally:
        set_device_count()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_model_trains_as_on_the_cpu(name: str, jit_compile: bool, gpu: GpuDevice) -> None:
    gpu.reset_peak()
    losses, predictions = trained(name, jit_compile=jit_compile)
    assert gpu.memory_stats().num_arrays > 0
    expected, reference = on_the_cpu(name, jit_compile=False)
    np.testing.assert_allclose(losses, expected, rtol=1e-3)
    np.testing.assert_allclose(predictions, reference, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_same_seed_gives_the_same_bits(jit_compile: bool, gpu: GpuDevice) -> None:
    one, first = trained("convolutional", jit_compile=jit_compile)
    two, second = trained("convolutional", jit_compile=jit_compile)
    assert one == two
    np.testing.assert_array_equal(first, second)


def test_a_hundred_steps_with_foreign_arrays_between(gpu: GpuDevice) -> None:
    """A compiled step, whose graph has its addresses, beside code that allocates and frees."""
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(32, 8)).astype("float32") for _ in range(100)]

    def run(*, disturbed: bool) -> list[Any]:
        laminar.utils.set_random_seed(0)
        w = laminar.Variable(np.ones((8, 4), "float32") / 8)

        @laminar.function
        def step(x: Any) -> Any:
            with laminar.GradientTape() as tape:
                loss = ops.mean(ops.square(ops.tanh(ops.matmul(x, w)) - 0.5))
            (dw,) = tape.gradient(loss, [w])
            w.assign_sub(0.1 * dw)
            return loss

        losses = []
        for i, x in enumerate(batches):
            losses.append(step(x))
            if disturbed:
                with laminar.device("gpu:0"):
                    garbage = [ops.ones((1 + (i * 37) % 513, 64)) * float("nan") for _ in range(3)]
                del garbage
        return [*(float(loss.numpy()) for loss in losses), w.numpy().tolist()]

    assert run(disturbed=True) == run(disturbed=False)


def test_a_session_with_a_limit(gpu: GpuDevice) -> None:
    config = SessionConfig(memory_limit_bytes={"gpu": 1 << 28})
    with laminar.engine.Graph().as_default():
        x = laminar.engine.placeholder("float32", [None, 64])
        y = ops.tanh(ops.matmul(x, ops.ones((64, 64))))
        with laminar.engine.Session(config=config) as session:
            found = session.run(y, {x: np.full((4, 64), 0.01)})
    np.testing.assert_allclose(found, np.tanh(np.full((4, 64), 0.64)), rtol=1e-5)
