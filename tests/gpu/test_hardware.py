"""What laminar asks of a GPU, asked of a real one: memory, order, graphs, errors."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.cuda.interface import CaptureError
from laminar.engine.devices import CpuDevice, GpuDevice
from laminar.engine.errors import InvalidArgumentError, ResourceExhaustedError

rng = np.random.default_rng(0)


def test_what_it_is(gpu: GpuDevice) -> None:
    found = gpu.gpu.properties()
    assert found.name
    assert found.total_bytes > 0
    assert found.capability >= (7, 5), "what CUDA 13 compiles for"
    assert found.name in gpu.description


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool", "complex64"])
def test_copies_keep_the_bits(dtype: str, gpu: GpuDevice) -> None:
    x = (rng.normal(size=(33, 7)) * 100).astype(dtype)
    np.testing.assert_array_equal(gpu.get(gpu.put(x)), x)
    host = CpuDevice()
    np.testing.assert_array_equal(host.receive(gpu.receive(x, host), gpu), x)


def test_copies_from_pinned_memory_run_beside_the_host(gpu: GpuDevice) -> None:
    hardware = gpu.gpu
    x = rng.normal(size=1 << 20).astype(np.float32)
    memory, stream = hardware.allocate(x.nbytes), hardware.make_stream()
    pinned = hardware.allocate_pinned(x.nbytes).view(np.float32)
    back = hardware.allocate_pinned(x.nbytes).view(np.float32)
    pinned[...] = x
    event = hardware.make_event()
    hardware.copy_in(memory.address, pinned, stream)
    hardware.record(event, stream)
    hardware.wait(hardware.stream, event)
    hardware.copy_out(back, memory.address, hardware.stream)
    hardware.synchronize(hardware.stream)
    np.testing.assert_array_equal(back, x)


def test_a_graph_of_copies_runs_again_at_the_same_addresses(gpu: GpuDevice) -> None:
    hardware, stream = gpu.gpu, gpu.gpu.stream
    one, two = hardware.allocate(4096), hardware.allocate(4096)
    pinned = hardware.allocate_pinned(4096)
    hardware.begin_capture(stream)
    hardware.copy_in(one.address, pinned, stream)
    hardware.copy(two.address, one.address, 4096, stream)
    graph = hardware.end_capture(stream)
    back = hardware.allocate_pinned(4096)
    for value in (1, 2, 3):
        pinned[...] = value
        hardware.launch_graph(graph, stream)
        hardware.copy_out(back, two.address, stream)
        hardware.synchronize(stream)
        assert (back == value).all()
    hardware.release_graph(graph)


def test_a_broken_capture_leaves_the_stream_usable(gpu: GpuDevice) -> None:
    hardware, stream = gpu.gpu, gpu.gpu.stream
    memory, pinned = hardware.allocate(256), hardware.allocate_pinned(256)
    hardware.begin_capture(stream)
    hardware.copy_in(memory.address, pinned, stream)
    with pytest.raises(CaptureError):
        hardware.synchronize(stream)
    with pytest.raises(CaptureError):
        hardware.end_capture(stream)
    pinned[...] = 7
    hardware.copy_in(memory.address, pinned, stream)
    back = np.zeros(256, np.uint8)
    hardware.copy_out(back, memory.address, stream)
    hardware.synchronize(stream)
    assert (back == 7).all()


def test_memory_is_counted_and_given_back(gpu: GpuDevice) -> None:
    gc.collect()
    before = gpu.memory_stats().bytes_in_use
    held = gpu.put(np.zeros(1 << 20, np.float32))
    assert gpu.memory_stats().bytes_in_use >= before + (4 << 20)
    del held
    assert gpu.memory_stats().bytes_in_use == before


def test_memory_runs_out_with_names_and_computing_goes_on(gpu: GpuDevice) -> None:
    total = gpu.gpu.properties().total_bytes
    with laminar.device("gpu:0"):
        x = ops.ones((1024, 1024))
        with pytest.raises(ResourceExhaustedError, match=r"BroadcastTo|Zeros|Full|Fill|Tile|Mul"):
            ops.tile(x, (total // (4 << 20) + 1, 1)) * 2.0
        assert float(ops.sum(x).numpy()) == 1024 * 1024


def test_wrong_indices_are_told_when_something_is_read(gpu: GpuDevice) -> None:
    with laminar.device("gpu:0"):
        y = ops.take(np.arange(5.0), [7])
        with pytest.raises(InvalidArgumentError, match="index 7"):
            y.numpy()
        assert ops.take(np.arange(5.0), [3]).numpy().tolist() == [3.0]


def test_eager_code_waits_for_nothing_but_reading(gpu: GpuDevice) -> None:
    """A long row of operations is asked for before the first of them is done."""
    import time

    with laminar.device("gpu:0"):
        x: Any = ops.ones((4096, 4096))
        (x @ x).numpy()
        gpu.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            x = x @ x * 1e-4
        asked = time.perf_counter() - start
        gpu.synchronize()
        done = time.perf_counter() - start
    assert asked < done / 2, f"asking took {asked:.3f} s of {done:.3f} s"
