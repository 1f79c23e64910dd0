"""Sums of two stretches of bytes from those of each."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from laminar.engine.io.crc import CRC32, CRC32C, combined
from laminar.engine.io.crc32c import crc32c


@pytest.mark.parametrize("sizes", [(0, 0), (0, 5), (5, 0), (1, 1), (1000, 3), (7, 70_000)])
def test_of_two_stretches(sizes: tuple[int, int]) -> None:
    chance = np.random.default_rng(0)
    a, b = (chance.bytes(size) for size in sizes)
    assert combined(zlib.crc32(a), zlib.crc32(b), len(b), CRC32) == zlib.crc32(a + b)
    assert combined(crc32c(a), crc32c(b), len(b), CRC32C) == crc32c(a + b)
