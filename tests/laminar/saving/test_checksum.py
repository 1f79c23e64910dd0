"""The checksum that threads compute together."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from laminar.engine.errors import DataLossError
from laminar.saving.checksum import Checksum, combined
from laminar.saving.window import BytesWindow


@pytest.mark.parametrize("sizes", [(0, 0), (0, 5), (5, 0), (1, 1), (1000, 3), (7, 70_000)])
def test_of_two_stretches(sizes: tuple[int, int]) -> None:
    chance = np.random.default_rng(0)
    a, b = (chance.bytes(size) for size in sizes)
    assert combined(zlib.crc32(a), zlib.crc32(b), len(b)) == zlib.crc32(a + b)


@pytest.mark.parametrize("size", [0, 1, 1 << 23, (1 << 23) + 1, 3 * (1 << 23) - 5])
def test_of_a_window(size: int) -> None:
    data = np.random.default_rng(0).bytes(size)
    for expected in (zlib.crc32(data), zlib.crc32(data) ^ 1):
        sum_ = Checksum(BytesWindow(data, "data"), expected)
        if expected == zlib.crc32(data):
            sum_.finish()
        else:
            with pytest.raises(DataLossError, match="data: .*checksum"):
                sum_.finish()


def test_stopping() -> None:
    sum_ = Checksum(BytesWindow(bytes(1 << 26), "data"), 0)
    sum_.stop()
    assert not sum_._thread.is_alive()
