"""Readers as a user has them in hand."""

from __future__ import annotations

from typing import Any

from ..graph import Operation, Tensor, int32
from ..io.records import check_compression
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.effects import perform
from ..ops.state import reader as ops
from ..resources.readers import fixed_length
from .handles import Handle
from .queues import QueueBase


class ReaderBase(Handle):
    """What all readers share. Abstract: make a TextLineReader, RecordReader, ...

    A reader takes file names from a queue and gives records, a key that names the place and a
    value. It works on one file at a time and takes a name when it needs one; many threads may
    share it.

    Examples:
        >>> with engine.Graph().as_default():
        ...     isinstance(engine.TextLineReader(), engine.ReaderBase)
        True
    """

    def __init__(self, format: str, options: tuple[Any, ...], name: str) -> None:
        super().__init__(ops.reader, {"format": format, "options": options}, name)

    @property
    def reader_ref(self) -> Tensor:
        """The tensor that stands for it."""
        return self.handle

    def read(self, queue: QueueBase | Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record: key and value, two strings.

        Args:
            queue: of file names; waits while it is empty.
            name: of the operation.

        Raises:
            OutOfRangeError: the queue is closed and empty, and the last file is read.
            MissingFileError: there is no file of the name.
            DataLossError: the file is damaged; the next read goes on with the next file.
        """
        with self.beside():
            found = apply(ops.reader_read, [self.handle, _handle(queue)], {}, name)
        return found[0], found[1]

    def read_up_to(
        self, queue: QueueBase | Tensor, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the next records: at least one, at most `num_records`, of one file."""
        count = convert_to_tensor(num_records, int32)
        with self.beside():
            found = apply(ops.reader_read_up_to, [self.handle, _handle(queue), count], {}, name)
        return found[0], found[1]

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """How many records were read, int64."""
        with self.beside():
            return apply(ops.reader_num_records_produced, [self.handle], {}, name)[0]

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """How many files were read to their end, int64."""
        with self.beside():
            return apply(ops.reader_num_work_units_completed, [self.handle], {}, name)[0]

    def reset(self, name: str | None = None) -> Operation | None:
        """Forget the open file and the counts; reads that wait are cancelled."""
        with self.beside():
            return perform(ops.reader_reset, [self.handle], {}, name)


def _handle(queue: QueueBase | Tensor) -> Tensor:
    return queue.handle if isinstance(queue, QueueBase) else queue


class TextLineReader(ReaderBase):
    r"""Gives the lines of files, without their ends; the key is "file:line", from 1.

    Args:
        skip_header_lines: how many lines are left out at the head of each file.
        name: of the operation.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("lines.txt").write_text("first\nsecond\n")
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     names = engine.string_input_producer(["lines.txt"])
        ...     key, line = engine.TextLineReader().read(names)
        ...     threads = engine.start_queue_runners(session)
        ...     session.run([key, line])
        [b'lines.txt:1', b'first']
    """

    def __init__(
        self, skip_header_lines: int | None = None, name: str = "text_line_reader"
    ) -> None:
        super().__init__("text_lines", (int(skip_header_lines or 0),), name)


class WholeFileReader(ReaderBase):
    r"""Gives the content of each file as one record; the key is the file's name.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("lines.txt").write_text("first\nsecond\n")
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     names = engine.string_input_producer(["lines.txt"])
        ...     key, content = engine.WholeFileReader().read(names)
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(content)
        b'first\nsecond\n'
    """

    def __init__(self, name: str = "whole_file_reader") -> None:
        super().__init__("whole_files", (), name)


class IdentityReader(ReaderBase):
    """Gives each name that it takes from the queue, as key and value; reads no file.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     names = engine.string_input_producer(["a name"])
        ...     key, value = engine.IdentityReader().read(names)
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(value)
        b'a name'
    """

    def __init__(self, name: str = "identity_reader") -> None:
        super().__init__("names", (), name)


class RecordReader(ReaderBase):
    """Gives the records of record files, which carry checksums; the key is "file:offset".

    Args:
        compression: of the files: "", "GZIP" or "ZLIB".
        name: of the operation.

    Examples:
        >>> with engine.RecordWriter("data.records") as writer:
        ...     writer.write(b"one")
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     names = engine.string_input_producer(["data.records"])
        ...     key, record = engine.RecordReader().read(names)
        ...     threads = engine.start_queue_runners(session)
        ...     session.run([key, record])
        [b'data.records:0', b'one']
    """

    def __init__(self, compression: str | None = "", name: str = "record_reader") -> None:
        kind = check_compression("RecordReader", compression)
        super().__init__("records", (kind,), name)


class FixedLengthRecordReader(ReaderBase):
    """Gives pieces of one length; the key is "file:number", from 0.

    Args:
        record_bytes: of a piece.
        header_bytes, footer_bytes: left out at the two ends of each file.
        hop_bytes: from the beginning of a piece to that of the next; by default `record_bytes`.
        name: of the operation.

    Raises:
        InvalidArgumentError: a number is negative, or there is nothing in a piece.

    Examples:
        >>> import pathlib
        >>> _ = pathlib.Path("data.bin").write_bytes(b"aabbcc")
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     names = engine.string_input_producer(["data.bin"])
        ...     key, record = engine.FixedLengthRecordReader(record_bytes=2).read(names)
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(record), session.run(record)
        (b'aa', b'bb')
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str = "fixed_length_record_reader",
    ) -> None:
        options = tuple(int(n or 0) for n in (record_bytes, header_bytes, footer_bytes, hop_bytes))
        fixed_length(*options)  # it refuses wrong lengths here, not in the step that reads
        super().__init__("fixed_length", options, name)
