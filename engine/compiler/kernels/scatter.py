"""Adding rows to the rows of a table that indices name, in the order of the indices.

Threads share the columns, so each element is added up by one thread, in one order.
"""

from __future__ import annotations

from collections.abc import Callable

from ...graph import DType, int64
from ..emit import Function, Module, Value
from .launch import Buffer, Code, Launch
from .tiles import Target
from .words import Words, function, load, share, store

_SYMBOL = "scatter_add"
_NAMES = ("rows", "indices", "out", "tables", "count", "size", "width")


def plan_scatter_add(
    rows: Buffer,
    indices: Buffer,
    out: Buffer,
    tables: int,
    count: int,
    size: int,
    width: int,
    dtype: DType,
    index_dtype: DType,
    target: Target,
) -> list[Launch]:
    """out[t, i, c] = sum over the k with indices[k] = i of rows[t, k, c].

    Args:
        rows: (tables, count, width).
        indices: (count,) integers; one that is not in 0 ... size - 1 adds nothing.
        out: (tables, size, width).
        tables: how many there are.
        count: of indices.
        size: rows of a table.
        width: columns of a table.
        dtype: of the rows.
        index_dtype: of the indices.
        target: the vectors.
    """
    parameters = (dtype, index_dtype, target.vector_bytes)
    code = Code(_SYMBOL, target.vector_bytes, _write, parameters)
    return [Launch(code, (rows, indices, out, tables, count, size, width))]


def _write(dtype: DType, index_dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, (block, tid, nth) = function(module, _SYMBOL, 3)
    words = Words(fn, block, _NAMES)
    lanes = vector_bytes // dtype.size
    rows, indices, out, tables, count, size, width = (words[name] for name in _NAMES)
    first, last = share(fn, fn.binary("udiv", width + (lanes - 1), lanes), tid, nth)
    begin, stop = first * lanes, last * lanes
    end = fn.select(stop < width, stop, width)
    row_bytes = width * dtype.size
    zero = fn.splat(fn.constant(0, Value(fn, "", dtype, 0)), lanes)

    def table(t: Value) -> None:
        own = out + t * size * row_bytes
        given = rows + t * count * row_bytes

        def clear(i: Value) -> None:
            place = own + i * row_bytes

            def vector(c: Value, mask: Value | None) -> None:
                store(fn, zero, place + c * dtype.size, mask)

            _columns(fn, begin, end, lanes, vector)

        fn.loop(fn.number(0), size, 1, clear)

        def add(k: Value) -> None:
            i = fn.convert(load(fn, indices + k * index_dtype.size, index_dtype), int64)
            place = own + i * row_bytes
            source = given + k * row_bytes

            def vector(c: Value, mask: Value | None) -> None:
                at = place + c * dtype.size
                total = load(fn, at, dtype, lanes, mask) + load(
                    fn, source + c * dtype.size, dtype, lanes, mask
                )
                store(fn, total, at, mask)

            fn.when((i >= 0) & (i < size), lambda: _columns(fn, begin, end, lanes, vector))

        fn.loop(fn.number(0), count, 1, add)

    fn.loop(fn.number(0), tables, 1, table)
    return module.text()


def _columns(
    fn: Function,
    begin: Value,
    end: Value,
    lanes: int,
    vector: Callable[[Value, Value | None], None],
) -> None:
    """`vector(column, mask)` for the columns from `begin` to `end`; the last ones by a mask."""
    whole = begin + fn.binary("and", end - begin, -lanes)
    fn.loop(begin, whole, lanes, lambda c: vector(c, None))
    fn.when(whole < end, lambda: vector(whole, fn.first_lanes(end - whole, lanes)))
