"""How a result is cut into tiles that a microkernel keeps in registers."""

from __future__ import annotations

import functools
from typing import NamedTuple


class Cut(NamedTuple):
    """A length in `parts`: the first `num_large` have `large`, the others one less."""

    large: int
    num_large: int
    parts: int

    @classmethod
    def of(cls, length: int, largest: int) -> Cut:
        """As few parts as there can be of at most `largest`, as even as can be."""
        count = -(-length // largest)
        large = -(-length // count)
        return cls(large, length - count * (large - 1), count)

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """The sizes that occur, and how often."""
        small = self.parts - self.num_large
        found = ((self.large, self.num_large), (self.large - 1, small))
        return found if small else found[:1]


class Grid(NamedTuple):
    """The tiles of a result: heights in rows, widths in vectors."""

    rows: Cut
    vectors: Cut


@functools.lru_cache(maxsize=4096)
def choose_grid(
    rows: int, vectors: int, inner: int, registers: int, *, b_cost: float = 0.15, spare: int = 1
) -> Grid:
    """The grid of least estimated time.

    Args:
        rows: rows of the result.
        vectors: width of the result in vectors.
        inner: number of products in each sum.
        registers: vector registers of the processor.
        b_cost: cycles for a vector of B besides; more if it comes from the L2 cache.
        spare: vector registers for what is neither a sum nor an operand, as a mask.
    """
    best: tuple[float, Grid] | None = None
    for width in range(1, min(vectors, registers // 2 - 1) + 1):
        # Sums, a row of B, an element of A, and some to spare, or LLVM moves sums to the stack.
        highest = (registers - 1 - spare - width) // width
        grid = Grid(Cut.of(rows, highest), Cut.of(vectors, width))
        time = sum(
            tiles * panels * tile_cycles(height, wide, inner, b_cost)
            for height, tiles in grid.rows.sizes
            for wide, panels in grid.vectors.sizes
        )
        if best is None or time <= best[0]:
            best = time, grid
    assert best is not None, "there is a column"
    return best[1]


def choose_lanewise_grid(rows: int, vectors: int, registers: int) -> Grid:
    """The grid where each product has vectors of its own: some of them next to each other."""
    widths = Cut.of(vectors, registers // 8)
    return Grid(Cut.of(rows, (registers - 2) // widths.large - 1), widths)


def tile_cycles(rows: int, vectors: int, inner: int, b_cost: float = 0.15) -> float:
    """The estimated time of a tile: two multiplications a cycle, or two loads, or their latency.

    Loads cost a little even where multiplications take longer.
    """
    sums = rows * vectors
    step = max(sums / 2, (rows + vectors) / 2, 4.0) + 0.15 * rows + b_cost * vectors
    return inner * step + 2.0 * sums + 20.0
