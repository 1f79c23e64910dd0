"""A GPU through cupy's bindings of CUDA. No other file names them."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..cuda_program import Dims, Kernel
from ..errors import UnavailableError
from ..graph import Array
from .interface import CaptureError, GpuFaultError, GpuProperties, OutOfGpuMemoryError

_F = TypeVar("_F", bound=Callable[..., Any])

# Error codes, the same in the driver's and the runtime's interface.
_OUT_OF_MEMORY = 2
_NO_CODE = {209, 218, 222}  # no code for this GPU, invalid PTX, PTX of a newer toolkit
_FAULTS = {*range(700, 703), 710, *range(714, 720)}  # after which the context refuses all work
_CAPTURE = range(900, 909)
_ALREADY_ENABLED = 704  # access to a peer

# Flags and enumerators of CUDA's headers.
_NO_TIMING = 2  # cudaEventDisableTiming
_HOST_TO_DEVICE, _DEVICE_TO_HOST, _DEVICE_TO_DEVICE = 1, 2, 3  # cudaMemcpyKind
_THIS_THREAD = 1  # cudaStreamCaptureModeThreadLocal: what others allocate breaks no capture
_USUAL_SHARED_BYTES = 48 << 10  # more than that a kernel must ask for


def _checked(call: _F) -> _F:
    """CUDA's errors as laminar's."""

    @functools.wraps(call)
    def run(self: CupyGpu, *args: Any) -> Any:
        try:
            return call(self, *args)
        except RuntimeError as error:
            raise _translated(error, call.__name__, self.index) from error
        except MemoryError as error:
            raise OutOfGpuMemoryError(str(error)) from error

    return run  # type: ignore[return-value]  # the same signature


def _translated(error: Exception, what: str, index: int) -> Exception:
    status = getattr(error, "status", None)
    if not isinstance(status, int):
        return error
    if status == _OUT_OF_MEMORY:
        return OutOfGpuMemoryError(f"{what}: {error}")
    if status in _FAULTS:
        return GpuFaultError(
            f"a kernel on gpu:{index} has failed, which CUDA tells only now ({what}): {error}",
            remedy="this process can compute on that GPU no more: start it again; with "
            "CUDA_LAUNCH_BLOCKING=1 the error comes from the operation that it belongs to",
        )
    if status in _CAPTURE:
        return CaptureError(f"{what}: {error}")
    if status in _NO_CODE:
        return UnavailableError(
            f"{what}: the driver cannot run this machine code on gpu:{index}: {error}",
            remedy="update the driver, or install an nvidia-cuda-nvrtc of the driver's CUDA",
        )
    return error


class _Block:
    """Memory of cupy's pool."""

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer
        self.address = int(pointer.ptr)


