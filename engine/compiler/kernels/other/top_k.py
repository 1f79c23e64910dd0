"""The greatest elements of each line, from the greatest down; of equal ones the first.

A line is scanned once, with the best so far kept in order: what is no greater than the
least of those, nearly everything soon, is passed over by whole vectors. Threads share the lines.
"""

from __future__ import annotations

from ....graph import DType, int32
from ...codegen.control import any_lane, fold, loop, repeat, replaced, when
from ...codegen.conversions import convert
from ...codegen.function import Module, Value
from ...codegen.memory import first_lanes
from ...codegen.scalars import VectorScalars
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch
from ...ir.sort_keys import in_order, order_type
from ...target.code import Code
from ..addressing import Words, function, load, minimum, share, store

_SYMBOL = "top_k"
_NAMES = ("x", "best", "places", "lines", "size", "count")


def plan_top_k(
    x: Buffer,
    best: Buffer,
    places: Buffer,
    lines: int,
    size: int,
    count: int,
    dtype: DType,
    target: Target,
) -> list[Launch]:
    """The places of the greatest elements of lines.

    Args:
        x: (lines, size).
        best: (lines, count) of the type that `order_type` gives, for the kernel to work in.
        places: (lines, count) int32, the result.
        lines: how many there are.
        size: of a line.
        count: how many are found, at least 1 and at most `size`.
        dtype: of x.
        target: the vectors.
    """
    code = Code(_SYMBOL, target.vector_bytes, _write, (dtype, target.vector_bytes))
    return [Launch(code, (x, best, places, lines, size, count))]


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, (block, tid, nth) = function(module, _SYMBOL, 3)
    words = Words(fn, block, _NAMES)
    lanes = vector_bytes // dtype.size
    x, best, places, lines, size, count = (words[name] for name in _NAMES)
    first, last = share(fn, lines, tid, nth)
    order, scalars = order_type(dtype), VectorScalars(fn)

    def line(i: Value) -> None:
        source = x + i * size * dtype.size
        keys = best + i * count * order.size
        found = places + i * count * int32.size

        def key_at(k: Value) -> Value:
            return load(fn, keys + k * order.size, order)

        def put(place: Value, key: Value, k: Value) -> None:
            """An element before what it is greater than of the first `k`, which move on by one."""

            def moved(free: Value) -> tuple[Value, Value]:
                before = fn.select(free > 0, free - 1, free)
                is_less = (free > 0) & (key_at(before) < key)

                def move() -> None:
                    store(fn, key_at(before), keys + free * order.size)
                    other = load(fn, found + before * int32.size, int32)
                    store(fn, other, found + free * int32.size)

                when(fn, is_less, move)
                return fn.select(is_less, before, free), is_less

            free = repeat(fn, k, moved)
            store(fn, key, keys + free * order.size)
            store(fn, convert(fn, place, int32), found + free * int32.size)

        def key_of(k: Value) -> Value:
            key: Value = in_order(scalars, load(fn, source + k * dtype.size, dtype))
            return key

        loop(fn, fn.number(0), count, 1, lambda k: put(k, key_of(k), k))

        def vector(k: Value, carried: list[Value]) -> list[Value]:
            (least,) = carried
            mask = first_lanes(fn, size - k, lanes)
            some = in_order(scalars, load(fn, source + k * dtype.size, dtype, lanes, mask))
            is_among = any_lane(fn, (some > fn.splat(least, lanes)) & mask)

            def go_through() -> list[Value]:
                def one(j: Value) -> None:
                    key = key_of(j)
                    when(fn, key > key_at(count - 1), lambda: put(j, key, count - 1))

                loop(fn, k, minimum(fn, size, k + lanes), 1, one)
                return [key_at(count - 1)]

            return replaced(fn, is_among, [least], go_through)

        fold(fn, count, size, lanes, [key_at(count - 1)], vector)

    loop(fn, first, last, 1, line)
    return module.text()
