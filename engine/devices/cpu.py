"""The CPU as a device, or as several, each with its share of the cores."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..graph import Tensor, TensorSpec
from ..ops.core.cluster import thread_share
from ..ops.core.kernels import HOST, HOST_TYPE
from ..ops.core.op_def import OpDef
from ..ops.state.variable import fetched
from .device import Device
from .memory import Account, MemoryStats


class CpuDevice(Device):
    """A share of the host's cores, with its own account of the host's memory.

    Arrays are NumPy's and never written to, so that CPU devices pass them on without copying.

    Args:
        index: which one.
        num_threads: how many threads work for it, by default as many as there are cores; with
            fewer, native code that runs on it has a pool of so many threads of its own.
        limit_bytes: memory that it may hold.
    """

    device_type = HOST_TYPE
    xp = HOST
    is_host = True

    def __init__(
        self, index: int = 0, *, num_threads: int | None = None, limit_bytes: int | None = None
    ) -> None:
        super().__init__(index, limit_bytes=limit_bytes)
        self.num_threads = num_threads or num_cores()
        self._account = Account(self.name, limit_bytes)

    @property
    def description(self) -> str:
        machine = platform.machine() or "cpu"
        return f"{machine}, {self.num_threads} thread{'s' if self.num_threads > 1 else ''}"

    @property
    def is_plain(self) -> bool:
        return self.device_type == HOST_TYPE and self.limit_bytes is None

    @property
    def is_client(self) -> bool:
        return self.device_type == HOST_TYPE and self.index == 0

    def holds(self, value: Any) -> bool:
        return isinstance(value, np.ndarray)

    def has_kernel(self, op: OpDef, inputs: Sequence[TensorSpec] = ()) -> bool:
        return op.async_kernel is not None or super().has_kernel(
            op, inputs
        )  # they work on the host

    def refuses(self, tensor: Tensor | TensorSpec) -> bool:
        return False

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        # A view: it is counted here for as long as this device holds it, whoever owns the memory.
        mine = array.view()
        self._account.add_owner(mine)
        return mine

    def get(self, value: Any) -> np.ndarray[Any, Any]:
        return np.asarray(value)

    def adopt(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            self._account.add(value)
            return value
        found = fetched(value)  # a variable's value may lie on a GPU
        return value if found is value else self.put(found)

    def running(self) -> AbstractContextManager[Any]:
        return _sharing(self) if self.num_threads < num_cores() else nullcontext()

    def memory_stats(self) -> MemoryStats:
        return self._account.stats()

    def reset_peak(self) -> None:
        self._account.reset_peak()


@contextmanager
def _sharing(device: CpuDevice) -> Iterator[None]:
    before = thread_share.owner, thread_share.count
    thread_share.owner = f"{device.name}, {device.num_threads} threads"
    thread_share.count = device.num_threads
    try:
        yield
    finally:
        thread_share.owner, thread_share.count = before


def num_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
