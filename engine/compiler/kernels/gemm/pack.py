"""Copying a block of a matrix to where a microkernel reads it best: by rows, or transposed."""

from __future__ import annotations

from functools import partial

from ....graph import DType
from ...codegen.control import fold, loop, replaced, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ..addressing import function, load, minimum, store

COPY = "copy_rows"
TRANSPOSE = "transpose"
ZERO = "zero"
_UNROLL = 4


def write_copy(module: Module, dtype: DType, vector_bytes: int) -> None:
    """void copy_rows(to, from, rows, to_stride, from_stride, elements, width, to_panel).

    Each run of `width` elements of a row goes `to_panel` bytes further. Strides are in bytes.
    """
    fn, (to, source, rows, to_stride, from_stride, elements, width, to_panel) = function(
        module, COPY, 8
    )
    lanes = vector_bytes // dtype.size
    mask_of_width = first_lanes(fn, fn.binary("and", width, lanes - 1), lanes)

    def row(r: Value) -> None:
        def panel(j: Value, carried: list[Value]) -> list[Value]:
            start, target, left = carried
            count = minimum(fn, left, width)
            most = fn.binary("and", count, -lanes * _UNROLL)
            whole = fn.binary("and", count, -lanes)

            def vectors(i: Value) -> None:
                at = [i * dtype.size + v * vector_bytes for v in range(_UNROLL)]
                for place, x in [(a, load(fn, start + a, dtype, lanes)) for a in at]:
                    store(fn, x, target + place)

            def vector(i: Value) -> None:
                at = i * dtype.size
                store(fn, load(fn, start + at, dtype, lanes), target + at)

            loop(fn, fn.number(0), most, lanes * _UNROLL, vectors)
            loop(fn, most, whole, lanes, vector)

            def rest() -> None:
                at = whole * dtype.size
                # Most runs are as wide as can be, and the mask for that is made once.
                (mask,) = replaced(
                    fn,
                    count < width,
                    [mask_of_width],
                    lambda: [first_lanes(fn, count - whole, lanes)],
                )
                store(fn, load(fn, start + at, dtype, lanes, mask), target + at, mask)

            when(fn, whole < count, rest)
            return [start + width * dtype.size, target + to_panel, left - width]

        start = [source + r * from_stride, to + r * to_stride, elements]
        fold(fn, fn.number(0), num_panels, 1, start, panel)

    num_panels = fn.binary("udiv", elements + (width - 1), width)
    is_narrow = width <= lanes
    loop(fn, fn.number(0), fn.select(is_narrow, fn.number(0), rows), 1, row)

    # A run of one vector, as a tile of A has. A whole one, or half, needs no mask: on some
    # processors these take their time.
    num_whole = fn.binary("udiv", elements, width)
    whole_mask = first_lanes(fn, width, lanes)
    left = elements - num_whole * width
    rest_mask = first_lanes(fn, left, lanes)

    ways = [
        (part, fn.select(width == part, num_whole, fn.number(0))) for part in (lanes // 2, lanes)
    ]
    masked = num_whole - ways[0][1] - ways[1][1]

    def narrow_row(r: Value) -> None:
        def whole_run(part: int, j: Value, carried: list[Value]) -> list[Value]:
            start, target = carried
            store(fn, load(fn, start, dtype, part), target)
            return [start + part * dtype.size, target + to_panel]

        def run(j: Value, carried: list[Value]) -> list[Value]:
            start, target = carried
            store(fn, load(fn, start, dtype, lanes, whole_mask), target, whole_mask)
            return [start + width * dtype.size, target + to_panel]

        places = [source + r * from_stride, to + r * to_stride]
        for part, count in ways:
            places = fold(fn, fn.number(0), count, 1, places, partial(whole_run, part))
        start, target = fold(fn, fn.number(0), masked, 1, places, run)
        when(
            fn,
            left > 0,
            lambda: store(fn, load(fn, start, dtype, lanes, rest_mask), target, rest_mask),
        )

    loop(fn, fn.number(0), fn.select(is_narrow, rows, fn.number(0)), 1, narrow_row)


def write_zero(module: Module, dtype: DType, vector_bytes: int) -> None:
    """void zero(to, elements)."""
    fn, (to, elements) = function(module, ZERO, 2)
    lanes = vector_bytes // dtype.size
    whole = fn.binary("and", elements, -lanes)
    zeros = fn.splat(fn.constant(0.0, Value(fn, "", dtype, 0)), lanes)
    loop(fn, fn.number(0), whole, lanes, lambda i: store(fn, zeros, to + i * dtype.size))

    def rest() -> None:
        mask = first_lanes(fn, elements - whole, lanes)
        store(fn, zeros, to + whole * dtype.size, mask)

    when(fn, whole < elements, rest)


def write_transpose(
    module: Module, dtype: DType, vector_bytes: int, *, is_exact: bool = False
) -> None:
    """void transpose(to, from, rows, columns, to_stride, from_stride); strides in bytes.

    to[j, i] = from[i, j]. Unless it `is_exact`, whole blocks of lanes x lanes are written: `to` has
    room for as many rows and columns as are a multiple of the lanes. What is in excess holds
    anything.
    """
    fn, (to, source, rows, columns, to_stride, from_stride) = function(module, TRANSPOSE, 6)
    lanes = vector_bytes // dtype.size

    def block_row(i: Value) -> None:
        # Rows beyond the last one are read as the last one.
        starts = [
            source + minimum(fn, i + r, rows - 1) * from_stride if r else source + i * from_stride
            for r in range(lanes)
        ]

        def block(j: Value) -> None:
            mask = first_lanes(fn, columns - j, lanes)
            vectors = [load(fn, s + j * dtype.size, dtype, lanes, mask) for s in starts]
            target = to + j * to_stride + i * dtype.size
            for r, x in enumerate(transposed(fn, vectors)):
                if r:
                    target = target + to_stride
                there = None
                if is_exact:
                    count = fn.select(j + r < columns, rows - i, fn.number(0))
                    there = first_lanes(fn, count, lanes)
                store(fn, x, target, there)

        loop(fn, fn.number(0), columns, lanes, block)

    loop(fn, fn.number(0), rows, lanes, block_row)


def transposed(fn: IRFunction, rows: list[Value]) -> list[Value]:
    """The columns of a square block, given its rows: blocks of half the size change places."""
    rows = list(rows)
    lanes = len(rows)
    size = lanes // 2
    while size:
        low = [lane + lanes - size if lane & size else lane for lane in range(lanes)]
        high = [lane + lanes if lane & size else lane + size for lane in range(lanes)]
        for i in range(lanes):
            if not i & size:
                a, b = rows[i], rows[i + size]
                rows[i] = _shuffle(fn, a, b, low)
                rows[i + size] = _shuffle(fn, a, b, high)
        size //= 2
    return rows


def _shuffle(fn: IRFunction, a: Value, b: Value, lanes: list[int]) -> Value:
    """Lanes of `a`, then of `b`, by number."""
    numbers = ", ".join(f"i32 {lane}" for lane in lanes)
    return fn.instruction(
        f"shufflevector {a}, {b}, <{len(lanes)} x i32> <{numbers}>", a.dtype, a.lanes
    )
