"""Readers as ops: eagerly and in Session graphs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    FIFOQueue,
    FixedLengthRecordReader,
    Graph,
    IdentityReader,
    ReaderBase,
    RecordReader,
    RecordWriter,
    Session,
    TextLineReader,
    WholeFileReader,
)
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    MissingFileError,
    OutOfRangeError,
    ShapeError,
)
from laminar.engine.ops.state.reader import reader as reader_op


def names(*paths: Any) -> FIFOQueue:
    queue = FIFOQueue(10, "string", [()])
    queue.enqueue_many([np.array([str(p).encode() for p in paths], object)])
    queue.close()
    return queue


def test_lines_one_by_one_and_many(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a\nb\nc\n")
    reader, queue = TextLineReader(), names(path)
    key, value = reader.read(queue)
    assert (key.numpy(), value.numpy()) == (f"{path}:1".encode(), b"a")
    _, values = reader.read_up_to(queue, 5)
    assert values.numpy().tolist() == [b"b", b"c"]
    with pytest.raises(OutOfRangeError):
        reader.read(queue)
    assert int(reader.num_records_produced().numpy()) == 3
    assert int(reader.num_work_units_completed().numpy()) == 1
    reader.reset()
    assert int(reader.num_records_produced().numpy()) == 0


def test_records_in_a_session(tmp_path: Path) -> None:
    """Five records are written, five equal ones are read; then the end."""
    path = tmp_path / "records"
    records = [bytes([i]) * i for i in range(5)]
    with RecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(10, "string", [()])
        fill, close = queue.enqueue(str(path)), queue.close()
        _, value = RecordReader().read(queue)
    with Session(graph=graph) as session:
        session.run(fill)
        session.run(close)
        assert [session.run(value) for _ in range(5)] == records
        with pytest.raises(OutOfRangeError):
            session.run(value)
    path.write_bytes(path.read_bytes()[:-3])
    with Session(graph=graph) as session:
        session.run(fill)
        for _ in range(4):
            session.run(value)
        with pytest.raises(DataLossError, match="at byte"):
            session.run(value)


FORMATS = [
    (WholeFileReader(), [b"abcdef"]),
    (IdentityReader(), None),
    (FixedLengthRecordReader(2, 1, 1), [b"bc", b"de"]),
    (TextLineReader(skip_header_lines=1), []),
]


@pytest.mark.parametrize(("reader", "expected"), FORMATS)
def test_formats(tmp_path: Path, reader: ReaderBase, expected: list[bytes] | None) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abcdef")
    queue, found = names(path), []
    with suppress(OutOfRangeError):
        while True:
            found.append(reader.read(queue)[1].numpy())
    assert found == ([str(path).encode()] if expected is None else expected)


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        TextLineReader().read(names(tmp_path / "none"))
    with pytest.raises(InvalidArgumentError, match="compression"):
        RecordReader("LZ4")
    with pytest.raises(InvalidArgumentError, match="record_bytes"):
        FixedLengthRecordReader(0)
    with pytest.raises(InvalidArgumentError, match="cannot read 0"):
        TextLineReader().read_up_to(names("x"), 0)
    with pytest.raises(ShapeError, match="scalar"):
        TextLineReader().read_up_to(names("x"), [1, 2])
    with pytest.raises(InvalidArgumentError, match="format"):
        reader_op(format="xml", options=(), container="", shared_name="r")
