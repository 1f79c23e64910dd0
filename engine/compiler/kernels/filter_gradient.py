"""Plans of the gradient of a convolution with respect to its filters."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...graph import DType
from . import filter_gradient_kernel as kernel
from .conv import BAND_BYTES, Image, is_empty, is_lanewise, is_pointwise
from .depthwise import is_in_rows, plan_depthwise_filter_gradient
from .gemm import plan_gemm
from .launch import Launch, Matrix, Scratch, Word
from .microkernel import SHAPE, microkernels
from .tiles import Cut, Grid, Target, choose_grid
from .window import Convolution, Reach, forward_phases
from .winograd import is_winograd, plan_winograd_filter_gradient

# The parts of a sum take this much memory together, if there are more than the fewest.
_PARTS_BYTES = 1024 * 1024
_MOST_PARTS = 16
_FEWEST_PARTS = 2
# Taps of a tile when each channel is by itself: few enough for registers.
_LANEWISE_ROWS = 12


def plan_conv_filter_gradient(
    x: Word, dy: Word, df: Word, conv: Convolution, dtype: DType, target: Target
) -> list[Launch]:
    """The gradient of plan_conv_forward with respect to its filters, from x and dy to df.

    Args:
        x: (images, *size, channels), contiguous.
        dy: (images, *output, filters), contiguous.
        df: (*window, channels / groups, filters), contiguous.
        conv: the sizes.
        dtype: float32 or float64, of all three.
        target: the vectors, and how many threads there may be.
    """
    depth, height, width = conv.axes
    if is_empty(math.prod(conv.window) * conv.channels * conv.filters):
        return []
    if is_pointwise(conv) or is_empty(conv.images, *conv.output):
        # Without an image it is a sum of nothing, which the product of matrices makes zero.
        rows = conv.images * math.prod(conv.output)
        inside = math.prod(conv.window) * conv.channels // conv.groups
        a, b = Matrix(x, 1, conv.channels), Matrix(dy, conv.filters, 1)
        c = Matrix(df, conv.filters, 1)
        return plan_gemm(a, b, c, inside, conv.filters, rows, dtype, target)
    if is_lanewise(conv) and is_in_rows(conv):
        return plan_depthwise_filter_gradient(x, dy, df, conv, dtype, target)
    if is_winograd(conv, dtype, target):
        return plan_winograd_filter_gradient(x, dy, df, conv, dtype, target)
    return _Plan(x, dy, df, conv, dtype, target).launches()


def in_parts(
    df: Word,
    elements: int,
    units: int,
    dtype: DType,
    vector_bytes: int,
    words: Callable[[Word, int, int], tuple[Word, ...]],
) -> list[Launch]:
    """The launches that make the sums of the parts, and their sum.

    Args:
        df: where the sum goes.
        elements: of it.
        units: bands, which are dealt out to parts.
        dtype: of the sums.
        vector_bytes: the size of vectors.
        words: those of the kernel for (sums, the number of parts, bytes of a part).
    """
    sum_bytes = elements * dtype.size
    parts = max(_FEWEST_PARTS, min(_MOST_PARTS, _PARTS_BYTES // sum_bytes))
    parts = min(units, 1 << parts.bit_length() - 1)  # even for 2, 4, 8, ... threads
    part_bytes = -(-sum_bytes // 64) * 64
    sums = df if parts == 1 else Scratch(part_bytes * parts, "parts")
    found = [Launch(kernel.code(dtype, vector_bytes), words(sums, parts, part_bytes))]
    if parts > 1:
        values: dict[str, Word] = {
            "to": df,
            "sums": sums,
            "sums_part": part_bytes,
            "parts": parts,
            "elements": elements,
        }
        total = tuple(values[name] for name in kernel.SUM_WORDS)
        found.append(Launch(kernel.sum_code(dtype, vector_bytes), total))
    return found


class _Plan:
    def __init__(
        self, x: Word, dy: Word, df: Word, conv: Convolution, dtype: DType, target: Target
    ) -> None:
        self.df = df
        self.conv = conv
        self.dtype = dtype
        self.target = target
        depth, height, width = conv.axes
        self.x = Image(x, (depth.size, height.size, width.size), conv.channels)
        self.dy = Image(dy, (depth.output, height.output, width.output), conv.filters)
        phases = [forward_phases(axis) for axis in conv.axes]
        self.reach = [Reach.of(p) for p in phases]
        self.has_copy = any(
            p.taps[0][0] < 0 or (p.count - 1) * p.step + p.taps[-1][0] >= axis.size
            for (p,), axis in zip(phases, conv.axes, strict=True)
        )
        self.is_lanewise = is_lanewise(conv)
        self.groups = 1 if self.is_lanewise else conv.groups
        self.inside = conv.channels // conv.groups
        self.outside = conv.filters // self.groups
        self._bands()
        self._segments()

    def _bands(self) -> None:
        """Rows of a band, and pixels of a row if a row alone is too long."""
        axes = self.conv.axes
        _, rows, pixels = self.dy.size
        pixel = self.reach[0].span * self.conv.channels * self.dtype.size

        def taken(rows: int, pixels: int) -> tuple[int, int, int]:
            return (
                self.reach[0].span,
                (rows - 1) * axes[1].stride + self.reach[1].span,
                (pixels - 1) * axes[2].stride + self.reach[2].span,
            )

        def fits(rows: int, pixels: int) -> bool:
            return math.prod(taken(rows, pixels)[1:]) * pixel <= BAND_BYTES

        blocks = 1
        while rows == 1 and blocks < pixels and not fits(1, -(-pixels // blocks)):
            blocks += 1
        self.block_pixels = -(-pixels // blocks)
        self.blocks = -(-pixels // self.block_pixels)
        while rows > 1 and not fits(rows, pixels):
            rows -= 1
        self.bands = -(-self.dy.size[1] // rows)
        self.band_rows = -(-self.dy.size[1] // self.bands)
        self.bands = -(-self.dy.size[1] // self.band_rows)
        self.band = taken(self.band_rows, self.block_pixels)

    def _segments(self) -> None:
        """Which rows of df follow each other in x, and the tiles they are cut into.

        Taps along the width do if they are next to each other and there is one group. If they are
        few, those of all rows of the window make up one tile.
        """
        depth, height, width = self.conv.axes
        image, plane, row, pixel = self.x.strides(self.dtype)
        if self.has_copy:
            row = self.band[2] * pixel
            plane = self.band[1] * row
        is_run = self.is_lanewise or (self.groups == 1 and width.dilation == 1)
        run = width.window if is_run else 1
        self.row_step = width.dilation * pixel if self.is_lanewise else self.dtype.size
        self.row_pitch = row
        self.group_stride = height.dilation * row
        registers = self.target.registers
        length = run * self.inside
        tall = height.window
        is_one_tile = run == width.window and tall > 1 and length <= 7
        if not (is_one_tile and tall * length + 3 <= registers):
            tall = 1
        self.offsets = [
            d * depth.dilation * plane + h * height.dilation * row + w * width.dilation * pixel
            for d in range(depth.window)
            for h in range(0, height.window, tall)
            for w in range(0, width.window, run)
        ]
        self.segment_rows = tall * length
        vectors = -(-self.outside // self.target.lanes(self.dtype))
        pixels = self.band_rows * self.block_pixels
        if self.is_lanewise:
            heights = Cut.of(tall * length, tall * min(length, _LANEWISE_ROWS))
            widest = max(1, (registers - 2) // (heights.large + 1))
            self.grid = Grid(heights, Cut.of(vectors, widest))
        elif tall == 1:
            self.grid = choose_grid(length, vectors, pixels, registers)
        else:
            widest = max(1, (registers - 2) // (self.segment_rows + 1))
            self.grid = Grid(Cut.of(tall * length, tall * length), Cut.of(vectors, widest))
        self.tall = tall

    def launches(self) -> list[Launch]:
        """The sums of the parts, and their sum."""
        conv = self.conv
        elements = math.prod(conv.window) * self.inside * conv.filters
        units = conv.images * self.dy.size[0] * self.bands * self.blocks
        return in_parts(self.df, elements, units, self.dtype, self.target.vector_bytes, self._words)

    def _words(self, sums: Word, parts: int, part_bytes: int) -> tuple[Word, ...]:
        conv, size = self.conv, self.dtype.size
        depth, height, width = conv.axes
        x_image, x_plane, x_row, x_pixel = self.x.strides(self.dtype)
        image, plane, row, pixel = self.dy.strides(self.dtype)
        band_bytes = -(-math.prod(self.band) * x_pixel // 64) * 64
        lanes = self.target.lanes(self.dtype)
        last_rows = self.dy.size[1] - (self.bands - 1) * self.band_rows
        values: dict[str, Word] = {
            "x": self.x.data,
            "x_image": x_image,
            "x_plane": x_plane,
            "x_row": x_row,
            "x_pixel": x_pixel,
            "depth": depth.size,
            "height": height.size,
            "width": width.size,
            "pixel_elements": conv.channels,
            "copy": int(self.has_copy),
            "band": Scratch(band_bytes * self.target.threads, "band") if self.has_copy else 0,
            "band_bytes": band_bytes,
            "band_depth": self.band[0],
            "band_height": self.band[1],
            "band_width": self.band[2],
            "step_d": depth.stride,
            "step_h": height.stride,
            "step_w": width.stride,
            "first_d": self.reach[0].first,
            "first_h": self.reach[1].first,
            "first_w": self.reach[2].first,
            "dy": self.dy.data,
            "dy_image": image,
            "dy_plane": plane,
            "dy_row": row,
            "dy_pixel": pixel,
            "sums": sums,
            "sums_part": part_bytes,
            "images": conv.images,
            "parts": parts,
            "planes": self.dy.size[0],
            "bands": self.bands,
            "band_rows": self.band_rows,
            "rows": self.dy.size[1],
            "blocks": self.blocks,
            "block_pixels": self.block_pixels,
            "pixels": self.dy.size[2],
            "groups": self.groups,
            "x_group": self.inside * size,
            "dy_group": self.outside * size,
            "sums_group": self.outside * size,
            "x_column": size if self.is_lanewise else 0,
            "segments": len(self.offsets),
            "offsets": tuple(self.offsets),
            "segment_sums": self.segment_rows * conv.filters * size,
            "tile_rows": self.grid.rows.large,
            "num_high_tiles": self.grid.rows.num_large,
            "num_tiles": self.grid.rows.parts,
            "sums_row": conv.filters * size,
            "x_step": self.row_step,
            "panel_columns": self.grid.vectors.large * lanes,
            "num_wide_panels": self.grid.vectors.num_large,
            "num_panels": self.grid.vectors.parts,
            "columns": self.outside,
            "shape": self._shape(self.band_rows),
            "last_shape": self._shape(last_rows),
            "microkernels": microkernels(
                self.grid.rows,
                self.grid.vectors,
                self.outside,
                self.dtype,
                self.target,
                groups=self.tall,
                lanewise=self.is_lanewise,
            ),
        }
        return tuple(values[name] for name in kernel.WORDS)

    def _shape(self, rows: int) -> tuple[Word, ...]:
        """What the microkernel reads for a band of so many rows: a sum over pixels."""
        conv, size = self.conv, self.dtype.size
        _, height, width = conv.axes
        values: dict[str, Word] = {
            "row_stride": self.row_step,
            "group_stride": self.group_stride,
            "a_stride": width.stride * conv.channels * size,
            "b_stride": conv.filters * size,
            "b_skip": 0,  # rows of dy follow each other; blocks of pixels have one row
            "c_stride": conv.filters * size,
            "num_offsets": rows,
            "offsets": tuple(r * height.stride * self.row_pitch for r in range(rows)),
        }
        return tuple(values[name] for name in SHAPE)
