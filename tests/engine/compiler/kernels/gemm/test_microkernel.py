from __future__ import annotations

import platform
import re

import pytest

from laminar.engine.compiler.ir.kernel_target import Target
from laminar.engine.compiler.kernels.gemm.microkernel import Tile
from laminar.engine.compiler.kernels.gemm.tiles import Cut, choose_grid
from laminar.engine.compiler.target import llvm
from laminar.engine.graph import float32, float64


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 assembly")
@pytest.mark.skipif(llvm.vector_bytes() < 64, reason="the host has no AVX-512")
@pytest.mark.parametrize(("rows", "vectors"), [(6, 4), (8, 3), (13, 2), (28, 1), (4, 5), (1, 15)])
def test_sums_stay_in_registers(rows: int, vectors: int) -> None:
    for dtype in (float32, float64):
        for kind in ({}, {"ahead": True}, {"paced": True}, {"ahead": True, "paced": True}):
            text = Tile(dtype, 64, rows, vectors, **kind).code.text()
            assembly = llvm.assembly(text, 64)
            assert not re.findall(r"%zmm\d+, -?\d*\(%rsp\)", assembly)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 assembly")
@pytest.mark.skipif(llvm.vector_bytes() < 32, reason="the host has no AVX")
def test_rounds_of_short_vectors_add_little_to_addresses() -> None:
    """B moves on once for both products of a round; A does for each, and there is a counter."""
    assembly = llvm.assembly(Tile(float32, 32, 6, 2, masked=False).code.text(), 32)
    assert not re.findall(r"%ymm\d+, -?\d*\(%rsp\)", assembly)
    blocks = re.split(r"\n\.LBB\w+:", assembly)
    (loop,) = (block.partition("\tj")[0] for block in blocks if block.count("vfmadd") == 24)
    assert len(re.findall(r"\t(?:add|sub|lea|inc|mov)q?\t", loop)) == 4


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86 assembly")
@pytest.mark.skipif(llvm.vector_bytes() < 32, reason="the host has no AVX")
def test_whole_vectors_need_no_mask() -> None:
    for masked in (False, True):
        text = Tile(float32, 32, 6, 2, masked=masked).code.text()
        assert ("vmaskmov" in llvm.assembly(text, 32)) == masked


@pytest.mark.parametrize("length", [1, 5, 13, 14, 27, 100])
@pytest.mark.parametrize("largest", [1, 6, 13, 28])
def test_a_cut_is_even(length: int, largest: int) -> None:
    cut = Cut.of(length, largest)
    assert sum(size * number for size, number in cut.sizes) == length
    assert max(size for size, _ in cut.sizes) <= largest
    assert cut.parts == -(-length // largest)


@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize(("rows", "vectors"), [(1, 1), (1, 40), (128, 32), (32, 1), (8, 4)])
def test_a_grid_covers_the_result(rows: int, vectors: int, registers: int) -> None:
    grid = choose_grid(rows, vectors, 100, registers)
    assert sum(size * number for size, number in grid.rows.sizes) == rows
    assert sum(size * number for size, number in grid.vectors.sizes) == vectors
    highest, widest = grid.rows.large, grid.vectors.large
    assert highest * widest + widest + 2 <= registers


def test_code_is_for_its_vectors() -> None:
    tile = Tile(float32, 32, 6, 2)
    assert "zmm" not in llvm.assembly(tile.code.text(), 32)
    assert Target(64, 1).lanes(float64) == 8
