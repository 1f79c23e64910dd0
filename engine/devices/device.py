"""A device: owns memory, and runs kernels on what lies in it.

All that the runtime asks of a device is here. A device type is a class derived from `Device` with
its array library, its copies and its memory statistics; see `register_device`.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np

from ..graph import DeviceSpec, Tensor, TensorSpec, string
from ..ops.core.cluster import Compiler
from ..ops.core.op_def import OpDef
from ..ops.state.variable import VariableStore
from .factories import compiler_of
from .memory import MemoryStats


class Device:
    """Where operations run. Abstract: each device type derives from it.

    Args:
        index: which one of its type.
        limit_bytes: memory that it may hold, None for no limit of its own.

    Attributes:
        device_type: the type's name, in lower case.
        spec: its name in parts; `name` is the whole of it.
        incarnation: a random number other than 0, new whenever the device is made.
        xp: the array library of its arrays. Those that are not NumPy's have `get()`, which copies
            them to the host, as cupy's do.
        brings_inputs: whether its compiled clusters take host arrays, which they copy themselves.
        is_host: whether its memory is the host's, so that the host's arrays need no copy there.
        flops_per_second, bytes_per_second, launch_seconds: rough rates, for cost estimates.

    Examples:
        >>> issubclass(engine.Device, object)
        True
    """

    device_type: ClassVar[str]
    xp: Any
    is_host = False
    brings_inputs = False
    flops_per_second = 2e10
    bytes_per_second = 1e10
    launch_seconds = 2e-6

    def __init__(self, index: int = 0, *, limit_bytes: int | None = None) -> None:
        self.index = index
        self.spec = DeviceSpec(job="localhost", device_type=self.device_type, device_index=index)
        self.name = self.spec.to_string()
        self.limit_bytes = limit_bytes
        self.incarnation = secrets.randbits(63) + 1

    def join_task(self, job: str, task: int) -> None:
        """Take the name of a device of a cluster's task; before it is used."""
        self.spec = dataclasses.replace(self.spec, job=job, task=task)
        self.name = self.spec.to_string()

    @property
    def description(self) -> str:
        """The hardware, in words."""
        return self.device_type

    @property
    def is_plain(self) -> bool:
        """Whether the host's own kernels run there as they are, and nobody counts its memory."""
        return False

    @property
    def is_client(self) -> bool:
        """Whether it is where values come from and go to, and what names no device computes."""
        return False

    @property
    def compiler(self) -> Compiler | None:
        """Who compiles its clusters, loaded on first use; None: they run op by op."""
        return compiler_of(self.device_type)

    # Memory

    def holds(self, value: Any) -> bool:
        """Whether `value` is an array that lies in this device's memory."""
        raise NotImplementedError

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        """A host array copied in.

        Raises:
            ResourceExhaustedError: there is no room.
        """
        raise NotImplementedError

    def get(self, value: Any) -> np.ndarray[Any, Any]:
        """An array of this device copied out to the host, when what makes it is done."""
        raise NotImplementedError

    def receive(self, value: Any, source: Device) -> Any:
        """A value that another device of this process holds, as one of this device."""
        if source is self or not hasattr(value, "dtype"):
            return value
        return self.put(source.get(value))

    def adopt(self, value: Any) -> Any:
        """What a kernel made or state held, as a value of this device, and counted as such."""
        raise NotImplementedError

    def reserve(self) -> None:
        """Take memory now, up to the limit, instead of as it is needed, where that can be done."""

    def memory_stats(self) -> MemoryStats:
        """What it holds now."""
        raise NotImplementedError

    def reset_peak(self) -> None:
        """Let the peak of the memory statistics start anew."""
        raise NotImplementedError

    # Execution

    def has_kernel(self, op: OpDef, inputs: Sequence[TensorSpec] = ()) -> bool:
        """Whether it can run an op on such inputs (see `refuses` for those that it cannot hold)."""
        return (
            op.kernels.serves(self.device_type, inputs)
            or op.reference_kernel is not None
            or op.context_kernel is not None
        )

    def refuses(self, tensor: Tensor | TensorSpec) -> bool:
        """Whether a tensor cannot lie in its memory."""
        return tensor.dtype == string

    def bind(self, op: OpDef) -> Callable[..., Any]:
        """The op's kernel for this device; what it gives is adopted.

        Raises:
            UnimplementedError: there is none.
        """
        if op.context_kernel is not None:
            return self._with_state(op.context_kernel)
        return self._adopting(op.bind(self.device_type, self.xp))

    def _adopting(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        adopt = self.adopt

        def run(*args: Any, **attrs: Any) -> Any:
            result = kernel(*args, **attrs)
            if isinstance(result, tuple | list):
                return [adopt(y) for y in result]
            return adopt(result)

        return run

    def _with_state(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """A kernel that works on variables, after their values have come to this device."""
        inner = self._adopting(kernel)

        def run(context: Any, *args: Any, **attrs: Any) -> Any:
            for store in args:
                if isinstance(store, VariableStore) and not self.holds(store.value):
                    with store.lock:
                        store.value = self.adopt(store.value)
            return inner(context, *args, **attrs)

        return run

    def running(self) -> AbstractContextManager[Any]:
        """A block in which this thread works for the device."""
        return nullcontext()

    def settle(self) -> None:
        """Raise the error of a check that kernels asked for and nobody has looked at.

        Waits for the device only where there are such checks.
        """

    def synchronize(self) -> None:
        """Wait until all that was started on it is done."""

    def __repr__(self) -> str:
        return f"<device {self.name}>"
