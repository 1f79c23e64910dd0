"""What operations did in a step, as events of a timeline: here, or on the tasks of a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from ..timeline import Event, Timeline, now
from .options import DeviceStats

# What the names of operations begin with that move the rest of their names (passes/partition.py).
_MOVING = ("_send_", "_recv_")


def add_step(
    timeline: Timeline,
    devices: Iterable[DeviceStats],
    transfers: Mapping[str, str],
    call: tuple[int, int] | None = None,
) -> None:
    """Tell a timeline of a step.

    Args:
        timeline: what is told.
        devices: what they did.
        transfers: what is moved, by the names of the operations that send and receive it; others
            move what their names say.
        call: when the call began that ran the step elsewhere, and when it had ended. What is told
            of the step lies between the two: a clock that shows something else is put right.
    """
    offset = now() - time.time_ns()
    spans = [
        (int(node.start_us * 1000) + offset, int(node.duration_us * 1000), device.device, node)
        for device in devices
        for node in device.nodes
    ]
    late = 0
    if call is not None and spans:
        first = min(start for start, *_ in spans)
        last = max(start + spent for start, spent, *_ in spans)
        late = max(call[0] - first, 0) or min(call[1] - last, 0)
    for start, spent, device, node in spans:
        arguments: dict[str, Any] = {"op": node.type, "bytes": node.output_bytes}
        category = "op"
        if node.name in transfers or node.name.startswith(_MOVING):
            category = "transfer"
            arguments["transfer"] = transfers.get(node.name, node.name[len(_MOVING[0]) :])
        begin = start + late
        timeline.add(
            Event(node.name, category, begin, begin + spent, node.thread, device, arguments)
        )
