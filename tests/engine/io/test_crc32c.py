"""The checksum of many bytes by NumPy, against a loop over bits; when native code makes it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laminar.engine.io.crc32c import Folding, portable_crc32c

module = importlib.import_module("laminar.engine.io.crc32c")
DATA = memoryview(np.random.default_rng(0).bytes(1 << 20))


def by_bits(data: memoryview, start: int = 0) -> int:
    """The checksum by its definition: a division of polynomials, bit by bit."""
    rest = start ^ 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


@pytest.mark.parametrize("start", [0, 1, 0x12345678, 0xFFFFFFFF])
@pytest.mark.parametrize("size", [1023, 16_383, 16_384, 20_001])
def test_folded_bytes(size: int, start: int) -> None:
    assert portable_crc32c(DATA[3 : 3 + size], start) == by_bits(DATA[3 : 3 + size], start)


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18, 1_000_003])
def test_folded_words(size: int) -> None:
    expected = 7
    for at in range(0, size, 10_000):  # by less than is folded
        expected = portable_crc32c(DATA[at : min(at + 10_000, size)], expected)
    assert portable_crc32c(DATA[:size], 7) == expected


def test_words_of_several_stretches() -> None:
    folding = Folding(99)
    assert folding.checksum() == 99
    assert folding.checksum(DATA[:5]) == by_bits(DATA[:5], 99)
    for begin, end in ((0, 8), (8, 8), (8, 16_000), (16_000, 700_000)):
        folding.add(DATA[begin:end])
    assert folding.checksum(DATA[700_000:700_005]) == portable_crc32c(DATA[:700_005], 99)


def test_native_code_is_loaded_once_it_has_been_missed_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module._Missed, "bytes", 0)
    assert module.native_pays(1)  # it is loaded
    monkeypatch.delitem(sys.modules, "laminar.engine.compiler.native", raising=False)
    assert not module.native_pays(200 << 20)
    assert not module.native_pays(200 << 20)
    assert module.native_pays(200 << 20)


LOADS = """
import sys
import numpy as np
from laminar import engine

variable = engine.Variable(np.zeros(2_000_000, np.float32))
engine.Checkpoint(variable=variable).read(sys.argv[1]).assert_consumed()
assert float(variable[7]) == 7
engine.Checkpoint(variable=variable).write(sys.argv[1] + "2")
heavy = [n for n in sys.modules if n == "llvmlite" or n.startswith("laminar.engine.compiler")]
assert not heavy, heavy
"""


def test_a_checkpoint_is_loaded_and_saved_without_the_compiler(tmp_path: Path) -> None:
    from laminar import engine

    variable = engine.Variable(np.arange(2_000_000, dtype=np.float32))
    engine.Checkpoint(variable=variable).write(tmp_path / "saved")
    command = [sys.executable, "-c", LOADS, str(tmp_path / "saved")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
