"""Plans of the gradient of a convolution with respect to its filters."""

from __future__ import annotations

import math
from functools import partial

from ....graph import DType
from ...ir.kernel_target import Target
from ...ir.launch import Launch, Matrix, Word
from ...target import host
from ...target.bfloat16_unit import PairUnit
from ..bf16.pair_filter_gradient import PairFilterGradient
from ..bf16.pairs import pays
from ..gemm.operand_format import Factors
from ..gemm.products import plan_product
from ..gemm.tiles import Cut, Grid, choose_grid
from .conv import is_empty, is_pointwise
from .conv_plan import INPUT_TILE_SHARE, Image, is_lanewise
from .depthwise import is_in_rows, plan_depthwise_filter_gradient
from .filter_gradient_plan import FilterGradientPlan, cut_rows
from .input_tile import Rows
from .window import Convolution, Reach, forward_phases
from .winograd import (
    codes_for_more_images,
    is_winograd,
    plan_winograd_filter_gradient,
    ready_for_an_image,
)

# Taps of a tile when each channel is by itself: few enough for registers.
_LANEWISE_ROWS = 12


def takes_pixel_pairs(conv: Convolution, unit: PairUnit) -> bool:
    """Whether the rows of dy are taken by pairs of pixels with profit."""
    if is_pointwise(conv):
        return True
    pixels = conv.output[-1]
    return pixels % 2 == 0 and pays(unit, pixels // 2) and conv.channels // conv.groups > 1


def plan_conv_filter_gradient(
    x: Word,
    dy: Word,
    df: Word,
    conv: Convolution,
    dtype: DType,
    target: Target,
    *,
    unit: PairUnit | None = None,
) -> list[Launch]:
    """The gradient of plan_conv_forward with respect to its filters, from x and dy to df.

    Args:
        x: (images, *size, channels), contiguous.
        dy: (images, *output, filters), contiguous.
        df: (*window, channels / groups, filters), contiguous.
        conv: the sizes.
        dtype: float32 or float64, of all three.
        target: the vectors, and how many threads there may be.
        unit: what multiplies x and dy if they are bfloat16, and df float32; `takes_pixel_pairs`
            holds.
    """
    if is_empty(math.prod(conv.window) * conv.channels * conv.filters):
        return []
    if is_pointwise(conv) or is_empty(conv.images, *conv.output):
        # Without an image it is a sum of nothing, which the product of matrices makes zero.
        rows = conv.images * math.prod(conv.output)
        inside = math.prod(conv.window) * conv.channels // conv.groups
        a, b = Matrix(x, 1, conv.channels), Matrix(dy, conv.filters, 1)
        c = Matrix(df, conv.filters, 1)
        return plan_product(a, b, c, inside, conv.filters, rows, Factors(dtype, unit), target)
    if unit is not None:
        return PairFilterGradient(x, dy, df, conv, unit, target).launches()
    if is_lanewise(conv) and is_in_rows(conv):
        return plan_depthwise_filter_gradient(x, dy, df, conv, dtype, target)
    if is_winograd(conv, dtype, target):
        found = plan_winograd_filter_gradient(x, dy, df, conv, dtype, target)
        other = partial(plan_conv_filter_gradient, x, dy, df)
        return ready_for_an_image(found, conv, dtype, target, other)
    first, *rest = _TiledGradient(x, dy, df, conv, dtype, target).launches()
    more = codes_for_more_images(conv, dtype, target, is_gradient=True)
    return [first._replace(others=(*first.others, *more)), *rest]


class _TiledGradient(FilterGradientPlan):
    """Of numbers, input tile by input tile."""

    def __init__(
        self, x: Word, dy: Word, df: Word, conv: Convolution, dtype: DType, target: Target
    ) -> None:
        self.df = df
        self.conv = conv
        self.factors = Factors(dtype)
        self.target = target
        depth, height, width = conv.axes
        source = Image(x, (depth.size, height.size, width.size), conv.channels)
        result = Image(dy, (depth.output, height.output, width.output), conv.filters)
        self.size, self.pixels = source.size, width.output
        self.x, self.dy = (Rows(i.data, *i.strides(dtype)) for i in (source, result))
        phases = [forward_phases(axis) for axis in conv.axes]
        self.reach = [Reach.of(p) for p in phases]
        d, h, w = (reach.first for reach in self.reach)
        self.first = d, h, w
        has_copy = any(
            p.taps[0][0] < 0 or (p.count - 1) * p.step + p.taps[-1][0] >= axis.size
            for (p,), axis in zip(phases, conv.axes, strict=True)
        )
        self.is_lanewise = is_lanewise(conv)
        self.groups = 1 if self.is_lanewise else conv.groups
        self.inside = conv.channels // conv.groups
        self.outside = conv.filters // self.groups
        self.channel = dtype.size
        self.a_stride = width.stride * self.x.pixel
        taken = self._input_tiles()
        self.input_tile = taken if has_copy else None
        self._segments()

    def _input_tiles(self) -> tuple[int, int, int]:
        """Rows of an input tile, pixels of a row that is too long alone; what one takes of x."""
        axes = self.conv.axes
        rows, pixels = axes[1].output, axes[2].output
        pixel = self.reach[0].span * self.x.pixel
        most = host.in_l2_cache(INPUT_TILE_SHARE)

        def taken(rows: int, pixels: int) -> tuple[int, int, int]:
            return (
                self.reach[0].span,
                (rows - 1) * axes[1].stride + self.reach[1].span,
                (pixels - 1) * axes[2].stride + self.reach[2].span,
            )

        def fits(rows: int, pixels: int) -> bool:
            return math.prod(taken(rows, pixels)[1:]) * pixel <= most

        blocks = 1
        while rows == 1 and blocks < pixels and not fits(1, -(-pixels // blocks)):
            blocks += 1
        self.block_pixels = -(-pixels // blocks)
        self.blocks = -(-pixels // self.block_pixels)
        while rows > 1 and not fits(rows, pixels):
            rows -= 1
        self.input_tiles, self.input_tile_rows = cut_rows(axes[1].output, rows)
        return taken(self.input_tile_rows, self.block_pixels)

    def _segments(self) -> None:
        """Which rows of df follow each other in x, and the tiles they are cut into.

        Taps along the width do if they are next to each other and there is one group. If they are
        few, those of all rows of the window make up one tile.
        """
        depth, height, width = self.conv.axes
        _, _, plane, row, pixel = self.x
        if self.input_tile is not None:
            row = self.input_tile[2] * pixel
            plane = self.input_tile[1] * row
        is_run = self.is_lanewise or (self.groups == 1 and width.dilation == 1)
        run = width.window if is_run else 1
        self.row_step = width.dilation * pixel if self.is_lanewise else self.channel
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
        vectors = -(-self.outside // self.target.lanes(self.factors.dtype))
        pixels = self.input_tile_rows * self.block_pixels
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
