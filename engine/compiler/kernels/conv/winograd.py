"""Plans of Winograd's convolution, for windows of 3 x 3: a quarter of the multiplications.

Rounding is twice that of a sum of products on average, and at most 10 times 2 ** -24 of the largest
sum of the products' absolute values (tests hold results to that). Infinities become NaN, and
spread, as NaN does, to the tiles of 4 x 4 pixels that take them.

What it buys, in times without / with it of `python -m benchmarks` on a Xeon with AVX-512, 1 and 2
threads: the step of ResNet-20 1.56 and 1.51, of the convnet 1.75 and 1.64; convolutions of 3 x 3
and their gradients 1.65 to 2.6.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....graph import DType, float32
from ...ir.kernel_target import Target
from ...ir.launch import Epilogue, Launch, Scratch, Word, codes_in
from ...target import host
from ...target.bfloat16_unit import PairUnit
from ...target.code import Code
from ...target.llvm import vector_bytes
from ..gemm import any_tile
from ..gemm.any_tile import ANY_SHAPE
from ..gemm.available_tiles import Tiles, of_one_thread, parts_of
from ..gemm.tiles import Cut, Grid, choose_grid
from . import winograd_kernel as kernel
from .filter_gradient_plan import num_parts
from .filter_layout import plan_pack
from .window import Convolution
from .winograd_transforms import POINTS, TAPS, TILE

_NUM_POINTS = POINTS * POINTS
# Shares of the L2 cache: the transforms of a unit of work stay there, with those of the filters
# beside them; larger filters come from beyond, and are to be worth it for more tiles.
_UNIT_SHARE = 1 / 8
_LARGE_UNIT_SHARE = 1 / 2
_NEAR_FILTER_SHARE = 1 / 2
_MOST_FILTER_SHARE = 2
_KEPT_FILTER_SHARE = 5 / 8  # what does not have to be brought again for each unit
# The least that is to be gained, as parts of the time: estimates are wrong by that.
_WORTH = 0.85
_UNITS_PER_THREAD = 4
# Beyond so many images it is known which way is faster.
_MANY_IMAGES = 1 << 16


def is_winograd(conv: Convolution, dtype: DType, target: Target) -> bool:
    """Whether a convolution is one that is faster this way."""
    return _is_faster(conv, dtype, target.lanes(dtype), 1)


def beats_pairs(conv: Convolution, unit: PairUnit) -> bool:
    """Whether one of bfloat16 is faster this way, in float32, than a sum of products of pairs.

    Vectors multiply pairs as fast as float32. Of ResNet-20's convolutions at batch 32, one of 64
    channels takes 278 us by pairs and 225 this way, one of 32 295 and 255, one of 16 370 and 430.
    """
    lanes = vector_bytes() // float32.size
    return unit is PairUnit.VECTORS and _is_faster(conv, float32, lanes, 2)


def _is_faster(conv: Convolution, dtype: DType, lanes: int, products: int) -> bool:
    """Whether it takes less time than a sum that makes so many products at once in each lane."""
    is_like_that = conv.window == (TAPS, TAPS) and {*conv.strides, *conv.dilation} == {1}
    if dtype != float32 or not is_like_that or conv.groups != 1:
        return False
    if not conv.channels or not conv.filters or conv.channels % lanes or conv.filters % lanes:
        return False
    if _filter_bytes(conv.channels, conv.filters, dtype.size) > host.in_l2_cache(
        _MOST_FILTER_SHARE
    ):
        return False
    return _cycles(conv, lanes, dtype.size) < _WORTH * _direct_cycles(conv, lanes) / products


def codes_for_more_images(
    conv: Convolution, dtype: DType, target: Target, *, is_gradient: bool = False
) -> tuple[Code, ...]:
    """The codes that a convolution takes if more images come and it is faster this way then.

    Args:
        conv: one that is not.
        dtype: of its operands.
        target: what kernels are for.
        is_gradient: whether it is that with respect to the filters.
    """
    many = dataclasses.replace(conv, images=_MANY_IMAGES)
    if not target.has_sizes or not is_winograd(many, dtype, target):
        return ()
    kinds = (kernel.FILTERS, kernel.CONVOLVE)
    if is_gradient:
        kinds = (kernel.GRADIENT, kernel.FINISH)
    codes = [kernel.code(kind, dtype, target.vector_bytes) for kind in kinds]
    return (*codes, *_of_other_sizes(dtype, target))


def ready_for_an_image(
    launches: list[Launch],
    conv: Convolution,
    dtype: DType,
    target: Target,
    plan: Callable[[Convolution, DType, Target], Sequence[Launch]],
) -> list[Launch]:
    """The same, with the codes that are taken if a single image comes and is not made this way.

    Args:
        launches: of a convolution that is made this way.
        conv: the sizes.
        dtype: of its operands.
        target: what kernels are for.
        plan: gives the launches of one that is not.
    """
    one = dataclasses.replace(conv, images=1)
    if not target.has_sizes or target.available is not None or is_winograd(one, dtype, target):
        return launches
    first, *rest = launches
    more = codes_in(plan(one, dtype, target))
    return [first._replace(others=(*first.others, *more)), *rest]


def _direct_cycles(conv: Convolution, lanes: int) -> float:
    """The estimated time of the sum of products as it is: two vectors of products a cycle."""
    pixels = conv.images * math.prod(conv.output)
    return pixels * TAPS * TAPS * conv.channels * (conv.filters / lanes) / 2 / 0.92


def _cycles(conv: Convolution, lanes: int, size: int) -> float:
    """The estimated time: products, transforms of tiles, of filters, and bringing those again."""
    height, width = map(_tiles, conv.output)
    tiles = conv.images * height * width
    of_x, of_y = conv.channels / lanes, conv.filters / lanes
    products = tiles * _NUM_POINTS * conv.channels * of_y / 2 / 0.8
    transforms = tiles * (130 * of_x + 90 * of_y) + 220 * conv.channels * of_y
    filter_bytes = _filter_bytes(conv.channels, conv.filters, size)
    if filter_bytes <= host.in_l2_cache(_KEPT_FILTER_SHARE):
        return products + transforms
    tile_bytes = _NUM_POINTS * (conv.channels + conv.filters) * size
    units = -(-tiles * tile_bytes // host.in_l2_cache(_LARGE_UNIT_SHARE))
    return products + transforms + units * 12 * filter_bytes / host.LINE


def _filter_bytes(channels: int, filters: int, size: int) -> int:
    return _NUM_POINTS * channels * filters * size


def _tiles(length: int) -> int:
    return -(-length // TILE)


class Operand(NamedTuple):
    """Images in memory, channels last, and where the first tile begins in them."""

    data: Word
    height: int
    width: int
    channels: int
    first: tuple[int, int] = (0, 0)

    def strides(self, size: int) -> tuple[int, int, int]:
        """Bytes from an image, a row, a pixel to the next one."""
        pixel = self.channels * size
        return self.height * self.width * pixel, self.width * pixel, pixel

    def tile_bytes(self, size: int) -> int:
        """Of the transform of a tile: an odd number of lines, for the sake of the L1 cache."""
        return (_NUM_POINTS * self.channels * size // host.LINE | 1) * host.LINE


def plan_winograd_forward(
    x: Word,
    filters: Word,
    y: Word,
    conv: Convolution,
    dtype: DType,
    target: Target,
    epilogue: Epilogue | None,
) -> list[Launch]:
    """See plan_conv_forward."""
    _, height, width = conv.axes
    row = conv.filters * dtype.size
    taps = [conv.channels * row * tap for tap in range(TAPS * TAPS)]
    first = -height.padding[0], -width.padding[0]
    source = Operand(x, height.size, width.size, conv.channels, first)
    result = Operand(y, height.output, width.output, conv.filters)
    return _plan(source, result, conv.images, filters, taps, row, dtype, target, epilogue)


def plan_winograd_input_gradient(
    dy: Word,
    filters: Word,
    dx: Word,
    conv: Convolution,
    dtype: DType,
    target: Target,
    epilogue: Epilogue | None,
) -> list[Launch]:
    """See plan_conv_input_gradient: a convolution of dy with the filters turned around."""
    _, height, width = conv.axes
    row = conv.filters * dtype.size
    vectors = conv.channels // target.lanes(dtype)
    pack, packed = plan_pack(
        filters,
        [conv.channels * row * tap for tap in reversed(range(TAPS * TAPS))],
        conv.filters,
        conv.channels,
        1,
        row,
        0,
        Cut(vectors, 1, 1),
        dtype,
        target,
        transposed=True,
    )
    taps = [packed.tap * tap for tap in range(TAPS * TAPS)]
    first = height.padding[0] - (TAPS - 1), width.padding[0] - (TAPS - 1)
    source = Operand(dy, height.output, width.output, conv.filters, first)
    result = Operand(dx, height.size, width.size, conv.channels)
    launches = _plan(
        source, result, conv.images, packed.data, taps, packed.row, dtype, target, epilogue
    )
    return [pack, *launches]


def _plan(
    source: Operand,
    result: Operand,
    images: int,
    filters: Word,
    taps: list[int],
    filter_row: int,
    dtype: DType,
    target: Target,
    epilogue: Epilogue | None,
) -> list[Launch]:
    size, lanes = dtype.size, target.lanes(dtype)
    row = result.channels * size
    # Points begin on different lines of the L1 cache.
    point = source.channels * row + host.LINE
    transformed = Scratch(point * _NUM_POINTS, "winograd_filters")
    values: dict[str, Word] = {
        "filters": filters,
        "taps": tuple(taps),
        "filter_row": filter_row,
        "rows": source.channels,
        "vectors": result.channels // lanes,
        "to": transformed,
        "to_point": point,
        "to_row": row,
    }
    code = kernel.code(kernel.FILTERS, dtype, target.vector_bytes)
    first = Launch(code, tuple(values[name] for name in kernel.FILTER_WORDS))
    row_tiles = _tiles(result.width)
    image_rows = _tiles(result.height)
    rows = images * image_rows
    unit_rows = _unit_rows(rows, row_tiles, source, result, size, target.threads)
    num_tiles = unit_rows * row_tiles
    last_tiles = (rows - (-(-rows // unit_rows) - 1) * unit_rows) * row_tiles
    grid = choose_grid(
        num_tiles, result.channels // lanes, source.channels, target.registers, b_cost=0.4
    )
    sizes = result.channels, source.channels, dtype, target
    tiles = of_one_thread(grid, num_tiles, *sizes)
    grid = Grid(Cut.of(last_tiles, tiles.grid.rows.large), tiles.grid.vectors)
    last = of_one_thread(grid, last_tiles, *sizes, keep_vectors=True)
    strides = source.tile_bytes(size), size, row, result.tile_bytes(size)
    image, y_row, pixel = result.strides(size)
    values = {
        **_unit_words(rows, unit_rows, image_rows, row_tiles, source, result, dtype, target),
        "x": _image_words(source, size, lanes),
        "y": result.data,
        "y_image": image,
        "y_row": y_row,
        "y_pixel": pixel,
        "out_height": result.height,
        "out_width": result.width,
        "filters": transformed,
        "filter_point": point,
        "filter_columns": size,
        **_panel_words(tiles.grid, result.channels, lanes),
        "product_tile": result.tile_bytes(size),
        "product_point": row,
        "product_vectors": result.channels // lanes,
        "cut": _cut(tiles, num_tiles, *strides),
        "last_cut": _cut(last, last_tiles, *strides),
        "epilogue": epilogue.code if epilogue else 0,
        "epilogue_words": epilogue.words if epilogue else 0,
    }
    code = kernel.code(kernel.CONVOLVE, dtype, target.vector_bytes)
    words = tuple(values[name] for name in kernel.CONVOLVE_WORDS)
    return [first, Launch(code, words, _of_other_sizes(dtype, target))]


def plan_winograd_filter_gradient(
    x: Word, dy: Word, df: Word, conv: Convolution, dtype: DType, target: Target
) -> list[Launch]:
    """See plan_conv_filter_gradient."""
    _, height, width = conv.axes
    size, lanes = dtype.size, target.lanes(dtype)
    first = -height.padding[0], -width.padding[0]
    source = Operand(x, height.size, width.size, conv.channels, first)
    result = Operand(dy, height.output, width.output, conv.filters)
    row = conv.filters * size
    row_tiles, image_rows = _tiles(width.output), _tiles(height.output)
    rows = conv.images * image_rows
    unit_rows = _unit_rows(rows, row_tiles, source, result, size, 1)
    point = conv.channels * row + host.LINE
    part = point * _NUM_POINTS
    parts = num_parts(part, -(-rows // unit_rows))
    sums = Scratch(part * parts, "winograd_sums")
    grid = choose_grid(
        conv.channels, conv.filters // lanes, unit_rows * row_tiles, target.registers
    )
    tiles = of_one_thread(grid, conv.channels, conv.filters, unit_rows * row_tiles, dtype, target)
    strides = size, source.tile_bytes(size), result.tile_bytes(size), row
    values: dict[str, Word] = {
        **_unit_words(rows, unit_rows, image_rows, row_tiles, source, result, dtype, target),
        "x": _image_words(source, size, lanes),
        "dy": _image_words(result, size, lanes),
        "sums": sums,
        "sums_part": part,
        "sums_point": point,
        "sums_row": row,
        "parts": parts,
        **_panel_words(tiles.grid, conv.filters, lanes),
        "cut": _cut(tiles, conv.channels, *strides),
    }
    code = kernel.code(kernel.GRADIENT, dtype, target.vector_bytes)
    words = tuple(values[name] for name in kernel.GRADIENT_WORDS)
    found = [Launch(code, words, _of_other_sizes(dtype, target))]
    values = {
        "sums": sums,
        "sums_part": part,
        "sums_point": point,
        "sums_row": row,
        "parts": parts,
        "df": df,
        "df_tap": conv.channels * row,
        "df_row": row,
        "rows": conv.channels,
        "vectors": conv.filters // lanes,
    }
    code = kernel.code(kernel.FINISH, dtype, target.vector_bytes)
    return [*found, Launch(code, tuple(values[name] for name in kernel.FINISH_WORDS))]


def _unit_rows(
    rows: int, row_tiles: int, source: Operand, result: Operand, size: int, threads: int
) -> int:
    """Rows of tiles that are worked on together."""
    row_bytes = row_tiles * (source.tile_bytes(size) + result.tile_bytes(size))
    filter_bytes = _filter_bytes(source.channels, result.channels, size)
    is_near = filter_bytes <= host.in_l2_cache(_NEAR_FILTER_SHARE)
    most = host.in_l2_cache(_UNIT_SHARE if is_near else _LARGE_UNIT_SHARE)
    units = -(-rows // max(1, most // row_bytes))
    for more in range(units, rows + 1):
        if more % threads == 0 or more >= _UNITS_PER_THREAD * threads:
            units = more
            break
    return -(-rows // units)


def _unit_words(
    rows: int,
    unit_rows: int,
    image_rows: int,
    row_tiles: int,
    source: Operand,
    result: Operand,
    dtype: DType,
    target: Target,
) -> dict[str, Word]:
    tiles = unit_rows * row_tiles
    columns = (row_tiles * TILE + POINTS - TILE) * POINTS * target.vector_bytes
    patches_at = host.LINE + host.whole_lines(columns)
    products_at = patches_at + tiles * source.tile_bytes(dtype.size)
    memory = products_at + tiles * result.tile_bytes(dtype.size)
    return {
        "rows": rows,
        "unit_rows": unit_rows,
        "image_rows": image_rows,
        "row_tiles": row_tiles,
        "memory": Scratch(memory * target.threads, "winograd_tiles"),
        "memory_bytes": memory,
        "columns_at": host.LINE,
        "patches_at": patches_at,
        "products_at": products_at,
    }


def _image_words(image: Operand, size: int, lanes: int) -> tuple[Word, ...]:
    whole, row, pixel = image.strides(size)
    values: dict[str, Word] = {
        "data": image.data,
        "image": whole,
        "row": row,
        "pixel": pixel,
        "height": image.height,
        "width": image.width,
        "first_h": image.first[0],
        "first_w": image.first[1],
        "vectors": image.channels // lanes,
        "tile": image.tile_bytes(size),
        "point": image.channels * size,
    }
    return tuple(values[name] for name in kernel.IMAGE_WORDS)


def _panel_words(grid: Grid, columns: int, lanes: int) -> dict[str, Word]:
    return {
        "panel_columns": grid.vectors.large * lanes,
        "num_wide_panels": grid.vectors.num_large,
        "num_panels": grid.vectors.parts,
        "columns": columns,
    }


def _cut(tiles: Tiles, length: int, *strides: int) -> tuple[Word, ...]:
    """The words about how `length` rows are cut; `strides` as of _shape."""
    rows = tiles.grid.rows
    high, low = (height for height, _ in parts_of(rows, length))
    values: dict[str, Word] = {
        "cut_rows": rows.large,
        "num_high": rows.num_large,
        "num_cuts": rows.parts,
        "microkernels": tiles.codes,
        "shape": _shape(high, *strides),
        "low_shape": _shape(low, *strides),
    }
    return tuple(values[name] for name in kernel.CUT_WORDS)


def _of_other_sizes(dtype: DType, target: Target) -> tuple[Code, ...]:
    """The codes that the same takes for other numbers of tiles."""
    return (any_tile.code(dtype, target.vector_bytes),) if target.has_sizes else ()


def _shape(
    rows: int, row_stride: int, a_stride: int, b_stride: int, c_stride: int
) -> tuple[Word, ...]:
    """What the microkernel reads: a plain product of matrices."""
    values: dict[str, Word] = {
        "row_stride": row_stride,
        "group_stride": 0,
        "a_stride": a_stride,
        "b_stride": b_stride,
        "b_skip": 0,
        "c_stride": c_stride,
        "num_offsets": 1,
        "offsets": (0,),
        "rows": rows,
    }
    return tuple(values[name] for name in ANY_SHAPE)
