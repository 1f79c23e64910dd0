"""Event files: what TensorBoard reads, one protobuf message `Event` in each record.

    Event {double wall_time = 1, int64 step = 2, string file_version = 3, bytes graph_def = 4,
           Summary summary = 5, SessionLog session_log = 7}
    Summary {repeated Value value = 1}
    Value {string tag = 1, float simple_value = 2, Image image = 4, HistogramProto histo = 5,
           TensorProto tensor = 8, SummaryMetadata metadata = 9}

in protobuf's wire format, written by hand: no schema and no other package is needed.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError, ShapeError
from .records import RecordWriter

_VERSION = b"brain.Event:2"
_START = 1  # SessionLog.SessionStatus
_STRING = 7  # DataType
_BUCKETS = 30


# Files of one second and one process are read in the order in which they were made.
_numbers = itertools.count()


class EventWriter:
    """Appends events to a file of its own in a folder; a `with` block closes it.

    Args:
        folder: made if it is not there; TensorBoard shows it as a run.

    Attributes:
        path: of the file.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        unique = f"{int(time.time()):010}.{socket.gethostname()}.{os.getpid()}"
        name = f"events.out.tfevents.{unique}.{next(_numbers):06}"
        self.path = Path(folder) / name
        self._records = RecordWriter(self.path)
        self._write(0, _bytes(3, _VERSION))

    def _write(self, step: int, content: bytes) -> None:
        self._records.write(_double(1, time.time()) + _int(2, step) + content)

    def _summary(self, step: int, value: bytes) -> None:
        self._write(step, _bytes(5, _bytes(1, value)))

    def start(self, step: int) -> None:
        """Say that a run goes on at `step`: what was written before for later steps is hidden."""
        self._write(step, _bytes(7, _int(1, _START)))

    def scalar(self, tag: str, value: float, step: int) -> None:
        """A number."""
        self._summary(step, _text(1, tag) + _float(2, float(value)))

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """How numbers are spread; those that are not finite are left out."""
        numbers = np.asarray(values).astype("float64").ravel()
        numbers = numbers[np.isfinite(numbers)]
        if not numbers.size:
            return
        counts, edges = np.histogram(numbers, bins=_BUCKETS)
        content = (
            _double(1, numbers.min())
            + _double(2, numbers.max())
            + _double(3, numbers.size)
            + _double(4, numbers.sum())
            + _double(5, np.square(numbers).sum())
            # A bucket reaches from the limit before it to its own; the first begins at the minimum.
            + _doubles(6, [edges[0], *edges[1:]])
            + _doubles(7, [0, *counts])
        )
        self._summary(step, _text(1, tag) + _bytes(5, content))

    def image(self, tag: str, pixels: Any, step: int) -> None:
        """A picture.

        Args:
            pixels: (height, width, channels), uint8, or floats from 0 to 1; 1, 3 or 4 channels.

        Raises:
            ShapeError: another shape.
        """
        array = np.asarray(pixels)
        if array.ndim != 3 or array.shape[-1] not in (1, 3, 4):
            raise ShapeError(
                f"image {tag!r}: expected (height, width, 1, 3 or 4), got {array.shape}",
                remedy="give one image, with its channels last",
            )
        if array.dtype.kind == "f":
            array = np.round(np.clip(np.nan_to_num(array), 0, 1) * 255)
        array = array.astype(np.uint8)
        height, width, channels = array.shape
        content = _int(1, height) + _int(2, width) + _int(3, channels) + _bytes(4, _png(array))
        self._summary(step, _text(1, tag) + _bytes(4, content))

    def text(self, tag: str, text: str, step: int) -> None:
        """A text, which may be Markdown."""
        tensor = _int(1, _STRING) + _bytes(2, _bytes(2, _int(1, 1))) + _text(8, text)
        metadata = _bytes(1, _text(1, "text"))
        self._summary(step, _text(1, tag) + _bytes(8, tensor) + _bytes(9, metadata))

    def graph(self, nodes: Iterable[tuple[str, str, Iterable[str]]]) -> None:
        """A graph as (name, op, names of inputs) of each node; slashes in names make groups."""
        content = b"".join(
            _bytes(
                1, _text(1, name) + _text(2, op) + b"".join(_text(3, source) for source in sources)
            )
            for name, op, sources in nodes
        )
        self._write(0, _bytes(4, content))

    def flush(self) -> None:
        """Hand what is buffered to the system, where TensorBoard sees it."""
        self._records.flush()

    def close(self) -> None:
        """Write what is left; a second call does nothing."""
        self._records.close()

    def __enter__(self) -> EventWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# Wire format


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF  # negative numbers are 64 bits of two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    with np.errstate(over="ignore"):  # beyond float32 it is infinite
        return _varint(field << 3 | 5) + np.float32(value).tobytes()


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8"))


def _doubles(field: int, values: Iterable[float]) -> bytes:
    return _bytes(field, np.asarray(list(values), "<f8").tobytes())


# Portable Network Graphics, second edition, 2003: signature, header, one compressed stream, end.
_COLOURS: Mapping[int, int] = {1: 0, 3: 2, 4: 6}


def _png(pixels: np.ndarray[Any, Any]) -> bytes:
    height, width, channels = pixels.shape
    if not height or not width:
        raise InvalidArgumentError(f"an image of {height} x {width} pixels cannot be written")
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
