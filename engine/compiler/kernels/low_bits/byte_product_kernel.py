"""The kernel of products of bytes: C[m, n] = sum over k of A[m, k] * B[k, n], in int32.

Threads share the columns, in strips as wide as a vector of bytes. Of few rows, some rows of B at a
time are streamed along memory, and sums wait in scratch memory for the next ones; of many, a
strip of B is copied, as sums take it, for all rows of A to use. Whole numbers have the same sum in
any order, so the result has the same bits on all processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ....graph import int8, int32
from ...codegen.control import fold, loop, replaced, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.byte_unit import ByteUnit
from ...target.code import Code
from ..addressing import Words, function, load, minimum, prefetch, store
from .byte_dots import ByteDots, in_order, quads
from .strips import Strip, Strips

SYMBOL = "byte_product"
# Strides are in bytes. A has as many columns as make whole quads, zeros at the end.
WORDS = (
    *("a", "a_row", "b", "b_row", "c", "c_row", "rows", "columns", "inner"),
    *("block", "num_blocks", "sums", "sums_row", "ahead"),
    *("totals", "copy", "copy_bytes"),  # the sum of each row of A; for each thread a copy of B
)
HEIGHTS = (4, 2, 1)  # rows whose sums are in registers together
_QUAD = 4


def code(unit: ByteUnit, vector_bytes: int, *, copies: bool) -> Code:
    """The kernel; `copies` says whether it copies B."""
    return Code(SYMBOL, vector_bytes, _write, (unit.value, vector_bytes, copies))


def _write(unit: str, vector_bytes: int, copies: bool) -> str:
    module = Module(vector_bytes)
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    kind = _CopyingWriter if copies else _Writer
    kind(fn, Words(fn, args, WORDS), ByteUnit(unit), vector_bytes).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, words: Words, unit: ByteUnit, width: int) -> None:
        self.fn = fn
        self.width = width  # of a strip, in columns, which are bytes of B
        self.lanes = width // int32.size
        self.dots = ByteDots(fn, unit, self.lanes)
        self.word = {name: words[name] for name in WORDS}

    def write(self, tid: Value, nth: Value) -> None:
        fn, word = self.fn, self.word
        places = word["b"], word["b_row"], word["columns"]
        strips = Strips(fn, *places, self.width, 1, self.width)
        first, last = strips.each(tid, nth)

        def block(i: Value) -> None:
            begin = i * self.word["block"]
            end = minimum(fn, begin + self.word["block"], self.word["inner"])

            strips.run(first, last, partial(self._strip, begin, end))

        loop(fn, fn.number(0), self.word["num_blocks"], 1, block)

    def _strip(self, begin: Value, end: Value, strip: Strip) -> None:
        self._rows(begin, end, strip)

    def _rows(self, begin: Value, end: Value, strip: Strip) -> None:
        fn, first = self.fn, self.fn.number(0)
        for height in HEIGHTS:
            last = fn.binary("and", self.word["rows"], -height)
            some = partial(self._tile, begin, end, strip, height)
            loop(fn, first, last, height, some)
            first = last

    def _tile(self, begin: Value, end: Value, strip: Strip, height: int, row: Value) -> None:
        fn, word = self.fn, self.word
        zero = fn.splat(fn.constant(0, Value(fn, "", int32, 0)), self.lanes)
        waiting = word["sums"] + row * word["sums_row"] + strip.number * (self.width * int32.size)
        places = [
            waiting + word["sums_row"] * r + v * self.width
            for r in range(height)
            for v in range(_QUAD)
        ]

        def before() -> list[Value]:
            return [load(fn, place, int32, self.lanes) for place in places]

        sums = replaced(fn, begin > 0, [zero] * len(places), before)
        a = word["a"] + row * word["a_row"]
        quad = partial(self._quad, begin, end, a, strip, height)
        sums = self._summed(begin, end, sums, quad)

        def wait() -> None:
            for x, place in zip(sums, places, strict=True):
                store(fn, x, place)

        def finish() -> None:
            for r in range(height):
                own = sums[r * _QUAD : (r + 1) * _QUAD]
                if self.dots.bias:
                    total = load(fn, word["totals"] + (row + r) * int32.size, int32)
                    bias = fn.splat(total * self.dots.bias, self.lanes)
                    own = [x - bias for x in own]
                found = in_order(fn, own)
                target = word["c"] + (row + r) * word["c_row"] + strip.column * int32.size
                for v, x in enumerate(found):
                    there = None
                    if strip.left is not None:
                        there = first_lanes(fn, strip.left - v * self.lanes, self.lanes)
                    store(fn, x, target + v * self.width, there)

        is_done = end >= word["inner"]
        when(fn, ~is_done, wait)
        when(fn, is_done, finish)

    def _summed(
        self,
        begin: Value,
        end: Value,
        sums: list[Value],
        quad: Callable[[Value, list[Value], bool], list[Value]],
    ) -> list[Value]:
        """The sums with those over some rows of B, four at a time."""
        fn = self.fn
        whole = begin + fn.binary("and", end - begin, -_QUAD)
        sums = fold(fn, begin, whole, _QUAD, sums, lambda k, sums: quad(k, sums, False))
        return replaced(fn, whole < end, sums, lambda: quad(whole, sums, True))

    def _quad(
        self,
        begin: Value,
        end: Value,
        a: Value,
        strip: Strip,
        height: int,
        k: Value,
        sums: list[Value],
        is_last: bool,
    ) -> list[Value]:
        """The sums with those over four rows of B; of the last ones some may not be there."""
        b = self._factors(begin, end, strip, k, is_last)
        found = list[Value]()
        for r in range(height):
            x = load(self.fn, a + self.word["a_row"] * r + k, int32)
            right = self.dots.right(self.fn.splat(x, self.lanes))
            own = sums[r * _QUAD : (r + 1) * _QUAD]
            found += [self.dots.added(s, y, right) for s, y in zip(own, b, strict=True)]
        return found

    def _factors(
        self,
        begin: Value,
        end: Value,
        strip: Strip,
        k: Value,
        is_last: bool,
    ) -> list[Sequence[Value]]:
        """Four rows of B as factors."""
        return [self.dots.left(x) for x in self._read(end, strip, k, is_last, ahead=True)]

    def _read(
        self, end: Value, strip: Strip, k: Value, is_last: bool, *, ahead: bool
    ) -> list[Value]:
        """Four rows of B as they are kept; rows that are not there meet zeros of A."""
        fn, word = self.fn, self.word
        mask = None if strip.left is None else first_lanes(fn, strip.left, self.width)
        lines = [minimum(fn, k + i, end - 1) if is_last else k + i for i in range(_QUAD)]
        starts = [word["b"] + strip.column + line * word["b_row"] for line in lines]
        if ahead:
            for start in starts:
                prefetch(fn, start + word["ahead"], level=2)
        rows = [load(fn, start, int8, self.width, mask) for start in starts]
        return [self.dots.kept(x) for x in quads(fn, rows)]


class _CopyingWriter(_Writer):
    """For many rows: a strip of B is read once."""

    def write(self, tid: Value, nth: Value) -> None:
        self.copy = self.word["copy"] + self.word["copy_bytes"] * tid
        super().write(tid, nth)

    def _strip(self, begin: Value, end: Value, strip: Strip) -> None:
        def put(k: Value, is_last: bool) -> None:
            found = self._read(end, strip, k, is_last, ahead=False)
            for v, x in enumerate(found):
                store(self.fn, x, self._place(begin, k, v))

        fn = self.fn
        whole = begin + fn.binary("and", end - begin, -_QUAD)
        loop(fn, begin, whole, _QUAD, lambda k: put(k, False))
        when(fn, whole < end, lambda: put(whole, True))
        self._rows(begin, end, strip)

    def _place(self, begin: Value, k: Value, v: int) -> Value:
        """Where a vector of four rows is in the copy."""
        return self.copy + (k - begin) * self.width + v * self.width

    def _summed(
        self,
        begin: Value,
        end: Value,
        sums: list[Value],
        quad: Callable[[Value, list[Value], bool], list[Value]],
    ) -> list[Value]:
        return fold(self.fn, begin, end, _QUAD, sums, lambda k, sums: quad(k, sums, False))

    def _factors(
        self,
        begin: Value,
        end: Value,
        strip: Strip,
        k: Value,
        is_last: bool,
    ) -> list[Sequence[Value]]:
        places = [self._place(begin, k, v) for v in range(_QUAD)]
        return [self.dots.left(load(self.fn, place, int32, self.lanes)) for place in places]
