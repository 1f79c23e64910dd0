"""The checksum that threads compute together."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator

import numpy as np
import pytest

from laminar.engine.errors import DataLossError
from laminar.saving.checksum import Checksum, pieces_of
from laminar.saving.window import BytesWindow


@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize("size", [0, 1, 1 << 22, (1 << 22) + 1, 7 * (1 << 22) - 5])
def test_of_a_window(size: int, is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_native:
        pytest.importorskip("laminar.engine.compiler")
    else:
        monkeypatch.delitem(sys.modules, "laminar.engine.compiler", raising=False)
    data = np.random.default_rng(0).bytes(size)
    checksum = Checksum(size, pieces_of(BytesWindow(data, "data")))
    assert checksum.result() == zlib.crc32(data)


def test_errors_of_the_thread_are_raised() -> None:
    def pieces(begin: int, end: int) -> Iterator[memoryview]:
        if begin < 1 << 22:  # what the thread takes first
            raise DataLossError("the file has changed")
        yield memoryview(bytes(end - begin))

    checksum = Checksum(1 << 25, pieces)
    assert checksum._thread is not None
    checksum._thread.join()
    with pytest.raises(DataLossError, match="changed"):
        checksum.result()


def test_stopping() -> None:
    checksum = Checksum(1 << 26, pieces_of(BytesWindow(bytes(1 << 26), "data")))
    checksum.stop()
    assert checksum._thread is not None
    assert not checksum._thread.is_alive()
