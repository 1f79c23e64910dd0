"""Event files: what TensorBoard reads, one protobuf message `Event` in each record.

    Event {double wall_time = 1, int64 step = 2, string file_version = 3, bytes graph_def = 4,
           Summary summary = 5, LogMessage log_message = 6, SessionLog session_log = 7,
           TaggedRunMetadata tagged_run_metadata = 8, bytes meta_graph_def = 9}
    SessionLog {SessionStatus status = 1, string checkpoint_path = 2, string msg = 3}
    TaggedRunMetadata {string tag = 1, bytes run_metadata = 2}

Source: tensorflow/core/util/event.proto.
"""

from __future__ import annotations

import enum
import itertools
import os
import socket
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import wire
from ..closing import Closing, open_regular
from ..errors import DataLossError
from ..wire import BYTES, FIXED64, VARINT, Kind, Message
from .places import make_folder
from .records import RecordScanner, RecordWriter
from .summaries import (
    Summary,
    SummaryValue,
    histogram_value,
    image_value,
    scalar_value,
    text_value,
)

VERSION = "brain.Event:2"
_EVENT = Kind("an Event", "read an event file")

# Files of one second and one process are read in the order in which they were made.
_numbers = itertools.count()


class SessionStatus(enum.IntEnum):
    """The state of a session; what was written for later steps than its START is void."""

    STATUS_UNSPECIFIED = 0
    START = 1
    STOP = 2
    CHECKPOINT = 3


@dataclass(frozen=True)
class SessionLog:
    """That a session begins at a step, ends, or has saved a checkpoint.

    Examples:
        >>> engine.summary.SessionLog(checkpoint_path="run/ckpt-3").checkpoint_path
        'run/ckpt-3'
    """

    status: int = SessionStatus.STATUS_UNSPECIFIED
    checkpoint_path: str = ""
    msg: str = ""

    START = SessionStatus.START
    STOP = SessionStatus.STOP
    CHECKPOINT = SessionStatus.CHECKPOINT


@dataclass(frozen=True)
class Event:
    """A record of an event file: when, of which step, and one of the fields after those.

    Examples:
        >>> engine.summary.Event(step=3).step
        3
    """

    wall_time: float = 0.0
    step: int = 0
    file_version: str | None = None
    graph_def: bytes | None = None
    summary: Summary | None = None
    session_log: SessionLog | None = None
    tagged_run_metadata: tuple[str, bytes] | None = None
    meta_graph_def: bytes | None = None

    def to_bytes(self) -> bytes:
        """The message."""
        content = wire.float64(1, self.wall_time) + wire.integer(2, self.step)
        if self.file_version is not None:
            content += wire.text(3, self.file_version)
        if self.graph_def is not None:
            content += wire.field(4, self.graph_def)
        if self.summary is not None:
            content += wire.field(5, self.summary.to_bytes())
        if self.session_log is not None:
            log = self.session_log
            said = wire.integer(1, log.status)
            said += wire.text(2, log.checkpoint_path) if log.checkpoint_path else b""
            content += wire.field(7, said + (wire.text(3, log.msg) if log.msg else b""))
        if self.tagged_run_metadata is not None:
            tag, metadata = self.tagged_run_metadata
            content += wire.field(8, wire.text(1, tag) + wire.field(2, metadata))
        if self.meta_graph_def is not None:
            content += wire.field(9, self.meta_graph_def)
        return content

    @staticmethod
    def from_bytes(data: bytes) -> Event:
        """Read a message.

        Raises:
            DataLossError: the bytes are no Event.
        """
        message = Message(data, _EVENT)
        found: dict[str, Any] = {}
        for number, kind in message.fields():
            if number == 1 and kind == FIXED64:
                found["wall_time"] = message.float64()
            elif number == 2 and kind == VARINT:
                found["step"] = message.signed()
            elif number == 3 and kind == BYTES:
                found["file_version"] = message.text()
            elif number == 4 and kind == BYTES:
                found["graph_def"] = message.bytes()
            elif number == 5 and kind == BYTES:
                found["summary"] = Summary.from_bytes(message.bytes())
            elif number == 7 and kind == BYTES:
                found["session_log"] = _read_log(message.span())
            elif number == 8 and kind == BYTES:
                found["tagged_run_metadata"] = message.span().entry()
            elif number == 9 and kind == BYTES:
                found["meta_graph_def"] = message.bytes()
            else:
                message.skip(kind)
        return Event(**found)


