"""The kernel of floats times a matrix in few bits, in groups of rows with scales and zeros.

    C[m, n] = sum over g of scale[g, n] * (S[g, m, n] - zero[g, n] * sum of A[m, k in g]),
    S[g, m, n] = sum over k in g of A[m, k] * B[k, n]

Numbers of B become floats in registers. Threads share the columns, in strips. Of few rows, some
rows of B at a time are streamed along memory, and sums wait in scratch memory for the next; of
many, a strip of B is copied as floats, for all rows of A to use.
"""

from __future__ import annotations

from functools import partial

from ....graph import float32, int8, int32
from ...codegen.control import fold, loop, replaced, when
from ...codegen.conversions import convert
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.code import Code
from ...target.host import LINE
from ..addressing import Words, function, load, minimum, prefetch, store
from .byte_dots import shuffled
from .strips import Strip, Strips

SYMBOL = "weight_product"
# Strides are in bytes.
WORDS = (
    *("a", "a_row", "b", "b_row", "c", "c_row", "rows", "columns", "inner"),
    *("group", "num_groups", "block", "num_blocks", "sums", "sums_row", "ahead"),
    *("scale", "zero", "totals", "totals_row"),
    *("copy", "copy_bytes"),  # for each thread a strip of B as floats
)
HEIGHTS = (2, 1)  # rows whose sums are in registers together
_NIBBLES_FROM = 8  # numbers of 4 bits are taken from 0 on, so this is added to them


def code(bits: int, vector_bytes: int, *, grouped: bool, copies: bool) -> Code:
    """The kernel; `grouped` says whether there are groups, `copies` whether it copies B."""
    return Code(SYMBOL, vector_bytes, _write, (bits, grouped, copies, vector_bytes))


def columns_of_strip(vector_bytes: int) -> int:
    """How many columns a strip has: their sums take half of the registers."""
    return _vectors(vector_bytes) * vector_bytes // float32.size


def _vectors(vector_bytes: int) -> int:
    return 8 if vector_bytes == 64 else 4


