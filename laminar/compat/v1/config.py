"""`tf.config`: the devices of this process."""

from __future__ import annotations

import importlib
from typing import Any

from .face import Line, face

NAMES: dict[str, Line] = {
    **{
        f"{verb}_{what}": f".settings:{verb}_{what}"
        for verb in ("get", "set")
        for what in (
            "device_policy",
            "soft_device_placement",
            "synchronous_execution",
            "virtual_device_configuration",
            "visible_devices",
        )
    },
    "VirtualDeviceConfiguration": ".settings:VirtualDeviceConfiguration",
    "experimental_connect_to_cluster": "distribute:connect_to_cluster",
    "PhysicalDevice": ".device_lists:PhysicalDevice",
    "experimental_list_devices": ".device_lists:device_names",
    "get_memory_growth": ".device_lists:get_memory_growth",
    "list_logical_devices": ".device_lists:list_physical_devices",
    "list_physical_devices": ".device_lists:list_physical_devices",
    "set_memory_growth": ".device_lists:set_memory_growth",
}

_get, _names = face(__name__, NAMES, itself={"experimental"})


def __getattr__(name: str) -> Any:
    if name in ("optimizer", "threading"):
        return importlib.import_module(f".config_{name}", __package__)
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "optimizer", "threading"})
