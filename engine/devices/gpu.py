"""A GPU as a device, through cupy or a library with cupy's face.

Small integers stay on the host: they are sizes and counts, which kernels need as Python numbers,
and reading each back from the GPU would make the host wait for all that the GPU has to do. An
operation whose inputs are all such values computes on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import numpy as np

from ..errors import ResourceExhaustedError
from ..ops.core.basic import const_op
from ..ops.core.registry import HOST, OpDef
from ..ops.state.variable import VariableStore
from .device import Device
from .memory import MemoryStats

_MOST_SIZES = 64  # the elements of an integer vector that is still taken for sizes


class GpuDevice(Device):
    """One GPU.

    Args:
        index: which one.
        cupy: the array library.
        limit_bytes: memory that it may hold.
    """

    device_type = "gpu"
    flops_per_second = 1e13
    bytes_per_second = 1e12
    launch_seconds = 5e-6

    def __init__(self, index: int, cupy: Any, *, limit_bytes: int | None = None) -> None:
        super().__init__(index, limit_bytes=limit_bytes)
        self.xp = cupy
        self._device = cupy.cuda.Device(index)
        with self._device:
            self._stream = cupy.cuda.Stream(non_blocking=True)
            self._pool = cupy.get_default_memory_pool()
            if limit_bytes is not None:
                self._pool.set_limit(size=limit_bytes)
        self._peak = 0
        self._count = 0

    @property
    def description(self) -> str:
        name = self.xp.cuda.runtime.getDeviceProperties(self.index)["name"]
        return name.decode() if isinstance(name, bytes) else str(name)

    # Memory

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.xp.ndarray)

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        if _stays(array):
            return array
        try:
            with self.running():
                return self._counted(self.xp.asarray(array))
        except MemoryError as cause:
            stats = self.memory_stats()
            raise ResourceExhaustedError(
                f"{self.name} is out of memory: {array.nbytes} bytes are needed, "
                f"{stats.bytes_in_use} are in use",
                remedy="use a smaller batch, or place a part of the model on another device",
            ) from cause

    def get(self, value: Any) -> np.ndarray[Any, Any]:
        if not self.holds(value):
            return np.asarray(value)
        with self.running():
            host: np.ndarray[Any, Any] = value.get()
        return host

    def receive(self, value: Any, source: Device) -> Any:
        if isinstance(source, GpuDevice) and source is not self and source.holds(value):
            source.synchronize()
            with self.running():
                return self._counted(self.xp.array(value))  # from one GPU to the other
        return super().receive(value, source)

    def adopt(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray):
            return value if _is_sizes(value) else self.put(value)
        return self._counted(value) if self.holds(value) else value

    def _counted(self, array: Any) -> Any:
        self._count += 1
        self._peak = max(self._peak, int(self._pool.used_bytes()))
        return array

    def memory_stats(self) -> MemoryStats:
        used = int(self._pool.used_bytes())
        self._peak = max(self._peak, used)
        return MemoryStats(used, self._peak, self.limit_bytes, self._count)

    def reset_peak(self) -> None:
        self._peak = int(self._pool.used_bytes())

    # Execution

    def bind(self, op: OpDef) -> Callable[..., Any]:
        if op.context_kernel is not None:
            return self._with_state(self._on_one_side(op.context_kernel))
        if op is const_op:
            return lambda value, dtype: self.put(value)
        run = super().bind(op)
        reference = op.reference_kernel if self.device_type not in op.kernels else None
        on_host = None if reference is None else self._adopting(partial(reference, HOST))
        fixed = len(op.input_names) - op.variadic
        # The extra inputs `*dims` of an op are sizes; all others it computes with.
        last = fixed if op.variadic and op.input_names[-1] == "dims" else None

        def call(*args: Any, **attrs: Any) -> Any:
            arrays = args[:last]
            if arrays and on_host is not None and all(map(_stays, arrays)):
                return on_host(*args, **attrs)
            return run(*map(self._taken, arrays), *args[len(arrays) :], **attrs)

        return call

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
        blocks = ExitStack()
        blocks.enter_context(self._device)
        blocks.enter_context(self._stream)
        return blocks

    def synchronize(self) -> None:
        self._stream.synchronize()


def _stays(value: Any) -> bool:
    """Whether a host value is a size or a count, which the GPU's operations take from the host."""
    return isinstance(value, np.ndarray) and (
        value.dtype == object or (value.dtype.kind in "iu" and _is_sizes(value))
    )


def _is_sizes(value: np.ndarray[Any, Any]) -> bool:
    return value.dtype.kind in "iu" and value.ndim <= 1 and value.size <= _MOST_SIZES