def _write(bits: int, grouped: bool, copies: bool, vector_bytes: int) -> str:
    module = Module(vector_bytes)
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    kind = _CopyingWriter if copies else _Writer
    kind(fn, Words(fn, args, WORDS), bits, grouped, vector_bytes).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(
        self, fn: IRFunction, words: Words, bits: int, grouped: bool, vector_bytes: int
    ) -> None:
        self.fn = fn
        self.bits = bits
        self.grouped = grouped
        self.lanes = vector_bytes // float32.size
        self.vectors = _vectors(vector_bytes)
        self.columns = columns_of_strip(vector_bytes)
        self.vector_bytes = vector_bytes
        self.word = {name: words[name] for name in WORDS}

    def write(self, tid: Value, nth: Value) -> None:
        fn, word = self.fn, self.word
        places = word["b"], word["b_row"], word["columns"]
        strips = Strips(fn, *places, self.columns, 8 // self.bits, self.vector_bytes)
        first, last = strips.each(tid, nth)

        def group(g: Value) -> None:
            begin = g * word["group"]
            end = minimum(fn, begin + word["group"], word["inner"])

            def block(i: Value) -> None:
                start = begin + i * word["block"]
                stop = minimum(fn, start + word["block"], end)

                def run() -> None:
                    strips.run(first, last, partial(self._strip, g, begin, end, start, stop))

                when(fn, start < end, run)

            loop(fn, fn.number(0), word["num_blocks"], 1, block)

        loop(fn, fn.number(0), word["num_groups"], 1, group)

    def _strip(
        self,
        g: Value,
        begin: Value,
        end: Value,
        start: Value,
        stop: Value,
        strip: Strip,
    ) -> None:
        fn, first = self.fn, self.fn.number(0)
        for height in HEIGHTS:
            last = fn.binary("and", self.word["rows"], -height)

            def tile(row: Value, height: int = height) -> None:
                sums = self._sums(start > begin, start, stop, strip, height, row)
                self._put(sums, g, stop >= end, strip, row)

            loop(fn, first, last, height, tile)
            first = last

    def _sums(
        self,
        goes_on: Value,
        start: Value,
        stop: Value,
        strip: Strip,
        height: int,
        row: Value,
    ) -> list[list[Value]]:
        """The sums of a strip over some rows of B, for some rows of A."""
        fn, word = self.fn, self.word
        zero = fn.splat(fn.constant(0.0, Value(fn, "", float32, 0)), self.lanes)
        places = self._waiting(row, height, strip)
        sums = replaced(
            fn,
            goes_on,
            [zero] * len(places),
            lambda: [load(fn, place, float32, self.lanes) for place in places],
        )
        a = word["a"] + row * word["a_row"]

        def term(k: Value, sums: list[Value]) -> list[Value]:
            numbers = self._factors(k, start, strip)
            found = []
            for r in range(height):
                x = load(fn, a + word["a_row"] * r + k * float32.size, float32)
                x = fn.splat(x, self.lanes)
                found += [
                    fn.call("fmuladd", x, number, total)
                    for number, total in zip(numbers, sums[r * self.vectors :], strict=False)
                ]
            return found

        sums = fold(fn, start, stop, 1, sums, term)
        return [sums[r * self.vectors : (r + 1) * self.vectors] for r in range(height)]

    def _factors(self, k: Value, start: Value, strip: Strip) -> list[Value]:
        """A row of B."""
        fn, at = self.fn, self._source(k, strip.column)
        for line in range(0, self.columns * self.bits // 8, LINE):
            prefetch(fn, at + self.word["ahead"] + line, level=2)
        return self._numbers(at, self._masks(strip.left))

    def _source(self, k: Value, column: Value) -> Value:
        """Where a row of B is."""
        begin = self.fn.binary("lshr", column * self.bits, 3)
        return self.word["b"] + begin + k * self.word["b_row"]

    def _waiting(self, row: Value, height: int, strip: Strip) -> list[Value]:
        """Where sums wait for the next rows of B."""
        begin = strip.number * (self.columns * float32.size)
        start = self.word["sums"] + row * self.word["sums_row"] + begin
        return [
            start + self.word["sums_row"] * r + v * self.vector_bytes
            for r in range(height)
            for v in range(self.vectors)
        ]

    def _masks(self, left: Value | None) -> list[Value | None]:
        """Of the vectors of bytes of a row of B."""
        count = self.vectors * self.bits // 8
        if left is None:
            return [None] * count
        fn = self.fn
        num_bytes = fn.binary("lshr", left * self.bits + 7, 3)
        return [first_lanes(fn, num_bytes - v * self.lanes, self.lanes) for v in range(count)]

    def _numbers(self, at: Value, masks: list[Value | None]) -> list[Value]:
        """Numbers of a row of B as floats; of 4 bits, those of even and odd columns by turns."""
        fn, found = self.fn, list[Value]()
        for v, mask in enumerate(masks):
            raw = load(fn, at + v * self.lanes, int8, self.lanes, mask)
            if self.bits == 8:
                found.append(convert(fn, raw, float32))
                continue
            unsigned = fn.binary("xor", raw, 0x88)
            wide = fn.instruction(f"zext {unsigned} to <{self.lanes} x i32>", int32, self.lanes)
            halves = fn.binary("and", wide, 15), fn.binary("lshr", wide, 4)
            found += [convert(fn, half, float32) for half in halves]
        return found

    def _put(
        self,
        sums: list[list[Value]],
        g: Value,
        is_done: Value,
        strip: Strip,
        row: Value,
    ) -> None:
        """Sums of a group that is done go into the result; others wait."""
        fn = self.fn

        def wait() -> None:
            flat = [x for some in sums for x in some]
            for x, place in zip(flat, self._waiting(row, len(sums), strip), strict=True):
                store(fn, x, place)

        def finish() -> None:
            for r, some in enumerate(sums):
                for v, x in enumerate(self._in_order(some)):
                    self._add(x, g, row + r, strip, v)

        when(fn, ~is_done, wait)
        when(fn, is_done, finish)

    def _in_order(self, sums: list[Value]) -> list[Value]:
        """Sums with their columns in order."""
        if self.bits == 8:
            return sums
        found, lanes = list[Value](), self.lanes
        for even, odd in zip(sums[0::2], sums[1::2], strict=True):
            for half in (0, 1):
                places = [half * lanes // 2 + i // 2 + lanes * (i % 2) for i in range(lanes)]
                found.append(shuffled(self.fn, even, odd, places))
        return found

    def _add(self, x: Value, g: Value, row: Value, strip: Strip, v: int) -> None:
        """Put the sums of a vector of columns into the result, or add them to it."""
        fn, word, lanes = self.fn, self.word, self.lanes
        mask = None
        if strip.left is not None:
            mask = first_lanes(fn, strip.left - v * lanes, lanes)
        first = strip.column + v * lanes
        zero = fn.constant(float(_NIBBLES_FROM if self.bits == 4 else 0), x)
        if self.grouped:
            at = g * word["columns"] + first
            given = load(fn, word["zero"] + at, int8, lanes, mask)
            zero = zero + convert(fn, given, float32)
        if self.grouped or self.bits == 4:
            place = word["totals"] + row * word["totals_row"] + g * float32.size
            total = fn.splat(load(fn, place, float32), lanes)
            x = x - zero * total
        if self.grouped:
            scale = word["scale"] + (g * word["columns"] + first) * float32.size
            x = x * load(fn, scale, float32, lanes, mask)
        target = word["c"] + row * word["c_row"] + first * float32.size
        (x,) = replaced(fn, g > 0, [x], lambda: [x + load(fn, target, float32, lanes, mask)])
        store(fn, x, target, mask)


class _CopyingWriter(_Writer):
    """For many rows: a strip of B becomes floats once."""

    def write(self, tid: Value, nth: Value) -> None:
        self.copy = self.word["copy"] + self.word["copy_bytes"] * tid
        super().write(tid, nth)

    def _strip(
        self,
        g: Value,
        begin: Value,
        end: Value,
        start: Value,
        stop: Value,
        strip: Strip,
    ) -> None:
        def put(k: Value) -> None:
            numbers = self._numbers(self._source(k, strip.column), self._masks(strip.left))
            for v, x in enumerate(numbers):
                store(self.fn, x, self._place(k, start, v))

        loop(self.fn, start, stop, 1, put)
        super()._strip(g, begin, end, start, stop, strip)

    def _place(self, k: Value, start: Value, v: int) -> Value:
        """Where a vector of a row is in the copy."""
        row = (k - start) * (self.vectors * self.vector_bytes)
        return self.copy + row + v * self.vector_bytes

    def _factors(self, k: Value, start: Value, strip: Strip) -> list[Value]:
        places = [self._place(k, start, v) for v in range(self.vectors)]
        return [load(self.fn, place, float32, self.lanes) for place in places]
