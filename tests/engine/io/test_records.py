"""Record files: what is written is read, and what is damaged is noticed, with its place."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    MissingFileError,
    PermissionDeniedError,
)
from laminar.engine.io.crc32c import _few, crc32c, masked_crc32c, portable_crc32c
from laminar.engine.io.records import RecordScanner, RecordWriter, read_records

RECORDS = [b"", b"a", b"hello" * 100, os.urandom(5000), bytes(70_000)]


# RFC 3720, appendix B.4
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_checksum(data: bytes, expected: int) -> None:
    assert portable_crc32c(data) == expected
    assert crc32c(data) == expected


@given(st.binary(max_size=3000))
def test_blocks_give_the_checksum_of_the_bytes_one_by_one(data: bytes) -> None:
    expected = _few(0xFFFFFFFF, data) ^ 0xFFFFFFFF
    assert portable_crc32c(data) == expected
    assert crc32c(memoryview(data)) == crc32c(bytearray(data)) == expected


def test_masked_checksum_is_that_of_the_format() -> None:
    crc = 0xE3069283
    rotated = (crc >> 15) | ((crc & 0x7FFF) << 17)
    assert masked_crc32c(b"123456789") == (rotated + 0xA282EAD8) % 2**32


@pytest.mark.parametrize("compression", ["", "GZIP", "zlib", None])
def test_round_trip(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "data.rec"
    with RecordWriter(path, compression) as writer:
        for record in RECORDS:
            writer.write(record)
        writer.flush()
    assert list(read_records(path, compression)) == RECORDS
    with RecordScanner(path, compression) as scanner:
        offsets = [scanner.offset]
        offsets.extend(scanner.offset for _ in scanner)
    for i, offset in enumerate(offsets):
        assert list(read_records(path, compression, start=offset)) == RECORDS[i:]


def test_the_bytes_are_those_of_the_format(tmp_path: Path) -> None:
    path = tmp_path / "data.rec"
    with RecordWriter(path) as writer:
        writer.write(b"123456789")
    length = struct.pack("<Q", 9)
    expected = length + struct.pack("<I", masked_crc32c(length)) + b"123456789"
    assert path.read_bytes() == expected + struct.pack("<I", masked_crc32c(b"123456789"))


def test_compressed_files_are_plain_gzip_and_zlib(tmp_path: Path) -> None:
    for compression in ("", "GZIP", "ZLIB"):
        with RecordWriter(tmp_path / compression.lower().ljust(4, "_"), compression) as writer:
            writer.write(b"x" * 1000)
    plain = (tmp_path / "____").read_bytes()
    assert gzip.decompress((tmp_path / "gzip").read_bytes()) == plain
    assert zlib.decompress((tmp_path / "zlib").read_bytes()) == plain


def test_every_damaged_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "data.rec"
    with RecordWriter(path) as writer:
        writer.write(b"first")
        writer.write(b"second")
    good = path.read_bytes()
    for i in range(len(good)):
        path.write_bytes(good[:i] + bytes([good[i] ^ 0x40]) + good[i + 1 :])
        start = 0 if i < 21 else 21
        with pytest.raises(DataLossError, match=f"at byte {start},"):
            list(read_records(path))
    for i in range(1, len(good)):
        if i != 21:
            path.write_bytes(good[:i])
            with pytest.raises(DataLossError, match="ends inside"):
                list(read_records(path))


def test_a_length_that_is_too_great_asks_for_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "data.rec"
    length = struct.pack("<Q", 2**62)
    path.write_bytes(length + struct.pack("<I", masked_crc32c(length)) + b"data")
    with pytest.raises(DataLossError, match="ends inside a record"):
        list(read_records(path))


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_damaged_compression(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "data.rec"
    with RecordWriter(path, compression) as writer:
        writer.write(os.urandom(1000))
    good = path.read_bytes()
    for bad in (good[:-20], b"plain bytes", good[:500] + b"\xff" * 20 + good[520:]):
        path.write_bytes(bad)
        with pytest.raises(DataLossError):
            list(read_records(path, compression))


def test_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="there is no file"):
        list(read_records(tmp_path / "none"))
    with pytest.raises(PermissionDeniedError):
        list(read_records(tmp_path))
    with pytest.raises(MissingFileError, match="folder"):
        RecordWriter(tmp_path / "none" / "file")
    with pytest.raises(InvalidArgumentError, match="compression"):
        RecordWriter(tmp_path / "file", "LZ4")
    writer = RecordWriter(tmp_path / "file")
    with pytest.raises(InvalidArgumentError, match="bytes"):
        writer.write("text")  # type: ignore[arg-type]  # the mistake
    writer.close()
    writer.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        writer.write(b"late")
    RecordWriter(tmp_path / "file", "ZLIB").close()
    with pytest.raises(DataLossError, match="where to go on"):
        list(read_records(tmp_path / "file", "ZLIB", start=10))
