"""The native CRC-32 against zlib's, and the CRC-32C against the one by tables."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from laminar.engine.compiler.native import checksums as module
from laminar.engine.compiler.native.checksums import crc32, crc32c
from laminar.engine.io.crc32c import portable_crc32c


@pytest.fixture(params=[0, 16, 32, 64])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of the vectors that are used: those that this processor has, and 0 for none."""
    chosen: int = request.param
    if chosen > module.vector_bytes():
        pytest.skip("this processor has no such products")
    monkeypatch.setattr(module, "vector_bytes", lambda: chosen)
    return chosen


@pytest.mark.parametrize("start", [0, 1, 0xFFFF_FFFF, 0x1234_5678])
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 4096 + 255, 70_000, (1 << 20) + 13])
def test_equals_zlib(size: int, start: int, width: int) -> None:
    data = memoryview(np.random.default_rng(size).bytes(size + 3))
    for skipped in (0, 1, 3):
        piece = data[skipped : skipped + size]
        assert crc32(piece, start) == zlib.crc32(piece, start)
        assert crc32c(piece, start) == portable_crc32c(piece, start)


def test_sums_of_pieces(width: int) -> None:
    data = memoryview(np.random.default_rng(1).bytes(50_000))
    assert crc32(data[20_001:], crc32(data[:20_001])) == zlib.crc32(data)
