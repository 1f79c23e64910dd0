"""Where each of many numbers comes first: one thread goes through them, with a hash table.

A place of the table holds 1 + the place of a number, 0 for none; a number is looked for from its
hash on. At least half of the places stay free, so few are looked at.

Source: Knuth, "The Art of Computer Programming", volume 3, section 6.4: algorithm L (linear
    probing), multiplicative hashing by the golden ratio.
"""

from __future__ import annotations

from ....graph import DType, int32, int64
from ...codegen.control import loop, repeat, when
from ...codegen.conversions import convert
from ...codegen.function import Module, Value
from ...codegen.memory import first_lanes
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch
from ...target.code import Code
from ..addressing import Words, function, load, store

_SYMBOL = "first_occurrence"
_NAMES = ("x", "first", "table", "count")
TABLE_PLACES = 2  # for each number
_GOLDEN = -7046029254386353131  # 2**64 / the golden ratio, as int64


def plan_first_occurrence(
    x: Buffer, first: Buffer, table: Buffer, count: int, dtype: DType, target: Target
) -> list[Launch]:
    """first[k] = the least j with x[j] = x[k].

    Args:
        x: (count,) whole numbers.
        first: (count,) int32.
        table: (TABLE_PLACES * count,) int32, for the kernel to work in.
        count: of the numbers.
        dtype: of x.
        target: the vectors.
    """
    code = Code(_SYMBOL, target.vector_bytes, _write, (dtype, target.vector_bytes))
    return [Launch(code, (x, first, table, count))]


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, (block, tid, _) = function(module, _SYMBOL, 3)
    words = Words(fn, block, _NAMES)
    x, first, table, count = (words[name] for name in _NAMES)
    lanes = vector_bytes // int32.size
    places = count * TABLE_PLACES
    nothing = fn.splat(fn.constant(0, Value(fn, "", int32, 0)), lanes)

    def clear(i: Value) -> None:
        store(fn, nothing, table + i * int32.size, first_lanes(fn, places - i, lanes))

    def number(k: Value) -> Value:
        return convert(fn, load(fn, x + k * dtype.size, dtype), int64)

    def one(k: Value) -> None:
        own = number(k)
        hashed = fn.binary("lshr", own * _GOLDEN, 32)
        begin = fn.binary("lshr", hashed * places, 32)

        def look(place: Value) -> tuple[Value, Value]:
            at = table + place * int32.size
            held = convert(fn, load(fn, at, int32), int64)
            is_free = held == 0
            before = fn.select(is_free, k, held - 1)
            is_found = number(before) == own  # its own, where the place is free
            when(fn, is_free, lambda: store(fn, convert(fn, k + 1, int32), at))
            when(
                fn, is_found, lambda: store(fn, convert(fn, before, int32), first + k * int32.size)
            )
            following = place + 1
            return fn.select(following == places, fn.number(0), following), ~is_found

        repeat(fn, begin, look)

    def all_of_them() -> None:
        loop(fn, fn.number(0), places, lanes, clear)
        loop(fn, fn.number(0), count, 1, one)

    when(fn, tid == 0, all_of_them)
    return module.text()
