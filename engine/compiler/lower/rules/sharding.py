"""Shares of the rows of a batch: where they begin and end follows from the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir.builder import Builder
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand
from ...ir.sizes import DerivedSize, is_known
from .joining import copy_into, part
from .table import Lowered, known_size, lowers


@dataclass(frozen=True)
class ShareBegin(DerivedSize):
    """Where share `index` of `rows` in `count` begins."""

    rows: int
    index: int
    count: int

    def value(self, real: Callable[[int], int]) -> int:
        return real(self.rows) * self.index // self.count


@dataclass(frozen=True)
class ShareRows(DerivedSize):
    """How many rows share `index` of `rows` in `count` has; one without any is refused."""

    rows: int
    index: int
    count: int

    def value(self, real: Callable[[int], int]) -> int:
        rows = real(self.rows)
        found = rows * (self.index + 1) // self.count - rows * self.index // self.count
        if not found:
            raise NotLoweredError(f"share {self.index} of {rows} rows in {self.count} is empty")
        return found


@dataclass(frozen=True)
class JoinBegin(DerivedSize):
    """Where share `index` of `rows` in `count` goes; refused where it has other than its rows."""

    rows: int
    index: int
    count: int
    own_rows: int

    def value(self, real: Callable[[int], int]) -> int:
        whole, own = real(self.rows), real(self.own_rows)
        begin = whole * self.index // self.count
        if not own or begin + own != whole * (self.index + 1) // self.count:
            share = f"share {self.index} of {whole} rows in {self.count}"
            raise NotLoweredError(f"{share} has {own}")
        return begin


def _numbers(b: Builder, n: int, index: int, count: int) -> tuple[int, int]:
    """Where a share of n rows begins, and how many rows it has."""
    begin, rows = ShareBegin(n, index, count), ShareRows(n, index, count)
    if is_known(n):
        return begin.value(int), rows.value(int)
    found = b.derive(begin), b.derive(rows)
    b.program.places.update(found)
    return found


@lowers("Share", takes_halves=True)
def _share(b: Builder, step: Lowered, x: Operand) -> Operand:
    begin, size = _numbers(b, b.shape(x)[0], step.attrs["index"], step.attrs["count"])
    return part(b, x, 0, begin, size)


@lowers("JoinShares", takes_halves=True)
def _join_shares(b: Builder, step: Lowered, *given: Operand) -> Operand:
    *parts, size = given
    n = known_size(size)
    if n is None:
        raise NotLoweredError("JoinShares of as many rows as data say")
    y = b.storage((n, *b.shape(parts[0])[1:]), step.dtypes[0])
    for i, x in enumerate(parts):
        rows = b.shape(x)[0]
        cells = part(b, y, 0, _place(b, n, i, len(parts), rows), rows)
        copy_into(b, cells, x)
    return y


def _place(b: Builder, n: int, index: int, count: int, rows: int) -> int:
    """Where a share of so many rows begins."""
    begin = JoinBegin(n, index, count, rows)
    if is_known(n) and is_known(rows):
        return begin.value(int)
    found = b.derive(begin)
    b.program.places.update((found, rows))
    return found
