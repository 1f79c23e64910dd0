"""Stretches of files against what is in them, and their checksums against those by tables."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.native import span_reading
from laminar.engine.compiler.native.checksums import vector_bytes
from laminar.engine.compiler.native.threads import set_threads
from laminar.engine.io import spans
from laminar.engine.io.crc32c import portable_crc32c
from laminar.engine.io.spans import Span, read_portably, read_spans

LARGE = (1 << 23) + (1 << 20) + 77  # two parts, and bytes after the last block
DATA = np.random.default_rng(0).bytes(LARGE + 5000)


def memory(size: int, start: int = 0) -> memoryview:
    """So many bytes, which begin `start` after a line of the cache."""
    found = np.zeros(size + 128, np.uint8)
    first = -found.ctypes.data % 64 + start
    return found[first : first + size].data


def no_lease(*_: Any) -> None:
    raise OSError("no lease")


class NoPages(mmap.mmap):
    """A map of a file on a disk that fails."""

    def madvise(self, *_: Any) -> None:
        raise OSError("no pages")


WAYS = ["as it is", "no compiler", "no lease", "no pages", "no products", 16, 32, 64, "1 thread"]


@pytest.fixture(params=WAYS)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each of the ways in which native code reads, and Python's."""
    if request.param == "no compiler":
        monkeypatch.setattr(spans, "native_pays", lambda size: False)
    elif request.param == "no lease":
        monkeypatch.setattr(fcntl, "fcntl", no_lease)
    elif request.param == "no pages":
        monkeypatch.setattr(mmap, "mmap", NoPages)
    elif request.param == "no products":
        monkeypatch.setattr(span_reading, "vector_bytes", lambda: 0)
    elif isinstance(request.param, int):
        if request.param > vector_bytes():
            pytest.skip("this processor has no such products")
        monkeypatch.setattr(span_reading, "vector_bytes", lambda: request.param)
    set_threads(1 if request.param == "1 thread" else 3)
    yield
    set_threads(None)


@pytest.mark.usefixtures("_way")
def test_values_and_checksums(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_bytes(DATA)
    paths[1].write_bytes(DATA[::-1])
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb")) for path in paths]
        wanted = [
            Span(files[0], 4321, memory(LARGE)),
            Span(files[1], 0, memory(1 << 20)),
            Span(files[0], 7, memory(0)),
            Span(files[0], 3, memory(100)),
            Span(files[1], 9, memory(1 << 21, start=8)),  # not at a line of the cache
            Span(files[1], 1000, memory(LARGE)),
        ]
        sums = read_spans(wanted)
    contents = {id(files[0]): DATA, id(files[1]): DATA[::-1]}
    for span, found in zip(wanted, sums, strict=True):
        expected = contents[id(span.file)][span.offset : span.offset + len(span.memory)]
        assert bytes(span.memory) == expected
        assert found == portable_crc32c(expected)


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("missing", [1, 100, 1 << 20, LARGE])
def test_a_file_that_ends_early(tmp_path: Path, missing: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA[: LARGE - missing])
    with open(path, "rb") as file:
        wanted = [Span(file, 0, memory(LARGE)), Span(file, 0, memory(0))]
        assert read_spans(wanted) == [None, 0]
        assert read_portably(wanted[0]) is None


def test_nobody_opens_it_to_write_while_it_is_mapped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with open(path, "rb") as file, span_reading._mapped(file.fileno(), LARGE) as found:
        if found is None:
            pytest.skip("this file system gives no leases")
        assert found[:10] == DATA[:10]
        with pytest.raises(BlockingIOError):
            os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    with (
        open(path, "r+b"),
        open(path, "rb") as file,
        span_reading._mapped(file.fileno(), LARGE) as found,
    ):
        assert found is None  # somebody could cut it


def test_an_error_of_the_disk_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> int:
        raise OSError(5, "Input/output error")

    path = tmp_path / "file"
    path.write_bytes(DATA)
    monkeypatch.setattr(mmap, "mmap", NoPages)
    monkeypatch.setattr(os, "preadv", fails)
    with open(path, "rb") as file, pytest.raises(OSError, match="Input/output"):
        read_spans([Span(file, 0, memory(LARGE))])
