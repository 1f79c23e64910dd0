"""Readers: names from a queue, records of their files, in every format."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import (
    CancelledError,
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    MissingFileError,
    OutOfRangeError,
)
from laminar.engine.io.records import RecordWriter
from laminar.engine.resources.queues import FIFO
from laminar.engine.resources.readers import (
    Reader,
    checked_records,
    fixed_length,
    names_alone,
    text_lines,
    whole_files,
)
from laminar.engine.resources.waiting import blocking

from .test_queues import Told


def queue_of(*names: Path | str) -> FIFO:
    queue = FIFO("names", 100)
    for name in names:
        queue.enqueue((np.array(str(name).encode(), object),), Told())
    queue.close()
    return queue


def read_all(reader: Reader, queue: FIFO, up_to: int = 1) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    while True:
        try:
            found += blocking(lambda done: reader.read(queue, done, up_to))
        except OutOfRangeError:
            return found


def test_text_lines(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"head\nfirst\r\n\nlast")
    two.write_bytes(b"head\nonly\n")
    reader = Reader("r", text_lines(skip_header_lines=1))
    found = read_all(reader, queue_of(one, two))
    assert [v for _, v in found] == [b"first", b"", b"last", b"only"]
    assert [k for k, _ in found][-1] == f"{two}:2".encode()
    assert reader.num_records_produced == 4
    assert reader.num_work_units_completed == 2


def test_whole_files_and_names(tmp_path: Path) -> None:
    paths = [tmp_path / c for c in "ab"]
    for path in paths:
        path.write_bytes(path.name.encode() * 3)
    names = [str(p).encode() for p in paths]
    found = read_all(Reader("r", whole_files), queue_of(*paths))
    assert found == list(zip(names, [b"aaa", b"bbb"], strict=True))
    assert read_all(Reader("r", names_alone), queue_of("x", "y")) == [(b"x", b"x"), (b"y", b"y")]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_record_files(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "records"
    with RecordWriter(path, compression) as writer:
        for i in range(5):
            writer.write(b"%d" % i * i)
    found = read_all(Reader("r", checked_records(compression)), queue_of(path))
    assert [v for _, v in found] == [b"", b"1", b"22", b"333", b"4444"]
    assert found[1][0] == f"{path}:16".encode()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((4,), [b"0123", b"4567", b"89ab"]),
        ((4, 3, 1), [b"3456", b"789a"]),
        ((4, 0, 0, 2), [b"0123", b"2345", b"4567", b"6789", b"89ab"]),
        ((4, 2, 2, 4), [b"2345", b"6789"]),
    ],
)
def test_fixed_length(tmp_path: Path, options: tuple[int, ...], expected: list[bytes]) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"0123456789ab")
    assert [v for _, v in read_all(Reader("r", fixed_length(*options)), queue_of(path))] == expected


def test_fixed_length_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"0123456789ab")
    for options in [(5,), (4, 1), (4, 13), (13,)]:
        with pytest.raises(DataLossError, match="whole number"):
            read_all(Reader("r", fixed_length(*options)), queue_of(path))
    for wrong in [(0,), (1, -1), (1, 0, -1), (1, 0, 0, -1)]:
        with pytest.raises(InvalidArgumentError):
            fixed_length(*wrong)
    path.write_bytes(b"")
    assert read_all(Reader("r", fixed_length(4)), queue_of(path)) == []


def test_three_files_in_batches(tmp_path: Path) -> None:
    """30 records come once each, in 7 batches of 4 and one of 2, then the end."""
    for i in range(3):
        (tmp_path / str(i)).write_text("".join(f"{i}.{j}\n" for j in range(10)))
    reader = Reader("r", text_lines())
    names = queue_of(*(tmp_path / str(i) for i in range(3)))
    lines = FIFO("lines", 100)
    for _, value in read_all(reader, names, up_to=7):
        lines.enqueue((np.array(value, object),), Told())
    lines.close()
    sizes = []
    while lines.size:
        sizes.append(len(blocking(lambda done: lines.dequeue_many(4, done, up_to=True))))
    assert sizes == [4] * 7 + [2]
    assert reader.num_records_produced == 30


def test_a_file_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for path in (good, bad):
        with RecordWriter(path) as writer:
            writer.write(b"first")
            writer.write(b"second")
    bad.write_bytes(bad.read_bytes()[:-1])
    reader = Reader("r", checked_records())
    queue = queue_of(tmp_path / "none", bad, good)
    with pytest.raises(MissingFileError):
        blocking(lambda done: reader.read(queue, done))
    assert len(blocking(lambda done: reader.read(queue, done, 5))) == 1
    with pytest.raises(DataLossError, match="at byte 21"):
        blocking(lambda done: reader.read(queue, done, 5))
    assert [v for _, v in read_all(reader, queue)] == [b"first", b"second"]


def test_reads_wait_for_names_in_order() -> None:
    queue = FIFO("names", 10)
    reader = Reader("r", names_alone)
    first, second, third = Told(), Told(), Told()
    reader.read(queue, first)
    waiting = reader.read(queue, second)
    reader.read(queue, third)
    assert waiting.cancel(CancelledError("enough"))
    assert isinstance(second.error, CancelledError)
    for name in (b"a", b"b"):
        queue.enqueue((np.array(name, object),), Told())
    assert first.calls[0][0] == [(b"a", b"a")]
    assert third.calls[0][0] == [(b"b", b"b")]


def test_the_first_read_can_be_cancelled_while_it_waits_for_a_name() -> None:
    queue = FIFO("names", 10)
    reader = Reader("r", names_alone)
    first, second = Told(), Told()
    ticket = reader.read(queue, first)
    reader.read(queue, second)
    assert ticket.cancel(CancelledError("enough"))
    assert isinstance(first.error, CancelledError)
    assert not ticket.cancel(CancelledError("again"))
    queue.enqueue((np.array(b"a", object),), Told())
    assert second.calls[0][0] == [(b"a", b"a")]
    assert queue.waiting == (0, 0)


def test_reset_forgets_the_open_file(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a\nb\n")
    reader = Reader("r", text_lines())
    queue = FIFO("names", 10)
    queue.enqueue((np.array(str(path).encode(), object),), Told())
    blocking(lambda done: reader.read(queue, done))
    blocking(reader.reset)
    assert reader.num_records_produced == 0
    waiting = Told()
    reader.read(queue, waiting)
    assert not waiting.is_done
    blocking(reader.reset)
    assert isinstance(waiting.error, CancelledError)
    with pytest.raises(InvalidArgumentError):
        reader.read(queue, Told(), 0)


def test_many_threads_share_a_reader(tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / str(i)).write_text("".join(f"{i * 100 + j}\n" for j in range(100)))
    reader = Reader("r", text_lines())
    queue = queue_of(*(tmp_path / str(i) for i in range(5)))
    found: list[list[Any]] = [[] for _ in range(4)]
    failures: list[LaminarError] = []

    def work(into: list[Any]) -> None:
        try:
            into += read_all(reader, queue, 3)
        except LaminarError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(into,)) for into in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    assert sorted(int(v) for into in found for _, v in into) == list(range(500))
