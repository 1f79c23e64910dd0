"""Which types of devices there are, and how devices of each are made and compile.

`factories[type]` is filled by `register_device`: the CPU and the GPU register themselves there,
anybody else from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import forks
from ..ops.core.cluster import Compiler


@dataclass(frozen=True)
class DeviceFactory:
    """How the devices of a type are made.

    Attributes:
        make: `make(index, count, limit_bytes)` gives one of `count` devices.
        available: how many there are at most, and when there are none, why.
        default: how many a session has when it does not say; None for all.
        priority: where there is a choice, operations go to the type of the highest; a type below
            0, the CPU's is 0, gets only what is placed there by name.
        memory_bytes: gives the memory of one, from its index; None where nobody can say.
        compiler: gives the one that all devices of the type share, None where there is none.
    """

    make: Callable[[int, int, int | None], Any]
    available: Callable[[], tuple[int, str]]
    default: int | None = None
    priority: int = -1
    memory_bytes: Callable[[int], int] | None = None
    compiler: Callable[[], Compiler | None] = lambda: None


factories: dict[str, DeviceFactory] = {}


def compiler_of(device_type: str) -> Compiler | None:
    """Who compiles the clusters of a type, loaded on first use."""
    factory = factories.get(device_type)
    return None if factory is None else factory.compiler()


def loaded_once(load: Callable[[], Compiler]) -> Callable[[], Compiler]:
    """What gives the compiler that `load` gives when it is first asked; other threads wait."""
    lock = forks.lock()
    loaded: list[Compiler] = []

    def compiler() -> Compiler:
        if not loaded:
            with lock:
                if not loaded:
                    loaded.append(load())
        return loaded[0]

    return compiler