def _read_log(message: Message) -> SessionLog:
    status, texts = 0, {2: "", 3: ""}
    for number, kind in message.fields():
        if number == 1 and kind == VARINT:
            status = message.varint()
        elif number in texts and kind == BYTES:
            texts[number] = message.text()
        else:
            message.skip(kind)
    return SessionLog(status, texts[2], texts[3])


def read_events(path: str | os.PathLike[str]) -> Iterator[Event]:
    """The events of a file, one after the other.

    A record that is not whole at the end of the file is one that is still being written: the
    events before it are all there are.

    Raises:
        MissingFileError: there is no such file.
        DataLossError: a checksum is wrong, or a record is no event.

    Examples:
        >>> import os
        >>> with engine.summary.FileWriter("logs") as writer:
        ...     writer.add_summary(
        ...         engine.summary.Summary([engine.summary.SummaryValue("loss", 0.5)]), 1
        ...     )
        >>> events = list(engine.summary.read_events("logs/" + os.listdir("logs")[0]))
        >>> events[-1].summary.value[0].tag
        'loss'
    """
    size = os.path.getsize(path) if os.path.exists(path) else 0
    with RecordScanner(path) as records:
        while True:
            try:
                data = next(records)
            except StopIteration:
                return
            except DataLossError:
                if _is_cut_off(path, records.offset, size):
                    return
                raise
            yield Event.from_bytes(data)


def _is_cut_off(path: str | os.PathLike[str], offset: int, size: int) -> bool:
    """Whether the record at `offset` of a file of that size is not there to its end."""
    head, tail = 12, 4
    if size < offset + head:
        return True
    with open_regular(path) as file:
        file.seek(offset)
        length = int.from_bytes(file.read(8), "little")
    return size < offset + head + length + tail


def new_event_path(folder: str | os.PathLike[str], suffix: str = "") -> Path:
    """A name for an event file in a folder, which is made if it is not there."""
    place = make_folder(folder, "EventWriter")
    unique = f"{int(time.time()):010}.{socket.gethostname()}.{os.getpid()}"
    return place / f"events.out.tfevents.{unique}.{next(_numbers):06}{suffix}"


def graph_message(nodes: Iterable[tuple[str, str, Iterable[str]]]) -> bytes:
    """A GraphDef of (name, op, names of inputs) of each node; slashes in names make groups.

    GraphDef {repeated NodeDef node = 1}    NodeDef {string name = 1, op = 2, repeated input = 3}
    """
    return b"".join(
        wire.field(
            1,
            wire.text(1, name)
            + wire.text(2, op)
            + b"".join(wire.text(3, source) for source in sources),
        )
        for name, op, sources in nodes
    )


class EventWriter(Closing):
    """Appends events to a file of its own in a folder; a `with` block closes it.

    Args:
        folder: made if it is not there; TensorBoard shows it as a run.
        suffix: the end of the file's name.

    Attributes:
        path: of the file.
    """

    def __init__(self, folder: str | os.PathLike[str], suffix: str = "") -> None:
        self.path = new_event_path(folder, suffix)
        self._records = RecordWriter(self.path)
        self.write(Event(time.time(), file_version=VERSION))

    def write(self, event: Event) -> None:
        """Append an event."""
        self._records.write(event.to_bytes())

    def _add(self, step: int, value: SummaryValue) -> None:
        self.write(Event(time.time(), step, summary=Summary([value])))

    def start(self, step: int) -> None:
        """Say that a run goes on at `step`: what was written before for later steps is hidden."""
        self.write(Event(time.time(), step, session_log=SessionLog(SessionStatus.START)))

    def scalar(self, tag: str, value: float, step: int) -> None:
        """A number."""
        self._add(step, scalar_value(tag, value))

    def histogram(self, tag: str, values: Any, step: int) -> None:
        """How numbers are spread; where none is finite, nothing is written."""
        found = histogram_value(tag, values)
        if found.histo is not None and found.histo.num:
            self._add(step, found)

    def image(self, tag: str, pixels: Any, step: int) -> None:
        """A picture; see `summaries.image_value`."""
        self._add(step, image_value(tag, pixels))

    def text(self, tag: str, text: str, step: int) -> None:
        """A text, which may be Markdown."""
        self._add(step, text_value(tag, text))

    def graph(self, nodes: Iterable[tuple[str, str, Iterable[str]]]) -> None:
        """A graph; see `graph_message`."""
        self.write(Event(time.time(), graph_def=graph_message(nodes)))

    def flush(self) -> None:
        """Hand what is buffered to the system, where TensorBoard sees it."""
        self._records.flush()

    def close(self) -> None:
        """Write what is left; a second call does nothing."""
        self._records.close()
