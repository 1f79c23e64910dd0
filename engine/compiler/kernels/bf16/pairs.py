"""What multiplies pairs of bfloat16: the matrix unit (AMX), or vectors (AVX512_BF16).

A pair is two bfloat16 that are next to each other along a sum. It has the 4 bytes of a float32, so
a contraction of bfloat16 is one of float32 with half as many terms, made by other microkernels.
"""

from __future__ import annotations

from ....graph import float32
from ...ir.kernel_target import Target
from ...target.bfloat16_unit import PairUnit
from ...target.code import Code
from ..gemm.microkernel import microkernels
from ..gemm.tiles import Cut, Grid, choose_grid
from .amx_tile import MOST_ROWS, MOST_VECTORS, AmxTile, depth_of

# Tiles of the matrix unit that are less deep are no faster than float32.
_FEWEST_DEEP = 4
_FEWEST_PAIRS = 2


def pays(unit: PairUnit, count: int) -> bool:
    """Whether sums of `count` pairs in a row are faster than in float32."""
    if unit is PairUnit.VECTORS:
        return count >= _FEWEST_PAIRS
    return count > 0 and depth_of(count) >= _FEWEST_DEEP


def grid(
    unit: PairUnit, rows: int, vectors: int, inner: int, target: Target, b_cost: float
) -> Grid:
    """The tiles of a result so high, and so many vectors wide."""
    if unit is PairUnit.VECTORS:
        return choose_grid(rows, vectors, inner, target.registers, b_cost=b_cost)
    return Grid(Cut.of(rows, MOST_ROWS), Cut.of(vectors, MOST_VECTORS))


def unit_microkernels(
    unit: PairUnit, rows: Cut, vectors: Cut, columns: int, count: int, target: Target
) -> tuple[Code, ...]:
    """As microkernels(), for sums of `count` pairs in a row."""
    if unit is PairUnit.VECTORS:
        return microkernels(rows, vectors, columns, float32, target, pairs=True)
    masked = columns % target.lanes(float32) != 0
    heights = [size for size, _ in rows.sizes] * 2
    widths = [size for size, _ in vectors.sizes] * 2
    return tuple(
        AmxTile(height, width, masked, depth_of(count)).code
        for height in heights[:2]
        for width in widths[:2]
    )
