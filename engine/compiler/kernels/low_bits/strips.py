"""The strips of columns that threads share, in products with numbers of few bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...codegen.control import loop, when
from ...codegen.function import IRFunction, Value
from ...target.host import LINE
from ...target.llvm import has_masks
from ..addressing import minimum, share


class Strip(NamedTuple):
    """Some columns of the result.

    Attributes:
        number: of the strip.
        column: the first one.
        left: how many there are; None for all that a strip can have.
    """

    number: Value
    column: Value
    left: Value | None


class Strips:
    """Strips of `width` columns; a first one ends where B is at a line of the cache.

    So no vector of B is in two lines, where the rows of B are whole lines.

    Args:
        fn: where they are written.
        b: the address of B.
        b_row: bytes from a row to the next.
        columns: how many there are.
        width: columns of a strip.
        per_byte: columns of a byte of B.
        vector_bytes: the size of vectors.
    """

    def __init__(
        self,
        fn: IRFunction,
        b: Value,
        b_row: Value,
        columns: Value,
        width: int,
        per_byte: int,
        vector_bytes: int,
    ) -> None:
        self.fn, self.columns, self.width = fn, columns, width
        none = fn.number(0)
        self.first = none
        if has_masks(vector_bytes, 1):
            before = fn.binary("and", none - b, LINE - 1) * per_byte
            is_even = fn.binary("and", b_row, LINE - 1) == 0
            self.first = fn.select(is_even, minimum(fn, before, columns), none)
        self.extra = fn.select(self.first > 0, fn.number(1), none)
        rest = columns - self.first + (width - 1)
        self.count = self.extra + fn.binary("udiv", rest, width)

    def each(self, tid: Value, nth: Value) -> tuple[Value, Value]:
        """The strips of a thread: the first, and the one after the last."""
        return share(self.fn, self.count, tid, nth)

    def run(self, first: Value, last: Value, body: Callable[[Strip], None]) -> None:
        """Run `body(strip)` for strips from `first` on, below `last`."""
        fn, width = self.fn, self.width

        def one(s: Value) -> None:
            is_short = s < self.extra
            column = self.first + (s - self.extra) * width
            column = fn.select(is_short, fn.number(0), column)
            left = fn.select(is_short, self.first, self.columns) - column
            when(fn, left >= width, lambda: body(Strip(s, column, None)))
            when(fn, left < width, lambda: body(Strip(s, column, left)))

        loop(fn, first, last, 1, one)
