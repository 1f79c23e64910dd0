"""How a product is walked through, by its sizes: tiles, blocks, and what is copied."""

from __future__ import annotations

from typing import NamedTuple

from ....graph import DType
from ...ir.kernel_target import Target
from ...ir.launch import Matrix
from ...target import host
from . import gemm_kernel as kernel
from .tiles import Cut, Grid, choose_grid

# A sum this long is made in one go when B is copied: each further block of k reads C again.
_LONGEST_INNER = 1024
# The same when B is read where it is: its rows have so much of the L2 cache, whose lines they
# share the less evenly the longer they are.
_IN_PLACE_SHARE = 25 / 64
# The same when A is read across its rows, where each k is on another line; and when it is copied
# for a large result.
_LONGEST_INNER_ACROSS = 256
_LONGEST_INNER_COPIED = 512
# Results of so many elements for each byte of the L2 cache are large.
_LARGE_SHARE = 1 / 2
# The same when B alone is copied for a large result: C, which is far away by then, is read again
# for each block of k, and that takes longer than reading A for some panels less at a time.
_LONGEST_INNER_LARGE = 2048
# The same for narrow panels, which the L1 cache is to keep, next to what tiles read of A.
_LONGEST_INNER_NARROW = 256
# Copied panels of B stay in the L2 cache, of which they have at most so much; less if A need
# not be copied again for the next ones. So do the rows of A that are used for all of them.
_PACKED_SHARE = 1 / 2
_PACKED_PANELS_SHARE = 3 / 8
_PART_SHARE = 5 / 16
# Rows of B this far apart are read a page at a time: for many rows of A they are copied, unless all
# of B stays in the L2 cache.
_FAR_BYTES = 2048
_NEAR_SHARE = 7 / 8
_FEWEST_ROWS_TO_PACK = 256
# So few are enough for a B with rows of whole lines that begins beside one, as only a run knows, if
# all of it stays in the L2 cache: for fewer the copy takes longer than vectors in two lines.
_FEWEST_ROWS_TO_ALIGN = 128
# A panel so narrow has one or two lines of a cache in each row of B: read in place, the lines of a
# panel fall on few sets of the L1 cache. So fewer rows of A are enough, still fewer if rows of B
# are pages apart; and few rows want the copies of some panels at a time, next to B in the second
# cache. So does an A that stays there: it is read again for the next panels at no cost.
_NARROW_BYTES = 96
_NARROWEST_BYTES = 64
_FEWEST_ROWS_TO_PACK_NARROW = 128
_FEWEST_ROWS_TO_PACK_PAGES = 64
_PAGE_BYTES = 4096
_PACKED_FEW_SHARE = 1 / 8
# Where these sets do not keep it, each tile reads the panel from the L2 cache, which takes much
# of the power that the clock depends on. Then so many panels are copied, however near their rows.
_FEWEST_PANELS_TO_PACK_CROWDED = 4
# No tile of a large result is wider than four vectors of 64 bytes.
_WIDEST_PANEL_BYTES = 256
# For so many rows a B that is copied as a whole is read faster, wherever it is.
_MANY_ROWS = 1024
# A is copied for a result of so many elements if it would be read across its rows, and for so many
# panels: fewer come to its lines in the L2 cache in less time than the copy takes.
_FEWEST_RESULTS_TO_PACK = 64 * 1024
_FEWEST_RESULTS_TO_PACK_QUICK = 16 * 1024
_FEWEST_PANELS_TO_PACK = 5
# Parts have about so many rows: those of C go by in order, a few pages at a time, and stay in the
# L2 cache for the epilogue and for the next block of k. Where A is copied, it is read in longer
# runs if rows of C are short, and also where C is read again for the next block of k.
_PART_ROWS = 72
_PART_RESULTS = 36 * 1024
_PART_ROWS_AGAIN = 100
# So few rows are one part.
_FEW_ROWS = 128
# So few use a panel of a transposed B as soon as it is copied, as one part.
_FEW_ROWS_OF_PANEL = 256
# So many panels at a time, where an A that is read across its rows takes much of the L2 cache.
_PANELS_OF_FAR_A = 4
# Vectors of AVX2, which loads an element of A for all lanes of a register at once.
_FEW_REGISTERS_BYTES = 32
# What a vector of B costs where many tiles use it, which makes tiles higher.
_COST_OF_SHARED_B = 0.3
# When the epilogue takes much memory of its own, parts of C have about that share of the second
# cache, if rows are not too short.
_STREAMED_SHARE = 1 / 16
_STREAMED_ROW = 1024
_STREAMED_TOTAL_SHARE = 1 / 2
# So many units of work for each thread need not be shared out evenly.
_MANY_UNITS = 8
_MANY_VECTORS = 64 * 1024
# Time to read, or to copy, what a tile takes of A, and to have a panel of B, by that of a tile.
_READING_A = 0.1
_COPYING_A = 0.3
_READING_B = 1.0
_COPYING_B = 2.0
_TRANSPOSING_B = 4.0


