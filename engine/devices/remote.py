"""A device of another process, as those that place operations know it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import Tensor, TensorSpec
from ..ops.core.kernels import HOST_TYPE
from ..ops.core.op_def import OpDef
from .device import Device
from .gpu import GpuDevice
from .registry import DeviceAttributes


class RemoteDevice(Device):
    """A device of a task of a cluster: operations are placed on it; it runs them where it is.

    It is taken to have the kernels that this process has for its type: the tasks of a cluster run
    one version of laminar.

    Args:
        attributes: as its process describes it; the name is that of a device of a task.
        is_client: whether it is where values come from and go to.
    """

    def __init__(self, attributes: DeviceAttributes, *, is_client: bool = False) -> None:
        self.device_type = attributes.device_type  # type: ignore[misc]  # of each of its own
        super().__init__(limit_bytes=attributes.memory_limit_bytes)
        spec = self.spec.from_string(attributes.name)
        self.index = spec.device_index or 0
        self.spec, self.name = spec, attributes.name
        self.incarnation = attributes.incarnation
        self.is_host = self.device_type == HOST_TYPE
        self._description = attributes.description
        self._is_client = is_client
        if self.device_type == GpuDevice.device_type:
            self.flops_per_second = GpuDevice.flops_per_second
            self.bytes_per_second = GpuDevice.bytes_per_second
            self.launch_seconds = GpuDevice.launch_seconds

    @property
    def description(self) -> str:
        return self._description

    @property
    def is_client(self) -> bool:
        return self._is_client

    def has_kernel(self, op: OpDef, inputs: Sequence[TensorSpec] = ()) -> bool:
        waits = self.is_host and op.async_kernel is not None  # these work on the host
        return waits or super().has_kernel(op, inputs)

    def refuses(self, tensor: Tensor | TensorSpec) -> bool:
        return not self.is_host and super().refuses(tensor)

    def holds(self, value: Any) -> bool:
        return False
