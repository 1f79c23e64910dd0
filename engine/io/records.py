"""Record files: byte strings one after the other, each with its length and checksums.

    uint64 length | uint32 masked CRC-32C of the length | data | uint32 masked CRC-32C of the data

all little-endian: the TFRecord format. The whole stream may be compressed by gzip or zlib.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from ..closing import Closing, open_regular
from ..errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    MissingFileError,
    PermissionDeniedError,
)
from .crc32c import Bytes, masked_crc32c
from .places import local_path, no_place

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
_HEADER = _LENGTH.size + _CRC.size
_BUFFER = 256 * 1024
# A length is believed this far at a time: a damaged one cannot ask for more than there is.
_PIECE = 16 * 1024 * 1024

COMPRESSIONS = ("", "GZIP", "ZLIB")


class _ZlibReader(io.RawIOBase):
    """A zlib stream as a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflate = zlib.decompressobj()
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # whatever io gives
        while not self._inflate.eof:
            data = self._rest or self._file.read(_BUFFER)
            if not data:
                raise EOFError("the compressed stream ends too early")
            out = self._inflate.decompress(data, len(view))
            self._rest = self._inflate.unconsumed_tail
            if out:
                view[: len(out)] = out
                return len(out)
        return 0

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _ZlibWriter:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._deflate = zlib.compressobj()

    def write(self, data: Bytes, /) -> object:
        return self._file.write(self._deflate.compress(data))

    def flush(self) -> None:
        self._file.write(self._deflate.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        if not self._file.closed:
            self._file.write(self._deflate.flush())
            self._file.close()


def check_compression(who: str, compression: str | None) -> str:
    """The name of a compression in capitals; InvalidArgumentError when there is none such."""
    name = (compression or "").upper()
    if name not in COMPRESSIONS:
        raise InvalidArgumentError(
            f'{who}: the compression must be "", "GZIP" or "ZLIB", got {compression!r}'
        )
    return name


def open_input(path: str | os.PathLike[str], compression: str | None = "") -> IO[bytes]:
    """A file open for reading, decompressed.

    Raises:
        MissingFileError: there is no such file.
        PermissionDeniedError: it may not be read.
    """
    kind = check_compression("open_input", compression)
    try:
        file = open_regular(local_path(path), _BUFFER)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f"there is no file {os.fspath(path)!r}") from None
    except (PermissionError, IsADirectoryError) as cause:
        raise PermissionDeniedError(
            f"{os.fspath(path)!r} cannot be read: {cause.strerror}"
        ) from cause
    if kind == "GZIP":
        return _Gzip(file)  # type: ignore[return-value]  # a buffered reader of bytes
    if kind == "ZLIB":
        return io.BufferedReader(_ZlibReader(file), _BUFFER)
    return file


class _Gzip(gzip.GzipFile):
    """A gzip stream that closes the file under it."""

    def __init__(self, file: IO[bytes], mode: str = "rb") -> None:
        super().__init__(fileobj=file, mode=mode, filename="", mtime=0)
        self._under = file

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._under.close()


