"""Compiled steps from end to end without a GPU: the kernels that the compiler prints, captured and
replayed by the executor on a fake GPU, computed by their source compiled for the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.cuda import CudaCompiler, nvrtc
from laminar.engine.cuda.libraries import cublaslt, cudnn
from laminar.engine.cuda_program import Kernel
from laminar.engine.devices import GpuDevice
from tests.engine.compiler.cuda import shim
from tests.engine.runtime.fake_gpu import registered
from tests.gpu.models import trained

from .fake_cudnn import FakeCudnn
from .fake_gpu import FakeGpu
from .strict_cupy import StrictCupy

pytestmark = [pytest.mark.slow, shim.needs_compiler]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuDevice]:
    def compiled(kernels: Sequence[Kernel], architecture: str) -> dict[str, bytes]:
        shim.compile_kernels(kernels)  # all together; the fake asks for one by one
        return {}

    monkeypatch.setattr(nvrtc, "images_of", compiled)
    hardware = FakeGpu(compile=shim.host_function)
    StrictCupy(hardware)
    device = GpuDevice(hardware)
    with registered("gpu", lambda *_: device, priority=100, compiler=CudaCompiler):
        yield device


def test_steps_are_graphs(gpu: GpuDevice) -> None:
    w = laminar.Variable(np.ones((8, 4), "float32") / 8)

    @laminar.function
    def step(x: Any) -> Any:
        with laminar.GradientTape() as tape:
            loss = ops.mean(ops.square(ops.tanh(ops.matmul(x, w)) - 0.5))
        (dw,) = tape.gradient(loss, [w])
        w.assign_sub(0.1 * dw)
        return loss

    rng = np.random.default_rng(0)
    value = np.ones((8, 4)) / 8
    log: list[str] = gpu.gpu.log  # type: ignore[attr-defined]  # of a fake one
    for i in range(12):
        x = rng.normal(size=(16, 8)).astype("float32")
        if i == 6:
            log.clear()
        loss = step(x)
        y = np.tanh(x @ value)
        np.testing.assert_allclose(float(loss.numpy()), np.mean((y - 0.5) ** 2), rtol=1e-4)
        value -= 0.1 * x.T @ (2 * (y - 0.5) / y.size * (1 - y**2))
    np.testing.assert_allclose(w.numpy(), value, rtol=1e-4)
    assert log.count("graph") == 6
    assert not [name for name in log if name.startswith("lm_")]  # no kernel by itself


@pytest.mark.parametrize("name", ["dense", "convolutional", "recurrent", "attention"])
def test_a_model_trains_as_on_the_cpu(name: str, gpu: GpuDevice) -> None:
    losses, predictions = trained(name, jit_compile=True)
    assert "graph" in gpu.gpu.log  # type: ignore[attr-defined]  # of a fake one
    laminar.engine.set_device_count({"gpu": 0})
    try:
        expected, reference = trained(name, jit_compile=False)
    finally:
        laminar.engine.set_device_count()
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    np.testing.assert_allclose(predictions, reference, rtol=1e-3, atol=1e-4)


@pytest.fixture
def library(gpu: GpuDevice, monkeypatch: pytest.MonkeyPatch) -> FakeCudnn:
    hardware: Any = gpu.gpu
    hardware.architecture = "sm_90"
    found = FakeCudnn(hardware)
    monkeypatch.setattr(cudnn, "frontend_or_none", lambda: found)
    monkeypatch.setattr(cublaslt, "bindings_or_none", lambda: None)
    return found


def test_convolutions_of_halves_by_a_library(library: FakeCudnn) -> None:
    """Its results are halves, those of our kernels the sums in float32."""
    rng = np.random.default_rng(0)
    x, w = (
        ops.convert_to_tensor(rng.normal(size=shape), "bfloat16")
        for shape in ((2, 5, 5, 3), (3, 3, 3, 4))
    )

    def slopes(x: Any, w: Any) -> Any:
        with laminar.GradientTape() as tape:
            tape.watch([x, w])
            y = ops.conv(x, w, padding="same")
            total = ops.sum(ops.square(ops.cast(y, "float32")))
        return y, *tape.gradient(total, [x, w])

    found = [np.asarray(v).astype(float) for v in laminar.function(slopes)(x, w)]
    assert library.built == 3
    laminar.engine.set_device_count({"gpu": 0})
    try:
        expected = [np.asarray(v).astype(float) for v in laminar.function(slopes)(x, w)]
    finally:
        laminar.engine.set_device_count()
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=2e-2, atol=0.2)


def test_convolutions_of_a_library(library: FakeCudnn) -> None:
    """Filters are put into its order before, and what it makes, into ours after."""
    losses, predictions = trained("convolutional", jit_compile=True)
    assert library.built >= 5  # two layers forward and backward, but for the gradient of the data
    laminar.engine.set_device_count({"gpu": 0})
    try:
        expected, reference = trained("convolutional", jit_compile=False)
    finally:
        laminar.engine.set_device_count()
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    np.testing.assert_allclose(predictions, reference, rtol=1e-3, atol=1e-4)
