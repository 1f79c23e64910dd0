"""Combining rows with the rows of a table that indices name, in the order of the indices.

Threads share the columns, or tables with indices of their own, so each element is combined by one
thread, in one order.
"""

from __future__ import annotations

from collections.abc import Callable

from ....graph import DType, int64
from ...codegen.control import loop, when
from ...codegen.conversions import convert
from ...codegen.function import IRFunction, Module, Value
from ...codegen.math import maximum, minimum
from ...codegen.memory import first_lanes
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch
from ...target.code import Code
from ..addressing import Words, function, load, share, store

_SYMBOL = "scatter"
_NAMES = ("rows", "indices", "start", "out", "tables", "count", "size", "width")
_COMBINED: dict[str, Callable[[IRFunction, Value, Value], Value]] = {
    "update": lambda fn, old, new: new,
    "add": lambda fn, old, new: old + new,
    "mul": lambda fn, old, new: old * new,
    "max": maximum,
    "min": minimum,
}


def plan_scatter(
    mode: str,
    rows: Buffer,
    indices: Buffer,
    start: Buffer | None,
    out: Buffer,
    tables: int,
    count: int,
    size: int,
    width: int,
    dtype: DType,
    index_dtype: DType,
    target: Target,
    *,
    own_indices: bool = False,
) -> list[Launch]:
    """out[t, i, c] = start[t, i, c] combined with rows[t, k, c] for each k with indices[k] = i.

    Args:
        mode: "update" (the last one stays), "add", "mul", "max" or "min".
        rows: (tables, count, width).
        indices: (count,) integers; for one that is not in 0 ... size - 1 nothing is done.
        start: (tables, size, width); None: zeros.
        out: (tables, size, width); where it is the memory of `start`, rows that no index names are
            not touched.
        tables: how many there are.
        count: of indices.
        size: rows of a table.
        width: columns of a table.
        dtype: of the rows.
        index_dtype: of the indices.
        target: the vectors.
        own_indices: whether each table has its own: (tables, count).
    """
    parameters = (mode, start is None, own_indices, dtype, index_dtype, target.vector_bytes)
    code = Code(_SYMBOL, target.vector_bytes, _write, parameters)
    begin = 0 if start is None else start
    return [Launch(code, (rows, indices, begin, out, tables, count, size, width))]


def _write(
    mode: str,
    from_zeros: bool,
    own_indices: bool,
    dtype: DType,
    index_dtype: DType,
    vector_bytes: int,
) -> str:
    module = Module()
    fn, (block, tid, nth) = function(module, _SYMBOL, 3)
    words = Words(fn, block, _NAMES)
    lanes = vector_bytes // dtype.size
    rows, indices, old, out, tables, count, size, width = (words[name] for name in _NAMES)
    first, last = fn.number(0), tables
    begin, end = fn.number(0), width
    if own_indices:
        first, last = share(fn, tables, tid, nth)
    else:
        begin, end = share(fn, fn.binary("udiv", width + (lanes - 1), lanes), tid, nth)
        begin, end = begin * lanes, minimum(fn, end * lanes, width)
    row_bytes = width * dtype.size
    zero = fn.splat(fn.constant(0, Value(fn, "", dtype, 0)), lanes)

    def table(t: Value) -> None:
        own = out + t * size * row_bytes
        given = rows + t * count * row_bytes
        named = indices + t * count * index_dtype.size if own_indices else indices

        before = t * size * row_bytes

        def prepare(first: Value, last: Value, at: Value) -> None:
            def vector(c: Value, mask: Value | None) -> None:
                place = at + c * dtype.size
                value = zero if from_zeros else load(fn, old + place, dtype, lanes, mask)
                store(fn, value, out + place, mask)

            _columns(fn, first, last, lanes, vector)

        def prepare_all() -> None:
            if own_indices:
                prepare(fn.number(0), size * width, before)
            else:
                loop(
                    fn, fn.number(0), size, 1, lambda i: prepare(begin, end, before + i * row_bytes)
                )

        when(fn, old != out, prepare_all)

        def combine(k: Value) -> None:
            i = convert(fn, load(fn, named + k * index_dtype.size, index_dtype), int64)
            place = own + i * row_bytes
            source = given + k * row_bytes

            def vector(c: Value, mask: Value | None) -> None:
                at = place + c * dtype.size
                new = load(fn, source + c * dtype.size, dtype, lanes, mask)
                found = _COMBINED[mode](fn, load(fn, at, dtype, lanes, mask), new)
                store(fn, found, at, mask)

            when(fn, (i >= 0) & (i < size), lambda: _columns(fn, begin, end, lanes, vector))

        loop(fn, fn.number(0), count, 1, combine)

    loop(fn, first, last, 1, table)
    return module.text()


def _columns(
    fn: IRFunction,
    begin: Value,
    end: Value,
    lanes: int,
    vector: Callable[[Value, Value | None], None],
) -> None:
    """`vector(column, mask)` for the columns from `begin` to `end`; the last ones by a mask."""
    whole = begin + fn.binary("and", end - begin, -lanes)
    loop(fn, begin, whole, lanes, lambda c: vector(c, None))
    when(fn, whole < end, lambda: vector(whole, first_lanes(fn, end - whole, lanes)))
