"""Tiles of a product made of the microkernels that are loaded, where none is to be compiled.

What tiles a result is cut into changes no bit of it: each element is the same sum. So a product of
a new size takes the best of those that products before it have had, and `any_tile` for the rest.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from ....graph import DType
from ...ir.kernel_target import AvailableCode, Target
from ...target.code import Code
from ...target.host import LINE
from . import any_tile
from .microkernel import Tile, microkernels
from .tiles import Cut, Grid, tile_cycles

# Cycles for a vector of B in `any_tile`, which reads it again for each part.
_COST_OF_VECTOR = 0.3
# Tiles that it makes alone are as large as this, at most.
_ROWS_ALONE = 12
_VECTORS_ALONE = (2, 4, 8)


class Tiles(NamedTuple):
    """How a result is cut, and who makes the pieces.

    codes: high and wide, high and narrow, low and wide, low and narrow.
    """

    grid: Grid
    codes: tuple[Code, ...]


def of_one_thread(
    grid: Grid,
    rows: int,
    columns: int,
    inner: int,
    dtype: DType,
    target: Target,
    *,
    keep_vectors: bool = False,
) -> Tiles:
    """The tiles of a grid, or of another one whose microkernels are loaded.

    Args:
        grid: the best one.
        rows: of the result that one thread makes.
        columns: of that.
        inner: number of products in each sum.
        dtype: of the operands.
        target: the vectors, and what is loaded.
        keep_vectors: whether the widths must be those of `grid`.
    """
    codes = microkernels(grid.rows, grid.vectors, columns, dtype, target)
    if target.available is None or are_available(codes, target.available):
        return Tiles(grid, codes)
    to, vectors = target._replace(threads=1), grid.vectors if keep_vectors else None
    return choose_tiles(
        rows,
        columns,
        inner,
        1,
        dtype,
        to,
        ahead=False,
        num_codes=len(target.available),
        vectors=vectors,
    )


def are_available(codes: tuple[Code, ...], available: AvailableCode) -> bool:
    """Whether no code is missing."""
    return all(map(available.has, codes))


@functools.lru_cache(maxsize=1024)
def choose_tiles(
    rows: int,
    columns: int,
    inner: int,
    num_batches: int,
    dtype: DType,
    target: Target,
    ahead: bool,
    num_codes: int,
    vectors: Cut | None = None,
) -> Tiles:
    """The tiles of least estimated time.

    Args:
        rows: of the result.
        columns: of the result.
        inner: number of products in each sum.
        num_batches: how many such products there are.
        dtype: of the operands.
        target: the vectors, the threads, and what is loaded.
        ahead: see Tile.
        num_codes: how many are loaded: with more, another choice may be better.
        vectors: the widths, if they are known.
    """
    lanes = target.lanes(dtype)
    width = -(-columns // lanes)
    forms = _forms(dtype, target, columns % lanes != 0, ahead, num_codes)
    anything = any_tile.code(dtype, target.vector_bytes)
    best: tuple[float, Tiles] | None = None
    for grid in _grids(rows, width, tuple(forms)):
        if vectors is not None:
            grid = grid._replace(vectors=vectors)
        heights, widths = parts_of(grid.rows, rows), parts_of(grid.vectors, width)
        pieces = list(itertools.product(heights, widths))
        codes = tuple(forms.get((h, w), anything) for (h, _), (w, _) in pieces)
        time = 0.0
        for ((h, tiles), (w, panels)), code in zip(pieces, codes, strict=True):
            if tiles and panels:
                each = _cycles_of_any(h, w, inner) if code is anything else tile_cycles(h, w, inner)
                time += tiles * panels * each
        units = num_batches * grid.rows.parts * grid.vectors.parts
        time *= -(-units // target.threads) * target.threads / units
        if best is None or time < best[0]:
            best = time, Tiles(grid, codes)
    assert best is not None, "there is always `any_tile`"
    return best[1]


def parts_of(cut: Cut, length: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The large and the small size of a cut, and how often they occur."""
    small = cut.parts - cut.num_large
    left = length - cut.large * cut.num_large
    return (cut.large, cut.num_large), (left // small if small else max(cut.large - 1, 1), small)


def _grids(rows: int, vectors: int, forms: tuple[tuple[int, int], ...]) -> Iterator[Grid]:
    """The grids to choose from: of forms that are loaded, and for `any_tile` alone."""
    alone = [(min(rows, _ROWS_ALONE), min(vectors, n)) for n in _VECTORS_ALONE]
    for height, width in dict.fromkeys((*forms, *alone)):
        if height <= rows and width <= vectors:
            for tiles in {Cut.of(rows, height), _with_rest(rows, height)}:
                for panels in {Cut.of(vectors, width), _with_rest(vectors, width)}:
                    yield Grid(tiles, panels)


def _with_rest(length: int, large: int) -> Cut:
    """A length in parts of `large`, and what is left."""
    return Cut(large, length // large, -(-length // large))


@functools.lru_cache(maxsize=64)
def _forms(
    dtype: DType, target: Target, masked: bool, ahead: bool, num_codes: int
) -> dict[tuple[int, int], Code]:
    """The loaded microkernels by height and width.

    One that fetches nothing ahead can be called as one that does, and one that paces as any.
    """
    assert target.available is not None
    has, found = target.available.has, dict[tuple[int, int], Code]()
    kinds = list(
        itertools.product(
            (True, False)[: 2 - masked],
            (False, True)[: 1 + (target.vector_bytes >= LINE)],
            (False, True)[: 1 + ahead],
        )
    )
    for width in range(1, target.registers // 2):
        for height in range(1, (target.registers - 1) // width):
            for masks, paces, fetches in kinds:
                form = dtype, target.vector_bytes, height, width
                tile = Tile(*form, masked=masks, ahead=fetches, paced=paces)
                if has(tile.code):
                    found[height, width] = tile.code
    return found


def _cycles_of_any(rows: int, vectors: int, inner: int) -> float:
    """The estimated time of `any_tile`."""
    time = 0.0
    for height in any_tile.HEIGHTS:
        count, rows = divmod(rows, height)
        width = any_tile.SUMS // height
        panels = -(-vectors // width)
        time += count * panels * tile_cycles(height, width, inner, _COST_OF_VECTOR)
    return time
