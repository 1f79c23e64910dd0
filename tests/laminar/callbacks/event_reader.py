"""A reader of event files that shares nothing with the writer: frames, checksums, messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def crc32c(data: bytes) -> int:
    """Castagnoli's polynomial, bit by bit (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path: Path) -> Iterator[bytes]:
    content, at = path.read_bytes(), 0
    while at < len(content):
        head = content[at : at + 8]
        (size,) = struct.unpack("<Q", head)
        data = content[at + 12 : at + 12 + size]
        sums = content[at + 8 : at + 12], content[at + 12 + size : at + 16 + size]
        assert [int.from_bytes(s, "little") for s in sums] == [masked(head), masked(data)]
        yield data
        at += 16 + size


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> dict[int, list[Any]]:
    """The fields of a message by number; numbers as they are, all else as bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        value: Any
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif kind == 5:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        else:
            assert kind == 2
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def doubles(packed: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(packed) // 8}d", packed))


class Events:
    """What a run has: `scalars[tag]` and the like, a list of (step, value)."""

    def __init__(self, folder: Path) -> None:
        self.scalars: dict[str, list[tuple[int, float]]] = {}
        self.histograms: dict[str, list[tuple[int, dict[int, list[Any]]]]] = {}
        self.images: dict[str, list[tuple[int, dict[int, list[Any]]]]] = {}
        self.texts: dict[str, str] = {}
        self.graph: list[tuple[str, str, list[str]]] = []
        self.starts: list[int] = []
        for path in sorted(folder.glob("events.out.tfevents.*")):
            events = [fields(record) for record in records(path)]
            assert events[0][3] == [b"brain.Event:2"]
            for event in events[1:]:
                self._read(event)

    def _read(self, event: dict[int, list[Any]]) -> None:
        step = event[2][0]
        assert event[1][0] > 1e9  # seconds since 1970
        if 4 in event:
            for node in fields(event[4][0])[1]:
                parts = fields(node)
                name, op = parts[1][0].decode(), parts[2][0].decode()
                self.graph.append((name, op, [source.decode() for source in parts.get(3, [])]))
        if 7 in event:
            self.starts.append(step)
        for value in fields(event[5][0])[1] if 5 in event else []:
            parts = fields(value)
            tag = parts[1][0].decode()
            if 2 in parts:
                self.scalars.setdefault(tag, []).append((step, parts[2][0]))
            elif 5 in parts:
                self.histograms.setdefault(tag, []).append((step, fields(parts[5][0])))
            elif 4 in parts:
                self.images.setdefault(tag, []).append((step, fields(parts[4][0])))
            else:
                assert fields(fields(parts[9][0])[1][0])[1] == [b"text"]
                self.texts[tag] = fields(parts[8][0])[8][0].decode()
