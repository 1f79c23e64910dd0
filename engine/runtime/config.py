"""What a session is told about its devices and how to use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..passes.partition import Lossy


@dataclass(frozen=True)
class SessionConfig:
    """How a session runs its graph.

    Attributes:
        device_count: how many devices of each type, as {"cpu": 2}: each of several CPUs has its
            share of the cores. Without a type: one CPU, all GPUs.
        memory_limit_bytes: by type, what each of its devices may hold; placement respects it, and a
            step that needs more raises ResourceExhaustedError.
        allow_soft_placement: whether an operation goes elsewhere when the device that the program
            names does not exist or has no kernel for it; otherwise that is an error.
        placement: for operations that the program puts nowhere: "priority" takes the device of the
            highest type that has a kernel and room (a GPU before the CPU), "simulated" the one that
            finishes first in a simulated step.
        log_device_placement: whether to write each decision, with its reason, to the log
            "laminar.placement".
        lossy_transfers: whether float32 tensors travel between devices as their upper 16 bits: True
            for all, or a function (tensor, name of the source, name of the target) -> bool.
        delay_receives: whether large tensors are received only shortly before their use, so that
            less memory is in use at a time.
    """

    device_count: Mapping[str, int] | None = None
    memory_limit_bytes: Mapping[str, int] | None = None
    allow_soft_placement: bool = False
    placement: str = "priority"
    log_device_placement: bool = False
    lossy_transfers: bool | Lossy = False
    delay_receives: bool = True
