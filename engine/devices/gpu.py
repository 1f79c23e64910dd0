"""A GPU as a device: reference kernels on its array library, compiled clusters as CUDA graphs.

Small integers stay on the host: they are sizes and counts, which kernels need as Python numbers,
and reading each back from the GPU would make the host wait for all that the GPU has to do. An
operation whose inputs are all such values computes on the host.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..cuda.executor import Lane, ProgramExecutor
from ..cuda.interface import Gpu, OutOfGpuMemoryError
from ..cuda.libraries import plan_call
from ..cuda_program import CudaProgram, LoadedProgram
from ..ops.core import late_checks
from ..ops.core.basic import const_op
from ..ops.core.cluster import cluster_op
from ..ops.core.kernels import HOST
from ..ops.core.op_def import OpDef
from ..ops.state.variable import VariableStore
from .device import Device
from .live_arrays import LiveArrays
from .memory import MemoryStats

_MOST_SIZES = 64  # the elements of an integer vector that is still taken for sizes


class GpuDevice(Device):
    """One GPU.

    Args:
        gpu: the hardware.
        limit_bytes: memory that it may hold.
    """

    device_type = "gpu"
    brings_inputs = True
    flops_per_second = 1e13
    bytes_per_second = 1e12
    launch_seconds = 5e-6

    def __init__(self, gpu: Gpu, *, limit_bytes: int | None = None) -> None:
        super().__init__(gpu.index, limit_bytes=limit_bytes)
        self.xp = gpu.xp
        self.gpu = gpu
        if limit_bytes is not None:
            gpu.set_limit(limit_bytes)
        self._live = LiveArrays()
        self._peak = 0
        self._count = 0

    @property
    def description(self) -> str:
        found = self.gpu.properties()
        major, minor = found.capability
        return f"{found.name}, compute capability {major}.{minor}"

    # Memory

    def reserve(self) -> None:
        """Take the memory up to the limit, or all that is free, now instead of as it is needed."""
        free = self.gpu.free_bytes()
        most = free if self.limit_bytes is None else min(self.limit_bytes, free)
        self.gpu.reserve(most - self.gpu.used_bytes())

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.xp.ndarray)

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        if _stays(array):
            return array
        try:
            with self.running():
                return self._counted(self.xp.asarray(array), "a copy from the host")
        except MemoryError as cause:
            raise self._out_of_memory(f"{array.nbytes} bytes are needed") from cause

    def get(self, value: Any) -> np.ndarray[Any, Any]:
        if not self.holds(value):
            return np.asarray(value)
        with self.running():
            self.gpu.synchronize(self.gpu.stream)  # tells what has failed in laminar's words
            host: np.ndarray[Any, Any] = value.get()
            self.settle()  # what was asked before is done
        return host

    def receive(self, value: Any, source: Device) -> Any:
        if isinstance(source, GpuDevice) and source is not self and source.holds(value):
            return self._copied_from(source, value)
        return super().receive(value, source)

    def _copied_from(self, source: GpuDevice, value: Any) -> Any:
        """An array of another GPU, copied over when it is done there; the host does not wait."""
        ours, theirs = self.gpu, source.gpu
        with source.running():
            value = source.xp.ascontiguousarray(value)
            done, copied = self._events_with(source)
            theirs.record(done, theirs.stream)
        with self.running():
            made = self.xp.empty(value.shape, value.dtype)
            ours.wait(ours.stream, done)
            to, from_ = ours.address_of(made), theirs.address_of(value)
            ours.copy_from_peer(to, from_, theirs.index, value.nbytes, ours.stream)
            ours.record(copied, ours.stream)
        theirs.wait(theirs.stream, copied)  # before the memory there is used for something else
        return self._counted(made, f"a copy from {source.name}")

    @functools.cache  # noqa: B019  # devices live as long as the process
    def _events_with(self, source: GpuDevice) -> tuple[int, int]:
        self.gpu.reach(source.index)
        return source.gpu.make_event(), self.gpu.make_event()

    def adopt(self, value: Any) -> Any:
        return self._adopted("", value)

    def _adopted(self, label: str, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray):
            return value if _is_sizes(value) else self.put(value)
        return self._counted(value, label) if self.holds(value) else value

    def _counted(self, array: Any, label: str) -> Any:
        self._count += 1
        self._live.add(array, label)
        self._peak = max(self._peak, self.gpu.used_bytes())
        return array

    def _out_of_memory(self, what: str) -> OutOfGpuMemoryError:
        stats = self.memory_stats()
        limit = "" if stats.limit_bytes is None else f" of {stats.limit_bytes}"
        largest = self._live.largest()
        return OutOfGpuMemoryError(
            f"{self.name} is out of memory: {what}, {stats.bytes_in_use}{limit} are in use"
            + (f"; the largest tensors are {', '.join(largest)}" if largest else ""),
            remedy="use a smaller batch, or place a part of the model on another device",
        )

    def memory_stats(self) -> MemoryStats:
        used = self.gpu.used_bytes()
        self._peak = max(self._peak, used)
        return MemoryStats(used, self._peak, self.limit_bytes, self._count)

    def reset_peak(self) -> None:
        self._peak = self.gpu.used_bytes()

    # Execution

    def bind(self, op: OpDef) -> Callable[..., Any]:
        if op is cluster_op and op.context_kernel is not None:
            return op.context_kernel  # programs bring what lies on the host, as its kernels do
        if op.context_kernel is not None:
            return self._with_state(self._on_one_side(op.context_kernel))
        if op is const_op:
            return lambda value, dtype: self.put(value)
        run = self._labelled(op, op.bind(self.device_type, self.xp))
        reference = op.reference_kernel if self.device_type not in op.kernels else None
        on_host = None if reference is None else self._adopting(partial(reference, HOST))
        fixed = len(op.input_names) - op.variadic
        # The extra inputs `*dims` of an op are sizes; all others it computes with.
        last = fixed if op.variadic and op.input_names[-1] == "dims" else None
        sizes = _Sizes.of(op)

        def call(*args: Any, **attrs: Any) -> Any:
            arrays = args[:last]
            if arrays and on_host is not None and all(map(_stays, arrays)):
                return on_host(*args, **attrs)
            given = [x if sizes.has(i, x) else self._taken(x) for i, x in enumerate(arrays)]
            return run(*given, *args[len(arrays) :], **attrs)

        return call

    def _labelled(self, op: OpDef, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """A kernel of arrays of the GPU, whose results are known by the name of its op."""
        adopt = partial(self._adopted, op.type)

        def run(*args: Any, **attrs: Any) -> Any:
            try:
                result = kernel(*args, **attrs)
            except MemoryError as cause:
                raise self._out_of_memory(f"{op.type} finds no room") from cause
            if isinstance(result, tuple | list):
                return [adopt(y) for y in result]
            return adopt(result)

        return run

    def _on_one_side(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """An update whose variable and operands lie on the host, or all on the GPU."""

        def run(context: Any, *args: Any, **attrs: Any) -> Any:
            stores = [a for a in args if isinstance(a, VariableStore)]
            if any(self.holds(a.value if isinstance(a, VariableStore) else a) for a in args):
                for store in stores:
                    with store.lock:
                        store.value = self._taken(store.value)
                args = tuple(map(self._taken, args))
            return kernel(context, *args, **attrs)

        return run

    def _taken(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype != object:
            return self.xp.asarray(value)
        return value

    def running(self) -> AbstractContextManager[Any]:
        return self.gpu

    def settle(self) -> None:
        late_checks.settle(self.xp)

    def synchronize(self) -> None:
        self.gpu.synchronize(self.gpu.stream)
        with self.running():
            self.settle()

    # Compiled clusters

    @property
    def architecture(self) -> str:
        """What machine code is for, as "sm_90"."""
        return self.gpu.architecture

    def load_program(self, program: CudaProgram, images: Mapping[str, bytes]) -> LoadedProgram:
        """Make a program ready to run (see `ProgramDevice`)."""
        try:
            with self.running():
                executor = ProgramExecutor(
                    self._lane, program, images, partial(plan_call, self.gpu)
                )
        except OutOfGpuMemoryError as cause:
            raise self._out_of_memory(cause.message) from cause
        return _Program(self, executor)

    @functools.cached_property
    def _lane(self) -> Lane:
        return Lane(self.gpu)


class _Program:
    """A program whose results the device counts."""

    def __init__(self, device: GpuDevice, executor: ProgramExecutor) -> None:
        self._device, self.executor = device, executor

    def run(self, inputs: Any, variables: Any) -> list[Any] | None:
        """See `LoadedProgram`."""
        device = self._device
        try:
            with device.running():
                found = self.executor.run(inputs, variables)
        except MemoryError as cause:
            raise device._out_of_memory(str(cause)) from cause
        return None if found is None else [device._counted(y, "a compiled step") for y in found]


_ON_HOST = frozenset({"shape", "state"})  # inputs that kernels need as Python numbers


class _Sizes(NamedTuple):
    """Which inputs of an op kernels take from the host, if they lie there.

    Attributes:
        places: the numbers of shapes, and of states of random generators.
        scalars: of which number on scalars are sizes.
    """

    places: frozenset[int]
    scalars: int | None

    @classmethod
    def of(cls, op: OpDef) -> _Sizes:
        """Those of an op."""
        names = op.input_names
        places = frozenset(i for i, name in enumerate(names) if name in _ON_HOST)
        return cls(places, len(names) - 1 if op.traits.size_inputs else None)

    def has(self, i: int, value: Any) -> bool:
        """Whether input i is one."""
        return i in self.places or (
            self.scalars is not None and i >= self.scalars and not value.ndim
        )


def _stays(value: Any) -> bool:
    """Whether a host value is a size or a count, which the GPU's operations take from the host."""
    return isinstance(value, np.ndarray) and (
        value.dtype == object or (value.dtype.kind in "iu" and _is_sizes(value))
    )


def _is_sizes(value: np.ndarray[Any, Any]) -> bool:
    return value.dtype.kind in "iu" and value.ndim <= 1 and value.size <= _MOST_SIZES
