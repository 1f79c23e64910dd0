"""Shares of the rows of a batch: where they begin and end follows from the number of rows."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.builder import Builder
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand
from ...ir.sizes import is_known
from .joining import copy_into, part
from .table import Lowered, known_size, lowers


def _numbers(b: Builder, n: int, index: int, count: int) -> tuple[int, int]:
    """Where a share of n rows begins, and how many rows it has."""

    def begin(real: Callable[[int], int]) -> int:
        return real(n) * index // count

    def size(real: Callable[[int], int]) -> int:
        found = real(n) * (index + 1) // count - begin(real)
        if not found:
            raise NotLoweredError(f"share {index} of {real(n)} rows in {count} is empty")
        return found

    if is_known(n):
        return begin(int), size(int)
    key = (n, index, count)
    found = b.derive(begin, ("share begins", *key)), b.derive(size, ("share", *key))
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
    """Where a share of so many rows begins; refused where it has other than its number of rows."""

    def place(real: Callable[[int], int]) -> int:
        whole, begin = real(n), real(n) * index // count
        if not real(rows) or begin + real(rows) != whole * (index + 1) // count:
            raise NotLoweredError(f"share {index} of {whole} rows in {count} has {real(rows)}")
        return begin

    if is_known(n) and is_known(rows):
        return place(int)
    found = b.derive(place, ("place of share", n, index, count, rows))
    b.program.places.update((found, rows))
    return found
