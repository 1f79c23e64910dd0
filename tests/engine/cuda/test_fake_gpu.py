"""The fake GPU enforces the rules that its users are tested by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from laminar.engine.cuda.interface import CaptureError, GpuFaultError, OutOfGpuMemoryError
from laminar.engine.cuda_program import Dims, Kernel
from laminar.engine.graph import Array

from .fake_gpu import FakeGpu, array_at


def double(grid: Dims, block: Dims, shared: int, arguments: Sequence[int]) -> None:
    (address,) = arguments
    array_at(address, [4], "float32")[...] *= 2


@pytest.fixture
def gpu() -> FakeGpu:
    return FakeGpu(kernels={"double": double})


_kept: list[Any] = []  # blocks, which go with their last reference
X = np.arange(1, 5, dtype=np.float32)


def filled(gpu: FakeGpu) -> int:
    block = gpu.allocate(16)
    _kept.append(block)
    gpu.copy_in(block.address, X, gpu.stream)
    return block.address


def read(gpu: FakeGpu, address: int) -> Array:
    host = np.zeros(4, np.float32)
    gpu.copy_out(host, address, gpu.stream)
    return host


def launch(gpu: FakeGpu, address: int, stream: int | None = None) -> None:
    function = gpu.load([Kernel("double", "")], {})["double"]
    gpu.launch(function, (1, 1, 1), (4, 1, 1), 0, [address], stream or gpu.stream)


def test_memory_is_undefined_and_freed_memory_is_gone(gpu: FakeGpu) -> None:
    block = gpu.allocate(16)
    assert np.isnan(read(gpu, block.address)).all()
    address = block.address
    assert gpu.used_bytes() == 256
    del block
    assert gpu.used_bytes() == 0
    with pytest.raises(GpuFaultError, match="illegal memory access"):
        read(gpu, address)
    with pytest.raises(GpuFaultError):  # and from now on
        gpu.allocate(1)


def test_room_ends_at_the_limit_and_where_a_test_says(gpu: FakeGpu) -> None:
    gpu.set_limit(512)
    one = gpu.allocate(300)
    with pytest.raises(OutOfGpuMemoryError, match="1 bytes are needed, 512 of 512"):
        gpu.allocate(1)
    del one
    gpu.allocate(512)
    second = FakeGpu(fail_allocation=1)
    kept = second.allocate(1)
    with pytest.raises(OutOfGpuMemoryError):
        second.allocate(1)
    assert kept.address % 256 == 0


def test_nothing_runs_before_somebody_waits(gpu: FakeGpu) -> None:
    address = filled(gpu)
    launch(gpu, address)
    pinned = gpu.allocate_pinned(16).view(np.float32)
    gpu.copy_out(pinned, address, gpu.stream)
    assert np.isnan(pinned).all()
    gpu.synchronize(gpu.stream)
    np.testing.assert_array_equal(pinned, 2 * X)


def test_pinned_memory_is_read_late_and_other_memory_at_once(gpu: FakeGpu) -> None:
    block = gpu.allocate(16)
    pinned = gpu.allocate_pinned(16).view(np.float32)
    pinned[...] = X
    gpu.copy_in(block.address, pinned, gpu.stream)
    pinned[...] = 7
    assert read(gpu, block.address).tolist() == [7] * 4
    host = X.copy()
    gpu.copy_in(block.address, host, gpu.stream)
    host[...] = 7
    np.testing.assert_array_equal(read(gpu, block.address), X)


def test_streams_are_ordered_by_events_alone(gpu: FakeGpu) -> None:
    address, other = filled(gpu), gpu.make_stream()
    gpu.copy(address, address, 16, gpu.stream)
    with pytest.raises(AssertionError, match="a race: copy_out on stream 2 and copy on stream 1"):
        gpu.copy_out(gpu.allocate_pinned(16), address, other)
    event = gpu.make_event()
    gpu.record(event, gpu.stream)
    gpu.wait(other, event)
    pinned = gpu.allocate_pinned(16).view(np.float32)
    gpu.copy_out(pinned, address, other)
    gpu.synchronize(other)
    np.testing.assert_array_equal(pinned, X)


def test_a_graph_runs_again_at_the_same_addresses(gpu: FakeGpu) -> None:
    address = filled(gpu)
    function = gpu.load([Kernel("double", "")], {})["double"]
    gpu.begin_capture(gpu.stream)
    gpu.launch(function, (1, 1, 1), (4, 1, 1), 0, [address], gpu.stream)
    graph = gpu.end_capture(gpu.stream)
    np.testing.assert_array_equal(read(gpu, address), X)  # nothing has run
    for _ in range(3):
        gpu.launch_graph(graph, gpu.stream)
    np.testing.assert_array_equal(read(gpu, address), 8 * X)


FORBIDDEN = [
    pytest.param(lambda gpu, address: gpu.allocate(1), id="allocate"),
    pytest.param(lambda gpu, address: gpu.synchronize(gpu.stream), id="synchronize"),
    pytest.param(lambda gpu, address: read(gpu, address), id="read"),
    pytest.param(lambda gpu, address: gpu.copy_in(address, X, gpu.stream), id="pageable"),
    pytest.param(lambda gpu, address: gpu.load([], {}), id="load"),
]


@pytest.mark.parametrize("forbidden", FORBIDDEN)
def test_a_capture_is_broken_by(forbidden: Callable[[FakeGpu, int], Any], gpu: FakeGpu) -> None:
    address = filled(gpu)
    gpu.begin_capture(gpu.stream)
    with pytest.raises(CaptureError, match="not allowed while a graph is captured"):
        forbidden(gpu, address)
    with pytest.raises(CaptureError, match="broken off"):
        gpu.end_capture(gpu.stream)
    np.testing.assert_array_equal(read(gpu, address), X)  # the stream is usable


def test_a_stream_joins_a_capture_and_must_come_back(gpu: FakeGpu) -> None:
    address, other = filled(gpu), gpu.make_stream()
    fork, join = gpu.make_event(), gpu.make_event()
    for comes_back in (True, False):
        gpu.begin_capture(gpu.stream)
        gpu.record(fork, gpu.stream)
        gpu.wait(other, fork)
        gpu.copy(address, address, 16, other)
        if comes_back:
            gpu.record(join, other)
            gpu.wait(gpu.stream, join)
            gpu.release_graph(gpu.end_capture(gpu.stream))
        else:
            with pytest.raises(CaptureError, match="have not joined"):
                gpu.end_capture(gpu.stream)


def test_a_fault_is_told_late_and_for_good() -> None:
    def wrong(*_: object) -> None:
        raise ValueError("index 5 is out of bounds")

    gpu = FakeGpu(kernels={"double": wrong})
    address = filled(gpu)
    launch(gpu, address)
    gpu.make_event()  # not yet
    with pytest.raises(GpuFaultError, match="double: index 5"):
        gpu.synchronize(gpu.stream)
    with pytest.raises(GpuFaultError, match="double: index 5"):
        gpu.make_event()
