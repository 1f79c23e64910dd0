"""`tf.config`: settings of the process; those that only tune are kept, and change nothing."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from laminar import engine
from laminar.engine.errors import InvalidArgumentError

from .device_lists import PhysicalDevice, list_physical_devices


class VirtualDeviceConfiguration(NamedTuple):
    """One of the devices that a physical device stands for.

    Attributes:
        memory_limit: in megabytes; accepted.
    """

    memory_limit: int | None = None


class _Kept:
    """What was set last, by name."""

    values: dict[str, Any] = {
        "soft_device_placement": False,
        "jit": False,
        "experimental_options": {},
        "inter_op_parallelism_threads": 0,
        "intra_op_parallelism_threads": 0,
        "device_policy": "silent",
        "synchronous_execution": True,
        "log_device_placement": False,
    }
    virtual: dict[PhysicalDevice, list[VirtualDeviceConfiguration]] = {}


def get_soft_device_placement() -> bool:
    """What was set; sessions are told by ConfigProto(allow_soft_placement)."""
    return bool(_Kept.values["soft_device_placement"])


def set_soft_device_placement(enabled: bool) -> None:
    """Keep the setting."""
    _Kept.values["soft_device_placement"] = bool(enabled)


def get_log_device_placement() -> bool:
    """What was set; sessions are told by ConfigProto(log_device_placement)."""
    return bool(_Kept.values["log_device_placement"])


def set_log_device_placement(enabled: bool) -> None:
    """Keep the setting."""
    _Kept.values["log_device_placement"] = bool(enabled)


def get_jit() -> bool:
    """What was set; laminar always compiles what it can."""
    return bool(_Kept.values["jit"])


def set_jit(enabled: bool) -> None:
    """Keep the setting."""
    _Kept.values["jit"] = bool(enabled)


def get_experimental_options() -> dict[str, Any]:
    """The rewrites that were turned on or off."""
    return dict(_Kept.values["experimental_options"])


def set_experimental_options(options: dict[str, Any]) -> None:
    """Keep which rewrites are wanted, besides those that were set before."""
    _Kept.values["experimental_options"] = {**get_experimental_options(), **options}


def _threads(num_threads: int) -> int:
    if num_threads < 0:
        raise InvalidArgumentError(f"a number of threads is at least 0, got {num_threads}")
    return int(num_threads)


def get_inter_op_parallelism_threads() -> int:
    """What was set; 0 leaves it to laminar."""
    return int(_Kept.values["inter_op_parallelism_threads"])


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Keep the setting; InvalidArgumentError below 0."""
    _Kept.values["inter_op_parallelism_threads"] = _threads(num_threads)


def get_intra_op_parallelism_threads() -> int:
    """What was set; 0 leaves it to laminar."""
    return int(_Kept.values["intra_op_parallelism_threads"])


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Keep the setting; InvalidArgumentError below 0."""
    _Kept.values["intra_op_parallelism_threads"] = _threads(num_threads)


_POLICIES = ("silent", "silent_for_int32", "warn", "explicit")


def get_device_policy() -> str:
    """What was set; laminar copies what is needed elsewhere, "silent"."""
    return str(_Kept.values["device_policy"])


def set_device_policy(device_policy: str | None) -> None:
    """Keep the setting.

    Raises:
        ValueError: there is no such policy.
    """
    if device_policy is not None and device_policy not in _POLICIES:
        raise ValueError(f"the policy is one of {', '.join(_POLICIES)}, got {device_policy!r}")
    _Kept.values["device_policy"] = device_policy or "silent"


def get_synchronous_execution() -> bool:
    """Whether eager code waits for each op: it does."""
    return bool(_Kept.values["synchronous_execution"])


def set_synchronous_execution(enable: bool) -> None:
    """Keep the setting."""
    _Kept.values["synchronous_execution"] = bool(enable)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """The devices that are used: all, or all of a type."""
    return list_physical_devices(device_type)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Accept all devices, or all of a type.

    Raises:
        InvalidArgumentError: others, or not all: which GPUs there are, CUDA_VISIBLE_DEVICES says.
    """
    given = [devices] if isinstance(devices, PhysicalDevice) else list(devices)
    if sorted(given) != sorted(list_physical_devices(device_type)):
        raise InvalidArgumentError(
            f"{given} are not the devices of this process",
            remedy="set CUDA_VISIBLE_DEVICES before it starts",
        )


def set_virtual_device_configuration(device: PhysicalDevice, virtual_devices: Any) -> None:
    """Have a CPU stand for several devices.

    Raises:
        InvalidArgumentError: it is no CPU, or devices are in use already.
    """
    found = re.fullmatch(r"/physical_device:(\w+):0", device.name)
    if found is None or device.device_type != "CPU":
        raise InvalidArgumentError(f"{device.name} cannot stand for several devices")
    configurations = list(virtual_devices)
    engine.set_device_count({"cpu": len(configurations)})
    _Kept.virtual[device] = configurations


def get_virtual_device_configuration(device: PhysicalDevice) -> Any:
    """What was set for a device, or None."""
    return _Kept.virtual.get(device)
