"""The kernel that copies a matrix with its axes exchanged: to[j, i] = from[i, j].

A unit of work is some columns of `from`: they are read along its rows, block by block.
"""

from __future__ import annotations

from ...graph import DType
from ..emit import Module, Value
from .launch import Code, Launch, Word
from .pack import TRANSPOSE, write_transpose
from .words import Words, function, invoke, minimum, share

SYMBOL = "turn"

# Strides are in bytes. There is room for as many rows and columns of `to` as are a multiple of the
# lanes.
WORDS = ("from", "from_stride", "to", "to_stride", "rows", "columns")

# Columns of a unit: some lines of each row that is read, and not many rows that are written.
_BLOCK = 128


def plan(
    source: Word,
    from_stride: int,
    to: Word,
    to_stride: int,
    rows: int,
    columns: int,
    dtype: DType,
    vector_bytes: int,
) -> Launch:
    """The launch that copies `rows` of so many columns; arguments are WORDS."""
    code = Code(SYMBOL, vector_bytes, _write, (dtype, vector_bytes))
    return Launch(code, (source, from_stride, to, to_stride, rows, columns))


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    write_transpose(module, dtype, vector_bytes)
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    words = Words(fn, args, WORDS)
    blocks = fn.binary("udiv", words["columns"] + (_BLOCK - 1), fn.number(_BLOCK))

    def unit(u: Value) -> None:
        j = u * _BLOCK
        invoke(
            fn,
            TRANSPOSE,
            words["to"] + j * words["to_stride"],
            words["from"] + j * dtype.size,
            words["rows"],
            minimum(fn, words["columns"] - j, fn.number(_BLOCK)),
            words["to_stride"],
            words["from_stride"],
        )

    fn.loop(*share(fn, blocks, tid, nth), 1, unit)
    return module.text()
