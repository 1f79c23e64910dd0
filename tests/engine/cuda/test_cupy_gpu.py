"""Calls of cupy's bindings: a runtime and a driver of CUDA that work on the host's memory."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laminar.engine.cuda.cupy_gpu import CupyGpu
from laminar.engine.cuda.interface import CaptureError, GpuFaultError, OutOfGpuMemoryError
from laminar.engine.cuda_program import Kernel
from laminar.engine.errors import UnavailableError


class CudaError(RuntimeError):
    """As cupy's, which have the code of CUDA."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError{status}")
        self.status = status


class Block:
    """A device, a stream: what one can be inside of."""

    ptr = 7

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: object) -> None: ...


class Calls:
    """Notes what is called, and moves memory."""

    streamNonBlocking = 1  # noqa: N815  # CUDA's name
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails: dict[str, int] = {}
        self.arguments: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls.append((name, *arguments))
            if name in self.fails:
                raise CudaError(self.fails[name])
            if name in ("memcpyAsync", "memcpyPeerAsync"):
                source, size = arguments[1:3] if name == "memcpyAsync" else arguments[2:5:2]
                ctypes.memmove(arguments[0], source, size)
            if name == "launchKernel":
                places = (ctypes.c_void_p * 3).from_address(arguments[-2])
                self.arguments = [ctypes.c_int64.from_address(p).value for p in places if p]
            return len(self.calls)

        return call


@pytest.fixture
def cuda() -> Calls:
    return Calls()


@pytest.fixture
def gpu(cuda: Calls) -> CupyGpu:
    kept = []

    def alloc(size: int) -> Any:
        if size > 1000:
            raise MemoryError("Out of memory allocating")
        kept.append(np.zeros(size, np.uint8))
        return SimpleNamespace(ptr=kept[-1].ctypes.data)

    module = SimpleNamespace(
        runtime=cuda,
        driver=cuda,
        Device=Block,
        Stream=Block,
        alloc=alloc,
        alloc_pinned_memory=lambda size: bytearray(size),
    )
    return CupyGpu(0, SimpleNamespace(cuda=module))


def test_copies(gpu: CupyGpu, cuda: Calls) -> None:
    one, two = gpu.allocate(16), gpu.allocate(16)
    x = np.arange(4, dtype=np.float32)
    gpu.copy_in(one.address, x, gpu.stream)
    gpu.copy(two.address, one.address, 16, gpu.stream)
    back = gpu.allocate_pinned(16).view(np.float32)
    gpu.copy_out(back, two.address, 9)
    np.testing.assert_array_equal(back, x)
    copies = [call for call in cuda.calls if call[0] == "memcpyAsync"]
    assert [(call[3], call[4], call[5]) for call in copies] == [(16, 1, 7), (16, 3, 7), (16, 2, 9)]
    assert ("setDevice", 0) in cuda.calls


def test_arguments_of_a_kernel(gpu: CupyGpu, cuda: Calls) -> None:
    functions = gpu.load([Kernel("k", "")], {"k": b"machine code"})
    assert ("moduleLoadData", b"machine code") in cuda.calls
    gpu.launch(functions["k"], (2, 3, 4), (32, 1, 1), 0, [1 << 40, -5, 7], gpu.stream)
    name, function, *dims = cuda.calls[-1]
    assert (name, function) == ("launchKernel", functions["k"])
    assert dims[:8] == [2, 3, 4, 32, 1, 1, 0, 7]
    assert dims[-1] == 0
    assert cuda.arguments == [1 << 40, -5, 7]
    gpu.launch(functions["k"], (1, 1, 1), (32, 1, 1), 64 << 10, [1, 2, 3], gpu.stream)
    assert ("funcSetAttribute", functions["k"], 8, 64 << 10) in cuda.calls


def test_a_graph(gpu: CupyGpu, cuda: Calls) -> None:
    gpu.begin_capture(7)
    graph = gpu.end_capture(7)
    gpu.launch_graph(graph, 7)
    gpu.release_graph(graph)
    names = [call[0] for call in cuda.calls if call[0] != "setDevice"]
    assert names == [
        "streamBeginCapture",
        "streamEndCapture",
        "graphInstantiate",
        "graphDestroy",
        "graphUpload",
        "graphLaunch",
        "graphExecDestroy",
    ]
    assert ("streamBeginCapture", 7, 1) in cuda.calls  # of this thread alone


ERRORS = [
    pytest.param("streamSynchronize", 700, GpuFaultError, "CUDA_LAUNCH_BLOCKING", id="fault"),
    pytest.param("streamSynchronize", 900, CaptureError, "synchronize", id="capture"),
    pytest.param("streamSynchronize", 2, OutOfGpuMemoryError, "synchronize", id="memory"),
    pytest.param("streamSynchronize", 222, UnavailableError, "update the driver", id="no-code"),
    pytest.param("streamSynchronize", 999, CudaError, "cudaError999", id="others"),
]


@pytest.mark.parametrize(("name", "status", "kind", "message"), ERRORS)
def test_errors(
    name: str, status: int, kind: type[Exception], message: str, gpu: CupyGpu, cuda: Calls
) -> None:
    cuda.fails[name] = status
    with pytest.raises(kind, match=message):
        gpu.synchronize(gpu.stream)


def test_memory_runs_out(gpu: CupyGpu) -> None:
    with pytest.raises(OutOfGpuMemoryError, match="Out of memory allocating"):
        gpu.allocate(2000)


def test_peers(gpu: CupyGpu, cuda: Calls) -> None:
    assert gpu.reach(1)
    x, y = np.arange(4.0), np.zeros(4)
    gpu.copy_from_peer(y.ctypes.data, x.ctypes.data, 1, 32, 7)
    assert y.tolist() == [0, 1, 2, 3]
    cuda.fails["deviceEnablePeerAccess"] = 704
    assert gpu.reach(1)  # it could already
    cuda.fails["deviceEnablePeerAccess"] = 217
    assert not gpu.reach(1)
