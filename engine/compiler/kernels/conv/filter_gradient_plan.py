"""The launches of a gradient with respect to filters: the sums of parts, and their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.kernel_target import Target
from ...ir.launch import Launch, Scratch, Word
from ...target import host
from ..gemm.microkernel import SHAPE
from ..gemm.operand_format import Factors
from ..gemm.tiles import Grid
from . import filter_gradient_kernel as kernel
from .input_tile import Rows, plan_input_tile
from .window import Convolution

# The parts of a sum have this much of the L2 cache together, if there are more than the fewest.
_PARTS_SHARE = 1 / 2
_MOST_PARTS = 16
_FEWEST_PARTS = 2


class FilterGradientPlan:
    """What the words of the kernel are made from.

    Attributes:
        df: where the gradient goes.
        conv: the sizes.
        factors: what is multiplied.
        target: the vectors, and how many threads there may be.
        x: the operand that a window goes over.
        size: depth, height and width of x, in elements.
        dy: the other operand.
        first: where the window begins in x.
        input tile: depth, height and width of the part of x that is copied for an input tile; None:
            x is read where it is.
        groups: how many there are.
        inside: channels of x in each.
        outside: columns of df in each.
        input tiles: of a plane of dy.
        input_tile_rows: rows of an input tile.
        pixels: elements of a row of dy.
        blocks: of a row.
        block_pixels: elements of a block.
        is_lanewise: whether each channel of x belongs to a column of df.
        offsets: where each segment, rows of df that follow each other, begins in x.
        segment_rows: rows of a segment.
        grid: how a segment is cut into tiles.
        tall: the groups of rows of a tile.
        group_stride: bytes from one of these to the next, in x.
        channel: bytes from a channel of x to the next one.
        row_step: the same for rows of a segment.
        a_stride: the same for terms of a sum.
        row_pitch: the same for rows of x, as the kernel finds them.
    """

    conv: Convolution
    factors: Factors
    target: Target
    df: Word
    x: Rows
    size: tuple[int, int, int]
    dy: Rows
    first: tuple[int, int, int]
    input_tile: tuple[int, int, int] | None
    groups: int
    inside: int
    outside: int
    input_tiles: int
    input_tile_rows: int
    pixels: int
    blocks: int
    block_pixels: int
    is_lanewise: bool
    offsets: Sequence[int]
    segment_rows: int
    grid: Grid
    tall: int
    group_stride: int
    channel: int
    row_step: int
    a_stride: int
    row_pitch: int

    def launches(self) -> list[Launch]:
        """The sums of the parts, and their sum."""
        depth = self.conv.axes[0]
        elements = math.prod(self.conv.window) * self.inside * self.conv.filters
        units = self.conv.images * depth.output * self.input_tiles * self.blocks
        dtype, vector_bytes = self.factors.dtype, self.target.vector_bytes
        parts = num_parts(elements * dtype.size, units)
        part_bytes = host.whole_lines(elements * dtype.size)
        sums = self.df if parts == 1 else Scratch(part_bytes * parts, "parts")
        words = self._words(sums, parts, part_bytes)
        sum_code = kernel.sum_code(dtype, vector_bytes)
        others = (sum_code,) if self.target.has_sizes else ()  # another number may have parts
        found = [Launch(kernel.code(dtype, vector_bytes), words, others)]
        if parts > 1:
            values: dict[str, Word] = {
                "to": self.df,
                "sums": sums,
                "sums_part": part_bytes,
                "parts": parts,
                "elements": elements,
            }
            total = tuple(values[name] for name in kernel.SUM_WORDS)
            found.append(Launch(sum_code, total))
        return found

    def _words(self, sums: Word, parts: int, part_bytes: int) -> tuple[Word, ...]:
        conv, grid, size = self.conv, self.grid, self.factors.dtype.size
        depth, height, width = conv.axes
        lanes = self.target.lanes(self.factors.dtype)
        steps = depth.stride, height.stride, width.stride
        of_x = self.x, self.size, conv.channels
        input_tile = plan_input_tile(*of_x, self.input_tile, steps, self.first, self.target.threads)
        row = conv.filters * size
        values: dict[str, Word] = {
            **input_tile,
            "dy": self.dy.data,
            "dy_image": self.dy.image,
            "dy_plane": self.dy.plane,
            "dy_row": self.dy.row,
            "dy_pixel": self.dy.pixel,
            "sums": sums,
            "sums_part": part_bytes,
            "images": conv.images,
            "parts": parts,
            "planes": depth.output,
            "input_tiles": self.input_tiles,
            "input_tile_rows": self.input_tile_rows,
            "rows": height.output,
            "blocks": self.blocks,
            "block_pixels": self.block_pixels,
            "pixels": self.pixels,
            "groups": self.groups,
            "x_group": self.inside * self.channel,
            "dy_group": self.outside * size,
            "sums_group": self.outside * size,
            "x_column": size if self.is_lanewise else 0,
            "segments": len(self.offsets),
            "offsets": tuple(self.offsets),
            "segment_sums": self.segment_rows * row,
            "tile_rows": grid.rows.large,
            "num_high_tiles": grid.rows.num_large,
            "num_tiles": grid.rows.parts,
            "sums_row": row,
            "x_step": self.row_step,
            "panel_columns": grid.vectors.large * lanes,
            "num_wide_panels": grid.vectors.num_large,
            "num_panels": grid.vectors.parts,
            "columns": self.outside,
            "shape": self._shape(self.input_tile_rows),
            "last_shape": self._shape(
                height.output - (self.input_tiles - 1) * self.input_tile_rows
            ),
            "microkernels": self.factors.microkernels(
                grid.rows,
                grid.vectors,
                self.outside,
                self.block_pixels,
                self.target,
                groups=self.tall,
                lanewise=self.is_lanewise,
            ),
        }
        return tuple(values[name] for name in kernel.WORDS)

    def _shape(self, rows: int) -> tuple[Word, ...]:
        """What the microkernel reads for an input tile of so many rows: a sum over pixels."""
        row = self.conv.filters * self.factors.dtype.size
        step = self.conv.axes[1].stride * self.row_pitch
        values: dict[str, Word] = {
            "row_stride": self.row_step,
            "group_stride": self.group_stride,
            "a_stride": self.a_stride,
            "b_stride": row,
            "b_skip": 0,  # rows of dy follow each other; blocks of pixels have one row
            "c_stride": row,
            "num_offsets": rows,
            "offsets": tuple(r * step for r in range(rows)),
        }
        return tuple(values[name] for name in SHAPE)


def num_parts(sum_bytes: int, units: int) -> int:
    """How many parts there are of a sum of so many bytes over so many input tiles."""
    found = host.in_l2_cache(_PARTS_SHARE) // sum_bytes
    found = max(_FEWEST_PARTS, min(_MOST_PARTS, found))
    return min(units, 1 << found.bit_length() - 1)  # even for 2, 4, 8, ... threads


def cut_rows(rows: int, most: int) -> tuple[int, int]:
    """How many input tiles there are of at most so many rows, and the rows of one."""
    input_tiles = -(-rows // most)
    rows_of_input_tile = -(-rows // input_tiles)
    return -(-rows // rows_of_input_tile), rows_of_input_tile