class CupyGpu:
    """See `Gpu` in interface.py."""

    def __init__(self, index: int, cupy: Any) -> None:
        self.index = index
        self.xp = cupy
        self._runtime, self._driver = cupy.cuda.runtime, cupy.cuda.driver
        self._device = cupy.cuda.Device(index)
        with self._device:
            self._main = cupy.cuda.Stream(non_blocking=True)
        self.stream = int(self._main.ptr)
        self._modules: list[int] = []

    @functools.cached_property
    def architecture(self) -> str:
        """What NVRTC is told."""
        major, minor = self.properties().capability
        return f"sm_{major}{minor}"

    @_checked
    def properties(self) -> GpuProperties:
        found = self._runtime.getDeviceProperties(self.index)
        name = found["name"]
        return GpuProperties(
            name.decode() if isinstance(name, bytes) else str(name),
            (int(found["major"]), int(found["minor"])),
            int(found["totalGlobalMem"]),
            int(self._runtime.driverGetVersion()),
        )

    def __enter__(self) -> CupyGpu:
        """From here on the thread's arrays are on this GPU, and computed on its stream."""
        self._device.__enter__()
        self._main.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._main.__exit__(*error)
        self._device.__exit__(*error)

    # Memory

    @_checked
    def allocate(self, num_bytes: int) -> _Block:
        with self:
            return _Block(self.xp.cuda.alloc(max(num_bytes, 1)))

    @_checked
    def allocate_pinned(self, num_bytes: int) -> Array:
        memory = self.xp.cuda.alloc_pinned_memory(max(num_bytes, 1))
        return np.frombuffer(memory, np.uint8, num_bytes)

    def used_bytes(self) -> int:
        with self._device:
            return int(self.xp.get_default_memory_pool().used_bytes())

    def free_bytes(self) -> int:
        with self._device:
            return int(self._runtime.memGetInfo()[0])

    def set_limit(self, num_bytes: int) -> None:
        with self._device:
            self.xp.get_default_memory_pool().set_limit(size=num_bytes)

    @_checked
    def reserve(self, num_bytes: int) -> None:
        with self:
            self.xp.cuda.alloc(num_bytes)  # given back to the pool, which keeps and splits it

    def address_of(self, array: Any) -> int:
        return int(array.data.ptr)

    # Copies

    @_checked
    def copy_in(self, address: int, host: Array, stream: int) -> None:
        self._use()
        source = host.ctypes.data
        self._runtime.memcpyAsync(address, source, host.nbytes, _HOST_TO_DEVICE, stream)

    @_checked
    def copy_out(self, host: Array, address: int, stream: int) -> None:
        self._use()
        target = host.ctypes.data
        self._runtime.memcpyAsync(target, address, host.nbytes, _DEVICE_TO_HOST, stream)

    @_checked
    def copy(self, target: int, source: int, num_bytes: int, stream: int) -> None:
        self._use()
        self._runtime.memcpyAsync(target, source, num_bytes, _DEVICE_TO_DEVICE, stream)

    @_checked
    def copy_from_peer(
        self, target: int, source: int, source_index: int, num_bytes: int, stream: int
    ) -> None:
        self._use()
        self._runtime.memcpyPeerAsync(target, self.index, source, source_index, num_bytes, stream)

    # Order

    @_checked
    def make_stream(self) -> int:
        self._use()
        return int(self._runtime.streamCreateWithFlags(self._runtime.streamNonBlocking))

    @_checked
    def make_event(self) -> int:
        self._use()
        return int(self._runtime.eventCreateWithFlags(_NO_TIMING))

    @_checked
    def record(self, event: int, stream: int) -> None:
        self._use()
        self._runtime.eventRecord(event, stream)

    @_checked
    def wait(self, stream: int, event: int) -> None:
        self._use()
        self._runtime.streamWaitEvent(stream, event)

    @_checked
    def synchronize_event(self, event: int) -> None:
        self._runtime.eventSynchronize(event)

    @_checked
    def synchronize(self, stream: int) -> None:
        self._use()
        self._runtime.streamSynchronize(stream)

    def _use(self) -> None:
        """The device of this thread: a stream belongs to one."""
        self._runtime.setDevice(self.index)

    # Code

    @_checked
    def load(self, kernels: Sequence[Kernel], images: Mapping[str, bytes]) -> dict[str, int]:
        self._use()
        found = {}
        for kernel in kernels:
            module = self._driver.moduleLoadData(images[kernel.name])
            self._modules.append(module)  # as long as the process: graphs may hold functions
            found[kernel.name] = int(self._driver.moduleGetFunction(module, kernel.name))
        return found

    @_checked
    def launch(
        self,
        function: int,
        grid: Dims,
        block: Dims,
        shared_bytes: int,
        arguments: Sequence[int],
        stream: int,
    ) -> None:
        self._use()
        if shared_bytes > _USUAL_SHARED_BYTES:
            driver = self._driver
            most = driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.funcSetAttribute(function, most, shared_bytes)
        n = len(arguments)
        values = (ctypes.c_int64 * n)(*arguments)  # CUDA copies them before the call returns
        first = ctypes.addressof(values)
        places = (ctypes.c_void_p * n)(*range(first, first + 8 * n, 8))
        self._driver.launchKernel(
            function, *grid, *block, shared_bytes, stream, ctypes.addressof(places), 0
        )

    # Graphs

    @_checked
    def begin_capture(self, stream: int) -> None:
        self._use()
        self._runtime.streamBeginCapture(stream, _THIS_THREAD)

    @_checked
    def end_capture(self, stream: int) -> int:
        self._use()
        graph = self._runtime.streamEndCapture(stream)
        try:
            made = int(self._runtime.graphInstantiate(graph))
        finally:
            self._runtime.graphDestroy(graph)
        self._runtime.graphUpload(made, stream)
        return made

    @_checked
    def launch_graph(self, graph: int, stream: int) -> None:
        self._use()
        self._runtime.graphLaunch(graph, stream)

    def release_graph(self, graph: int) -> None:
        self._runtime.graphExecDestroy(graph)

    # Several GPUs

    def reach(self, index: int) -> bool:
        runtime = self._runtime
        if not runtime.deviceCanAccessPeer(self.index, index):
            return False
        self._use()
        try:
            runtime.deviceEnablePeerAccess(index)
        except RuntimeError as error:
            return getattr(error, "status", None) == _ALREADY_ENABLED
        return True
