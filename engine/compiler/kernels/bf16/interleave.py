"""The kernel that puts rows of bfloat16 together by twos: a pair is an element of 4 bytes.

to[r / 2, n] = (from[r, n], from[r + 1, n])     for even r
"""

from __future__ import annotations

from ....graph import float32, uint16, uint32
from ...codegen.control import loop, when
from ...codegen.conversions import convert
from ...codegen.function import Module, Value
from ...codegen.memory import first_lanes
from ...ir.launch import Launch, Scratch, Word
from ...target.code import Code
from ..addressing import Words, function, load, share, store

SYMBOL = "interleave"

WORDS = ("from", "to", "rows", "columns")  # rows: of `to`

_VECTOR_BYTES = 64
_LANES = 16
_SIZE = 2  # bytes of an element
_ROOM = 64  # what kernels may read beyond the end


def plan_interleave(source: Word, rows: int, columns: int, key: str) -> tuple[Launch, Scratch]:
    """The launch for a contiguous matrix of twice so many rows, and where the pairs are."""
    to = Scratch(rows * columns * float32.size + _ROOM, key)
    return Launch(Code(SYMBOL, _VECTOR_BYTES, _write, ()), (source, to, rows, columns)), to


def _write() -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    words = Words(fn, args, WORDS)
    source, to, columns = words["from"], words["to"], words["columns"]
    row_bytes = columns * _SIZE
    whole = fn.binary("and", columns, -_LANES)
    rest = first_lanes(fn, columns - whole, _LANES)

    def row(r: Value) -> None:
        low = source + r * (2 * row_bytes)
        target = to + r * (2 * row_bytes)

        def vector(n: Value, mask: Value | None = None) -> None:
            found = [
                convert(fn, load(fn, at + n * _SIZE, uint16, _LANES, mask), uint32)
                for at in (low, low + row_bytes)
            ]
            pair = found[0] | fn.binary("shl", found[1], 16)
            store(fn, pair, target + n * (2 * _SIZE), mask)

        loop(fn, fn.number(0), whole, _LANES, vector)
        when(fn, whole < columns, lambda: vector(whole, rest))

    loop(fn, *share(fn, words["rows"], tid, nth), 1, row)
    return module.text()
