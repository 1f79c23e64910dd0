"""Timelines as the profiles that TensorBoard shows, with its plugin for them.

    XSpace {XPlane planes = 1, string hostnames = 4}
    XPlane {int64 id = 1, string name = 2, XLine lines = 3, map<int64, XEventMetadata>
            event_metadata = 4, map<int64, XStatMetadata> stat_metadata = 5}
    XLine {int64 id = 1, string name = 2, int64 timestamp_ns = 3, XEvent events = 4}
    XEvent {int64 metadata_id = 1, int64 offset_ps = 2, int64 duration_ps = 3}
    XEventMetadata {int64 id = 1, string name = 2, XStat stats = 5}
    XStat {int64 metadata_id = 1, int64 int64_value = 4, string str_value = 5}
    XStatMetadata {int64 id = 1, string name = 2}

Source: tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laminar.engine import wire
from laminar.engine.timeline import Event

_PLANE = "/host:CPU"  # the one whose lines are threads
_PS_IN_NS = 1000


class _Numbers:
    """Names by numbers from 1 on, as messages refer to them."""

    def __init__(self) -> None:
        self.found: dict[Any, int] = {}

    def __call__(self, key: Any) -> int:
        return self.found.setdefault(key, len(self.found) + 1)


def xspace(events: Sequence[Event], threads: Mapping[int, str], wall: int, host: str) -> bytes:
    """The message of a profile.

    Args:
        events: all of them.
        threads: names of threads by their identifiers.
        wall: what is added to the times of events to have nanoseconds since 1970.
        host: the name of the process.
    """
    names, stats = _Numbers(), _Numbers()
    lines: dict[tuple[str, int], list[Event]] = {}
    for event in events:
        lines.setdefault((event.device, event.thread), []).append(event)
    found = [wire.integer(1, 1), wire.text(2, _PLANE)]
    for number, ((device, thread), of_line) in enumerate(sorted(lines.items()), 1):
        name = threads.get(thread, "thread")
        name = f"{device} {name}" if device else name
        found.append(wire.field(3, _line(number, name, of_line, wall, names)))
    for (name, about), number in names.found.items():
        metadata = [wire.integer(1, number), wire.text(2, name)]
        metadata += [wire.field(5, _stat(stats(key), value)) for key, value in about]
        found.append(wire.field(4, _entry(number, b"".join(metadata))))
    for name, number in stats.found.items():
        found.append(wire.field(5, _entry(number, wire.integer(1, number) + wire.text(2, name))))
    return wire.field(1, b"".join(found)) + wire.text(4, host)


def _line(number: int, name: str, events: Sequence[Event], wall: int, names: _Numbers) -> bytes:
    """The events of a thread, those that are around others first."""
    ordered = sorted(events, key=lambda e: (e.start, -e.end))
    first = ordered[0].start
    found = [wire.integer(1, number), wire.text(2, name), wire.integer(3, first + wall)]
    for event in ordered:
        kind = names((event.name, tuple(event.arguments.items())))
        content = (
            wire.integer(1, kind)
            + wire.integer(2, (event.start - first) * _PS_IN_NS)
            + wire.integer(3, (event.end - event.start) * _PS_IN_NS)
        )
        found.append(wire.field(4, content))
    return b"".join(found)


def _entry(number: int, content: bytes) -> bytes:
    """An entry of a map."""
    return wire.integer(1, number) + wire.field(2, content)


def _stat(number: int, value: Any) -> bytes:
    is_whole = isinstance(value, int) and abs(value) < 1 << 63
    return wire.integer(1, number) + (
        wire.integer(4, value) if is_whole else wire.text(5, str(value))
    )
