"""Compiled steps on the GPU device: a fake GPU, whose kernels are the generated CUDA C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.compiler.cuda import CudaCompiler, nvrtc
from laminar.engine.compiler.cuda.cluster import CudaCluster
from laminar.engine.cuda_program import Kernel
from laminar.engine.devices import GpuDevice, local_devices
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.core.cluster import ClusterBody
from laminar.engine.ops.core.dispatch import EAGER
from tests.engine.cuda.fake_gpu import FakeGpu
from tests.engine.cuda.strict_cupy import StrictCupy
from tests.engine.runtime.fake_gpu import registered

from .shim import compile_kernels, host_function, needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    def compiled(kernels: Sequence[Kernel], architecture: str) -> dict[str, bytes]:
        assert not architecture
        compile_kernels(kernels)  # all together; the fake asks for one by one
        return {}

    monkeypatch.setattr(nvrtc, "images_of", compiled)
    fake = FakeGpu(compile=host_function)
    StrictCupy(fake)
    device = GpuDevice(fake)
    with registered("gpu", lambda *_: device, priority=100, compiler=CudaCompiler):
        yield fake


def train() -> tuple[list[float], list[np.ndarray]]:
    laminar.utils.set_random_seed(1)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 6)).astype(np.float32), rng.integers(0, 3, 40)
    model = laminar.Sequential(
        [layers.Input((6,)), layers.Dense(8, "relu"), layers.Dropout(0.2, seed=1), layers.Dense(3)]
    )
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(laminar.optimizers.Adam(0.01), loss)
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], [np.asarray(w) for w in model.get_weights()]


def fitted(x: np.ndarray, y: np.ndarray, callbacks: list[laminar.callbacks.Callback]) -> None:
    """One epoch of steps with no checks, which make a GPU wait."""
    model = laminar.Sequential([layers.Input((6,)), layers.Dense(8, "relu"), layers.Dense(3)])
    model.compile(laminar.optimizers.SGD(0.01), "mse")
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, callbacks=callbacks)


@pytest.mark.parametrize("is_read", [False, True], ids=["unread", "read"])
def test_fit_waits_for_the_gpu_only_when_logs_are_read(is_read: bool, gpu: FakeGpu) -> None:
    class Reads(laminar.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            losses.append(logs["loss"])

    waits = []
    for num_steps in (4, 12):
        losses: list[float] = []
        rng = np.random.default_rng(0)
        x = rng.normal(size=(8 * num_steps, 6)).astype(np.float32)
        gpu.log.clear()
        fitted(x, x[:, :3], [Reads()] if is_read else [])
        waits.append(gpu.log.count("synchronize"))
        assert gpu.log.count("graph") >= num_steps - 2
        assert gpu.log.count("copy_in") >= 2 * num_steps  # on a stream of their own
        assert len(losses) == (num_steps if is_read else 0)
    assert waits[1] - waits[0] == (8 if is_read else 0)
    assert waits[0] <= (6 if is_read else 3)


def test_handles_that_nothing_uses_may_stand_before_others(gpu: FakeGpu) -> None:
    first, second = (laminar.Variable(np.full((4,), n, np.float32)) for n in (1, 2))

    @laminar.function
    def step(x: Any) -> Any:
        doubled = first * 2
        return doubled + second.assign_add(x)

    concrete = step.concrete(TensorSpec((4,), "float32"))
    inputs = [*concrete.captured_inputs, *concrete.inputs]
    assert concrete.captured_state == [first, second]
    known = {id(x) for x in inputs[1:]}
    operations = []
    for op in concrete.operations:  # those that need nothing of the first
        if all(id(x) in known for x in op.inputs):
            operations.append(op)
            known.update(id(y) for y in op.outputs)
    device: Any = next(d for d in local_devices() if isinstance(d, GpuDevice))
    body = ClusterBody.of(operations, inputs, [], device=device)
    cluster = CudaCluster(body, device)
    handles: list[Any] = concrete.captured
    stores = [handle.value for handle in handles]
    cluster(EAGER, *stores, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(first, [1, 1, 1, 1])
    np.testing.assert_array_equal(second, [2, 3, 4, 5])
    assert [entry for entry in gpu.log if entry.startswith("lm_")]


def test_a_cluster_without_a_program_copies_an_input_once(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CudaCluster, "_load", lambda self, key: None)
    step = laminar.function(lambda x: ops.tanh(x) * x + x, jit_compile=True)
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    for _ in range(3):
        gpu.xp.copies.clear()
        found = step(x)
        assert gpu.xp.copies.count(x.nbytes) == 1
        np.testing.assert_allclose(found, np.tanh(x) * x + x, rtol=1e-6)


def test_fit_runs_generated_kernels(gpu: FakeGpu) -> None:
    losses, weights = train()
    assert len([entry for entry in gpu.log if entry.startswith("lm_")]) > 20  # generated kernels
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CudaCompiler, "accepts", lambda self, operations: [False] * len(operations))
        with laminar.device("cpu:0"):
            expected, others = train()
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for one, other in zip(weights, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
