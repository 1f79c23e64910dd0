"""The gradient of a bfloat16 convolution with respect to its filters, in float32.

The sums are over pixels, so pairs are of neighbours along the width: x is copied with the pixels of
each channel next to each other, and dy with its pixels by twos. Then the kernel of float32 does the
work, tap by tap.
"""

from __future__ import annotations

import math

from ....graph import bfloat16, float32
from ...ir.kernel_target import Target
from ...ir.launch import Launch, Scratch, Word
from ...target import host
from ...target.bfloat16_unit import PairUnit
from ..conv.conv_plan import COST_OF_FILTERS, INPUT_TILE_SHARE, Image
from ..conv.filter_gradient_plan import FilterGradientPlan, cut_rows
from ..conv.input_tile import Rows
from ..conv.window import Convolution
from ..gemm.operand_format import Factors
from . import pixel_rows
from .interleave import plan_interleave
from .pairs import grid

_HALF = 2  # bytes of a bfloat16
_SIZE = 4  # bytes of a pair, and of a sum
_ROOM = 64  # what kernels may read beyond the end


class PairFilterGradient(FilterGradientPlan):
    """Of pairs of pixels."""

    def __init__(
        self, x: Word, dy: Word, df: Word, conv: Convolution, unit: PairUnit, target: Target
    ) -> None:
        self.df = df
        self.conv = conv
        self.factors = Factors(float32, unit)
        self.target = target
        depth, height, width = conv.axes
        self.groups = conv.groups
        self.inside = conv.channels // conv.groups
        self.outside = conv.filters // conv.groups
        self.pixels = self.block_pixels = width.output // 2
        # What the window reaches; pixels of each remainder by the stride, in pairs.
        planes = (depth.output - 1) * depth.stride + (depth.window - 1) * depth.dilation + 1
        rows = (height.output - 1) * height.stride + (height.window - 1) * height.dilation + 1
        reach = (width.window - 1) * width.dilation // width.stride
        pixels = pixel_rows.pixels_of(width.output + reach)
        self.size = planes, rows, pixels
        self.channel = self.row_step = width.stride * pixels * _HALF
        self.a_stride = _SIZE
        self.row_pitch = row = conv.channels * self.channel
        dy_row = self.pixels * conv.filters * _SIZE
        copied = Scratch(row * rows * planes * conv.images + _ROOM, "pixel_rows")
        source = Image(x, (depth.size, height.size, width.size), conv.channels)
        count = conv.images * math.prod(conv.output)
        second, pairs = plan_interleave(dy, count // 2, conv.filters, "pairs_of_pixels")
        self._before = [self._copy(source, copied), second]
        self.x = Rows(copied, row * rows * planes, row * rows, row, _HALF)
        plane = height.output * dy_row
        self.dy = Rows(pairs, depth.output * plane, plane, dy_row, conv.filters * _SIZE)
        self.first = 0, 0, 0
        self.input_tile = None
        # An input tile of both operands stays in the L2 cache.
        self.input_tiles, self.input_tile_rows = cut_rows(
            height.output, max(1, host.in_l2_cache(INPUT_TILE_SHARE) // (row + dy_row))
        )
        self.blocks = 1
        self.is_lanewise = False
        self.tall, self.group_stride = 1, 0
        self.segment_rows = self.inside
        self.offsets = [
            d * depth.dilation * self.x.plane + h * height.dilation * row + self._tap(w) * _HALF
            for d in range(depth.window)
            for h in range(height.window)
            for w in range(width.window)
        ]
        vectors = -(-self.outside // target.lanes(float32))
        sums = self.input_tile_rows * self.pixels
        self.grid = grid(unit, self.inside, vectors, sums, target, COST_OF_FILTERS)

    def launches(self) -> list[Launch]:
        """The copies, the sums of the parts, and their sum."""
        return [*self._before, *super().launches()]

    def _tap(self, w: int) -> int:
        """Where the pixels of a tap along the width begin."""
        width = self.conv.axes[2]
        place, phase = divmod(w * width.dilation, width.stride)
        return phase * self.size[2] + place

    def _copy(self, source: Image, to: Word) -> Launch:
        conv = self.conv
        depth, height, width = conv.axes
        image, plane, row, pixel = source.strides(bfloat16)
        values: dict[str, Word] = {
            "x": source.data,
            "x_image": image,
            "x_plane": plane,
            "x_row": row,
            "x_pixel": pixel,
            "depth": depth.size,
            "height": height.size,
            "width": width.size,
            "channels": conv.channels,
            "before_d": depth.padding[0],
            "before_h": height.padding[0],
            "before_w": width.padding[0],
            "to": to,
            "images": conv.images,
            "to_depth": self.size[0],
            "to_height": self.size[1],
            "to_pixels": self.size[2],
            "step": width.stride,
        }
        return Launch(pixel_rows.code(), tuple(values[name] for name in pixel_rows.WORDS))
