"""Readers: (key, value) records from files whose names come from a queue.

A reader works on one file at a time, and reads come one after the other. To wait for a name is to
leave a function, as everywhere in this room; the file itself is read by the thread that asks, or
by the one that puts the name into the queue.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ..errors import (
    CancelledError,
    DataLossError,
    InvalidArgumentError,
    LaminarError,
)
from ..io.places import local_path
from ..io.records import RecordScanner, check_compression, open_input
from .queues import Queue
from .waiting import Done, Ticket

Record: TypeAlias = tuple[bytes, bytes]
Format: TypeAlias = Callable[[bytes], Iterator[Record]]


class _Read:
    """One call of `read`: what it has got, what it ends by; of a reset, with nothing `wanted`."""

    __slots__ = ("cancelled", "done", "queue", "reader", "records", "ticket", "wanted")

    def __init__(self, reader: Reader, queue: Queue | None, wanted: int, done: Done) -> None:
        self.reader = reader
        self.queue = queue
        self.wanted = wanted
        self.done = done
        self.records: list[Record] = []
        self.ticket: Ticket | None = None  # while it waits for a name
        self.cancelled: LaminarError | None = None

    def cancel(self, error: LaminarError) -> bool:
        """Give up waiting; False when it is over already."""
        return self.reader.cancel(self, error)


class _Name:
    """A name that comes from the queue: at once, or later to a read that has gone to wait."""

    def __init__(self, later: Callable[[Any, LaminarError | None], None]) -> None:
        self._lock = threading.Lock()
        self._later = later
        self._waits = False
        self._found: tuple[Any, LaminarError | None] | None = None

    def __call__(self, result: Any, error: LaminarError | None) -> None:
        with self._lock:
            self._found = result, error
            waits = self._waits
        if waits:
            self._later(result, error)

    def now(self) -> tuple[Any, LaminarError | None] | None:
        """What has come; from None on, it comes to `later`."""
        with self._lock:
            self._waits = self._found is None
            return self._found


class Reader:
    """Reads the files that a queue names, in one format.

    State: `_reads` holds the reads that are not done, guarded by `_lock`. The first of them is at
    work, by one thread at a time, which alone touches the rest: `_file`, what is left of the open
    file, None between files, and `_failure`, why it could not be read to its end.

    Args:
        name: for errors.
        format: gives the records of a file of some name.
    """

    def __init__(self, name: str, format: Format) -> None:
        self.name = name
        self.declared: Any = None  # what graphs say of it
        self._format = format
        self._lock = threading.Lock()
        self._reads: deque[_Read] = deque()
        self._file: Iterator[Record] | None = None
        self._failure: LaminarError | None = None
        self.num_records_produced = 0
        self.num_work_units_completed = 0

    def read(self, queue: Queue, done: Done, up_to: int = 1) -> Ticket:
        """The next records, at least one and at most `up_to`, all of one file.

        `done` gets a list of (key, value); OutOfRangeError when the queue is closed and used up;
        the error of a file that cannot be read, of which no more is read then.
        """
        if up_to < 1:
            raise InvalidArgumentError(f"reader {self.name!r}: cannot read {up_to} records")
        return self._begin(_Read(self, queue, up_to, done))

    def reset(self, done: Done) -> Ticket:
        """Forget the open file and the counts; reads that wait are cancelled."""
        with self._lock:
            reads = [*self._reads]
        for read in reads:
            read.cancel(CancelledError(f"reader {self.name!r} was reset"))
        return self._begin(_Read(self, None, 0, done))

    def _begin(self, read: _Read) -> _Read:
        with self._lock:
            self._reads.append(read)
            first = len(self._reads) == 1
        if first:
            self._work()
        return read

    def cancel(self, read: _Read, error: LaminarError) -> bool:
        """Have one read give up; False when it is over, or does not wait."""
        with self._lock:
            if read not in self._reads:
                return False
            first = self._reads[0] is read
            if first:
                read.cancelled = error
                ticket = read.ticket
            else:
                self._reads.remove(read)
        if first:  # the queue tells the read, and then the reader goes on with the next one
            return ticket is not None and ticket.cancel(error)
        read.done(None, error)
        return True

    # Working, by the thread that made a read the first, or by the one that brings a name

    def _work(self) -> None:
        more = True
        while more:
            read = self._reads[0]
            done, error = self._fill(read)
            if not done:
                name = _Name(self._resume)
                self._ask(read, name)
                found = name.now()
                if found is None:
                    return  # _resume goes on
                error = self._open(*found)
            more = self._finish(read, error) if done or error is not None else True

    def _ask(self, read: _Read, name: _Name) -> None:
        """Have the next name brought, or the error of the queue."""
        if read.cancelled is not None:
            name(None, read.cancelled)
            return
        assert read.queue is not None
        ticket = read.queue.dequeue(name)
        with self._lock:
            read.ticket, cancelled = ticket, read.cancelled
        if cancelled is not None and ticket is not None:  # cancelled while it was asking
            ticket.cancel(cancelled)

    def _resume(self, result: Any, error: LaminarError | None) -> None:
        read = self._reads[0]
        failure = self._open(result, error)
        if failure is None or self._finish(read, failure):
            self._work()

    def _open(self, result: Any, error: LaminarError | None) -> LaminarError | None:
        if error is None:
            self._file = self._format(result[0][0][()])
        return error

    def _fill(self, read: _Read) -> tuple[bool, LaminarError | None]:
        """Take records of the open file; whether the read is through, and with which error."""
        if not read.wanted:
            self._file = self._failure = None
            self.num_records_produced = self.num_work_units_completed = 0
            return True, None
        failure: LaminarError | None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            return True, failure
        if self._file is None:
            return False, None
        try:
            while len(read.records) < read.wanted:
                read.records.append(next(self._file))
                self.num_records_produced += 1
        except StopIteration:
            self._file = None
            self.num_work_units_completed += 1
            return bool(read.records), None
        except Exception as cause:
            self._file = None
            failure = DataLossError(f"reader {self.name!r}: {cause}")
            if isinstance(cause, LaminarError):
                failure = cause
            if not read.records:
                return True, failure
            self._failure = failure  # for the next read: what was read goes out first
        return True, None

    def _finish(self, read: _Read, error: LaminarError | None) -> bool:
        """Tell the first read; whether another waits."""
        with self._lock:
            self._reads.popleft()
            more = bool(self._reads)
        read.done(None if error is not None else read.records, error)
        return more

    def __repr__(self) -> str:
        return f"reader {self.name!r}"


# Formats


def text_lines(skip_header_lines: int = 0) -> Format:
    """Each line, without its end; the key is "file:number", from 1."""

    def records(name: bytes) -> Iterator[Record]:
        with open_input(local_path(name)) as file:
            for number, line in enumerate(file, 1):
                if number > skip_header_lines:
                    yield b"%s:%d" % (name, number), line.removesuffix(b"\n").removesuffix(b"\r")

    return records


def whole_files(name: bytes) -> Iterator[Record]:
    """The file as one record; the key is its name."""
    with open_input(local_path(name)) as file:
        yield name, file.read()


def names_alone(name: bytes) -> Iterator[Record]:
    """The name itself, as key and value; no file is read."""
    yield name, name


def checked_records(compression: str = "") -> Format:
    """The records of a record file; the key is "file:offset"."""
    check_compression("RecordReader", compression)

    def records(name: bytes) -> Iterator[Record]:
        with RecordScanner(local_path(name), compression) as scanner:
            offset = scanner.offset
            for record in scanner:
                yield b"%s:%d" % (name, offset), record
                offset = scanner.offset

    return records


def fixed_length(
    record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0, hop_bytes: int = 0
) -> Format:
    """Pieces of one length; the key is "file:number", from 0.

    Args:
        record_bytes: of a piece.
        header_bytes, footer_bytes: left out at the file's two ends.
        hop_bytes: from the beginning of a piece to that of the next; 0 for `record_bytes`.

    Raises:
        InvalidArgumentError: a number is negative, or there is nothing in a piece.
        DataLossError: while reading, what lies between the ends is no whole number of pieces.
    """
    if record_bytes < 1 or min(header_bytes, footer_bytes, hop_bytes) < 0:
        raise InvalidArgumentError(
            f"FixedLengthRecordReader: the lengths must not be negative, and record_bytes at "
            f"least 1, got record {record_bytes}, header {header_bytes}, footer {footer_bytes}, "
            f"hop {hop_bytes}"
        )
    hop = hop_bytes or record_bytes

    def records(name: bytes) -> Iterator[Record]:
        path = local_path(name)
        with open_input(path) as file:
            size = os.fstat(file.fileno()).st_size
            inside = size - header_bytes - footer_bytes
            if inside < 0 or (inside and (inside < record_bytes or (inside - record_bytes) % hop)):
                raise DataLossError(
                    f"{path!r} has {size} bytes: without {header_bytes} at its head and "
                    f"{footer_bytes} at its foot they are no whole number of records of "
                    f"{record_bytes} bytes, {hop} apart"
                )
            count = (inside - record_bytes) // hop + 1 if inside else 0
            for number in range(count):
                file.seek(header_bytes + number * hop)
                yield b"%s:%d" % (name, number), file.read(record_bytes)

    return records
