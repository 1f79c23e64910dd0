"""The kernels of the gradient of a convolution with respect to its filters.

    df[t, c, m] = sum over n, i of x[n, i * step + t, c] * dy[n, i, m]

Input tiles (see `input_tile.py`) are distributed over a fixed number of parts; each part adds up
its input tiles in a sum of its own, and a second kernel adds up the parts in order. So results do
not depend on the number of threads. The rows of a tile are taps and channels that follow each
other, a segment.
"""

from __future__ import annotations

from ....graph import DType
from ...codegen.control import fold, loop
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.code import Code
from ..addressing import (
    WORD_BYTES,
    Words,
    function,
    invoke,
    load,
    minimum,
    quotient,
    share,
    store,
    word,
)
from ..gemm.pack import write_copy, write_zero
from ..gemm.panels import column_of
from .input_tile import INPUT_TILE_WORDS, InputTile

SYMBOL = "filter_gradient"
SUM_SYMBOL = "sum_parts"

WORDS = (
    *INPUT_TILE_WORDS,
    *("dy", "dy_image", "dy_plane", "dy_row", "dy_pixel"),
    *("sums", "sums_part"),
    *("images", "parts"),
    *("planes", "input_tiles", "input_tile_rows", "rows"),
    *("blocks", "block_pixels", "pixels"),  # of the width
    *("groups", "x_group", "dy_group", "sums_group"),
    "x_column",  # see conv_kernel
    *("segments", "offsets", "segment_sums"),
    *("tile_rows", "num_high_tiles", "num_tiles", "sums_row", "x_step"),  # x_step: of tile rows
    *("panel_columns", "num_wide_panels", "num_panels", "columns"),
    *("shape", "last_shape"),  # of the microkernel; for the last input tile of a plane
    "microkernels",
)

SUM_WORDS = ("to", "sums", "sums_part", "parts", "elements")


def code(dtype: DType, vector_bytes: int) -> Code:
    """The kernel that makes the sums of the parts."""
    return Code(SYMBOL, vector_bytes, _write, (dtype, vector_bytes))


def sum_code(dtype: DType, vector_bytes: int) -> Code:
    """The kernel that adds up the parts."""
    return Code(SUM_SYMBOL, vector_bytes, _write_sum, (dtype, vector_bytes))


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    write_copy(module, dtype, vector_bytes)
    write_zero(module, dtype, vector_bytes)
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    _Writer(fn, args, dtype, vector_bytes // dtype.size).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, args: Value, dtype: DType, lanes: int) -> None:
        self.fn = fn
        self.words = Words(fn, args, WORDS)
        self.size = dtype.size
        self.lanes = lanes

    def write(self, tid: Value, nth: Value) -> None:
        fn, words = self.fn, self.words
        self.input_tile = InputTile(fn, words, tid, self.size)
        units = words["images"] * words["planes"] * words["input_tiles"] * words["blocks"]
        first, last = share(fn, words["parts"], tid, nth)

        def part(p: Value) -> None:
            self.sums = words["sums"] + p * words["sums_part"]
            begin, end = share(fn, units, p, words["parts"])
            loop(fn, begin, end, 1, lambda u: self._unit(u, u > begin))

        loop(fn, first, last, 1, part)

    def _unit(self, unit: Value, is_later: Value) -> None:
        fn, words = self.fn, self.words
        rest, block = quotient(fn, unit, words["blocks"])
        rest, number = quotient(fn, rest, words["input_tiles"])
        image, plane = quotient(fn, rest, words["planes"])
        row, pixel = number * words["input_tile_rows"], block * words["block_pixels"]
        a = self.input_tile.ready(image, plane, row, pixel)
        b = words["dy"] + image * words["dy_image"] + plane * words["dy_plane"]
        b = b + row * words["dy_row"] + pixel * words["dy_pixel"]
        is_last = number + 1 >= words["input_tiles"]
        self.shape = fn.select(is_last, words["last_shape"], words["shape"])
        self.count = minimum(fn, words["pixels"] - pixel, words["block_pixels"])
        self.add = fn.select(is_later, fn.number(1), fn.number(0))

        def group(g: Value) -> None:
            sums = self.sums + g * words["sums_group"]
            self._group(a + g * words["x_group"], b + g * words["dy_group"], sums)

        loop(fn, fn.number(0), words["groups"], 1, group)

    def _group(self, a: Value, b: Value, sums: Value) -> None:
        fn, words = self.fn, self.words

        def panel(p: Value) -> None:
            column = column_of(fn, words, p, self.lanes)
            columns = column_of(fn, words, p + 1, self.lanes) - column
            is_wide = p < words["num_wide_panels"]
            kernels = words["microkernels"] + fn.select(
                is_wide, fn.number(0), fn.number(WORD_BYTES)
            )
            at = column * self.size

            def segment(s: Value) -> None:
                c = sums + s * words["segment_sums"] + at
                start = a + column * words["x_column"] + word(fn, words["offsets"], s)
                self._segment(start, b + at, c, columns, kernels)

            loop(fn, fn.number(0), words["segments"], 1, segment)

        loop(fn, fn.number(0), words["num_panels"], 1, panel)

    def _segment(self, a: Value, b: Value, c: Value, columns: Value, kernels: Value) -> None:
        fn, words = self.fn, self.words
        high = words["num_high_tiles"]

        def tile(t: Value) -> None:
            i = t * words["tile_rows"] - (t - minimum(fn, t, high))
            invoke(
                fn,
                word(fn, kernels, fn.select(t < high, fn.number(0), fn.number(2))),
                a + i * words["x_step"],
                b,
                c + i * words["sums_row"],
                self.shape,
                columns,
                self.count,
                self.add,
            )

        loop(fn, fn.number(0), words["num_tiles"], 1, tile)


def _write_sum(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, SUM_SYMBOL, 3)
    words = Words(fn, args, SUM_WORDS)
    lanes = vector_bytes // dtype.size
    elements = words["elements"]
    vectors = fn.binary("udiv", elements + (lanes - 1), fn.number(lanes))
    first, last = share(fn, vectors, tid, nth)

    def vector(v: Value) -> None:
        at = v * vector_bytes
        mask = first_lanes(fn, elements - v * lanes, lanes)
        start = words["sums"] + at
        total = load(fn, start, dtype, lanes, mask)
        part_bytes = words["sums_part"]

        def add(p: Value, carried: list[Value]) -> list[Value]:
            return [carried[0] + load(fn, start + p * part_bytes, dtype, lanes, mask)]

        (total,) = fold(fn, fn.number(1), words["parts"], 1, [total], add)
        store(fn, total, words["to"] + at, mask)

    loop(fn, first, last, 1, vector)
    return module.text()
