"""The kernel of bfloat16 products: C[i, m, n] = sum over k of A[i, m, k] B[i, k, n].

A and B come in tiles of pairs (see pair_pack); C is float32. The matrix unit holds two by two tiles
of C while their sums are made, so each tile that is read is used twice; vectors hold some rows of
the same block. A unit of work is a block of C, whose tiles of A and B stay in the L2 cache; the
epilogue is given each block when it is complete.

The sums are of float32 products of pairs, two terms at a time, and numbers below 2^-126 count as 0.

Source: "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 2, TDPBF16PS and
    VDPBF16PS.
"""

from __future__ import annotations

from functools import partial

from ....graph import float32
from ...codegen.control import fold, loop, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.bfloat16_unit import PairUnit
from ...target.code import Code
from ..addressing import Words, function, invoke, load, minimum, quotient, share, store
from ..gemm.epilogue_scratch import SCRATCH_WORDS, EpilogueScratch
from ..gemm.microkernel import dot_of_pairs
from . import amx_instructions
from .amx_instructions import LINE_BYTES, LINES, REGISTERS
from .pair_pack import TILE_BYTES

SYMBOL = "pair_products"
_VECTOR_ROWS = 8  # whose sums vectors hold: with two vectors for each, most of the registers
PAIR = 2 * LINES  # rows and columns that are made at once
_VECTOR_BYTES = 64
_SIZE = 4  # bytes of an element of C

WORDS = (
    *("a", "a_batch", "b", "b_batch"),  # tiles, and their bytes for each product of the batch
    *("c", "c_row", "c_batch", "c_batch_2"),
    *("rows", "columns", "batches", "batches_2"),
    *("row_pairs", "column_pairs", "term_tiles"),
    *("block_rows", "block_columns"),  # in pairs of tiles
    *("rest", "epilogue", "epilogue_words", *SCRATCH_WORDS),
)
REST_BYTES = TILE_BYTES  # for each thread: a tile of which a part goes to C


def code(unit: PairUnit) -> Code:
    """The kernel."""
    return Code(SYMBOL, _VECTOR_BYTES, _write, (unit.value,))


def _write(unit: str) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    kind = _MatrixWriter if PairUnit(unit) is PairUnit.MATRIX else _VectorWriter
    kind(fn, Words(fn, args, WORDS)).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, words: Words) -> None:
        self.fn = fn
        self.words = words

    def write(self, tid: Value, nth: Value) -> None:
        fn, words = self.fn, self.words
        self.begin(tid)
        self.own = EpilogueScratch(fn, words, tid)
        row_blocks = self._blocks(words["row_pairs"], words["block_rows"])
        column_blocks = self._blocks(words["column_pairs"], words["block_columns"])
        units = words["batches"] * words["batches_2"] * row_blocks * column_blocks
        first, last = share(fn, units, tid, nth)

        def unit(u: Value) -> None:
            rest, row_block = quotient(fn, u, row_blocks)
            batch, column_block = quotient(fn, rest, column_blocks)
            self._unit(batch, row_block * words["block_rows"], column_block)

        loop(fn, first, last, 1, unit)
        self.end()

    def begin(self, tid: Value) -> None:
        """Make the unit ready."""

    def end(self) -> None:
        """Let go of the unit."""

    def block(self, a: Value, b: Value, line_bytes: Value, row: Value, column: Value) -> None:
        """C from that row and column on, 2 x 2 tiles, of tiles of A and B from there on."""
        raise NotImplementedError

    def _blocks(self, total: Value, size: Value) -> Value:
        return self.fn.binary("udiv", total + (size - 1), size)

    def _unit(self, batch: Value, row_pair: Value, column_block: Value) -> None:
        fn, words = self.fn, self.words
        i, j = quotient(fn, batch, words["batches_2"])
        c = words["c"] + i * words["c_batch"] + j * words["c_batch_2"]
        a = words["a"] + batch * words["a_batch"]
        b = words["b"] + batch * words["b_batch"]
        line_bytes = words["term_tiles"] * TILE_BYTES  # of the tiles along k
        last_row = minimum(fn, row_pair + words["block_rows"], words["row_pairs"])
        column_pair = column_block * words["block_columns"]
        last_column = minimum(fn, column_pair + words["block_columns"], words["column_pairs"])
        row, column = row_pair * PAIR, column_pair * PAIR
        # Rows before those of the block, in all products of the batch.
        first = batch * words["rows"] + row
        before = row * words["c_row"] + column * _SIZE
        offset = first * words["c_row"] + column * _SIZE
        block, epilogue_words = self.own.place(c + before, offset)
        self.c = block - before

        def columns(q: Value) -> None:
            def rows(p: Value) -> None:
                a_tiles, b_tiles = (x + n * (2 * line_bytes) for x, n in ((a, p), (b, q)))
                self.block(a_tiles, b_tiles, line_bytes, p * PAIR, q * PAIR)

            loop(fn, row_pair, last_row, 1, rows)

        loop(fn, column_pair, last_column, 1, columns)

        def finish() -> None:
            num_rows = minimum(fn, last_row * PAIR, words["rows"]) - row
            num_columns = minimum(fn, last_column * PAIR, words["columns"]) - column
            invoke(fn, words["epilogue"], epilogue_words, first, num_rows, column, num_columns)

        when(fn, words["epilogue"] != 0, finish)


