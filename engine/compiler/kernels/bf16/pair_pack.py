"""Copying a bfloat16 matrix into tiles of pairs, as the matrix unit (AMX) multiplies them.

A tile is 16 lines of 64 bytes. Terms of a sum are taken two by two: a pair is two elements next to
each other along k, as 32 bits. A tile of A holds (row, pair), one of B (pair, column), for 16 rows
or columns and 16 pairs; what is beyond the matrix is 0. Tiles follow each other along k, then along
rows or columns ("lines" here), then along the batch.
"""

from __future__ import annotations

from ....graph import uint16, uint32
from ...codegen.control import loop, when
from ...codegen.conversions import convert
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.code import Code
from ..addressing import Words, function, load, minimum, quotient, share, store
from ..gemm.pack import transposed
from .amx_instructions import LINE_BYTES, LINES

SYMBOL = "pack_pairs"
TERMS = 32  # of a sum, in a tile
TILE_BYTES = LINES * LINE_BYTES
_SIZE = 2  # bytes of an element
_VECTOR_BYTES = 64

# `stride` is that between lines, or between terms where lines are side by side in memory; in bytes.
WORDS = (
    *("source", "stride", "batch", "batch_2", "batches_2"),
    *("lines", "terms", "batches", "line_tiles", "term_tiles", "to"),
)


def code(*, by_pairs: bool, across: bool) -> Code:
    """The kernel.

    Args:
        by_pairs: whether tiles hold (pair, line), as those of B do.
        across: whether lines are side by side in memory, instead of the terms of a line.
    """
    return Code(SYMBOL, _VECTOR_BYTES, _write, (by_pairs, across))


def _write(by_pairs: bool, across: bool) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    _Writer(fn, Words(fn, args, WORDS), by_pairs, across).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, words: Words, by_pairs: bool, across: bool) -> None:
        self.fn = fn
        self.words = words
        self.by_pairs = by_pairs
        self.across = across

    def write(self, tid: Value, nth: Value) -> None:
        """A unit of work reads memory in order: some lines, or the same terms of all lines."""
        fn, words = self.fn, self.words
        outer = words["term_tiles"] if self.across else words["line_tiles"]
        inner = words["line_tiles"] if self.across else words["term_tiles"]
        first, last = share(fn, words["batches"] * outer, tid, nth)

        def unit(u: Value) -> None:
            batch, place = quotient(fn, u, outer)
            i, j = quotient(fn, batch, words["batches_2"])
            self.source = words["source"] + i * words["batch"] + j * words["batch_2"]
            self.batch = batch

            def tile(t: Value) -> None:
                self._tile(*((t, place) if self.across else (place, t)))

            loop(fn, fn.number(0), inner, 1, tile)

        loop(fn, first, last, 1, unit)

    def _tile(self, lines: Value, terms: Value) -> None:
        fn, words = self.fn, self.words
        number = (self.batch * words["line_tiles"] + lines) * words["term_tiles"] + terms
        to = words["to"] + number * TILE_BYTES
        line, term = lines * LINES, terms * TERMS
        is_whole = (line + LINES <= words["lines"]) & (term + TERMS <= words["terms"])
        when(fn, is_whole, lambda: self._copy(line, term, to, is_whole=True))
        when(fn, ~is_whole, lambda: self._copy(line, term, to, is_whole=False))

    def _copy(self, line: Value, term: Value, to: Value, *, is_whole: bool) -> None:
        read = self._pairs if self.across else self._lines
        rows = read(line, term, is_whole)
        if self.by_pairs is not self.across:
            rows = transposed(self.fn, rows)
        for r, row in enumerate(rows):
            store(self.fn, row, to + r * LINE_BYTES if r else to)

    def _lines(self, line: Value, term: Value, is_whole: bool) -> list[Value]:
        """A vector of pairs for each line."""
        fn, words = self.fn, self.words
        left = words["terms"] - term
        found = []
        for r in range(LINES):
            at = self.source + (line + r) * words["stride"] + term * _SIZE
            mask = None
            if not is_whole:
                count = fn.select(line + r < words["lines"], left, fn.number(0))
                mask = first_lanes(fn, count, TERMS)
            x = load(fn, at, uint16, TERMS, mask)
            found.append(fn.instruction(f"bitcast {x} to <{LINES} x i32>", uint32, LINES))
        return found

    def _pairs(self, line: Value, term: Value, is_whole: bool) -> list[Value]:
        """A vector of lines for each pair."""
        fn, words = self.fn, self.words
        left = minimum(fn, words["lines"] - line, fn.number(LINES))
        found = []
        for p in range(LINES):
            halves = []
            for k in (term + 2 * p, term + (2 * p + 1)):
                mask = None
                if not is_whole:
                    count = fn.select(k < words["terms"], left, fn.number(0))
                    mask = first_lanes(fn, count, LINES)
                at = self.source + k * words["stride"] + line * _SIZE
                halves.append(convert(fn, load(fn, at, uint16, LINES, mask), uint32))
            low, high = halves
            found.append(low | fn.binary("shl", high, 16))
        return found
