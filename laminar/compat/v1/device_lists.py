"""The devices of this process, as `tf.config` and `tf.test` list them."""

from __future__ import annotations

from typing import Any, NamedTuple

from laminar import engine
from laminar.engine.errors import InvalidArgumentError


class PhysicalDevice(NamedTuple):
    """A device of this process.

    Attributes:
        name: such as "/physical_device:CPU:0".
        device_type: "CPU" or "GPU".
    """

    name: str
    device_type: str


def _specs() -> list[engine.DeviceSpec]:
    return [engine.DeviceSpec.from_string(d.name) for d in engine.list_devices()]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices, or those of one type."""
    found = [(str(spec.device_type).upper(), spec.device_index or 0) for spec in _specs()]
    return [
        PhysicalDevice(f"/physical_device:{kind}:{index}", kind)
        for kind, index in found
        if device_type is None or kind == device_type.upper()
    ]


def device_names() -> list[str]:
    """The full names of the devices."""
    return [d.name for d in engine.list_devices()]


def _check(device: Any) -> None:
    if device not in list_physical_devices():
        raise InvalidArgumentError(f"there is no device {device!r}")


def set_memory_growth(device: Any, enable: bool) -> None:
    """Accept True: memory of a device is always taken as it is needed.

    Raises:
        InvalidArgumentError: there is no such device, or `enable` is False.
    """
    _check(device)
    if not enable:
        raise InvalidArgumentError(
            f"the memory of {device.name} cannot be taken at once", remedy="leave the call out"
        )


def get_memory_growth(device: Any) -> bool:
    """True: memory of a device is taken as it is needed."""
    _check(device)
    return True


def gpu_device_name() -> str:
    """The name of the first GPU, "" if there is none."""
    gpus = list_physical_devices("GPU")
    return f"/device:GPU:{gpus[0].name.rpartition(':')[2]}" if gpus else ""


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Whether there is a GPU."""
    return bool(list_physical_devices("GPU"))
