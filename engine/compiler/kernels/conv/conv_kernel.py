"""The kernel of convolutions: forward, and what is like it. Channels come last.

    y[n, i, :] = sum over taps t and channels c of x[n, i * step + t, c] * filters[t, c, :]

The rows of a tile are neighbours along the width, the sum runs over taps and channels, so the
microkernel of matrix products does the work. A unit of work is an input tile: some rows of one
plane of y. The part of x that it takes is copied, with zeros where it reaches beyond x, to memory
that stays in cache; without padding x is read where it is. The gradient with respect to x is a
convolution of dy for each phase: each remainder of the position in x divided by the stride has taps
    of its own.
"""

from __future__ import annotations

from ....graph import DType
from ...codegen.control import loop, when
from ...codegen.function import IRFunction, Module, Value
from ...target.code import Code
from ..addressing import WORD_BYTES, Words, function, invoke, minimum, quotient, share, word
from ..gemm.epilogue_scratch import SCRATCH_WORDS, EpilogueScratch
from ..gemm.pack import write_copy, write_zero
from ..gemm.panels import column_of
from .input_tile import INPUT_TILE_WORDS, InputTile

SYMBOL = "convolve"

WORDS = (
    *INPUT_TILE_WORDS,
    *("y", "y_image", "filters"),
    "images",
    *("planes", "input_tiles", "input_tile_rows", "input_tile_tiles", "tile_blocks"),
    *("groups", "x_group", "y_group", "filter_group"),
    "x_column",  # bytes for each column of y: 0 unless channels of x and y belong to each other
    *("panel_columns", "num_wide_panels", "num_panels", "columns"),
    *("filter_panel", "filter_columns"),  # bytes for each panel, for each column: one of them is 0
    *("num_phases", "phases"),
    *("epilogue", "epilogue_words", *SCRATCH_WORDS),
)

# For each phase.
PHASE_WORDS = (
    *("y_offset", "y_plane", "y_row", "y_pixel"),
    *("planes", "rows", "pixels"),
    *("tile_rows", "num_high_tiles", "num_tiles"),
    "filter_offset",
    "count",  # of the innermost sum
    # Rows at the border have fewer taps: for each row the number of a shape, and where its filters
    # begin.
    *("shapes", "row_taps"),
    "microkernels",
)


def code(dtype: DType, vector_bytes: int) -> Code:
    """The kernel."""
    return Code(SYMBOL, vector_bytes, _write, (dtype, vector_bytes))


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
        input_tile = InputTile(fn, words, tid, self.size)
        self.own = EpilogueScratch(fn, words, tid)
        units = words["images"] * words["planes"] * words["input_tiles"] * words["tile_blocks"]
        first, last = share(fn, units, tid, nth)
        phases = words["phases"]

        def unit(u: Value) -> None:
            rest, block = quotient(fn, u, words["tile_blocks"])
            rest, number = quotient(fn, rest, words["input_tiles"])
            image, plane = quotient(fn, rest, words["planes"])
            # Blocks of tiles are made when there is one phase only.
            tiles = block * words["input_tile_tiles"]
            row = number * words["input_tile_rows"]
            one = Words(fn, phases, PHASE_WORDS)
            a = input_tile.ready(image, plane, row, _row_of(fn, one, tiles))
            self.unit = image, plane, row, tiles

            def phase(i: Value) -> None:
                block = phases + i * (len(PHASE_WORDS) * WORD_BYTES)
                found = Words(fn, block, PHASE_WORDS)
                when(fn, plane < found["planes"], lambda: self._phase(found, a))

            loop(fn, fn.number(0), words["num_phases"], 1, phase)

        loop(fn, first, last, 1, unit)

    def _phase(self, phase: Words, a: Value) -> None:
        fn, words = self.fn, self.words
        image, plane, row, tile = self.unit
        y = words["y"] + image * words["y_image"] + phase["y_offset"]
        self.y = y + plane * phase["y_plane"]
        last_row = minimum(fn, row + words["input_tile_rows"], phase["rows"])
        last_tile = minimum(fn, tile + words["input_tile_tiles"], phase["num_tiles"])
        # Output pixels before the first row of the plane, for the epilogue.
        pixels = ((image * phase["planes"] + plane) * phase["rows"]) * phase["pixels"]

        def group(g: Value) -> None:
            filters = words["filters"] + phase["filter_offset"] + g * words["filter_group"]
            self._group(phase, a + g * words["x_group"], filters, g)

        self.rows, self.tiles, self.pixels = (row, last_row), (tile, last_tile), pixels
        loop(fn, fn.number(0), words["groups"], 1, group)

    def _group(self, phase: Words, a: Value, filters: Value, g: Value) -> None:
        fn, words = self.fn, self.words
        first = _row_of(fn, phase, self.tiles[0])
        count = _row_of(fn, phase, self.tiles[1]) - first
        before = first * phase["y_pixel"]

        def panel(p: Value) -> None:
            column = column_of(fn, words, p, self.lanes)
            columns = column_of(fn, words, p + 1, self.lanes) - column
            b = filters + p * words["filter_panel"] + column * words["filter_columns"]
            is_wide = p < words["num_wide_panels"]
            narrow = fn.select(is_wide, fn.number(0), fn.number(1))
            kernels = phase["microkernels"] + narrow * WORD_BYTES
            start = a + column * words["x_column"]
            columns_at = g * words["y_group"] + column * self.size

            def row(r: Value) -> None:
                place = self.pixels + r * phase["pixels"] + first
                there = self.y + r * phase["y_row"] + before
                block, epilogue_words = self.own.place(there, place * phase["y_pixel"])
                c = block - before + columns_at
                self._row(phase, r, start, b, c, columns, kernels)

                def finish() -> None:
                    at = g * words["columns"] + column
                    invoke(fn, words["epilogue"], epilogue_words, place, count, at, columns)

                when(fn, words["epilogue"] != 0, finish)

            loop(fn, *self.rows, 1, row)

        loop(fn, fn.number(0), words["num_panels"], 1, panel)

    def _row(
        self,
        phase: Words,
        r: Value,
        a: Value,
        b: Value,
        c: Value,
        columns: Value,
        kernels: Value,
    ) -> None:
        """One row of y, panel by panel of its channels."""
        fn, words = self.fn, self.words
        copied = words["input_tile_width"] * words["pixel_elements"] * self.size
        pitch = fn.select(words["copy"] != 0, copied, words["x_row"])
        a = a + (r - self.rows[0]) * words["step_h"] * pitch
        step = words["step_w"] * words["x_pixel"]
        first = _row_of(fn, phase, self.tiles[0])
        taps = phase["row_taps"] + r * (2 * WORD_BYTES)
        shape, count = word(fn, phase["shapes"], word(fn, taps, 0)), phase["count"]
        b = b + word(fn, taps, 1)
        high = phase["num_high_tiles"]

        def tile(t: Value) -> None:
            low = fn.select(t < high, fn.number(0), fn.number(2))
            i = _row_of(fn, phase, t)
            invoke(
                fn,
                word(fn, kernels, low),
                a + (i - first) * step,
                b,
                c + i * phase["y_pixel"],
                shape,
                columns,
                count,
                fn.number(0),
            )

        loop(fn, *self.tiles, 1, tile)


def _row_of(fn: IRFunction, phase: Words, tile: Value) -> Value:
    """The first pixel of a tile: those after the high ones have one pixel less."""
    high = minimum(fn, tile, phase["num_high_tiles"])
    return tile * phase["tile_rows"] - (tile - high)
