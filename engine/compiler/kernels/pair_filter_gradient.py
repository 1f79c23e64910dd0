"""Plans of the gradient of a bfloat16 convolution with respect to its filters, in float32.

The sums are over pixels, so pairs are of neighbours along the width: x is copied with the pixels of
each channel next to each other, and dy with its pixels by twos. Then the kernel of float32 does the
work, tap by tap.
"""

from __future__ import annotations

import math

from ...graph import float32
from . import filter_gradient_kernel as kernel
from . import pixel_rows
from .conv import BAND_BYTES, COST_OF_FILTERS, Image, is_empty, is_pointwise
from .filter_gradient import in_parts, plan_conv_filter_gradient
from .interleave import plan_interleave
from .launch import Launch, Matrix, Scratch, Word
from .microkernel import SHAPE
from .pair_products import plan_pair_products
from .pairs import PairUnit
from .tiles import Target
from .window import Convolution

_HALF = 2  # bytes of a bfloat16
_SIZE = 4  # bytes of a pair, and of a sum
_ROOM = 64  # what kernels may read beyond the end


def takes_pixel_pairs(conv: Convolution, unit: PairUnit) -> bool:
    """Whether the rows of dy are taken by pairs of pixels with profit."""
    if is_pointwise(conv):
        return True
    pixels = conv.output[-1]
    return pixels % 2 == 0 and unit.pays(pixels // 2) and conv.channels // conv.groups > 1


def plan_pair_conv_filter_gradient(
    x: Word, dy: Word, df: Word, conv: Convolution, target: Target, unit: PairUnit
) -> list[Launch]:
    """As plan_conv_filter_gradient, of bfloat16 x and dy to float32 df.

    Args:
        x: (images, *size, channels), contiguous.
        dy: (images, *output, filters), contiguous.
        df: (*window, channels / groups, filters), contiguous.
        conv: the sizes; `takes_pixel_pairs` holds.
        target: the vectors, and how many threads there may be.
        unit: what multiplies.
    """
    if is_empty(math.prod(conv.window) * conv.channels * conv.filters):
        return []
    if is_pointwise(conv):
        rows = conv.images * math.prod(conv.output)
        a, b = Matrix(x, 1, conv.channels), Matrix(dy, conv.filters, 1)
        c = Matrix(df, conv.filters, 1)
        return plan_pair_products(a, b, c, conv.channels, conv.filters, rows, target.threads, unit)
    if is_empty(conv.images, *conv.output):
        return plan_conv_filter_gradient(x, dy, df, conv, float32, target)
    return _Plan(x, dy, df, conv, target, unit).launches()


class _Plan:
    def __init__(
        self, x: Word, dy: Word, df: Word, conv: Convolution, target: Target, unit: PairUnit
    ) -> None:
        self.df = df
        self.conv = conv
        self.target = target
        self.unit = unit
        depth, height, width = conv.axes
        self.x = Image(x, (depth.size, height.size, width.size), conv.channels // 2)
        self.dy = dy
        self.output = depth.output, height.output, width.output
        self.count = width.output // 2  # pairs of a row
        self.inside = conv.channels // conv.groups
        self.outside = conv.filters // conv.groups
        # What the window reaches; pixels of each remainder by the stride, in pairs.
        self.planes = (depth.output - 1) * depth.stride + (depth.window - 1) * depth.dilation + 1
        self.rows = (height.output - 1) * height.stride + (height.window - 1) * height.dilation + 1
        reach = (width.window - 1) * width.dilation // width.stride
        self.pixels = pixel_rows.pixels_of(width.output + reach)
        self.channel = width.stride * self.pixels * _HALF
        self.row = conv.channels * self.channel
        self.image = self.planes * self.rows * self.row
        self.dy_row = self.count * conv.filters * _SIZE
        # A band of both operands stays in the second cache.
        rows = max(1, BAND_BYTES // (self.row + self.dy_row))
        self.bands = -(-height.output // rows)
        self.band_rows = -(-height.output // self.bands)
        self.bands = -(-height.output // self.band_rows)
        lanes = target.lanes(float32)
        vectors = -(-self.outside // lanes)
        sums = self.band_rows * self.count
        self.grid = unit.grid(self.inside, vectors, sums, target, COST_OF_FILTERS)

    def launches(self) -> list[Launch]:
        """The copies, the sums of the parts, and their sum."""
        conv = self.conv
        copied = Scratch(self.image * conv.images + _ROOM, "pixel_rows")
        first = self._copy(copied)
        pixels = conv.images * math.prod(self.output)
        second, pairs = plan_interleave(self.dy, pixels, conv.filters, "pairs_of_pixels")
        elements = math.prod(conv.window) * self.inside * conv.filters
        units = conv.images * self.output[0] * self.bands

        def words(sums: Word, parts: int, part_bytes: int) -> tuple[Word, ...]:
            return self._words(copied, pairs, sums, parts, part_bytes)

        vector_bytes = self.target.vector_bytes
        return [first, second, *in_parts(self.df, elements, units, float32, vector_bytes, words)]

    def _copy(self, to: Word) -> Launch:
        conv = self.conv
        depth, height, width = conv.axes
        image, plane, row, pixel = self.x.strides(float32)
        values: dict[str, Word] = {
            "x": self.x.data,
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
            "to_depth": self.planes,
            "to_height": self.rows,
            "to_pixels": self.pixels,
            "step": width.stride,
        }
        return Launch(pixel_rows.code(), tuple(values[name] for name in pixel_rows.WORDS))

    def _words(
        self, x: Word, dy: Word, sums: Word, parts: int, part_bytes: int
    ) -> tuple[Word, ...]:
        conv, grid = self.conv, self.grid
        depth, height, width = conv.axes
        plane = self.rows * self.row
        dy_plane = self.output[1] * self.dy_row
        offsets = []
        for d in range(depth.window):
            for h in range(height.window):
                for w in range(width.window):
                    place, phase = divmod(w * width.dilation, width.stride)
                    pixel = phase * self.pixels + place
                    at = d * depth.dilation * plane + h * height.dilation * self.row
                    offsets.append(at + pixel * _HALF)
        values: dict[str, Word] = {
            "x": x,
            "x_image": self.image,
            "x_plane": plane,
            "x_row": self.row,
            "x_pixel": _HALF,
            "depth": self.planes,
            "height": self.rows,
            "width": self.pixels,
            "pixel_elements": 0,
            "copy": 0,
            "band": 0,
            "band_bytes": 0,
            "band_depth": 0,
            "band_height": 0,
            "band_width": 0,
            "step_d": depth.stride,
            "step_h": height.stride,
            "step_w": width.stride,
            "first_d": 0,
            "first_h": 0,
            "first_w": 0,
            "dy": dy,
            "dy_image": self.output[0] * dy_plane,
            "dy_plane": dy_plane,
            "dy_row": self.dy_row,
            "dy_pixel": conv.filters * _HALF,
            "sums": sums,
            "sums_part": part_bytes,
            "images": conv.images,
            "parts": parts,
            "planes": self.output[0],
            "bands": self.bands,
            "band_rows": self.band_rows,
            "rows": self.output[1],
            "blocks": 1,
            "block_pixels": self.count,
            "pixels": self.count,
            "groups": conv.groups,
            "x_group": self.inside * self.channel,
            "dy_group": self.outside * _SIZE,
            "sums_group": self.outside * _SIZE,
            "x_column": 0,
            "segments": len(offsets),
            "offsets": tuple(offsets),
            "segment_sums": self.inside * conv.filters * _SIZE,
            "tile_rows": grid.rows.large,
            "num_high_tiles": grid.rows.num_large,
            "num_tiles": grid.rows.parts,
            "sums_row": conv.filters * _SIZE,
            "x_step": self.channel,
            "panel_columns": grid.vectors.large * self.target.lanes(float32),
            "num_wide_panels": grid.vectors.num_large,
            "num_panels": grid.vectors.parts,
            "columns": self.outside,
            "shape": self._shape(self.band_rows),
            "last_shape": self._shape(self.output[1] - (self.bands - 1) * self.band_rows),
            "microkernels": self.unit.microkernels(
                grid.rows, grid.vectors, self.outside, self.count, self.target
            ),
        }
        return tuple(values[name] for name in kernel.WORDS)

    def _shape(self, rows: int) -> tuple[Word, ...]:
        """What the microkernel reads for a band of so many rows."""
        step = self.conv.axes[1].stride * self.row
        values: dict[str, Word] = {
            "row_stride": self.channel,
            "group_stride": 0,
            "a_stride": _SIZE,
            "b_stride": self.conv.filters * _SIZE,
            "b_skip": 0,
            "c_stride": self.conv.filters * _SIZE,
            "num_offsets": rows,
            "offsets": tuple(r * step for r in range(rows)),
        }
        return tuple(values[name] for name in SHAPE)
