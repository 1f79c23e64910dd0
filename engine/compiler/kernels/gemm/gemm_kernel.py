"""The kernel of matrix products: C[i, m, n] (+)= sum over k of A[i, m, k] * B[i, k, n].

It walks over units of work: for each product of a batch, blocks of C that are `block_panels` panels
wide. Within a unit, k is taken in blocks, for each of which B is copied where that pays (see
`pack`). Then come parts, at most `part_tiles` tiles high: the rows of A are copied where that pays,
and used for all panels. Each tile is a call of a microkernel.

All threads have as much of C, but for some tiles: a thread takes a run of units, of which it may
share the first and the last with others, by rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ....graph import DType
from ...codegen.control import fold, loop, when
from ...codegen.function import IRFunction, Module, Value
from ...target.code import Code
from ...target.host import LINE
from ..addressing import WORD_BYTES, Words, function, invoke, minimum, quotient, share, word
from .epilogue_scratch import SCRATCH_WORDS, EpilogueScratch
from .microkernel import UNROLL
from .pack import COPY, TRANSPOSE, write_copy, write_transpose

SYMBOL = "gemm"

# Strides and sizes of memory are in bytes.
WORDS = (
    *("a", "a_row", "a_inner", "a_batch", "a_batch_2"),
    *("b", "b_inner", "b_column", "b_batch", "b_batch_2"),
    *("c", "c_row", "c_batch", "c_batch_2"),
    *("rows", "columns", "inner", "batches", "batches_2"),  # batches_2 is the inner one
    *("tile_rows", "num_high_tiles", "num_tiles"),
    *("panel_columns", "num_wide_panels", "num_panels"),
    *("part_tiles", "block_panels", "block_inner"),
    "accumulate",  # 0 or 1
    *("pack_a", "packed_a", "packed_a_bytes", "packed_a_tile", "packed_a_stride"),
    *("pack_b", "packed_b", "packed_b_bytes", "packed_b_panel", "packed_b_stride"),
    "microkernels",  # high and wide, high and narrow, low and wide, low and narrow
    *("shape", "low_shape"),  # of the microkernels, high and low
    *("shape_of_copy", "low_shape_of_copy"),  # the same where B is copied
    *("epilogue", "epilogue_words"),  # the address of a function, or 0
    # What the epilogue takes besides, which is fetched while tiles are made: its address, and its
    # bytes for each row of C. Then units are of whole rows.
    *("num_streams", "streams"),
    "fetch_a",  # how what the next part takes of A is fetched while tiles are made
    *SCRATCH_WORDS,  # blocks are parts
)

# "pack_a" says whether A is copied: the rows of a tile for each k. Rows of A are 1 element apart.
# How B is copied: not; the columns of a panel for each k; the same from a transposed matrix; or by
# the first way if its vectors do not begin at multiples of their size, so that some of them are in
# two lines of the cache, else not.
B_AS_IT_IS, B_BY_INNER, B_TRANSPOSED, B_IF_BESIDE = range(4)
# How A is fetched: not; its rows, which follow each other; or parts of its columns, which do not.
A_UNFETCHED, A_BY_ROWS, A_BY_INNER = range(3)


def code(dtype: DType, vector_bytes: int) -> Code:
    """The kernel."""
    return Code(SYMBOL, vector_bytes, _write, (dtype, vector_bytes))


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    write_copy(module, dtype, vector_bytes)
    write_transpose(module, dtype, vector_bytes)
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    _Writer(fn, Words(fn, args, WORDS), dtype, vector_bytes // dtype.size).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, words: Words, dtype: DType, lanes: int) -> None:
        self.fn = fn
        self.words = words
        self.size = dtype.size
        self.lanes = lanes

    def write(self, tid: Value, nth: Value) -> None:
        fn, words = self.fn, self.words
        self.packed_a = words["packed_a"] + words["packed_a_bytes"] * tid
        self.packed_b = words["packed_b"] + words["packed_b_bytes"] * tid
        # A tile counts as many times as it has columns.
        self.of_product = words["num_tiles"] * words["columns"]
        total = words["batches"] * words["batches_2"] * self.of_product
        begin, end = self.share = share(fn, total, tid, nth)
        self.own = EpilogueScratch(fn, words, tid)

        def product(batch: Value) -> None:
            size = words["block_panels"]
            units = self._blocks(words["num_panels"], size)
            loop(fn, fn.number(0), units, 1, lambda u: self._unit(batch, u * size))

        past = fn.binary("udiv", end + (self.of_product - 1), self.of_product)
        loop(fn, fn.binary("udiv", begin, self.of_product), past, 1, product)

    def _blocks(self, total: Value, size: Value) -> Value:
        return self.fn.binary("udiv", total + (size - 1), size)

    def _row_of(self, tile: Value) -> Value:
        """The first row of a tile: those after the high ones have one row less, at least."""
        high = minimum(self.fn, tile, self.words["num_high_tiles"])
        found = tile * self.words["tile_rows"] - (tile - high)
        return minimum(self.fn, found, self.words["rows"])

    def _column_of(self, panel: Value) -> Value:
        wide = minimum(self.fn, panel, self.words["num_wide_panels"])
        found = panel * self.words["panel_columns"] - (panel - wide) * self.lanes
        return minimum(self.fn, found, self.words["columns"])

    def _unit(self, batch: Value, first_panel: Value) -> None:
        """What this thread has of a unit, if anything."""
        fn, words = self.fn, self.words
        i, j = quotient(fn, batch, words["batches_2"])
        last_panel = minimum(fn, first_panel + words["block_panels"], words["num_panels"])
        self.panels = first_panel, last_panel
        column = self._column_of(first_panel)
        before = batch * self.of_product + column * words["num_tiles"]
        width = self._column_of(last_panel) - column

        def tile_at(place: Value) -> Value:
            """The row of tiles at a place in all of C, if it is in this unit."""
            inside = fn.select(place > before, place - before, fn.number(0))
            return minimum(fn, fn.binary("udiv", inside, width), words["num_tiles"])

        first_tile, last_tile = (tile_at(place) for place in self.share)
        self.unit_tiles = first_tile, last_tile
        num_tiles = last_tile - first_tile
        num_parts = self._blocks(num_tiles, words["part_tiles"])
        self.a = words["a"] + i * words["a_batch"] + j * words["a_batch_2"]
        self.b = words["b"] + i * words["b_batch"] + j * words["b_batch_2"]
        beside = fn.binary("and", self.b, self.lanes * self.size - 1) != 0
        as_found = fn.select(beside, fn.number(B_BY_INNER), fn.number(B_AS_IT_IS))
        how = words["pack_b"]
        self.pack_b = fn.select(how == B_IF_BESIDE, as_found, how)
        c = words["c"] + i * words["c_batch"] + j * words["c_batch_2"]

        def inner_block(k: Value) -> None:
            count = minimum(fn, words["inner"] - k, words["block_inner"])
            when(fn, self.pack_b == B_BY_INNER, lambda: self._pack_b(k, count))
            when(fn, self.pack_b == B_TRANSPOSED, lambda: self._transpose_b(k, count))

            def part(i: Value) -> None:
                start, end = (
                    first_tile + fn.binary("udiv", num_tiles * n, num_parts) for n in (i, i + 1)
                )
                self.tiles = start, end
                self.rows = self._row_of(start), self._row_of(end)
                self.first_row = batch * words["rows"] + self.rows[0]
                before, offset = (n * words["c_row"] for n in (self.rows[0], self.first_row))
                block, self.epilogue_words = self.own.place(c + before, offset)
                self.c = block - before
                self._part(k, count)

            loop(fn, fn.number(0), num_parts, 1, part)

        # Without a k there is one block all the same: it makes C zero.
        size = words["block_inner"]
        limit = fn.select(words["inner"] > 0, words["inner"], fn.number(1))
        count = fn.select(num_parts > 0, self._blocks(limit, size), fn.number(0))
        loop(fn, fn.number(0), count, 1, lambda i: inner_block(i * size))

    def _part(self, k: Value, count: Value) -> None:
        """Some rows of the unit, for a block of k."""
        fn, words = self.fn, self.words
        when(fn, words["pack_a"] != 0, lambda: self._pack_a(k, count))
        is_last = (words["epilogue"] != 0) & (k + count >= words["inner"])
        is_by_rows = words["num_streams"] > 0

        def panel(p: Value) -> None:
            self._panel(p, k, count)
            when(fn, is_last & ~is_by_rows, lambda: self._finish(p, p + 1))

        loop(fn, *self.panels, 1, panel)
        when(fn, is_last & is_by_rows, lambda: self._finish(*self.panels))

    def _a_of(self, tile: Value, k: Value) -> Value:
        words = self.words
        return self.a + self._row_of(tile) * words["a_row"] + k * words["a_inner"]

    def _pack_a(self, k: Value, count: Value) -> None:
        """Copy the high tiles of the part, then the low ones: A is read along its rows' axis."""
        fn, words = self.fn, self.words
        for begin, end, rows in self._heights():
            invoke(
                fn,
                COPY,
                self._packed_tile(begin),
                self._a_of(begin, k),
                fn.select(begin < end, count, fn.number(0)),
                words["packed_a_stride"],
                words["a_inner"],
                self._row_of(end) - self._row_of(begin),
                fn.select(rows > 0, rows, fn.number(1)),
                words["packed_a_tile"],
            )

    def _heights(self) -> tuple[tuple[Value, Value, Value], ...]:
        """The high tiles of the part, and the low ones: from, to, rows from one to the next."""
        fn, words = self.fn, self.words
        first, last = self.tiles
        high = minimum(fn, last, words["num_high_tiles"])
        middle = fn.select(high > first, high, first)
        height = words["tile_rows"]
        return (first, middle, height), (middle, last, height - 1)

    def _packed_tile(self, tile: Value) -> Value:
        return self.packed_a + (tile - self.tiles[0]) * self.words["packed_a_tile"]

    def _panel(self, panel: Value, k: Value, count: Value) -> None:
        fn, words = self.fn, self.words
        column = self._column_of(panel)
        columns = self._column_of(panel + 1) - column
        is_packed = self.pack_b != B_AS_IT_IS
        b = fn.select(is_packed, self._packed_panel(panel), self._b_of(column, k))
        c = self.c + column * self.size
        narrow = fn.select(panel < words["num_wide_panels"], fn.number(0), fn.number(1))
        accumulate = fn.select(k > 0, fn.number(1), words["accumulate"])

        def tile(kernel: Value, shape: Value, a: Value, c: Value, *ahead: Value) -> None:
            invoke(fn, kernel, a, b, c, shape, columns, count, accumulate, *ahead)

        shapes = [
            fn.select(is_packed, words[f"{name}_of_copy"], words[name])
            for name in ("shape", "low_shape")
        ]
        for low, (shape, tiles) in enumerate(zip(shapes, self._heights(), strict=True)):
            kernel = word(fn, words["microkernels"], narrow + 2 * low)
            self._tiles(*tiles, c, panel, k, count, partial(tile, kernel, shape))

    def _tiles(
        self,
        first: Value,
        last: Value,
        rows: Value,
        c: Value,
        panel: Value,
        k: Value,
        count: Value,
        tile: Callable[..., None],
    ) -> None:
        """Tiles of one height: `tile` is given where A and C begin, and what it is to fetch.

        What comes between two of them is short, to be ready when the sums of the first one are.
        """
        fn, words = self.fn, self.words
        is_copied = words["pack_a"] != 0
        a = fn.select(is_copied, self._packed_tile(first), self._a_of(first, k))
        start = [a, c + self._row_of(first) * words["c_row"]]
        a_step = fn.select(is_copied, words["packed_a_tile"], rows * words["a_row"])
        steps = a_step, rows * words["c_row"]
        streams, fetches = words["num_streams"] > 0, words["fetch_a"] != A_UNFETCHED
        is_alone = ~(streams | fetches)

        def alone(t: Value, at: list[Value]) -> list[Value]:
            tile(*at)
            return [x + step for x, step in zip(at, steps, strict=True)]

        def ahead(t: Value, at: list[Value]) -> list[Value]:
            when(fn, streams, lambda: tile(*at, *self._ahead(panel, t, count)))
            when(fn, fetches, lambda: tile(*at, *self._ahead_of_a(panel, t, k, count)))
            return [x + step for x, step in zip(at, steps, strict=True)]

        when(fn, is_alone, lambda: fold(fn, first, last, 1, start, alone))
        when(fn, ~is_alone, lambda: fold(fn, first, last, 1, start, ahead))

    def _finish(self, first: Value, last: Value) -> None:
        """The epilogue of some panels."""
        fn, words = self.fn, self.words
        column, end = self._column_of(first), self._column_of(last)
        rows = self.rows[1] - self.rows[0]
        where = self.first_row, rows, column, end - column
        invoke(fn, words["epilogue"], self.epilogue_words, *where)

    def _ahead(self, panel: Value, tile: Value, count: Value) -> tuple[Value, Value]:
        """What the microkernel of a tile is to fetch, and how far it is from line to line.

        A tile fetches a line in each round of its sum; the tiles of a part go through its share
        of one stream after the other.
        """
        fn, words = self.fn, self.words
        rounds = fn.binary("udiv", count, UNROLL)
        num_bytes = fn.select(rounds > 0, rounds, fn.number(1)) * LINE
        of_part = (self.rows[1] - self.rows[0]) * word(fn, words["streams"], 1)
        number = (panel - self.panels[0]) * (self.tiles[1] - self.tiles[0]) + tile - self.tiles[0]
        stream, part = quotient(fn, number, self._blocks(of_part, num_bytes))
        is_there = stream < words["num_streams"]
        block = words["streams"] + fn.select(is_there, stream, fn.number(0)) * (2 * WORD_BYTES)
        at = word(fn, block, 0) + self.first_row * word(fn, block, 1) + part * num_bytes
        # Those that have nothing left to fetch stay in place.
        return fn.select(is_there, at, self.c), fn.select(is_there, fn.number(LINE), fn.number(0))

    def _ahead_of_a(self, panel: Value, tile: Value, k: Value, count: Value) -> tuple[Value, Value]:
        """The same for what the next part takes of A.

        After the last part comes the first one, with the next k, or for the next panels. A tile
        goes along the rows, or down a column of lines, every UNROLL-th of them.
        """
        fn, words = self.fn, self.words
        first, last = self.unit_tiles
        is_last = self.tiles[1] >= last
        begin = fn.select(is_last, first, self.tiles[1])
        end = minimum(fn, begin + words["part_tiles"], last)
        following = fn.select(k + count < words["inner"], k + count, fn.number(0))
        num_bytes = (self._row_of(end) - self._row_of(begin)) * words["a_row"]
        number = (panel - self.panels[0]) * (self.tiles[1] - self.tiles[0]) + tile - self.tiles[0]
        by_rows = words["fetch_a"] == A_BY_ROWS
        column, row = quotient(fn, number, fn.number(UNROLL))
        start = fn.select(by_rows, number * fn.binary("udiv", count, UNROLL), column) * LINE
        at = self._a_of(begin, fn.select(is_last, following, k)) + start
        at = at + fn.select(by_rows, fn.number(0), row * words["a_inner"])
        step = fn.select(by_rows, fn.number(LINE), words["a_inner"] * UNROLL)
        is_there = start < num_bytes
        return fn.select(is_there, at, self.c), fn.select(is_there, step, fn.number(0))

    def _b_of(self, column: Value, k: Value) -> Value:
        return self.b + k * self.words["b_inner"] + column * self.words["b_column"]

    def _packed_panel(self, panel: Value) -> Value:
        return self.packed_b + (panel - self.panels[0]) * self.words["packed_b_panel"]

    def _pack_b(self, k: Value, count: Value) -> None:
        """Copy the wide panels of the unit, then the narrow ones: B is read row by row."""
        fn, words = self.fn, self.words
        first, last = self.panels
        wide = minimum(fn, last, words["num_wide_panels"])
        middle = fn.select(wide > first, wide, first)
        width = words["panel_columns"]
        for begin, end, columns in ((first, middle, width), (middle, last, width - self.lanes)):
            invoke(
                fn,
                COPY,
                self._packed_panel(begin),
                self._b_of(self._column_of(begin), k),
                fn.select(begin < end, count, fn.number(0)),
                words["packed_b_stride"],
                words["b_inner"],
                self._column_of(end) - self._column_of(begin),
                fn.select(columns > 0, columns, fn.number(1)),
                words["packed_b_panel"],
            )

    def _transpose_b(self, k: Value, count: Value) -> None:
        fn, words = self.fn, self.words

        def panel(p: Value) -> None:
            column = self._column_of(p)
            invoke(
                fn,
                TRANSPOSE,
                self._packed_panel(p),
                self._b_of(column, k),
                self._column_of(p + 1) - column,
                count,
                words["packed_b_stride"],
                words["b_column"],
            )

        loop(fn, *self.panels, 1, panel)
