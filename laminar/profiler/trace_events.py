"""Timelines in the format of trace events, which Perfetto and chrome://tracing open.

Source: "Trace Event Format", the Chromium project.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from laminar.engine.timeline import Event, Timeline

from .joining import THIS_PROCESS
from .report import rows_of_runs

_HOST = 1


def all_events(timeline: Timeline) -> list[Event]:
    """What was recorded and what native code ran, in the order in which it began."""
    return sorted([*timeline.events, *_native(timeline)], key=lambda e: e.start)


def trace_events(timeline: Timeline, events: Sequence[Event]) -> list[dict[str, Any]]:
    """All events: a process for each device, a track for each thread, arrows of transfers."""
    devices = {"": _HOST}
    found: list[dict[str, Any]] = []
    for event in events:
        pid = devices.setdefault(event.device, len(devices) + 1)
        found.append(
            {
                "ph": "X",
                "name": event.name,
                "cat": event.category,
                "pid": pid,
                "tid": event.thread,
                "ts": _micro(timeline, event.start),
                "dur": (event.end - event.start) / 1000,
                "args": dict(event.arguments),
            }
        )
    found += _arrows(timeline, devices)
    return [*_names(timeline, devices, events), *found]


def _micro(timeline: Timeline, moment: int) -> float:
    return (moment - timeline.start) / 1000


def _native(timeline: Timeline) -> Iterator[Event]:
    """The runs of plans, and in them the parts of kernels that threads did."""
    for runs, rows in rows_of_runs(timeline):
        about = [_about(row) for row in rows]
        for call, kernels in zip(runs.calls.tolist(), runs.kernels.tolist(), strict=True):
            start, end, thread = call
            yield Event(runs.name, "plan", start, end, thread)
            for (name, arguments), parts in zip(about, kernels, strict=True):
                for began, ended, thread in parts:
                    if ended:
                        yield Event(name, "kernel", began, ended, thread, "", arguments)


def _about(row: Any) -> tuple[str, dict[str, Any]]:
    """The name of a kernel, and what is known of it."""
    if row is None:
        return "kernel", {}
    arguments = {
        "operations": ", ".join(row.operations),
        "computes": row.what,
        "sizes": row.sizes,
        "flops": row.flops * row.runs,
        "bytes": (row.read_bytes + row.written_bytes) * row.runs,
        "threads": "all" if row.is_parallel else "one",
        "line": row.lines[0] if row.lines else "",
    }
    return row.operations[0] if row.operations else row.what, arguments


def _names(
    timeline: Timeline, devices: dict[str, int], events: Sequence[Event]
) -> Iterator[dict[str, Any]]:
    """What processes and threads are called."""
    for device, pid in devices.items():
        name = device or THIS_PROCESS
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    tracks = sorted({(devices[e.device], e.thread) for e in events})
    for pid, thread in tracks:
        name = timeline.threads.get(thread, "thread")
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": pid,
            "tid": thread,
            "args": {"name": name},
        }


def _arrows(timeline: Timeline, devices: dict[str, int]) -> Iterator[dict[str, Any]]:
    """From each send of a value to what receives it, the first to the first.

    A value may be there before the event of its send has ended.
    """
    moved = [e for e in timeline.events if "transfer" in e.arguments]
    sends: dict[Any, list[Event]] = {}
    for event in sorted(moved, key=lambda e: e.start):
        if event.arguments["op"] == "Send":
            sends.setdefault(event.arguments["transfer"], []).append(event)
    for target in sorted(moved, key=lambda e: e.end):
        waiting = sends.get(target.arguments["transfer"], [])
        if target.arguments["op"] == "Send" or not waiting:
            continue
        source = waiting.pop(0)
        for phase, event, moment in (("s", source, source.start), ("f", target, target.end)):
            yield {
                "ph": phase,
                "bp": "e",
                "id": id(source),
                "name": "transfer",
                "cat": "transfer",
                "pid": devices[event.device],
                "tid": event.thread,
                "ts": _micro(timeline, moment),
            }
