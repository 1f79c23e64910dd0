"""Profiles for TensorBoard, read by protobuf's own code with the schema of xplane.proto."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import laminar
from laminar.engine.timeline import Event
from laminar.profiler import annotate, trace
from laminar.profiler.xplane import xspace

INT64, STRING, MESSAGE = 3, 9, 11
# Messages: fields (name, number, type, whether it is repeated, the message's name).
SCHEMA = {
    "XSpace": [("planes", 1, MESSAGE, True, "XPlane"), ("hostnames", 4, STRING, True, "")],
    "XPlane": [
        ("id", 1, INT64, False, ""),
        ("name", 2, STRING, False, ""),
        ("lines", 3, MESSAGE, True, "XLine"),
        ("event_metadata", 4, MESSAGE, True, "EventEntry"),
        ("stat_metadata", 5, MESSAGE, True, "StatEntry"),
    ],
    "EventEntry": [("key", 1, INT64, False, ""), ("value", 2, MESSAGE, False, "XEventMetadata")],
    "StatEntry": [("key", 1, INT64, False, ""), ("value", 2, MESSAGE, False, "XStatMetadata")],
    "XLine": [
        ("id", 1, INT64, False, ""),
        ("name", 2, STRING, False, ""),
        ("timestamp_ns", 3, INT64, False, ""),
        ("events", 4, MESSAGE, True, "XEvent"),
    ],
    "XEvent": [
        ("metadata_id", 1, INT64, False, ""),
        ("offset_ps", 2, INT64, False, ""),
        ("duration_ps", 3, INT64, False, ""),
    ],
    "XEventMetadata": [
        ("id", 1, INT64, False, ""),
        ("name", 2, STRING, False, ""),
        ("stats", 5, MESSAGE, True, "XStat"),
    ],
    "XStat": [
        ("metadata_id", 1, INT64, False, ""),
        ("int64_value", 4, INT64, False, ""),
        ("str_value", 5, STRING, False, ""),
    ],
    "XStatMetadata": [("id", 1, INT64, False, ""), ("name", 2, STRING, False, "")],
}


def parsed(data: bytes) -> Any:
    """The message; nothing in it is unknown to the schema."""
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", package="x", syntax="proto3")
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeats, other in fields:
            added = message.field.add(
                name=field, number=number, type=kind, label=3 if repeats else 1
            )
            if other:
                added.type_name = f".x.{other}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("x.XSpace"))()
    found.ParseFromString(data)
    size = found.ByteSize()
    found.DiscardUnknownFields()
    assert found.ByteSize() == size
    return found


def test_events_are_lines_of_threads() -> None:
    about = {"flops": 12, "sizes": "[2] -> [2]"}
    events = [
        Event("inner", "kernel", 1_100, 1_200, 7, "", about),
        Event("outer", "python", 1_000, 1_300, 7),
        Event("inner", "kernel", 1_210, 1_250, 7, "", about),
        Event("exp", "op", 1_050, 1_060, 9, "/device:cpu:1"),
    ]
    found = parsed(xspace(events, {7: "MainThread"}, 10**18, "here"))
    assert list(found.hostnames) == ["here"]
    (plane,) = found.planes
    assert plane.name == "/host:CPU"
    names = {entry.key: entry.value.name for entry in plane.event_metadata}
    lines = {
        line.name: [
            (names[e.metadata_id], line.timestamp_ns * 1000 + e.offset_ps, e.duration_ps)
            for e in line.events
        ]
        for line in plane.lines
    }
    base = 10**21
    assert lines == {
        "MainThread": [
            ("outer", base + 1_000_000, 300_000),
            ("inner", base + 1_100_000, 100_000),
            ("inner", base + 1_210_000, 40_000),
        ],
        "/device:cpu:1 thread": [("exp", base + 1_050_000, 10_000)],
    }
    stats = {entry.key: entry.value.name for entry in plane.stat_metadata}
    (inner,) = [e.value for e in plane.event_metadata if e.value.name == "inner"]
    values = {stats[s.metadata_id]: s.int64_value or s.str_value for s in inner.stats}
    assert values == about


def test_a_trace_writes_a_profile(tmp_path: Path) -> None:
    with trace(tmp_path, show=False) as traced, annotate("my part", note="so"):
        laminar.ops.ones((3,))
    assert traced.report is not None
    (path,) = (tmp_path / "plugins" / "profile" / traced.report.path.stem).iterdir()
    assert path.name.endswith(".xplane.pb")  # what TensorBoard's plugin looks for
    (plane,) = parsed(path.read_bytes()).planes
    (line,) = plane.lines
    assert line.name == "MainThread"
    assert [e.duration_ps > 0 for e in line.events] == [True]
