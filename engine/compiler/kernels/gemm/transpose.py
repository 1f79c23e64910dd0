"""Copying a matrix with its axes exchanged: to[j, i] = from[i, j].

There is a kernel for whole matrices, where a unit of work is some columns of `from`: they are read
along its rows, block by block. And there is an epilogue, for a product that is made the other way.
"""

from __future__ import annotations

from ....graph import DType
from ...codegen.control import loop
from ...codegen.function import Module, Value
from ...ir.launch import Epilogue, Launch, Word
from ...target.code import Code
from ..addressing import Words, function, invoke, minimum, share
from .pack import TRANSPOSE, write_transpose

SYMBOL = "transpose_matrix"

# Strides are in bytes. There is room for as many rows and columns of `to` as are a multiple of the
# lanes.
WORDS = ("from", "from_stride", "to", "to_stride", "rows", "columns")
_EPILOGUE_SYMBOL = "turn_block"
_EPILOGUE_WORDS = WORDS[:4]

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
    words = source, from_stride, to, to_stride, rows, columns
    return Launch(code(dtype, vector_bytes), words)


def code(dtype: DType, vector_bytes: int) -> Code:
    """The kernel."""
    return Code(SYMBOL, vector_bytes, _write, (dtype, vector_bytes))


def epilogue(
    source: Word, from_stride: int, to: Word, to_stride: int, dtype: DType, vector_bytes: int
) -> Epilogue:
    """What copies each finished block of a product at `source`; `to` need not have room besides."""
    words = source, from_stride, to, to_stride
    return Epilogue(epilogue_code(dtype, vector_bytes), words)


def epilogue_code(dtype: DType, vector_bytes: int) -> Code:
    """The kernel of `epilogue`."""
    return Code(_EPILOGUE_SYMBOL, vector_bytes, _write_epilogue, (dtype, vector_bytes))


def _write_epilogue(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    write_transpose(module, dtype, vector_bytes, is_exact=True)
    fn, (args, row, rows, column, columns) = function(module, _EPILOGUE_SYMBOL, 5)
    words = Words(fn, args, _EPILOGUE_WORDS)
    invoke(
        fn,
        TRANSPOSE,
        words["to"] + column * words["to_stride"] + row * dtype.size,
        words["from"] + row * words["from_stride"] + column * dtype.size,
        rows,
        columns,
        words["to_stride"],
        words["from_stride"],
    )
    return module.text()


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

    loop(fn, *share(fn, blocks, tid, nth), 1, unit)
    return module.text()