class Blocks(NamedTuple):
    """How a product is walked through: in units `panels` wide, `inner` deep.

    part: how many tiles high the parts of a unit are.
    streams: whether what the epilogue takes besides is fetched meanwhile.
    """

    part: int
    panels: int
    inner: int
    pack_a: bool
    pack_b: int
    streams: bool


def choose_product_grid(
    rows: int, columns: int, inner: int, num_batches: int, dtype: DType, target: Target
) -> Grid:
    """The grid of a product; one that threads are to share has many panels, or even ones."""
    lanes = target.lanes(dtype)
    sizes = rows, -(-columns // lanes), inner
    is_whole = target.vector_bytes == _FEW_REGISTERS_BYTES and columns % lanes == 0
    if is_whole and not _is_large(rows, columns):
        # 4 x 3 sums, a row of B and an element of A are 16 registers. Such wide tiles read A, which
        # comes from the L2 cache, less often; so a vector of B costs no more than usual.
        grid = choose_grid(*sizes, target.registers, spare=0)
    elif target.threads == 1 or rows * sizes[1] >= _MANY_VECTORS:
        grid = choose_grid(*sizes, target.registers, b_cost=_COST_OF_SHARED_B)
    else:
        grid = choose_grid(*sizes, target.registers)
    return _shared_grid(grid, num_batches, target.threads)


def _shared_grid(grid: Grid, num_batches: int, threads: int) -> Grid:
    """With as many panels as threads can share, where there are few tiles."""
    parts = grid.vectors.parts
    units = num_batches * grid.rows.parts * parts
    more = -(-parts // threads) * threads
    width = grid.vectors.large * parts - (parts - grid.vectors.num_large)
    if units >= _MANY_UNITS * threads or units % threads == 0 or more > width:
        return grid
    return Grid(grid.rows, Cut.of(width, -(-width // more)))


def is_transposed_first(rows: int, columns: int, inner: int) -> bool:
    """Whether to copy all of an A that is read across its rows, before the product is made.

    Otherwise each block of k is to be short, and C is read again for many of them.
    """
    return _is_large(rows, columns) and inner > _LONGEST_INNER_COPIED


def may_be_transposed_first(rows: int, columns: int, inner: int) -> bool:
    """Whether that may be so where some of these are other numbers."""
    return _is_large(rows, columns) or inner > _LONGEST_INNER_COPIED


def _is_large(rows: int, columns: int) -> bool:
    """Whether a result is far away when it is read again."""
    return rows * columns >= host.in_l2_cache(_LARGE_SHARE)


def choose_blocks(
    a: Matrix,
    b: Matrix,
    rows: int,
    columns: int,
    inner: int,
    dtype: DType,
    grid: Grid,
    num_batches: int,
    threads: int,
    streamed: int = 0,
    *,
    alone: Grid,
    b_may_be_beside: bool,
) -> Blocks:
    """Blocks that stay in cache, and copies where strides are bad for it.

    `streamed` is how many bytes the epilogue takes besides, `alone` the grid for one thread: how
    sums are cut must not depend on the number of threads. `b_may_be_beside` says whether only a run
    knows if B begins at a line.
    """
    size = dtype.size
    row_bytes = columns * size
    packed_bytes = host.in_l2_cache(_PACKED_SHARE)
    panel_row = -(-columns // grid.vectors.parts) * size
    pack_b = kernel.B_AS_IT_IS
    widest = -(-columns // alone.vectors.parts) * size
    is_narrow = widest <= _NARROW_BYTES
    # Then tiles have 4 rows, and A is copied without masks.
    is_quick = is_narrow and widest > _NARROWEST_BYTES
    is_far = b.row_stride * size >= _FAR_BYTES <= row_bytes
    is_again = is_narrow and alone.vectors.parts >= _FEWEST_PANELS_TO_PACK_CROWDED
    is_crowded = is_again and inner > host.lines_in_l1_cache(b.row_stride * size)
    fewest = _FEWEST_ROWS_TO_PACK
    if is_narrow:
        is_paged = b.row_stride * size >= _PAGE_BYTES
        fewest = _FEWEST_ROWS_TO_PACK_PAGES if is_paged else _FEWEST_ROWS_TO_PACK_NARROW
    if b.column_stride != 1 and columns > 1:
        pack_b = kernel.B_TRANSPOSED
    elif rows >= fewest and (is_far or is_crowded):
        is_near = not is_narrow and row_bytes * inner <= host.in_l2_cache(_NEAR_SHARE)
        pack_b = kernel.B_AS_IT_IS if is_near else kernel.B_BY_INNER
    is_across = a.column_stride != 1 and rows > 1
    fewest = _FEWEST_RESULTS_TO_PACK_QUICK if is_quick else _FEWEST_RESULTS_TO_PACK
    pack_a = is_across and a.row_stride == 1 and rows * columns >= fewest
    # Panels depend on the number of threads, and how sums are cut must not: large ones are copied.
    pack_a &= grid.vectors.parts >= _FEWEST_PANELS_TO_PACK or _is_large(rows, columns)
    # Few rows use a panel of B as soon as it is transposed, and each would need its copy of A.
    by_panel = pack_b == kernel.B_TRANSPOSED and rows <= _FEW_ROWS_OF_PANEL
    by_panel &= not (pack_a and is_quick)
    pack_a &= not by_panel
    if is_across:
        is_large = pack_a and _is_large(rows, columns)
        longest = _LONGEST_INNER_COPIED if is_large else _LONGEST_INNER_ACROSS
    elif rows >= _MANY_ROWS and inner <= _LONGEST_INNER and row_bytes * inner <= packed_bytes:
        pack_b, longest = pack_b or kernel.B_BY_INNER, _LONGEST_INNER
    else:
        b_row = max(b.row_stride, 1) * size  # rows that are all one have a stride of 0
        in_place = max(host.in_l2_cache(_IN_PLACE_SHARE) // b_row, _LONGEST_INNER_ACROSS)
        copied = _LONGEST_INNER_LARGE if _is_large(rows, columns) else _LONGEST_INNER
        longest = copied if pack_b else min(in_place, _LONGEST_INNER)
    if pack_b and is_again and not _is_large(rows, columns):
        longest = min(longest, _LONGEST_INNER_NARROW)
    if pack_b:
        # By the widest panel there is, not by this grid's, which may go by the number of threads.
        longest = max(1, min(longest, packed_bytes // min(row_bytes, _WIDEST_PANEL_BYTES)))
    depth = Cut.of(inner, longest).large if inner else 1
    panels = grid.vectors.parts
    # Parts are of whole rows, so the epilogue goes through its memory in order; not where each
    # block of k would copy B again.
    is_one = depth >= inner and row_bytes * depth <= packed_bytes
    streams = (
        is_one
        and streamed >= host.in_l2_cache(_STREAMED_TOTAL_SHARE)
        and row_bytes >= _STREAMED_ROW
    )
    if streams:
        height = host.in_l2_cache(_STREAMED_SHARE) // row_bytes
        pack_a = is_across and a.row_stride == 1
        pack_b = pack_b or kernel.B_BY_INNER
    else:
        # What longer sums take of A stays in the L2 cache, next to the panels of B.
        part_rows = _PART_ROWS * _LONGEST_INNER // max(depth, _LONGEST_INNER)
        height = rows if by_panel or rows <= _FEW_ROWS else part_rows
        if pack_a:
            height = max(height, _PART_RESULTS // columns, _PART_ROWS_AGAIN * (depth < inner))
        if not by_panel:
            height = min(height, max(1, host.in_l2_cache(_PART_SHARE) // (depth * size)))
        if by_panel:
            is_far = is_across and rows * inner * size >= packed_bytes
            most = min(_PANELS_OF_FAR_A, packed_bytes // (panel_row * depth)) if is_far else 1
            panels = Cut.of(panels, max(1, most)).large
        elif pack_b:
            panel_bytes = panel_row * depth
            is_low = is_narrow and rows <= _FEW_ROWS_OF_PANEL
            is_kept = not pack_a and rows * inner * size <= packed_bytes
            share = _PACKED_SHARE if pack_a else _PACKED_PANELS_SHARE
            most = host.in_l2_cache(_PACKED_FEW_SHARE if is_low or is_kept else share)
            panels = Cut.of(panels, max(1, most // panel_bytes)).large
    part = Cut.of(grid.rows.parts, -(-height // grid.rows.large)).large
    is_small = row_bytes * inner <= packed_bytes
    fewest = _FEWEST_ROWS_TO_ALIGN if is_small else _FEWEST_ROWS_TO_PACK
    can_be_mended = b.row_stride * size % host.LINE == 0 and row_bytes * depth <= packed_bytes
    if b_may_be_beside and not pack_b and can_be_mended and rows >= fewest:
        pack_b = kernel.B_IF_BESIDE
    blocks = Blocks(part, panels, depth, pack_a, pack_b, streams)
    return _shared_out(blocks, grid, num_batches, threads)


def _shared_out(blocks: Blocks, grid: Grid, num_batches: int, threads: int) -> Blocks:
    """Units of a width that gives no thread much more to do than others."""
    tiles, panels = grid.rows.parts, grid.vectors.parts
    num_wide, wide = grid.vectors.num_large, grid.vectors.large
    starts = [p * wide - max(0, p - num_wide) for p in range(panels + 1)]  # in vectors
    of_product = tiles * starts[-1]
    total = num_batches * of_product

    for_panel = {kernel.B_TRANSPOSED: _TRANSPOSING_B, kernel.B_IF_BESIDE: _COPYING_B}

    def time(blocks: Blocks, begin: int, end: int) -> float:
        """What a thread needs for a run of tiles; each counts as many times as it has vectors."""
        for_a = _COPYING_A if blocks.pack_a else _READING_A
        for_b = for_panel.get(blocks.pack_b, _READING_B)
        found = 0.0
        for batch in range(begin // of_product, -(-end // of_product)):
            for first in range(0, panels, blocks.panels):
                last = min(first + blocks.panels, panels)
                before, width = starts[first], starts[last] - starts[first]
                before = batch * of_product + before * tiles
                rows = [min(max(n - before, 0) // width, tiles) for n in (begin, end)]
                if rows[0] < rows[1]:
                    found += (rows[1] - rows[0] + for_b) * (width / wide + for_a)
        return found

    def longest(blocks: Blocks) -> float:
        return max(
            time(blocks, total * i // threads, total * (i + 1) // threads) for i in range(threads)
        )

    units = num_batches * -(-panels // blocks.panels)
    if threads == 1 or units >= _MANY_UNITS * threads:
        return blocks
    # Threads that share many rows, and not columns, find in their own caches what they have made of
    # the same rows before: the product that is A now.
    rows = grid.rows.large * tiles - (tiles - grid.rows.num_large)
    are_many = rows > _FEW_ROWS and tiles >= _MANY_UNITS * threads
    in_place = kernel.B_AS_IT_IS, kernel.B_IF_BESIDE
    is_copied = blocks.pack_a or blocks.pack_b not in in_place
    is_by_rows = blocks.streams or (are_many and not is_copied)
    if is_by_rows:
        return blocks
    found = [blocks._replace(panels=n) for n in range(blocks.panels, 0, -1)]
    return min(found, key=longest)