class _MatrixWriter(_Writer):
    """With the matrix unit."""

    def begin(self, tid: Value) -> None:
        sizes = [LINE_BYTES] * REGISTERS, [LINES] * REGISTERS
        amx_instructions.configure(self.fn, "tiles", *sizes)
        self.rest = self.words["rest"] + tid * REST_BYTES

    def end(self) -> None:
        amx_instructions.release(self.fn)

    def block(self, a: Value, b: Value, line_bytes: Value, row: Value, column: Value) -> None:
        self._sums(a, b, line_bytes)
        self._store(row, column)

    def _sums(self, a: Value, b: Value, line_bytes: Value) -> None:
        """Tiles 0 to 3 become the sums of 2 x 2 tiles; 4 and 5 hold A, 6 and 7 hold B."""
        fn = self.fn
        for t in range(4):
            amx_instructions.zero_tile(fn, t)

        def step(k: Value) -> None:
            at = k * TILE_BYTES
            for t, start in ((4, a), (5, a + line_bytes), (6, b), (7, b + line_bytes)):
                amx_instructions.load_tile(fn, t, start + at, LINE_BYTES)
            for t in range(4):
                amx_instructions.add_products(fn, t, 4 + t // 2, 6 + t % 2)

        loop(fn, fn.number(0), self.words["term_tiles"], 1, step)

    def _store(self, row: Value, column: Value) -> None:
        for t in range(4):
            self._store_tile(t, row + LINES * (t // 2), column + LINES * (t % 2))

    def _store_tile(self, t: int, row: Value, column: Value) -> None:
        fn, words = self.fn, self.words
        c_row = words["c_row"]
        rows, columns = words["rows"] - row, words["columns"] - column
        at = self.c + row * c_row + column * _SIZE
        is_whole = (rows >= LINES) & (columns >= LINES)

        def part() -> None:
            amx_instructions.store_tile(fn, t, self.rest, LINE_BYTES)
            mask = first_lanes(fn, columns, LINES)

            def line(r: Value) -> None:
                x = load(fn, self.rest + r * LINE_BYTES, float32, LINES)
                store(fn, x, at + r * c_row, mask)

            loop(fn, fn.number(0), minimum(fn, rows, fn.number(LINES)), 1, line)

        when(fn, is_whole, lambda: amx_instructions.store_tile(fn, t, at, c_row))
        when(fn, ~is_whole & (rows > 0) & (columns > 0), part)


class _VectorWriter(_Writer):
    """With vectors: some rows of a block at a time, all of its columns."""

    def block(self, a: Value, b: Value, line_bytes: Value, row: Value, column: Value) -> None:
        fn = self.fn
        for first in range(0, PAIR, _VECTOR_ROWS):
            tile, line = divmod(first, LINES)
            lines = a + line_bytes * tile + line * LINE_BYTES
            at = row + first
            some = partial(self._rows, lines, b, line_bytes, at, column)
            when(fn, at < self.words["rows"], some)

    def _rows(self, a: Value, b: Value, line_bytes: Value, row: Value, column: Value) -> None:
        fn, words = self.fn, self.words
        zero = fn.splat(fn.constant(0.0, Value(fn, "", float32, 0)), LINES)

        def tiles(k: Value, sums: list[Value]) -> list[Value]:
            left, right = a + k * TILE_BYTES, b + k * TILE_BYTES

            def pair(p: Value, sums: list[Value]) -> list[Value]:
                return self._pair(left + p * _SIZE, right + p * LINE_BYTES, line_bytes, sums)

            return fold(fn, fn.number(0), fn.number(LINES), 1, sums, pair)

        start = [zero] * (2 * _VECTOR_ROWS)
        sums = fold(fn, fn.number(0), words["term_tiles"], 1, start, tiles)
        left = words["columns"] - column
        masks = [first_lanes(fn, left - v * LINES, LINES) for v in (0, 1)]
        at = self.c + row * words["c_row"] + column * _SIZE
        for r in range(_VECTOR_ROWS):

            def put(r: int = r) -> None:
                for v, mask in enumerate(masks):
                    place = at + words["c_row"] * r + v * LINE_BYTES
                    store(fn, sums[2 * r + v], place, mask)

            when(fn, row + r < words["rows"], put)

    def _pair(self, a: Value, b: Value, line_bytes: Value, sums: list[Value]) -> list[Value]:
        """The products of a pair of each row, with that of each column."""
        fn = self.fn
        columns = [load(fn, b + line_bytes * v, float32, LINES, is_fixed=True) for v in (0, 1)]
        found = list[Value]()
        for r in range(_VECTOR_ROWS):
            x = fn.splat(load(fn, a + r * LINE_BYTES, float32), LINES)
            found += [dot_of_pairs(fn, x, y, sums[len(found) + v]) for v, y in enumerate(columns)]
        return found
