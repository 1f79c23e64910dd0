"""Sums of four products of bytes in each lane of 32 bits, with what a processor has for them."""

from __future__ import annotations

from collections.abc import Sequence

from ....graph import DType, int8, int16, int32
from ...codegen.function import IRFunction, Value, scalar_type
from ...codegen.values import vector_type
from ...target.byte_unit import ByteUnit

# What multiplies bytes four at a time takes those of one side without a sign: 128 is added to them,
# and what that adds to the sums is taken away at the end. This is 128 in each byte.
_SIGNS = 0x80808080
_QUADS = {16: "llvm.x86.avx512.vpdpbusd.512", 8: "llvm.x86.avx512.vpdpbusd.256"}
_PAIRS = {
    16: "llvm.x86.avx512.pmaddw.d.512",
    8: "llvm.x86.avx2.pmadd.wd",
    4: "llvm.x86.sse2.pmadd.wd",
}
_LANE = 16  # bytes that shuffles of x86 move about in


class ByteDots:
    """Sums of products of bytes: lane i of a sum takes bytes 4 i, ..., 4 i + 3 of both sides.

    Args:
        fn: where they are written.
        unit: what multiplies.
        lanes: of a sum.
    """

    def __init__(self, fn: IRFunction, unit: ByteUnit, lanes: int) -> None:
        self.fn = fn
        self.unit = unit
        self.lanes = lanes

    @property
    def bias(self) -> int:
        """By how many times the sum of the right factors a sum is too large."""
        return 128 if self.unit is ByteUnit.QUADS else 0

    def kept(self, x: Value) -> Value:
        """Left factors, a vector of bytes read as int32, as they are kept."""
        return self.fn.binary("xor", x, _SIGNS) if self.unit is ByteUnit.QUADS else x

    def left(self, x: Value) -> Sequence[Value]:
        """Left factors that are kept, as `added` takes them."""
        return self.right(x)

    def right(self, x: Value) -> Sequence[Value]:
        """The right factors likewise."""
        fn = self.fn
        if self.unit is ByteUnit.QUADS:
            return (x,)
        if self.unit is ByteUnit.PAIRS:
            words = as_elements(fn, x, int16)
            even = fn.binary("ashr", fn.binary("shl", words, 8), 8)
            return even, fn.binary("ashr", words, 8)
        first = [fn.binary("shl", x, 24 - 8 * i) for i in range(3)]
        return [fn.binary("ashr", each, 24) for each in (*first, x)]

    def added(self, total: Value, left: Sequence[Value], right: Sequence[Value]) -> Value:
        """`total` and the products."""
        if self.unit is ByteUnit.QUADS:
            return self._quads(total, left[0], right[0])
        for x, y in zip(left, right, strict=True):
            total = total + (self._pairs(x, y) if self.unit is ByteUnit.PAIRS else x * y)
        return total

    def _quads(self, total: Value, left: Value, right: Value) -> Value:
        fn, name = self.fn, _QUADS[self.lanes]
        x, y = (as_elements(fn, each, int8) for each in (left, right))
        fn.module.declarations[name] = (
            f"declare {total.type} @{name}({total.type}, {x.type}, {y.type})"
        )
        return fn.instruction(f"call {total.type} @{name}({total}, {x}, {y})", int32, self.lanes)

    def _pairs(self, x: Value, y: Value) -> Value:
        fn, name = self.fn, _PAIRS[self.lanes]
        kind = vector_type(scalar_type(int32), self.lanes)
        fn.module.declarations[name] = f"declare {kind} @{name}({x.type}, {y.type})"
        return fn.instruction(f"call {kind} @{name}({x}, {y})", int32, self.lanes)


def as_elements(fn: IRFunction, x: Value, dtype: DType) -> Value:
    """The bytes of a vector as elements of another type."""
    lanes = x.lanes * x.dtype.size // dtype.size
    kind = vector_type(scalar_type(dtype), lanes)
    return fn.instruction(f"bitcast {x} to {kind}", dtype, lanes)


def shuffled(fn: IRFunction, x: Value, y: Value, places: Sequence[int]) -> Value:
    """Lanes of `x`, and of `y`, which count on."""
    mask = ", ".join(f"i32 {place}" for place in places)
    text = f"shufflevector {x}, {y}, <{len(places)} x i32> <{mask}>"
    return fn.instruction(text, x.dtype, len(places))


def quads(fn: IRFunction, rows: Sequence[Value]) -> list[Value]:
    """Four vectors of bytes: what is in one column of four rows becomes neighbours.

    In each part of 16 bytes, vector i of the result has columns 4 i, ..., 4 i + 3 of that part; see
    `in_order`.
    """
    low, high = [], []
    for x, y in (rows[:2], rows[2:]):
        low.append(as_elements(fn, _interleaved(fn, x, y, 0), int16))
        high.append(as_elements(fn, _interleaved(fn, x, y, 1), int16))
    found = [_interleaved(fn, x, y, part) for x, y in (low, high) for part in (0, 1)]
    return [as_elements(fn, x, int32) for x in found]


def _interleaved(fn: IRFunction, x: Value, y: Value, half: int) -> Value:
    """Elements of `x` and `y` by turns: of the lower, or upper, half of each 16 bytes."""
    each = _LANE // x.dtype.size
    places = [
        begin + half * each // 2 + i // 2 + x.lanes * (i % 2)
        for begin in range(0, x.lanes, each)
        for i in range(each)
    ]
    return shuffled(fn, x, y, places)


def in_order(fn: IRFunction, sums: Sequence[Value]) -> list[Value]:
    """Sums of what `quads` gives, four vectors, with their columns in order."""
    lanes, found = sums[0].lanes, []
    for v in range(len(sums)):
        columns = range(v * lanes, (v + 1) * lanes)
        # (which vector, which of its lanes)
        places = [(c % 16 // 4, c // 16 * 4 + c % 4) for c in columns]
        parts = []
        for begin in range(0, lanes, 8):
            some = places[begin : begin + 8]
            first, last = some[0][0], some[-1][0]
            mask = [lane + (lanes if i != first else 0) for i, lane in some]
            parts.append(shuffled(fn, sums[first], sums[last], mask))
        found.append(parts[0] if len(parts) == 1 else fn.joined(*parts))
    return found