class RecordWriter(Closing):
    """Writes a record file; a `with` block closes it.

    Args:
        path: the file, replaced when it exists.
        compression: "", "GZIP" or "ZLIB", of the whole stream.

    Raises:
        InvalidArgumentError: there is no such compression.
        MissingFileError: the folder does not exist.

    Examples:
        >>> with engine.RecordWriter("data.records") as writer:
        ...     writer.write(b"one")
        ...     writer.write(b"two")
        >>> list(engine.read_records("data.records"))
        [b'one', b'two']
    """

    def __init__(self, path: str | os.PathLike[str], compression: str | None = "") -> None:
        kind = check_compression("RecordWriter", compression)
        self.path = local_path(path)
        try:
            file = open(self.path, "wb", buffering=_BUFFER)  # noqa: SIM115  # closed by close()
        except (FileNotFoundError, NotADirectoryError):
            raise MissingFileError(
                f"the folder of {self.path!r} does not exist", remedy="make it first"
            ) from None
        except OSError as cause:
            raise self._refused(cause) from cause
        self._lock = threading.Lock()  # a record is written whole
        self._closed = False
        self._file: IO[bytes] | _ZlibWriter | _Gzip = file
        if kind == "GZIP":
            self._file = _Gzip(file, "wb")
        elif kind == "ZLIB":
            self._file = _ZlibWriter(file)

    def write(self, record: Bytes) -> None:
        """Append one record.

        Raises:
            FailedPreconditionError: the writer is closed.
            InvalidArgumentError: `record` is not bytes.
            ResourceExhaustedError: the disk is full; `flush` and `close` raise it, too.
        """
        if not isinstance(record, bytes | bytearray | memoryview):
            raise InvalidArgumentError(
                f"a record is bytes, got {type(record).__name__}", remedy="encode it first"
            )
        data = record if isinstance(record, bytes) else bytes(record)
        length = _LENGTH.pack(len(data))
        head = length + _CRC.pack(masked_crc32c(length))
        tail = _CRC.pack(masked_crc32c(data))
        with self._lock:
            if self._closed:
                raise FailedPreconditionError(f"the writer of {self.path!r} is closed")
            try:
                if len(data) < 4096:
                    self._file.write(head + data + tail)
                else:
                    self._file.write(head)
                    self._file.write(data)
                    self._file.write(tail)
            except OSError as cause:
                raise self._refused(cause) from cause

    def flush(self) -> None:
        """Hand what is buffered to the system."""
        self._finish(lambda: self._file.flush())

    def close(self) -> None:
        """Write what is left; a second call does nothing."""
        self._finish(self._close)

    def _close(self) -> None:
        self._closed = True
        self._file.close()

    def _finish(self, do: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                return
            try:
                do()
            except OSError as cause:
                raise self._refused(cause) from cause

    def _refused(self, cause: OSError) -> LaminarError:
        return no_place(f"{self.path!r} cannot be written", cause)


class RecordScanner(Iterator[bytes], Closing):
    """Iterates over the records of a file; a `with` block closes it, and so does its end.

    Args:
        path: the file.
        compression: "", "GZIP" or "ZLIB".
        start: where to begin, in bytes of the decompressed stream: an earlier `offset`.

    Attributes:
        offset: where the next record begins. A scanner made with `start=offset` goes on there.

    Raises:
        MissingFileError: there is no such file.
        DataLossError: a checksum is wrong, or the file ends inside a record; says at which byte.
            The scanner is closed then.

    Examples:
        >>> with engine.RecordWriter("data.records") as writer:
        ...     writer.write(b"one")
        >>> with engine.RecordScanner("data.records") as records:
        ...     list(records)
        [b'one']
    """

    def __init__(
        self, path: str | os.PathLike[str], compression: str | None = "", start: int = 0
    ) -> None:
        self.path = local_path(path)
        self.offset = start
        self._file = open_input(path, compression)
        if start:
            try:
                self._file.seek(start)
            except (OSError, io.UnsupportedOperation):
                self._skip(start)

    def _skip(self, count: int) -> None:
        while count:
            got = len(self._read(min(count, _BUFFER)))
            if not got:
                raise self._damage(f"the file ends before byte {self.offset}, where to go on")
            count -= got

    def _damage(self, what: str) -> DataLossError:
        self.close()
        return DataLossError(
            f"{self.path!r} is damaged: at byte {self.offset}, {what}",
            remedy="copy or write the file again; the compression must be the one it has",
        )

    def _read(self, size: int) -> bytes:
        try:
            if size <= _PIECE:
                return self._file.read(size)
            pieces = []
            while size > 0:
                piece = self._file.read(min(size, _PIECE))
                if not piece:
                    break
                pieces.append(piece)
                size -= len(piece)
            return b"".join(pieces)
        except (EOFError, zlib.error, gzip.BadGzipFile) as cause:
            raise self._damage(f"the compressed stream is broken: {cause}") from cause

    def __next__(self) -> bytes:
        if self._file.closed:
            raise StopIteration
        head = self._read(_HEADER)
        if not head:
            self.close()
            raise StopIteration
        if len(head) < _HEADER:
            raise self._damage(f"the file ends inside a record's head ({len(head)} bytes of 12)")
        if _CRC.unpack_from(head, 8)[0] != masked_crc32c(head[:8]):
            raise self._damage("the checksum of a record's length is wrong")
        (length,) = _LENGTH.unpack_from(head)
        body = self._read(length + 4)
        if len(body) < length + 4:
            raise self._damage(f"the file ends inside a record ({len(body)} bytes of {length + 4})")
        data = body[:length]
        if _CRC.unpack_from(body, length)[0] != masked_crc32c(data):
            raise self._damage("the checksum of a record's data is wrong")
        self.offset += _HEADER + length + 4
        return data

    def close(self) -> None:
        """Free the file; iterating ends."""
        self._file.close()


def read_records(
    path: str | os.PathLike[str], compression: str | None = "", start: int = 0
) -> Iterator[bytes]:
    """The records of a file, one after the other; see `RecordScanner`.

    Args:
        path: the file.
        compression: "", "GZIP" or "ZLIB".
        start: where to begin, in bytes of the decompressed stream.

    Raises:
        MissingFileError: there is no such file, when the first record is asked for.
        DataLossError: a checksum is wrong, or the file ends inside a record.

    Examples:
        >>> with engine.RecordWriter("data.records") as writer:
        ...     writer.write(b"one")
        ...     writer.write(b"two")
        >>> list(engine.read_records("data.records"))
        [b'one', b'two']
    """
    with RecordScanner(path, compression, start) as scanner:
        yield from scanner
